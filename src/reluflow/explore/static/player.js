// The time scrubber: play, step by event, three axes; it speaks for all scenes at once.
import { AXES } from "./time.js";
import { html, saidOfLog } from "./svg.js";

const SECONDS = 7;

export class Player {
  constructor(app) {
    this.app = app;
    const key = (text, label, onclick) => html("button", { type: "button", "aria-label": label, title: label, onclick }, text);
    this.playButton = key("▶", "Play", () => this.toggle());
    this.slider = html("input", { type: "range", min: 0, max: 1000, step: 1, value: 1000, "aria-label": "Time",
      oninput: () => app.axis && app.setIndex(app.axis.indexOfShare(Number(this.slider.value) / 1000)) });
    this.select = html("select", { "aria-label": "Time axis", onchange: () => app.setAxis(this.select.value) },
      ...AXES.map(([kind, text]) => html("option", { value: kind }, text)));
    this.shown = html("output", { class: "moment" });
    this.element = html("section", { class: "player", "aria-label": "Time" },
      html("span", { class: "keys" }, key("|◂", "To the start", () => app.setIndex(0)),
        key("◂", "Previous event", () => this.step(-1)), this.playButton,
        key("▸", "Next event", () => this.step(1)), key("▸|", "To the end", () => app.setIndex(Infinity))),
      this.slider, this.shown, this.select);
    this.quiet = matchMedia("(prefers-reduced-motion: reduce)");
  }

  draw({ run, axis }) {
    if (!run) return;
    const share = Math.round(1000 * axis.share(this.app.index));
    if (Number(this.slider.value) !== share) this.slider.value = share;
    const time = this.app.index === 0 ? "0" : saidOfLog(run.logTimeAt(this.app.index));
    const text = [`t ${time},`, `loss ${saidOfLog(run.logLossAt(this.app.index))}`];
    this.shown.replaceChildren(...text.map((part) => html("span", {}, part)));
    this.slider.setAttribute("aria-valuetext", text.join(" "));
    this.select.value = axis.kind;
  }

  step(direction) {
    const { run, index } = this.app;
    if (!run) return;
    this.pause();
    const at = run.events.map((event) => run.indexOf(event.logT));
    const next = direction > 0 ? Math.min(...at.filter((s) => s > index + 1e-6), run.count - 1)
      : Math.max(...at.filter((s) => s < index - 1e-6), 0);
    this.app.setIndex(next);
  }

  toggle() { if (this.timer) this.pause(); else this.play(); }

  play() {
    const { app } = this;
    if (!app.run) return;
    if (app.index >= app.run.count - 1) app.setIndex(0);
    this.playButton.textContent = "❙❙";
    this.playButton.setAttribute("aria-label", "Pause");
    let share = app.axis.share(app.index);
    let last = performance.now();
    const reduced = this.quiet.matches; // a dozen still pictures instead of a movie
    this.timer = setInterval(() => {
      const now = performance.now();
      share += reduced ? 1 / 12 : (now - last) / 1000 / SECONDS;
      last = now;
      if (share >= 1) this.pause();
      app.setIndex(app.axis.indexOfShare(Math.min(share, 1)));
    }, reduced ? 1000 : 33);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = "▶";
    this.playButton.setAttribute("aria-label", "Play");
  }
}
