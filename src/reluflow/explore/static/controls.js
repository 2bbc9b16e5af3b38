// The left side: presets, start, loss, points as numbers, own data, links and files.
import { html, said } from "./svg.js";

const scaleOf = (s) => (s <= 0 ? 0 : -Number((10 ** (s / 20) - 1).toPrecision(3)));
const sliderOf = (scale) => (scale >= 0 ? 0 : 20 * Math.log10(1 - scale));

export class Controls {
  constructor(app) {
    this.app = app;
    this.presets = html("select", { id: "preset", onchange: () => app.usePreset(this.presets.value) });
    this.look = html("p", { class: "look" });
    this.scale = html("input", { type: "range", min: 0, max: 120, step: 1, "aria-label": "Log scale, slider",
      oninput: () => app.change({ log_scale: scaleOf(Number(this.scale.value)) }) });
    this.scaleNumber = this.number("log scale of the start", { step: "any", max: 20, min: -1e7 }, (x) => app.change({ log_scale: x }));
    this.width = this.number("neurons", { min: 1, max: 400, step: 1 }, (x) => app.changeNet({ width: Math.round(x) }));
    this.seed = this.number("seed", { min: 0, step: 1 }, (x) => app.changeNet({ seed: Math.round(x) }));
    this.init = this.choice("ratio of layers", [["balanced", "balanced"], ["dominated", "output dominated"]], (v) => app.changeNet({ init: v }));
    this.directions = this.choice("directions", [["gaussian", "Gaussian"], ["sphere", "sphere"]], (v) => app.changeNet({ directions: v }));
    this.signs = this.choice("signs", [["random", "random"], ["positive", "positive"]], (v) => app.changeNet({ signs: v }));
    this.loss = this.choice("loss", [["square", "square"], ["exponential", "exponential"], ["logistic", "logistic"]], (v) => app.setLoss(v));
    this.factor = this.choice("factor", [["1/2n", "1/2n"], ["1/2", "1/2"], ["1/n", "1/n"]], (v) => app.change({ factor: v }));
    this.train = this.choice("train", [["both", "both layers"], ["hidden", "hidden one"], ["output", "output one"], ["linearised", "linearised"]],
      (v) => app.setTrain(v));
    const rate = (text, k) => this.number(text, { min: 0, max: 1e6, step: 0.1 },
      (x) => x > 0 && app.change({ rates: app.state.rates.map((old, i) => (i === k ? x : old)) }));
    this.decay = this.number("weight decay", { min: 0, step: 0.001 }, (x) => app.change({ decay: x }));
    this.slope = this.number("leaky slope", { min: 0, max: 0.99, step: 0.05 }, (x) => app.change({ slope: x }));
    this.rates = [rate("rate, hidden", 0), rate("rate, output", 1)];
    this.rtol = this.choice("tolerance", ["1e-2", "1e-4", "1e-6", "1e-8", "1e-10"].map((t) => [t, t]), (v) => app.change({ rtol: Number(v) }));
    this.points = html("div", { class: "points", tabindex: 0, role: "group", "aria-label": "Points as numbers" });
    this.own = html("textarea", { rows: 4, "aria-label": "A table of points", placeholder: "x, y\n-1, 0.5\n1, 1" });
    this.file = html("input", { type: "file", accept: ".csv,text/csv,text/plain", "aria-label": "A CSV file",
      onchange: async () => { if (this.file.files[0]) app.useTable(await this.file.files[0].text()); } });
    this.pins = html("ul", { class: "pins" });
    this.element = html("aside", { class: "controls", "aria-label": "Controls" }, this.parts());
  }

  parts() {
    const { app } = this;
    const key = (text, onclick, more) => html("button", { type: "button", onclick, ...more }, text);
    const group = (title, ...children) => html("fieldset", {}, html("legend", {}, title), ...children);
    const save = (what, text) => key(text, () => app.download(what));
    return [
      group("Problem", html("label", { for: "preset" }, "preset"), this.presets, this.look),
      group("Start", this.scaleNumber, this.scale, html("div", { class: "pair" }, this.width, this.seed),
        html("div", { class: "row" }, key("New draw", () => app.changeNet({ seed: (app.state.net.seed ?? 0) + 1 })),
          key("Undo turns", () => app.change({ moves: [] }))),
        html("details", {}, html("summary", {}, "how it is drawn"), this.init, this.directions, this.signs)),
      group("Training", this.loss, this.factor, html("div", { class: "pair" }, this.train, this.rtol),
        html("div", { class: "pair" }, ...this.rates), html("div", { class: "pair" }, this.slope, this.decay)),
      group("Points", this.points,
        html("div", { class: "row" }, key("Add point", () => app.addPoint()), key("Delete point", () => app.removePoint())),
        html("details", {}, html("summary", {}, "own data"), this.own,
          html("div", { class: "row" }, key("Use table", () => app.useTable(this.own.value))), this.file)),
      group("Compare", html("div", { class: "row" }, key("Pin this run", () => app.pin(), { id: "pin" })), this.pins),
      group("Take away", html("div", { class: "row" }, key("Copy link", () => app.copyLink()), save("toml", "TOML"), save("python", "Python"),
        save("run", "Run file"), save("report", "Report"), key("SVG", () => app.saveAll()))),
    ];
  }

  number(text, more, act) {
    const input = html("input", { type: "number", ...more, onchange: () => {
      if (input.value !== "" && Number.isFinite(Number(input.value))) act(Number(input.value));
    } });
    const label = html("label", { class: "field" }, html("span", {}, text), input);
    label.input = input;
    return label;
  }

  choice(text, options, act) {
    const select = html("select", { onchange: () => act(select.value) },
      ...options.map(([value, name]) => html("option", { value }, name)));
    const label = html("label", { class: "field" }, html("span", {}, text), select);
    label.input = select;
    return label;
  }

  setPresets(list) {
    this.presets.replaceChildren(html("option", { value: "" }, "own problem"),
      ...list.map((preset) => html("option", { value: preset.id }, preset.title)));
  }

  draw() {
    const { state, preset } = this.app;
    const key = JSON.stringify([state, preset && preset.id, this.app.ghosts.map((g) => g.slot)]);
    if (key === this.key) return;
    this.key = key;
    const put = (field, value) => { if (document.activeElement !== field || field.type !== "number") field.value = value; };
    put(this.presets, preset ? preset.id : "");
    this.look.textContent = preset ? preset.look : "";
    if (document.activeElement !== this.scale) this.scale.value = sliderOf(state.log_scale);
    put(this.scaleNumber.input, state.log_scale);
    const { net } = state;
    put(this.width.input, net.kind === "drawn" ? net.width : net.a.length);
    put(this.seed.input, net.kind === "drawn" ? net.seed : "");
    for (const name of ["init", "directions", "signs"]) put(this[name].input, net[name] ?? "");
    for (const name of ["loss", "factor", "train"]) put(this[name].input, state[name]);
    const known = [...this.rtol.input.options].find((option) => Number(option.value) === state.rtol);
    this.rtol.input.value = known ? known.value : "1e-8";
    this.rates.forEach((field, k) => {
      put(field.input, state.rates[k]);
      field.hidden = state.train === ["output", "hidden"][k];
    });
    for (const name of ["decay", "slope"]) put(this[name].input, state[name]);
    this.decay.hidden = state.train !== "both";
    this.factor.hidden = state.loss !== "square";
    this.drawPoints(state);
    this.pins.replaceChildren(...this.app.ghosts.map((ghost) => html("li", {},
      html("span", { class: `swatch ghost-${ghost.slot}` }), ghost.name,
      html("button", { type: "button", class: "small", "aria-label": `Unpin ${ghost.name}`, onclick: () => this.app.unpin(ghost) }, "×"))));
  }

  drawPoints(state) {
    const free = state.line ? 1 : state.X[0].length;
    if (free > 3) {
      this.points.replaceChildren(html("p", { class: "soft" }, `${state.X.length} points with ${free} coordinates`));
      return;
    }
    const active = this.points.contains(document.activeElement) ? document.activeElement.dataset.cell : null;
    const cell = (i, k, value, act, label) => html("input", { type: "number", step: "any", value: Number(value.toPrecision(free > 1 ? 4 : 6)), "data-cell": `${i},${k}`,
      "aria-label": label, onchange: (event) => { if (event.target.value !== "") act(Number(event.target.value)); } });
    this.points.replaceChildren(...state.X.map((row, i) => html("div", { class: "point-row" }, html("span", { class: "soft" }, String(i)),
      ...row.slice(0, free).map((x, k) => cell(i, k, x, (v) => this.edit(i, k, v), `point ${i}, coordinate ${k}`)),
      cell(i, "y", state.y[i], (v) => { this.app.movePoint(i, null, v); this.app.settle(); }, `label of point ${i}`))));
    if (active) {
      const again = this.points.querySelector(`[data-cell="${active}"]`);
      if (again) again.focus();
    }
  }

  edit(i, k, value) {
    const row = [...this.app.state.X[i]];
    row[k] = value;
    this.app.movePoint(i, row, null);
    this.app.settle();
  }

  describe() { return `scale ${said(this.app.state.log_scale, 3)}, ${this.app.state.X.length} points`; }
}
