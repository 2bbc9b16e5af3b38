// Small tools to build SVG and HTML, scales, ticks and numbers as text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

export const shape = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const html = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

// a number for people: four digits, a true minus, powers of ten where they help
export function said(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  let text;
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, power] = x.toExponential(Math.max(digits - 2, 0)).split("e");
    const plain = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
    const raised = [...String(Number(power))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻").join("");
    text = plain === "1" ? `10${raised}` : plain === "-1" ? `-10${raised}` : `${plain}·10${raised}`;
  } else {
    text = String(Number(x.toPrecision(digits)));
  }
  return text.replace("-", "−");
}

// a number given by its natural logarithm, which may be far outside the range of floats
export function saidOfLog(log) {
  if (log > -690 && log < 690) return said(Math.exp(log), 3);
  if (log < -1e30) return "0";
  return `e^${said(log, 4)}`;
}

export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k += 1) {
    found.push(Math.abs(k * step) < 1e-12 * span ? 0 : k * step);
  }
  return found;
}

export function linear([a, b], [p, q]) {
  const scale = (x) => p + ((x - a) / (b - a || 1)) * (q - p);
  scale.invert = (y) => a + ((y - p) / (q - p || 1)) * (b - a);
  scale.domain = [a, b];
  return scale;
}

export const pathOf = (points) =>
  points.length ? `M${points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L")}` : "";

// a text below an axis; at its right end it stands to the left of its place, or it would be cut
export function tickBelow(box, at, text) {
  const last = at > box.right - 14;
  return shape("text", { class: "tick", x: last ? box.right + 8 : at, y: box.bottom + 15,
    "text-anchor": last ? "end" : "middle" }, text);
}

// an x and a y axis in a box {left, right, top, bottom}; labels are texts, or null for none
export function drawAxes(layer, box, x, y, { xTicks, yTicks, xText, yText, xLabel, yLabel }) {
  const nodes = [];
  for (const value of yTicks) {
    const at = y(value);
    nodes.push(shape("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }));
    nodes.push(shape("text", { class: "tick", x: box.left - 6, y: at + 4, "text-anchor": "end" },
      (yText || said)(value)));
  }
  for (const value of xTicks) {
    const at = x(value);
    nodes.push(shape("line", { class: "grid", x1: at, x2: at, y1: box.top, y2: box.bottom }));
    nodes.push(tickBelow(box, at, (xText || said)(value)));
  }
  nodes.push(shape("rect", { class: "box", x: box.left, y: box.top,
    width: box.right - box.left, height: box.bottom - box.top }));
  if (xLabel) {
    nodes.push(shape("text", { class: "axis-label", x: box.right, y: box.bottom + 30,
      "text-anchor": "end" }, xLabel));
  }
  if (yLabel) nodes.push(shape("text", { class: "axis-label", x: box.left, y: box.top - 6 }, yLabel));
  layer.replaceChildren(...nodes);
}

export const saveFileName = (title) => `${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.svg`;
