// The plane: inputs as arrows, their dual lines, neurons on the circle of directions.
import { Card } from "../card.js";
import { Handles, button } from "../handles.js";
import { clamp, pathOf, said, shape } from "../svg.js";

const TURN = 2 * Math.PI;

export class PlaneScene {
  constructor(app) {
    this.app = app;
    this.card = new Card(app, {
      id: "plane", title: "Directions", height: (w) => clamp(w * 0.8, 300, 420),
      help: "Arrows are inputs (drag their tips); each casts a dashed line, and a neuron is active on "
        + "an input when it lies on the same side of that line. Dots on the circle are neurons: round "
        + "for positive output weight, square for negative, larger as they grow; drag one to change its start.",
      tools: [button("+ point", () => app.addPoint()), button("− point", () => app.removePoint())],
    });
    for (const name of ["cones", "duals", "trails", "ghosts", "inputs", "neurons", "stars"]) {
      this[name] = this.card.layer(name);
    }
    this.handles = new Handles(this.card, {
      label: (i) => `input ${i}: ${app.state.X[i].map((x) => said(x)).join(", ")}, label ${said(app.state.y[i])}`,
      drag: (i, px, py, moved) => app.movePoint(i, this.point(i, px, py), null, moved),
      move: (i, dx, dy) => this.nudge(i, dx, dy),
      remove: (i) => app.removePoint(i),
      done: () => app.settle(),
      other: (i, key) => this.relabel(i, key),
    });
    this.dots = new Handles(this.card, {
      label: (j) => `neuron ${j}, ${this.net && this.net.sign[j] < 0 ? "negative" : "positive"}`,
      drag: (j, px, py, moved) => app.turnNeuron(j, Math.atan2(this.cy - py, px - this.cx), moved),
      move: (j, dx, dy) => {
        app.turnNeuron(j, this.start.angle(j) + ((dy || -dx) * Math.PI) / 180);
        app.settle();
      },
      done: () => app.settle(),
      other: (j, key) => key === "f" && app.flipNeuron(j),
    });
    this.bubble = this.card.layer("bubbles");
  }

  relabel(i, key) {
    if (key !== "+" && key !== "-") return false;
    const { y, loss } = this.app.state;
    const step = key === "+" ? 0.05 : -0.05;
    this.app.movePoint(i, null, loss === "square" ? y[i] + step : Math.sign(step));
    this.app.settle();
    return true;
  }

  // keep a point a little away from the origin, where nothing can be learned
  point(i, px, py) {
    const x = (px - this.cx) / this.unit;
    const y = (this.cy - py) / this.unit;
    if (this.app.state.line) return [x, 1];
    const size = Math.hypot(x, y);
    const least = (1e-3 * this.radius) / this.unit;
    if (size >= least) return this.app.apart(i, [x, y], null, least);
    return size > 0 ? [(x * least) / size, (y * least) / size] : [least, 0];
  }

  nudge(i, dx, dy) {
    const step = this.radius / this.unit / 100;
    const [x, y] = this.app.state.X[i];
    this.app.movePoint(i, this.app.state.line ? [x + dx * step, 1] : [x + dx * step, y + dy * step], null);
    this.app.settle();
  }

  place(angle, radius) {
    return [this.cx + radius * Math.cos(angle), this.cy - radius * Math.sin(angle)];
  }

  draw({ run, net, ghosts, problem }) {
    const { card } = this;
    const { X, y } = this.app.state;
    Object.assign(this, { cx: card.width / 2, cy: card.tall / 2, net });
    this.radius = Math.min(card.width, card.tall) / 2 - 34;
    if (!this.app.dragging || !this.unit || this.tall !== card.tall) {
      const longest = Math.max(...X.map((row) => Math.hypot(...row)));
      this.unit = (0.82 * this.radius) / longest;
      this.tall = card.tall;
    }
    if (run) this.start = run.netAt(0);
    this.drawCones(X);
    const tips = X.map((row) => [this.cx + row[0] * this.unit, this.cy - row[1] * this.unit]);
    this.inputs.replaceChildren(...tips.flatMap(([px, py], i) => [
      shape("line", { class: `input ${y[i] < 0 ? "minus" : "plus"}`, x1: this.cx, y1: this.cy, x2: px, y2: py }),
      this.tag(px, py, this.app.state.line ? "" : said(y[i], 3)),
    ]));
    const bad = new Set(problem ? problem.points : []);
    this.handles.draw(tips, (i) => `${y[i] < 0 ? "minus" : "plus"}${bad.has(i) ? " bad" : ""}`);
    this.ghosts.replaceChildren(...ghosts.filter((g) => g.run.d === 2).flatMap((g) =>
      this.ends(g.run.final).map((angle) => this.star(angle, this.radius - 13, `ghost-${g.slot}`, 5))));
    this.stars.replaceChildren(...(run && run.limit
      ? this.ends(run.limit).map((angle) => this.star(angle, this.radius, "limit", 9)) : []));
    this.drawNeurons(net);
    this.drawTrails(run);
    const i = problem && problem.points.length ? problem.points[0] : null;
    this.bubble.replaceChildren(...(i !== null && tips[i] ? [shape("text", { class: "bubble",
      x: clamp(tips[i][0], 70, card.width - 70), y: tips[i][1] - 14, "text-anchor": "middle" }, problem.short)] : []));
  }

  // the label of an input, beside the tip of its arrow
  tag(px, py, text) {
    const [dx, dy] = [px - this.cx, py - this.cy];
    const size = Math.hypot(dx, dy) || 1;
    return shape("text", { class: "tick tag", "text-anchor": "middle",
      x: px - (20 * dy) / size, y: py + (16 * dx) / size + 4 }, text);
  }

  drawCones(X) {
    const edges = X.flatMap(([a, b]) => {
      const angle = Math.atan2(b, a);
      return [angle + Math.PI / 2, angle - Math.PI / 2].map((t) => ((t % TURN) + TURN) % TURN);
    }).sort((p, q) => p - q);
    const cones = edges.map((from, k) => {
      const to = k + 1 < edges.length ? edges[k + 1] : edges[0] + TURN;
      const middle = (from + to) / 2;
      const active = X.filter(([a, b]) => a * Math.cos(middle) + b * Math.sin(middle) > 0).length;
      const [x1, y1] = this.place(from, this.radius);
      const [x2, y2] = this.place(to, this.radius);
      return shape("path", { class: "cone", "fill-opacity": (0.03 + (0.2 * active) / X.length).toFixed(3),
        d: `M${this.cx},${this.cy}L${x1},${y1}A${this.radius},${this.radius} 0 ${to - from > Math.PI ? 1 : 0} 0 ${x2},${y2}Z` });
    });
    const lines = edges.map((angle) => {
      const [x, y] = this.place(angle, this.radius);
      return shape("line", { class: "dual", x1: this.cx, y1: this.cy, x2: x, y2: y });
    });
    const circle = shape("circle", { class: "rim", cx: this.cx, cy: this.cy, r: this.radius });
    this.cones.replaceChildren(...cones);
    this.duals.replaceChildren(...lines, circle);
  }

  // angles of the neurons that count, those within two degrees once
  ends(net) {
    const top = net.top();
    const found = [];
    for (let j = 0; j < net.m; j += 1) {
      if (net.logW[j] + net.logA[j] < top - 7 || top < -30) continue;
      const angle = net.angle(j);
      if (!found.some((other) => Math.abs(Math.sin((angle - other) / 2)) < 0.017)) found.push(angle);
    }
    return found;
  }

  star(angle, radius, name, size) {
    const [x, y] = this.place(angle, radius);
    const corners = Array.from({ length: 10 }, (_, k) => {
      const r = k % 2 ? size * 0.45 : size;
      return [x + r * Math.sin((k * Math.PI) / 5), y - r * Math.cos((k * Math.PI) / 5)];
    });
    return shape("path", { class: `star ${name}`, d: `${pathOf(corners)}Z` });
  }

  drawNeurons(net) {
    if (!net) return;
    const logs = Array.from(net.logW, (w, j) => Math.max((w + net.logA[j]) / 2, -1e30));
    const top = Math.max(...logs);
    const places = logs.map((_, j) => this.place(net.angle(j), this.radius));
    this.dots.draw(places, (j) => `neuron ${net.sign[j] < 0 ? "minus" : "plus"}${this.app.hot === j ? " hot" : ""}`);
    // sizes say how large a neuron is against the largest, and whether any has grown at all
    const grown = clamp(1 + top / 12, 0.25, 1);
    this.dots.nodes.forEach((node, j) => {
      const size = 2.2 + 5 * grown * clamp(1 + (logs[j] - top) / 6, 0, 1);
      const dot = node.querySelector(".dot");
      dot.setAttribute("r", size.toFixed(2));
      node.dataset.neuron = j;
      node.setAttribute("tabindex", j === (this.app.hot ?? 0) ? 0 : -1);
      let square = node.querySelector("rect");
      if (!square) { square = shape("rect", { class: "dot" }); node.append(square); }
      for (const side of ["width", "height"]) square.setAttribute(side, (1.8 * size).toFixed(2));
      for (const corner of ["x", "y"]) square.setAttribute(corner, (-0.9 * size).toFixed(2));
    });
  }

  // go on along the circle, not across it
  arc(points, angle, radius) {
    const from = points.length ? points.angle : angle;
    const turn = Math.atan2(Math.sin(angle - from), Math.cos(angle - from));
    const parts = Math.max(1, Math.ceil(Math.abs(turn) / 0.15));
    for (let p = 1; p <= parts; p += 1) points.push(this.place(from + (turn * p) / parts, radius));
    points.angle = angle;
  }

  drawTrails(run) {
    if (!run) { this.trails.replaceChildren(); return; }
    const last = Math.ceil(this.app.index);
    const drawn = [run, last, this.app.hot, this.radius, this.cx];
    if (this.drawn && drawn.every((part, k) => part === this.drawn[k])) return;
    this.drawn = drawn;
    const step = Math.max(1, Math.floor(last / 60));
    const { u } = run.arrays;
    const nodes = [];
    for (let j = 0; j < run.m && run.m <= 100; j += 1) {
      const points = [];
      for (let k = 0; k <= last; k += step) {
        const at = 2 * (k * run.m + j);
        const angle = Math.atan2(u[at + 1], u[at]);
        this.arc(points, angle, this.radius + 8 + 16 * (k / Math.max(run.count - 1, 1)));
      }
      const sign = run.arrays.sign[j] < 0 ? "minus" : "plus";
      nodes.push(shape("path", { class: `trail ${sign}${this.app.hot === j ? " hot" : ""}`, d: pathOf(points) }));
    }
    this.trails.replaceChildren(...nodes);
  }
}
