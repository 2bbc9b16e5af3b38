// The page of the loopback server: token, connection, links.
import { App } from "./app.js";
import { Socket } from "./link.js";
import { fromFragment, toFragment } from "./share.js";

function takeToken() {
  const query = new URLSearchParams(location.search);
  const given = query.get("token");
  if (given) {
    localStorage.setItem("reluflow-token", given);
    history.replaceState(null, "", location.pathname + location.hash); // the key is not for links
  }
  return given || localStorage.getItem("reluflow-token") || "";
}

function begin() {
  const root = document.getElementById("app");
  const theme = localStorage.getItem("reluflow-theme");
  if (theme) root.dataset.theme = theme;
  let greeted = false;
  const socket = new Socket(takeToken(), {
    onopen: () => greet(),
    onclose: (code) => {
      app.link.reset();
      if (code === 4001) app.say("The explorer was opened in another tab. Reload this one to take it back.");
      else app.say("The server is gone. Start it again with `reluflow explore` and open the address it prints; this page reconnects by itself if it comes back.");
      app.mark("gone", code === 4001 ? "opened elsewhere" : "no server");
    },
  });
  const app = new App(root, socket, { remember: (state) => {
    app.own = toFragment(state);
    history.replaceState(null, "", app.own);
  } });
  root.explorer = app;

  function open(fallback) {
    const { state, error } = fromFragment(location.hash);
    if (error) app.refused = error;
    if (state || fallback) app.start(state || fallback);
    if (error) app.say(error);
  }

  function greet() {
    app.say(null);
    app.link.ask("hello", {}, (header) => {
      app.presets = header.presets;
      app.controls.setPresets(header.presets);
      if (greeted) { app.compute(); return; }
      greeted = true;
      const first = JSON.stringify(header.state);
      app.preset = location.hash ? null : header.presets.find((preset) => JSON.stringify(preset.state) === first) || null;
      open(header.state);
    });
  }

  addEventListener("hashchange", () => { if (location.hash !== app.own) open(null); });
}

begin();
