// The line: points to drag, the function as it is now, its predicted limit and the extremal one.
import { Card } from "../card.js";
import { Handles, button } from "../handles.js";
import { clamp, drawAxes, linear, pathOf, said, shape, ticks } from "../svg.js";

export class LineScene {
  constructor(app) {
    this.app = app;
    this.card = new Card(app, {
      id: "line", title: "The function", height: (w) => clamp(w * 0.8, 300, 420),
      help: "Drag the points: the solid line is the network at the time of the scrubber, the dashed "
        + "one its predicted limit and the dotted one the extremal function. Ticks below are kinks, one "
        + "a neuron, as tall as the bend they make; double-click adds a point, Delete removes one.",
      tools: [button("+ point", () => app.addPoint()), button("− point", () => app.removePoint())],
    });
    for (const name of ["axes", "ghosts", "curves", "kinks"]) this[name] = this.card.layer(name);
    this.handles = new Handles(this.card, {
      label: (i) => `point ${i}: x ${said(app.state.X[i][0])}, label ${said(app.state.y[i])}`,
      drag: (i, px, py, moved) => this.drag(i, this.x.invert(px), this.label(this.y.invert(py)), moved),
      move: (i, dx, dy) => this.nudge(i, dx, dy),
      remove: (i) => app.removePoint(i),
      done: () => app.settle(),
    });
    this.card.svg.addEventListener("dblclick", (event) => this.add(event));
    this.bubble = this.card.layer("bubbles");
  }

  label(y) { return this.app.state.loss === "square" ? y : y > 0 ? 1 : -1; }

  drag(i, x, label, moved) {
    const [a, b] = this.x.domain;
    this.app.movePoint(i, this.app.apart(i, [x, 1], label, 1e-3 * (b - a)), label, moved);
  }

  nudge(i, dx, dy) {
    const { X, y, loss } = this.app.state;
    const [a, b] = this.x.domain;
    const [c, d] = this.y.domain;
    const label = loss === "square" ? y[i] + (dy * (d - c)) / 100 : dy > 0 ? 1 : dy < 0 ? -1 : y[i];
    this.app.movePoint(i, [X[i][0] + (dx * (b - a)) / 200, 1], label);
    this.app.settle();
  }

  add(event) {
    const [px, py] = this.card.at(event);
    if (this.app.frozen || px < this.box.left || px > this.box.right || py > this.box.bottom) return;
    this.app.addPoint([this.x.invert(px), 1], this.label(this.y.invert(py)));
  }

  // axes stand still while a point is dragged, unless it leaves them
  domains() {
    const { X, y } = this.app.state;
    if (this.app.dragging && this.last) return this.last;
    const xs = X.map((row) => row[0]);
    const [a, b] = [Math.min(...xs), Math.max(...xs)];
    const [c, d] = [Math.min(0, ...y), Math.max(0, ...y)];
    const [padX, padY] = [Math.max((b - a) * 0.12, 0.5), Math.max((d - c) * 0.3, 0.3)];
    this.last = [[a - padX, b + padX], [c - padY, d + padY]];
    return this.last;
  }

  draw({ run, net, ghosts, extremal, problem, late }) {
    const { card } = this;
    const [dx, dy] = this.domains();
    this.box = { left: 46, right: card.width - 10, top: 18, bottom: card.tall - 52 };
    this.x = linear(dx, [this.box.left, this.box.right]);
    this.y = linear(dy, [this.box.bottom, this.box.top]);
    drawAxes(this.axes, this.box, this.x, this.y, {
      xTicks: ticks(...dx, card.width / 90), yTicks: ticks(...dy, 5), xLabel: "x", yLabel: "h(x)",
    });
    const clip = (y) => clamp(this.y(y), this.box.top - 400, this.box.bottom + 400);
    const line = (which, name) => shape("path", { class: `curve ${name}`, "clip-path": "url(#clip-line)",
      d: pathOf(which.polyline(...dx).map(([x, y]) => [this.x(x), clip(y)])) });
    const clipping = shape("clipPath", { id: "clip-line" }, shape("rect", { x: this.box.left,
      y: this.box.top, width: this.box.right - this.box.left, height: this.box.bottom - this.box.top }));
    this.ghosts.replaceChildren(clipping, ...ghosts.filter((g) => g.run.d === 2 && g.run.state.line)
      .map((g) => line(g.run.final, `ghost ghost-${g.slot}`)));
    const curves = [];
    if (extremal) curves.push(line(extremal, late("extremal") ? "extremal late" : "extremal"));
    if (run && run.limit) curves.push(line(run.limit, "limit"));
    if (net) curves.push(line(this.scaled(net), "trained"));
    this.curves.replaceChildren(...curves);
    this.drawKinks(net, dx);
    const bad = new Set(problem ? problem.points : []);
    this.handles.draw(this.app.state.X.map((row, i) => [this.x(row[0]), this.y(this.app.state.y[i])]),
      (i) => `${this.app.state.y[i] < 0 ? "minus" : "plus"}${bad.has(i) ? " bad" : ""}`);
    this.say(problem);
  }

  // of a classifier the outputs grow without end: the line shows them over the smallest margin
  scaled(net) {
    const { X, y, loss } = this.app.state;
    if (loss === "square") return net;
    const margin = Math.min(...X.map((row, i) => y[i] * net.value(row)));
    if (!(margin > 1)) return net;
    return net.times(1 / margin);
  }

  drawKinks(net, [low, high]) {
    if (!net) { this.kinks.replaceChildren(); return; }
    const base = this.box.bottom;
    const bends = Array.from(net.weight, (_, j) => net.bend(j));
    const largest = Math.max(...bends, 1e-300);
    const nodes = [];
    for (let j = 0; j < net.m; j += 1) {
      const x = net.kink(j);
      if (!(x > low && x < high)) continue;
      const tall = 3 + 15 * (bends[j] / largest);
      nodes.push(shape("path", { "data-neuron": j, d: `M${this.x(x).toFixed(2)},${base}v${-tall.toFixed(2)}`,
        class: `kink ${net.sign[j] < 0 ? "minus" : "plus"}${this.app.hot === j ? " hot" : ""}` }));
    }
    this.kinks.replaceChildren(...nodes);
  }

  say(problem) {
    const nodes = [];
    if (problem && problem.points.length && this.app.state.X[problem.points[0]]) {
      const i = problem.points[0];
      const px = this.x(this.app.state.X[i][0]);
      nodes.push(shape("text", { class: "bubble", x: clamp(px, 60, this.card.width - 60),
        y: this.y(this.app.state.y[i]) - 14, "text-anchor": "middle" }, problem.short));
    }
    this.bubble.replaceChildren(...nodes);
  }
}
