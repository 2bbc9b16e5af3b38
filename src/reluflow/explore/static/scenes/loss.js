// The loss over time: curve, predicted plateaus as bands, predicted jumps and events as ticks.
import { Card } from "../card.js";
import { button } from "../handles.js";
import { clamp, drawAxes, linear, pathOf, said, shape, ticks } from "../svg.js";

export class LossScene {
  constructor(app) {
    this.app = app;
    this.toggle = button("log", () => { app.logLoss = !this.isLog(); app.redraw(); },
      { "aria-label": "Logarithmic loss axis", "aria-pressed": "false" });
    this.card = new Card(app, {
      id: "loss", title: "The loss", height: (w) => (app.root.classList.contains("plane-only") ? clamp(w * 0.8, 300, 420) : clamp(w * 0.5, 240, 320)), tools: [this.toggle],
      help: "The loss from the start to the end, on the time axis chosen below. Bands are the plateaus "
        + "and triangles the jumps that theory predicts for small scales; ticks at the bottom are "
        + "events, where a neuron changes what it is active on. Click to go to a time.",
    });
    for (const name of ["axes", "bands", "ghosts", "curves", "marks"]) this[name] = this.card.layer(name);
    scrubbable(this.card, app, () => this.x);
  }

  isLog() { return this.app.logLoss ?? this.app.state.loss !== "square"; }

  draw({ run, axis, ghosts }) {
    const { card } = this;
    this.toggle.setAttribute("aria-pressed", String(this.isLog()));
    this.box = { left: 56, right: card.width - 12, top: 18, bottom: card.tall - 36 };
    if (!run) return;
    this.x = linear([axis.low, axis.high], [this.box.left, this.box.right - 10]); // a last drop is seen
    const of = this.isLog() ? (log) => log / Math.LN10 : (log) => Math.exp(clamp(log, -700, 700));
    const values = Array.from(run.arrays.log_loss, of);
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (this.isLog()) low = Math.max(low, run.state.loss === "square" ? high - 14 : low);
    else [low, high] = [0, high * 1.06];
    if (!(high > low)) high = low + 1;
    const y = linear([low, high], [this.box.bottom, this.box.top]);
    const timeTicks = axis.ticks(card.width / 90);
    const names = new Map(timeTicks);
    drawAxes(this.axes, this.box, this.x, y, {
      xTicks: timeTicks.map(([at]) => at), xText: (at) => names.get(at), xLabel: axis.label,
      yTicks: ticks(low, high, 5).filter((v) => !this.isLog() || v % 1 === 0 || high - low < 3),
      yText: this.isLog() ? (v) => said(10 ** v, 2) : (v) => said(v, 3), yLabel: "loss",
    });
    const place = (value) => clamp(y(value), this.box.top, this.box.bottom);
    this.drawStairs(run, axis, (loss) => place(of(Math.log(Math.max(loss, 1e-300)))));
    const curve = (which, name, over) => shape("path", { class: `curve ${name}`,
      d: pathOf(Array.from(which.arrays.log_loss, (log, k) => [this.x(over(k)), place(of(log))])) });
    this.ghosts.replaceChildren(...ghosts.map((g) => curve(g.run, `ghost ghost-${g.slot}`,
      (k) => clamp(axis.kind === "progress" ? (k / (g.run.count - 1 || 1)) * axis.high
        : axis.ofLogTime(g.run.logT[k]), axis.low, axis.high))));
    this.curves.replaceChildren(curve(run, "trained", (k) => axis.knots[k]));
    const at = this.x(axis.ofIndex(this.app.index));
    this.marks.replaceChildren(
      shape("path", { class: "events", d: eventTicks(run, axis, this.x, this.box.bottom) }),
      shape("line", { class: "cursor", x1: at, x2: at, y1: this.box.top, y2: this.box.bottom }),
      shape("circle", { class: "cursor-dot", cx: at, cy: place(of(run.logLossAt(this.app.index))), r: 5 }));
  }

  drawStairs(run, axis, place) {
    const { stair_loss: losses, stair_tau: times } = run.stairs || {};
    const nodes = [];
    if (losses) {
      const scale = Math.max(Math.abs(run.header.log_scale), 1);
      const edges = [axis.low, ...Array.from(times, (tau) => axis.ofLogTime(Math.log(tau * scale))), axis.high];
      losses.forEach((loss, k) => {
        const [from, to] = [edges[k], edges[k + 1]].map((t) => this.x(clamp(t, axis.low, axis.high)));
        nodes.push(shape("rect", { class: "plateau", x: from, width: Math.max(to - from, 1), y: place(loss) - 4, height: 8 }));
      });
      for (let k = 0; k < times.length; k += 1) {
        const at = this.x(clamp(edges[k + 1], axis.low, axis.high));
        nodes.push(shape("path", { class: "jump", d: `M${at - 5},${this.box.top}h10l-5,9z` }));
      }
    }
    this.bands.replaceChildren(...nodes);
  }
}

function eventTicks(run, axis, x, bottom) {
  const seen = new Set();
  for (const event of run.events) seen.add(x(axis.ofLogTime(event.logT)).toFixed(1));
  return [...seen].map((at) => `M${at},${bottom}v-6`).join("");
}

// click or drag on a drawing over time moves the scrubber
export function scrubbable(card, app, scale) {
  let held = false;
  const go = (event) => {
    const x = scale();
    if (x && app.axis) app.setIndex(app.axis.indexAt(x.invert(card.at(event)[0])));
  };
  card.svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = true;
    card.svg.setPointerCapture(event.pointerId);
    go(event);
  });
  card.svg.addEventListener("pointermove", (event) => { if (held) go(event); });
  for (const kind of ["pointerup", "pointercancel"]) card.svg.addEventListener(kind, () => { held = false; });
}
