// The notebook: the same page in an output cell, its messages through the kernel.
import { App } from "./app.js";
import { Model } from "./link.js";

function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const app = new App(root, new Model(model), { remember: (state) => {
    model.set("_state", state);
    model.save_changes();
  } });
  root.explorer = app;
  root.classList.add("embedded");
  app.link.ask("hello", {}, (header) => {
    app.presets = header.presets;
    app.controls.setPresets(header.presets);
    app.start(header.state);
  });
}

const widgetModule = { render };
