// Links: the state in the fragment, which never leaves the browser, and the check of a foreign one.

export function toFragment(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `#s1=${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

export function fromFragment(fragment) {
  if (!fragment || fragment === "#") return { state: null };
  const broken = (why) => ({ state: null, error: `This link cannot be opened: ${why}.` });
  if (fragment.length > 200000) return broken("it is longer than 200,000 characters");
  if (!fragment.startsWith("#s1=")) return broken("it is not a link of this explorer");
  try {
    const text = atob(fragment.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const state = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const wrong = implausible(state);
    return wrong ? broken(wrong) : { state };
  } catch {
    return broken("it is damaged, perhaps cut when it was copied");
  }
}

// what the page itself needs to draw; everything else is the server's to judge
export function implausible(state) {
  if (state === null || typeof state !== "object" || Array.isArray(state)) return "it holds no state";
  if (state.v !== 1) return "it was made by another version";
  const { X, y, net } = state;
  const numbers = (row) => Array.isArray(row) && row.every((x) => Number.isFinite(x));
  if (!Array.isArray(X) || !X.length || X.length > 40 || !X.every(numbers)) return "its points are not numbers";
  if (!X[0].length || X.some((row) => row.length !== X[0].length)) return "its points are uneven";
  if (!numbers(y) || y.length !== X.length) return "its labels do not fit its points";
  if (net === null || typeof net !== "object" || !["drawn", "given"].includes(net.kind)) return "it has no network";
  if (net.kind === "given" && !(numbers(net.a) && net.a.length)) return "its weights are not numbers";
  if (state.moves !== undefined && !Array.isArray(state.moves)) return "its moves are no list";
  if (state.rates !== undefined && !(numbers(state.rates) && state.rates.length === 2)) return "its rates are no pair";
  if (![state.decay ?? 0, state.slope ?? 0].every(Number.isFinite)) return "its decay or slope is no number";
  if (state.log_scale !== undefined && !Number.isFinite(state.log_scale)) return "its scale is no number";
  return null;
}

export function completed(state) {
  const net = state.net.kind === "drawn"
    ? { width: 50, seed: 1, init: "balanced", directions: "gaussian", signs: "random", ...state.net }
    : state.net;
  return { line: true, moves: [], log_scale: -10, loss: "square", factor: "1/2n", train: "both",
    rates: [1, 1], decay: 0, slope: 0, rtol: 1e-8, stop_log_loss: null, ...state, net };
}

export function saveFile(name, body, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([body], { type: type || "application/octet-stream" }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// a drawing with the rules of the page that concern it, so that it looks the same elsewhere
export function svgText(svg, root) {
  const copy = svg.cloneNode(true);
  const rules = [...document.styleSheets].flatMap((sheet) => {
    try { return [...sheet.cssRules].map((rule) => rule.cssText); } catch { return []; }
  });
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  const seen = getComputedStyle(root);
  const names = ["ink", "soft", "line", "paper", "plus", "minus", "trained", "limit", "extremal", "accent", "warn"];
  const values = names.map((name) => `--${name}:${seen.getPropertyValue(`--${name}`)}`).join(";");
  const kept = rules.filter((rule) => rule.includes(".rfx svg"));
  style.textContent = `svg.rfx{${values};background:var(--paper)}\n`
    + kept.map((rule) => rule.replaceAll(".rfx svg", "svg.rfx")).join("\n");
  copy.prepend(style);
  copy.classList.add("rfx");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}
