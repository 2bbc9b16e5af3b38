// A run as the page knows it: samples of all weights, from which any moment is interpolated.

const VIEWS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i1: Int8Array, u1: Uint8Array };
export const EVENT_KINDS = ["activate", "deactivate", "slide", "release", "die", "flip", "branch"];
const ZERO_LOG = -1e30;

export function decodeFrame(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  let position = 4 + size;
  for (const { name, shape, type } of header.arrays) {
    const View = VIEWS[type];
    const count = shape.reduce((product, k) => product * k, 1);
    arrays[name] = new View(buffer, position, count);
    arrays[name].shape = shape;
    position += Math.ceil((count * View.BYTES_PER_ELEMENT) / 8) * 8;
  }
  return { header, arrays };
}

// a network: unit directions u (m * d), logs of norms and of output weights, signs
export class Net {
  constructor(u, logW, logA, sign, d, slope) {
    Object.assign(this, { u, logW, logA, sign, d, slope, m: sign.length });
    this.weight = new Float64Array(this.m);
    for (let j = 0; j < this.m; j += 1) {
      this.weight[j] = sign[j] * Math.exp(Math.min(logW[j] + logA[j], 300));
    }
  }

  // a network that belongs to a run; one that is linearised is so at the start of the run
  static of(arrays, prefix, { d, first, slope }, k = null) {
    const sign = arrays[`${prefix}_sign`];
    if (!sign) return null;
    const m = sign.shape[sign.shape.length - 1];
    const cut = (name, step) => {
      const array = arrays[`${prefix}_${name}`];
      return k === null ? array : array.subarray(k * step, (k + 1) * step);
    };
    const net = new Net(cut("u", m * d), cut("log_w", m), cut("log_a", m), cut("sign", m), d, slope);
    return arrays[`${prefix}_tangent`] ? new Tangent(net, first, cut("tangent", m * d)) : net;
  }

  value(x) {
    let sum = 0;
    for (let j = 0; j < this.m; j += 1) {
      let z = 0;
      for (let i = 0; i < this.d; i += 1) z += this.u[j * this.d + i] * x[i];
      sum += this.weight[j] * (z > 0 ? z : this.slope * z);
    }
    return sum;
  }

  bend(j) { return Math.abs(this.weight[j] * this.u[2 * j]); }

  times(factor) {
    const copy = Object.create(this);
    copy.weight = this.weight.map((w) => factor * w);
    return copy;
  }

  kink(j) { return -this.u[2 * j + 1] / this.u[2 * j]; }

  angle(j) { return Math.atan2(this.u[2 * j + 1], this.u[2 * j]); }

  // [x, value] at the ends of an interval and at every kink inside: the function is straight between
  polyline(low, high) {
    const at = [low, high];
    for (let j = 0; j < this.m; j += 1) {
      const x = this.kink(j);
      if (x > low && x < high && this.weight[j] !== 0) at.push(x);
    }
    at.sort((p, q) => p - q);
    return at.map((x) => [x, this.value([x, 1])]);
  }

  top() {
    let top = ZERO_LOG;
    for (let j = 0; j < this.m; j += 1) top = Math.max(top, this.logW[j] + this.logA[j]);
    return top;
  }
}

// A network linearised at its start: it is on where the start is, with vectors e (m * d) of its own.
export class Tangent extends Net {
  constructor(net, start, e) {
    super(net.u, net.logW, net.logA, net.sign, net.d, net.slope);
    Object.assign(this, { start, e });
  }

  value(x) {
    let sum = 0;
    for (let j = 0; j < this.m; j += 1) {
      let z = 0;
      let y = 0;
      for (let i = 0; i < this.d; i += 1) {
        z += this.start.u[j * this.d + i] * x[i];
        y += this.e[j * this.d + i] * x[i];
      }
      sum += z > 0 ? y : this.slope * y;
    }
    return sum;
  }

  bend(j) { return Math.abs(this.e[2 * j]); }

  times(factor) {
    const copy = Object.create(this);
    copy.e = this.e.map((x) => factor * x);
    return copy;
  }

  kink(j) { return this.start.kink(j); }

  // it jumps at kinks: both sides of each are drawn
  polyline(low, high) {
    const side = 1e-9 * (high - low);
    const at = [low, high];
    for (let j = 0; j < this.m; j += 1) {
      const x = this.kink(j);
      if (x > low && x < high) at.push(x - side, x + side);
    }
    at.sort((p, q) => p - q);
    return at.map((x) => [x, this.value([x, 1])]);
  }
}

export class Run {
  constructor(header, arrays, state) {
    Object.assign(this, { header, arrays, state });
    [this.count, this.m, this.d] = arrays.u.shape;
    this.n = state.X.length;
    this.slope = state.slope || 0;
    this.logT = arrays.log_t;
    this.first = arrays.tangent ? this.netOf(0) : null; // where the network is linearised
    this.limit = Net.of(arrays, "limit", this);
    this.events = this.readEvents();
  }

  readEvents() {
    const { event_log_t: t, event_neuron: j, event_point: i, event_kind: k } = this.arrays;
    return Array.from(t, (logT, e) => ({ logT, neuron: j[e], point: i[e], kind: EVENT_KINDS[k[e]] }));
  }

  // fractional index of a log-time among the samples
  indexOf(logT) {
    const { logT: at, count } = this;
    if (!(logT > at[0])) return 0;
    if (logT >= at[count - 1]) return count - 1;
    let low = 0;
    let high = count - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (at[middle] <= logT) low = middle; else high = middle;
    }
    if (!Number.isFinite(at[low])) return low + Math.exp(Math.max(logT - at[high], -700));
    return low + (logT - at[low]) / (at[high] - at[low] || 1);
  }

  logTimeAt(s) {
    const k = Math.min(Math.floor(s), this.count - 1);
    const share = s - k;
    if (share === 0) return this.logT[k];
    if (!Number.isFinite(this.logT[k])) return this.logT[k + 1] + Math.log(share);
    return this.logT[k] + share * (this.logT[k + 1] - this.logT[k]);
  }

  logLossAt(s) {
    const k = Math.min(Math.floor(s), this.count - 1);
    const share = s - k;
    const a = this.arrays.log_loss;
    return share === 0 ? a[k] : a[k] + share * (a[k + 1] - a[k]);
  }

  netAt(s) {
    const net = this.netOf(s);
    if (!this.first) return net;
    const step = this.m * this.d;
    const k = Math.min(Math.floor(s), this.count - 1);
    const e = this.arrays.tangent.subarray(k * step, (k + 1) * step);
    const next = s > k ? this.arrays.tangent.subarray((k + 1) * step, (k + 2) * step) : e;
    return new Tangent(net, this.first, e.map((x, i) => x + (s - k) * (next[i] - x)));
  }

  // the weights at a fractional index: logs are interpolated, directions along the arc
  netOf(s) {
    const { m, d, arrays } = this;
    const k = Math.min(Math.floor(s), this.count - 1);
    const share = s - k;
    const part = (name, step, at) => arrays[name].subarray(at * step, (at + 1) * step);
    const sign = part("sign", m, k);
    if (share === 0) return new Net(part("u", m * d, k), part("log_w", m, k), part("log_a", m, k), sign, d, this.slope);
    const mix = (name, step) => {
      const [p, q] = [part(name, step, k), part(name, step, k + 1)];
      return Float64Array.from(p, (x, i) =>
        x < ZERO_LOG || q[i] < ZERO_LOG ? (share < 0.5 ? x : q[i]) : x + share * (q[i] - x));
    };
    const u = mix("u", m * d);
    for (let j = 0; j < m; j += 1) {
      let size = 0;
      for (let i = 0; i < d; i += 1) size += u[j * d + i] ** 2;
      size = Math.sqrt(size) || 1;
      for (let i = 0; i < d; i += 1) u[j * d + i] /= size;
    }
    return new Net(u, mix("log_w", m), mix("log_a", m), sign, d, this.slope);
  }

  get final() { return this.netAt(this.count - 1); }
}
