// A scene's frame: title, help, tools, and a drawing as wide as the page gives it.
import { html, saveFileName, shape } from "./svg.js";
import { saveFile, svgText } from "./share.js";

export class Card {
  constructor(app, { id, title, help, height, tools = [] }) {
    Object.assign(this, { app, id, height, width: 400 }); // until the page gives it a size
    this.tall = this.tallAt(400);
    const words = html("p", { class: "help-text", id: `help-${id}`, hidden: true }, help);
    const button = html("button", { type: "button", class: "small", "aria-expanded": "false",
      "aria-controls": `help-${id}`, "aria-label": `What am I looking at? ${title}`,
      onclick: () => {
        words.hidden = !words.hidden;
        button.setAttribute("aria-expanded", String(!words.hidden));
      } }, "?");
    const save = html("button", { type: "button", class: "small", "aria-label": `Save ${title} as SVG`,
      onclick: () => saveFile(saveFileName(title), svgText(this.svg, app.root), "image/svg+xml") }, "SVG");
    this.svg = shape("svg", { role: "group", "aria-label": title });
    this.element = html("section", { class: `card card-${id}`, "aria-label": title },
      html("div", { class: "card-head" }, html("h2", {}, title), html("span", { class: "tools" },
        ...tools, save, button)), words, this.svg);
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  layer(name, attributes) {
    const group = shape("g", { class: name, ...attributes });
    this.svg.append(group);
    return group;
  }

  resize() {
    if (this.element.hidden) return;
    const width = Math.max(Math.floor(this.element.clientWidth) - 18, 200);
    const tall = this.tallAt(width);
    if (width === this.width && tall === this.tall && this.sized) return;
    Object.assign(this, { sized: true, width, tall });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.tall}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", this.tall);
    this.app.redraw();
  }

  tallAt(width) { return typeof this.height === "function" ? this.height(width) : this.height; }

  // pointer position in the units of the drawing
  at(event) {
    const box = this.svg.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.width,
      ((event.clientY - box.top) / box.height) * this.tall];
  }

  show(visible) { this.element.hidden = !visible; }
}
