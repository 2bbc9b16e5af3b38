// The scale strip: where the same problem ends at eight scales; the limit takes shape.
import { Card } from "../card.js";
import { clamp, linear, pathOf, said, shape } from "../svg.js";

export class StripScene {
  constructor(app) {
    this.app = app;
    this.card = new Card(app, {
      id: "strip", title: "The same start at other log scales", height: (w) => (w < 560 ? 330 : 190),
      help: "The end of training from the same start at up to eight log scales, each computed afresh after "
        + "the hand rests. Left to right the start shrinks and the limit of small scales takes shape.",
    });
    this.cells = this.card.layer("cells");
  }

  draw({ strip, extent }) {
    if (!strip || !strip.nets.length) {
      this.cells.replaceChildren(shape("text", { class: "axis-label", x: 10, y: 24 }, "computed when the hand rests"));
      return;
    }
    const { card } = this;
    const drawn = [strip.nets, card.width, extent];
    if (this.drawn && drawn.every((part, k) => part === this.drawn[k]) && this.cells.children.length > 1) return;
    this.drawn = drawn;
    const columns = card.width < 560 ? 4 : 8;
    const rows = Math.ceil(8 / columns);
    const [w, h] = [card.width / columns, card.tall / rows];
    this.cells.replaceChildren(...strip.nets.flatMap((net, k) => {
      const [x0, y0] = [(k % columns) * w, Math.floor(k / columns) * h];
      const box = { left: x0 + 4, right: x0 + w - 4, top: y0 + 6, bottom: y0 + h - 40 };
      const body = net.d !== 2 ? this.bars(net, box) : strip.state.line ? this.graph(net, box, extent, strip.state) : this.circle(net, box);
      const middle = (box.left + box.right) / 2;
      return [shape("rect", { class: "box", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }),
        ...body,
        shape("text", { class: "tick", x: middle, y: box.bottom + 15, "text-anchor": "middle" }, said(strip.scales[k], 3)),
        shape("text", { class: "tick soft", x: middle, y: box.bottom + 30, "text-anchor": "middle" },
          strip.norms[k] === null ? "" : `|θ|² ${said(strip.norms[k], 3)}`)];
    }));
  }

  graph(net, box, [dx, dy], { X, y: labels, loss }) {
    const x = linear(dx, [box.left, box.right]);
    const y = linear(dy, [box.bottom, box.top]);
    const margin = loss === "square" ? 1 : Math.max(1, Math.min(...X.map((row, i) => labels[i] * net.value(row))));
    const line = net.polyline(...dx).map(([a, b]) => [x(a), clamp(y(b / margin), box.top, box.bottom)]);
    return [shape("path", { class: "curve trained thin", d: pathOf(line) }),
      ...X.map((row, i) => shape("circle", { class: "mini", r: 2, cx: x(row[0]), cy: clamp(y(labels[i]), box.top, box.bottom) }))];
  }

  // without a picture of the plane: the sizes of the neurons, largest first
  bars(net, box) {
    const sizes = Array.from(net.weight, (w, j) => [Math.abs(w), net.sign[j]]).sort((p, q) => q[0] - p[0]);
    const wide = (box.right - box.left) / Math.max(sizes.length, 8);
    const scale = (box.bottom - box.top - 6) / Math.max(sizes[0][0], 1e-300);
    return sizes.map(([size, sign], k) => shape("rect", { class: `mini ${sign < 0 ? "minus" : "plus"}`,
      x: box.left + k * wide + 0.5, width: Math.max(wide - 1, 0.5), y: box.bottom - size * scale, height: size * scale }));
  }

  circle(net, box) {
    const [cx, cy] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const r = Math.min(box.right - box.left, box.bottom - box.top) / 2 - 6;
    const top = net.top();
    return [shape("circle", { class: "rim", cx, cy, r }),
      ...Array.from(net.weight, (_, j) => {
        const share = clamp(1 + (net.logW[j] + net.logA[j] - top) / 10, 0, 1);
        const angle = net.angle(j);
        return shape("circle", { class: `mini ${net.sign[j] < 0 ? "minus" : "plus"}`, r: 0.8 + 2.6 * share,
          cx: cx + r * Math.cos(angle), cy: cy - r * Math.sin(angle) });
      })];
  }
}
