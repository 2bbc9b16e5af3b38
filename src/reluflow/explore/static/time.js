// Three time axes over the same samples; a moment is a fractional sample index everywhere else.
import { clamp, said, saidOfLog, ticks } from "./svg.js";

export const AXES = [
  ["log", "log t"],
  ["scaled", "t / |log scale|"],
  ["progress", "progress"],
];

export class TimeAxis {
  constructor(run, kind) {
    this.run = run;
    this.kind = kind;
    const at = run.logT;
    this.unit = Math.log(Math.max(Math.abs(run.header.log_scale), 1));
    const finite = at.findIndex((x) => Number.isFinite(x));
    this.first = (finite < 0 ? 0 : at[finite]) - 0.5;
    this.knots = Float64Array.from(at, (logT) => this.ofLogTime(logT));
    if (kind === "progress") this.knots = Float64Array.from(at, (_, k) => k);
    this.low = this.knots[0];
    this.high = this.knots[run.count - 1];
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  ofLogTime(logT) {
    if (this.kind === "progress") return this.run.indexOf(logT);
    if (this.kind === "scaled") return Math.exp(clamp(logT - this.unit, -700, 700));
    return Math.max(logT, this.first);
  }

  ofIndex(s) {
    const k = Math.min(Math.floor(s), this.run.count - 1);
    const share = s - k;
    return share === 0 ? this.knots[k] : this.knots[k] + share * (this.knots[k + 1] - this.knots[k]);
  }

  indexAt(value) {
    const { knots } = this;
    const last = this.run.count - 1;
    if (!(value > knots[0])) return 0;
    if (value >= knots[last]) return last;
    let low = 0;
    let high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= value) low = middle; else high = middle;
    }
    return low + (value - knots[low]) / (knots[high] - knots[low] || 1);
  }

  // position between 0 and 1, for sliders
  share(s) { return (this.ofIndex(s) - this.low) / (this.high - this.low); }

  indexOfShare(share) { return this.indexAt(this.low + share * (this.high - this.low)); }

  ticks(count) {
    const found = ticks(this.low, this.high, count);
    if (this.kind !== "log") return found.map((at) => [at, said(at, 3)]);
    const decade = Math.log(10);
    const powers = ticks(this.low / decade, this.high / decade, count).filter((p) => p % 1 === 0);
    if (powers.length >= 2) return powers.map((p) => [p * decade, said(10 ** p, 2)]);
    return found.map((at) => [at, saidOfLog(at)]);
  }

  get label() { return this.kind === "log" ? "t, logarithmic" : AXES.find(([kind]) => kind === this.kind)[1]; }
}
