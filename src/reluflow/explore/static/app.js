// The application: one state, one run, one moment; scenes draw what they are given.
import { Controls } from "./controls.js";
import { NumbersPanel } from "./scenes/numbers.js";
import { Player } from "./player.js";
import { Scheduler } from "./link.js";
import { TimeAxis } from "./time.js";
import { LineScene } from "./scenes/line.js";
import { LossScene } from "./scenes/loss.js";
import { PlaneScene } from "./scenes/plane.js";
import { RasterScene } from "./scenes/raster.js";
import { StripScene } from "./scenes/strip.js";
import { Net, Run } from "./run.js";
import { completed, saveFile, svgText, toFragment } from "./share.js";
import { clamp, html } from "./svg.js";
import { bindKeys, helpDialog } from "./keys.js";

export class App {
  constructor(root, transport, { frozen = false, remember = () => {} } = {}) {
    Object.assign(this, { root, frozen, remember, ghosts: [], slow: {}, fresh: new Set(), presets: [], index: 0, hot: null,
      run: null, problem: null, dragging: false, axisKind: null, preset: null, atEnd: true, state: null });
    if (transport) this.link = new Scheduler(transport, (...told) => this.take(...told));
    this.player = new Player(this);
    this.controls = new Controls(this);
    this.numbers = new NumbersPanel(this);
    this.scenes = [LineScene, PlaneScene, LossScene, RasterScene, StripScene].map((Scene) => new Scene(this));
    this.badge = html("span", { class: "badge" }, "starting");
    this.alert = html("p", { class: "alert", role: "alert", hidden: true });
    this.build();
    bindKeys(this);
  }

  build() {
    const { root } = this;
    this.help = helpDialog();
    const key = (text, label, onclick) => html("button", { type: "button", class: "small", "aria-label": label, onclick }, text);
    root.classList.add("rfx");
    root.replaceChildren(
      html("header", {}, html("h1", {}, "reluflow explorer"), html("span", { role: "status", class: "status" }, this.badge), this.alert,
        html("span", { class: "tools" }, key("Help", "Help and keys", () => this.help.showModal()),
          key("◐", "Light or dark", () => this.toggleTheme()))),
      html("div", { class: "columns" }, this.frozen ? null : this.controls.element,
        html("main", { class: "scenes" }, ...this.scenes.map((scene) => scene.card.element)),
        html("div", { class: "right", role: "complementary", "aria-label": "Numbers and verdicts" }, this.numbers.element)),
      this.player.element, this.help);
    root.classList.toggle("frozen", this.frozen);
    root.addEventListener("pointerover", (event) => this.point(event.target));
  }

  // ------------------------------------------------------------------ the state

  start(state) {
    this.state = completed(state);
    this.compute(performance.now());
  }

  change(part, moved) {
    this.state = { ...this.state, ...part };
    this.preset = null;
    this.compute(moved);
  }

  changeNet(part) {
    const drawn = { kind: "drawn", width: 50, seed: 1, init: "balanced", directions: "gaussian", signs: "random" };
    const net = this.state.net.kind === "drawn" ? this.state.net : drawn;
    this.change({ net: { ...net, ...part }, moves: [] });
  }

  setLoss(loss) {
    const y = loss === "square" ? this.state.y : this.state.y.map((label) => (label < 0 ? -1 : 1));
    this.change({ loss, y, stop_log_loss: null });
  }

  // a layer that is not trained has the rate 1, and decay is for both
  setTrain(train) {
    const [hidden, output] = this.state.rates;
    this.change({ train, decay: train === "both" ? this.state.decay : 0, rates: [train === "output" ? 1 : hidden, train === "hidden" ? 1 : output] });
  }

  compute(moved) {
    if (this.link && !this.frozen) this.link.change(this.state, moved);
    this.redraw();
  }

  settle() { this.redraw(); }

  // a hand keeps a point this far from those of the other class: no network tells them apart there
  apart(i, row, label, least) {
    const { X, y, loss } = this.state;
    if (loss === "square") return row;
    const near = X.find((other, k) => k !== i && y[k] !== (label ?? y[i])
      && Math.hypot(...row.map((x, c) => x - other[c])) < least);
    return near ? row.map((x, c) => (c ? x : near[0] + (x < near[0] ? -least : least))) : row;
  }

  movePoint(i, row, label, moved) {
    const tidy = (x) => Number(x.toPrecision(6));
    const X = this.state.X.map((old, k) => (k === i && row ? row.map(tidy) : old));
    const y = this.state.y.map((old, k) => (k === i && label !== null ? tidy(label) : old));
    this.selected = i;
    this.change({ X, y }, moved);
  }

  addPoint(row, label) {
    const { X, y, line, loss } = this.state;
    if (X.length >= 40) { this.say("40 points are the limit of the explorer. Delete one first."); return; }
    const middle = X[0].map((_, k) => X.reduce((sum, r) => sum + r[k], 0) / X.length + (line && k === 1 ? 0 : 0.31));
    this.selected = X.length;
    this.change({ X: [...X, (row || middle).map((x) => Number(x.toPrecision(6)))], y: [...y, label ?? (loss === "square" ? 0.5 : 1)] });
  }

  removePoint(i = this.selected ?? this.state.X.length - 1) {
    if (this.state.X.length === 1) { this.say("The last point stays: without points there is nothing to learn."); return; }
    const k = clamp(i, 0, this.state.X.length - 1);
    this.selected = null;
    this.change({ X: this.state.X.filter((_, j) => j !== k), y: this.state.y.filter((_, j) => j !== k) });
  }

  turnNeuron(j, angle, moved) {
    const old = this.state.moves.find((move) => move.neuron === j) || { flip: false };
    const moves = [...this.state.moves.filter((move) => move.neuron !== j),
      { neuron: j, angle: Number(Math.atan2(Math.sin(angle), Math.cos(angle)).toPrecision(8)), flip: old.flip }];
    this.setIndex(0);
    this.change({ moves }, moved);
  }

  flipNeuron(j) {
    const old = this.state.moves.find((move) => move.neuron === j) || { neuron: j, angle: null, flip: false };
    this.change({ moves: [...this.state.moves.filter((move) => move.neuron !== j), { ...old, flip: !old.flip }] });
    return true;
  }

  usePreset(id) {
    const preset = this.presets.find((item) => item.id === id);
    if (!preset) return;
    this.axisKind = null;
    this.logLoss = null;
    this.atEnd = true;
    this.slow = {};
    this.state = completed(preset.state);
    this.preset = preset;
    this.compute(performance.now());
  }

  useTable(text) {
    this.link.ask("table", { text }, (header) => {
      if (header.kind === "error") this.say(header.error);
      else this.change({ X: header.X, y: header.y, line: header.line, moves: [],
        net: this.state.net.kind === "drawn" ? this.state.net : { kind: "drawn", width: 50, seed: 1 } });
    });
  }

  // ------------------------------------------------------------------ answers

  take(header, arrays, entry) {
    if (header.kind === "run") this.takeRun(header, arrays, entry);
    else if (header.kind === "slow") this.takeSlow(header, arrays);
    else if (header.kind === "error") this.takeError(header);
    else if (header.kind === "compiling") this.mark("compiling", `compiling the engine, once on this machine: ${header.seconds} s`);
    else if (header.kind === "skipped") this.mark("draft", "more than 100 neurons: computed when the hand rests");
  }

  takeRun(header, arrays, entry) {
    this.run = new Run(header, arrays, entry ? entry.state : this.state);
    this.run.stairs = arrays.stair_loss ? arrays : null;
    this.problem = header.warnings.length ? { points: header.warnings[0].points, short: "", text: header.warnings[0].text } : null;
    this.say(this.problem ? this.problem.text : null);
    if (!entry || entry.kind === "full") {
      const [was, now] = [this.slowOf, this.run.state];
      if (!was || was.line !== now.line || was.X[0].length !== now.X[0].length) this.slow = {};
      this.slowOf = now;
      this.fresh.clear();
      this.root.dataset.slow = "";
      this.remember(this.state);
      if (this.link && !this.frozen) this.link.slow(this.run.state);
    }
    const early = header.status === "exact" && ["budget", "failed"].includes(header.ending);
    this.mark(early ? "early" : header.status, early ? "ended early" : header.status);
    if (this.atEnd) this.index = this.run.count - 1;
    this.index = clamp(this.index, 0, this.run.count - 1);
    this.redraw(() => { if (entry) entry.painted = performance.now(); });
  }

  takeSlow(header, arrays) {
    if (header.part === "second") {
      if (header.undecided) { this.mark("undecided", "undecided"); this.say(header.note); }
    }
    this.slow[header.part] = header;
    this.fresh.add(header.part);
    if (header.part === "extremal") this.slow.extremalNet = Net.of(arrays, "extremal", this.run);
    if (header.part === "heuristic" && arrays.limit_sign) {
      this.run.limit = Net.of(arrays, "limit", this.run);
      this.run.stairs = arrays;
    }
    if (header.part === "strip") {
      this.slow.stripNets = arrays.strip_sign
        ? header.scales.map((_, k) => Net.of(arrays, "strip", this.run, k)) : null;
      this.slow.stripOf = this.slowOf;
    }
    this.root.dataset.slow = [...this.fresh].join(" ");
    this.redraw();
  }

  takeError(header) {
    this.problem = { points: header.points || [], short: header.error.split(". ")[0], text: header.error };
    this.mark("error", "cannot be trained");
    this.say(header.error);
    this.redraw();
  }

  mark(kind, text) {
    this.badge.className = `badge badge-${kind}`;
    if (this.badge.textContent !== text) this.badge.textContent = text;
    this.root.classList.toggle("stale", kind === "error");
    this.root.dataset.status = kind;
  }

  say(text) {
    this.alert.hidden = !text;
    if (this.alert.textContent !== (text || "")) this.alert.textContent = text || "";
  }

  // ------------------------------------------------------------------ the moment

  setIndex(s) {
    if (!this.run) return;
    this.index = clamp(s, 0, this.run.count - 1);
    this.atEnd = this.index === this.run.count - 1;
    this.redraw();
  }

  setAxis(kind) { this.axisKind = kind; this.redraw(); }

  // log t collapses to a line where the scale is tiny: there the time of jumps is the better default
  get axis() {
    if (!this.run) return null;
    const tiny = this.run.state.log_scale < -20;
    const kind = this.axisKind || (!tiny ? "log" : this.run.state.loss === "square" ? "scaled" : "progress");
    if (!this.cachedAxis || this.cachedAxis.run !== this.run || this.cachedAxis.kind !== kind) {
      this.cachedAxis = new TimeAxis(this.run, kind);
    }
    return this.cachedAxis;
  }

  point(target) {
    const holder = target.closest && target.closest("[data-neuron]");
    const hot = holder ? Number(holder.dataset.neuron) : null;
    if (hot === this.hot || this.dragging) return;
    this.hot = hot;
    this.redraw();
  }

  // ------------------------------------------------------------------ drawing

  redraw(done) {
    if (done) this.afterPaint = done;
    if (this.queued || !this.state) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.paint();
      if (this.afterPaint) { const after = this.afterPaint; this.afterPaint = null; after(); }
    });
  }

  paint() {
    const { run, state } = this;
    const fits = run && run.d === state.X[0].length;
    const flat = state.X[0].length === 2;
    const [line, plane, loss, raster, strip] = this.scenes;
    this.arrange(flat, flat && state.line);
    const net = fits ? run.netAt(clamp(this.index, 0, run.count - 1)) : null;
    // what is computed at rest stays until it is computed anew, and looks it
    const late = (part) => !(fits && this.slowOf === run.state && this.fresh.has(part));
    strip.card.element.classList.toggle("late", Boolean(this.slow.stripNets) && late("strip"));
    const shared = { run: fits ? run : null, net, axis: fits ? this.axis : null, ghosts: this.ghosts, slow: this.slow, late,
      problem: this.problem, extremal: this.slow.extremalNet && this.slow.extremalNet.d === state.X[0].length ? this.slow.extremalNet : null,
      strip: this.slow.stripNets ? { nets: this.slow.stripNets, state: this.slow.stripOf, ...this.slow.strip } : null };
    if (!this.frozen) this.controls.draw();
    if (flat && state.line) line.draw(shared);
    if (flat) plane.draw(shared);
    loss.draw(shared);
    raster.draw(shared);
    strip.draw({ ...shared, extent: line.last });
    this.numbers.draw(shared);
    this.player.draw(shared);
    this.root.dataset.ready = run ? "run" : "page";
  }

  // which scenes there are decides how tall the others should be
  arrange(flat, straight) {
    const [line, plane] = this.scenes;
    const shown = `${flat} ${straight}`;
    if (shown === this.shown) return;
    this.shown = shown;
    line.card.show(straight);
    plane.card.show(flat);
    this.root.classList.toggle("plane-only", flat && !straight);
    for (const scene of this.scenes) scene.card.resize();
  }

  // ------------------------------------------------------------------ compare and take away

  pin() {
    if (!this.run) return;
    if (this.ghosts.length >= 4) this.ghosts.shift();
    const slot = [0, 1, 2, 3].find((k) => !this.ghosts.some((g) => g.slot === k));
    this.ghosts.push({ slot, run: this.run, name: this.controls.describe() });
    this.redraw();
  }

  unpin(ghost) {
    this.ghosts = this.ghosts.filter((other) => other !== ghost);
    this.redraw();
  }

  download(what) {
    this.mark("computing", `making the ${what} file`);
    this.link.ask("download", { what, state: this.state }, (header) => {
      this.mark("exact", "exact");
      if (header.kind === "error") { this.say(header.error); return; }
      const bytes = Uint8Array.from(atob(header.body), (c) => c.charCodeAt(0));
      saveFile(header.name, bytes);
    });
  }

  saveAll() {
    for (const scene of this.scenes.filter((item) => !item.card.element.hidden)) {
      saveFile(`${scene.card.id}.svg`, svgText(scene.card.svg, this.root), "image/svg+xml");
    }
  }

  linkText() { return `${location.origin}${location.pathname}${toFragment(this.state)}`; }

  async copyLink() {
    try {
      await navigator.clipboard.writeText(this.linkText());
      this.mark("exact", "link copied");
    } catch {
      this.say(`Copy this link: ${this.linkText()}`);
    }
  }

  toggleTheme() {
    const dark = getComputedStyle(this.root).getPropertyValue("--theme").trim() === "dark";
    this.root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("reluflow-theme", this.root.dataset.theme); } catch { /* private window */ }
  }
}
