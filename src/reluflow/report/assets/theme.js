"use strict";
// Runs before anything is painted: the theme of the reader's system, light where it has none.
(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    document.documentElement.dataset.theme = system.matches ? "dark" : "light";
  };
  follow();
  system.addEventListener("change", () => {
    follow();
    document.dispatchEvent(new Event("themechange"));
  });
})();
