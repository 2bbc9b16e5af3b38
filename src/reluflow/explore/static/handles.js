// Points that can be dragged: focusable, moved by arrow keys, kept between drawings.
import { html, shape } from "./svg.js";

export class Handles {
  // spec: move(i, dx, dy) by a nudge, drag(i, x, y) in drawing units, label(i), remove(i), done()
  constructor(card, spec) {
    Object.assign(this, { card, spec, nodes: [], held: null });
    this.layer = card.layer("handles");
    card.svg.addEventListener("pointerdown", (event) => this.grab(event));
    card.svg.addEventListener("pointermove", (event) => this.pull(event));
    for (const kind of ["pointerup", "pointercancel"]) {
      card.svg.addEventListener(kind, (event) => this.drop(event));
    }
  }

  node(i) {
    if (!this.nodes[i]) {
      const node = shape("g", { class: "handle", tabindex: 0, role: "button",
        onkeydown: (event) => this.key(event, i) }, shape("circle", { class: "reach", r: 14 }),
      shape("circle", { class: "dot", r: 6.5 }));
      this.nodes[i] = node;
    }
    return this.nodes[i];
  }

  draw(places, classes) {
    while (this.nodes.length > places.length) this.nodes.pop().remove();
    this.places = places;
    places.forEach(([x, y], i) => {
      const node = this.node(i);
      node.setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)})`);
      node.setAttribute("class", `handle ${classes(i)}`);
      node.setAttribute("aria-label", this.spec.label(i));
      if (node.parentNode !== this.layer) this.layer.append(node);
    });
  }

  nearest([x, y], reach) {
    let best = null;
    let least = reach;
    (this.places || []).forEach(([px, py], i) => {
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }

  grab(event) {
    if (event.button !== 0 || this.card.app.frozen) return;
    const i = this.nearest(this.card.at(event), event.pointerType === "touch" ? 28 : 16);
    if (i === null || event.defaultPrevented) return;
    event.preventDefault();
    this.held = i;
    this.card.svg.setPointerCapture(event.pointerId);
    this.node(i).focus({ preventScroll: true });
    this.card.app.dragging = true;
  }

  pull(event) {
    if (this.held === null) return;
    const [x, y] = this.card.at(event);
    this.spec.drag(this.held, x, y, event.timeStamp);
  }

  drop() {
    if (this.held === null) return;
    this.held = null;
    this.card.app.dragging = false;
    this.spec.done();
  }

  key(event, i) {
    const size = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (this.card.app.frozen || event.ctrlKey || event.metaKey) return;
    if (moves[event.key]) this.spec.move(i, size * moves[event.key][0], size * moves[event.key][1]);
    else if (["Delete", "Backspace"].includes(event.key) && this.spec.remove) {
      this.spec.remove(i);
      const next = this.nodes[Math.min(i, this.nodes.length - 2)];
      if (next) next.focus();
    } else if (this.spec.other && this.spec.other(i, event.key)) { /* done */ } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

export function button(text, onclick, more = {}) {
  return html("button", { type: "button", class: "small", onclick, ...more }, text);
}
