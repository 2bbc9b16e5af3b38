// The raster: one row a neuron, its active points over time; slides hatched, deaths crossed.
import { Card } from "../card.js";
import { clamp, linear, shape, tickBelow } from "../svg.js";
import { scrubbable } from "./loss.js";

export class RasterScene {
  constructor(app) {
    this.app = app;
    this.card = new Card(app, {
      id: "raster", title: "Who is active on what", height: (w) => clamp(w * 0.5, 240, 320),
      help: "One row a neuron, largest at the end on top; the darker, the more points it is active on. "
        + "Hatched stretches are slides along the plane of a point, a cross is a death. Click to go there.",
    });
    for (const name of ["axes", "rows", "marks"]) this[name] = this.card.layer(name);
    this.card.svg.prepend(shape("defs", {}, shape("pattern", { id: "hatch", width: 5, height: 5,
      patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    shape("rect", { class: "hatch", width: 2, height: 5 }))));
    scrubbable(this.card, app, () => this.x);
  }

  draw({ run, axis }) {
    if (!run) return;
    const { card } = this;
    const box = { left: 56, right: card.width - 12, top: 8, bottom: card.tall - 34 };
    this.box = box;
    this.x = linear([axis.low, axis.high], [box.left, box.right - 10]);
    const key = `${run.header.id}/${axis.kind}/${card.width}/${this.app.hot}`;
    if (key !== this.key) {
      this.key = key;
      this.drawRows(run, axis);
    }
    const at = this.x(axis.ofIndex(this.app.index));
    this.marks.replaceChildren(shape("line", { class: "cursor", x1: at, x2: at, y1: box.top, y2: box.bottom }));
  }

  drawRows(run, axis) {
    const { box } = this;
    const final = run.final;
    const order = Array.from(final.weight, (_, j) => j)
      .sort((p, q) => final.logW[q] + final.logA[q] - final.logW[p] - final.logA[p]);
    const tall = (box.bottom - box.top) / run.m;
    const byNeuron = Array.from({ length: run.m }, () => []);
    for (const event of run.events) byNeuron[event.neuron].push(event);
    const nodes = [];
    order.forEach((j, row) => {
      const y = box.top + row * tall;
      const parts = this.stretches(run, axis, j, byNeuron[j]);
      nodes.push(...parts.map(({ from, to, active }) =>
        shape("rect", { class: `stretch ${final.sign[j] < 0 ? "minus" : "plus"}`, "data-neuron": j, x: from.toFixed(2),
          width: Math.max(to - from, 0.4).toFixed(2), y: y.toFixed(2), height: Math.max(tall - 0.6, 0.6).toFixed(2),
          "fill-opacity": (0.06 + 0.8 * (active / run.n)).toFixed(3) })));
      nodes.push(...parts.filter((part) => part.slides).map(({ from, to }) =>
        shape("rect", { class: "slide", fill: "url(#hatch)", x: from.toFixed(2),
          width: Math.max(to - from, 1).toFixed(2), y: y.toFixed(2), height: Math.max(tall - 0.6, 0.6).toFixed(2) })));
      for (const event of byNeuron[j].filter((e) => e.kind === "die")) {
        const [cx, cy, r] = [this.x(axis.ofLogTime(event.logT)), y + tall / 2, Math.min(tall / 2, 3.5)];
        nodes.push(shape("path", { class: "death", d: `M${cx - r},${cy - r}l${2 * r},${2 * r}m0,${-2 * r}l${-2 * r},${2 * r}` }));
      }
      if (this.app.hot === j) {
        nodes.push(shape("rect", { class: "hot-row", x: box.left, width: box.right - box.left, y, height: tall }));
      }
    });
    this.rows.replaceChildren(...nodes);
    const labels = axis.ticks(this.card.width / 90).map(([at, text]) => tickBelow(box, this.x(at), text));
    this.axes.replaceChildren(...labels,
      shape("text", { class: "axis-label", x: box.right, y: box.bottom + 30, "text-anchor": "end" }, axis.label),
      shape("text", { class: "tick", x: box.left - 6, y: box.top + 10, "text-anchor": "end" }, "large"),
      shape("text", { class: "tick", x: box.left - 6, y: box.bottom - 2, "text-anchor": "end" }, "small"));
  }

  // constant parts of a row: from and to in the drawing, how many points, whether it slides
  stretches(run, axis, j, events) {
    const modes = Uint8Array.from(run.arrays.mode.subarray(j * run.n, (j + 1) * run.n));
    const parts = [];
    let from = this.x(axis.low);
    const close = (to) => {
      const active = modes.reduce((sum, mode) => sum + (mode === 1), 0);
      const slides = modes.some((mode) => mode === 2);
      const last = parts[parts.length - 1];
      if (to - from < 0.05 && last) return;
      if (last && last.active === active && last.slides === slides) last.to = to;
      else parts.push({ from, to, active, slides });
      from = to;
    };
    for (const event of events) {
      const after = { activate: 1, deactivate: 0, slide: 2 }[event.kind];
      if (after === undefined || event.point < 0) continue;
      close(this.x(axis.ofLogTime(event.logT)));
      modes[event.point] = after;
    }
    close(this.x(axis.high));
    return parts;
  }
}
