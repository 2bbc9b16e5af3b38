// Numbers and verdicts: trained, predicted, extremal; how far they agree; the claims that fit.
import { html, said } from "../svg.js";

const ROWS = [
  ["norm", "|θ|²", "squared norm of all weights"],
  ["rank", "rank", "directions above a thousandth of the largest"],
  ["angle", "angle", "largest angle between two neurons that count, radians"],
  ["neurons", "neurons", "neurons whose share is above a thousandth of the largest"],
  ["loss", "loss", "at the end of the run"],
  ["margin", "margin", "smallest y h(x) over |θ|²"],
];

// tiny ones need no digits but their size, and three columns no more room
const figure = (x) => said(x ?? NaN, Math.abs(x) < 1e-3 ? 3 : 4);

export class NumbersPanel {
  constructor(app) {
    this.app = app;
    this.table = html("table", { class: "numbers" });
    this.agreement = html("p", { class: "agreement" });
    this.reason = html("p", { class: "reason" });
    this.ending = html("p", { class: "ending" });
    this.claims = html("div", { class: "claims" });
    this.key = null;
    const help = html("p", { class: "help-text", id: "help-numbers", hidden: true },
      "The end of the run beside the predicted limit of small scales and the extremal network. "
      + "Digits say how far the trained function agrees with the predicted one on the points.");
    const ask = html("button", { type: "button", class: "small", "aria-label": "What am I looking at? Numbers",
      "aria-expanded": "false", "aria-controls": "help-numbers", onclick: () => {
        help.hidden = !help.hidden;
        ask.setAttribute("aria-expanded", String(!help.hidden));
      } }, "?");
    this.element = html("section", { class: "card card-numbers", "aria-label": "Numbers" },
      html("div", { class: "card-head" }, html("h2", {}, "Numbers"), html("span", { class: "tools" }, ask)),
      help, this.ending, this.table, this.agreement, this.reason, this.claims);
  }

  draw({ run, slow, late }) {
    if (!run) return;
    const parts = ["extremal", "heuristic", "claims"];
    const key = [run.header.id, ...parts.map((part) => slow[part] && [slow[part].id, late(part)])].join();
    if (key === this.key) return;
    this.key = key;
    const { numbers } = run.header;
    const heuristic = slow.heuristic && slow.heuristic.numbers ? slow.heuristic : null;
    const predicted = numbers.predicted || (heuristic && heuristic.numbers);
    const best = slow.extremal && slow.extremal.numbers;
    const columns = [["trained", numbers.trained, ""],
      ["predicted", predicted, !numbers.predicted && late("heuristic") ? "late" : ""],
      [best ? slow.extremal.title : "extremal", best, late("extremal") ? "late" : ""]];
    const head = html("tr", {}, html("td", {}), ...columns.map(([name]) => html("th", { scope: "col" }, name)));
    const body = ROWS.filter(([name]) => columns.some(([, column]) => column && (column[name] ?? null) !== null))
      .map(([name, text, title]) => html("tr", {}, html("th", { scope: "row", title }, text),
        ...columns.map(([, column, age]) => html("td", { class: age }, column ? figure(column[name]) : "–"))));
    this.table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
    this.ending.textContent = `The run: ${run.header.text}.`;
    this.agreement.textContent = this.digits(run);
    const reason = heuristic ? heuristic.reason : run.header.predicted.reason;
    this.reason.replaceChildren(html("details", {},
      html("summary", {}, this.method(run, heuristic)), html("p", {}, reason)));
    this.drawClaims(slow.claims);
    this.reason.classList.toggle("late", Boolean(heuristic) && late("heuristic"));
    this.claims.classList.toggle("late", late("claims"));
  }

  method(run, heuristic) {
    if (heuristic) return "Predicted by a heuristic";
    const names = { bundle: "Predicted: one bundle", saddle_to_saddle: "Predicted: saddle to saddle",
      kernel: "Predicted: the limit of fixed features" };
    return names[run.header.predicted.method] || "No limit theorem applies";
  }

  digits(run) {
    if (!run.limit || !run.state.X) return "";
    const final = run.final;
    const size = Math.max(...run.state.y.map(Math.abs), 1e-300);
    const apart = Math.max(...run.state.X.map((row) => Math.abs(final.value(row) - run.limit.value(row)))) / size;
    if (!Number.isFinite(apart)) return "";
    const digits = Math.min(-Math.log10(Math.max(apart, 1e-7)), 7);
    return digits < 0.5 ? "The trained function is not (yet) the predicted one."
      : `Agrees with the prediction to ${digits >= 7 ? "7 or more" : digits.toFixed(1)} digits.`;
  }

  drawClaims(claims) {
    if (!claims) { this.claims.replaceChildren(); return; }
    if (!claims.rows) { this.claims.replaceChildren(html("p", { class: "soft" }, claims.note)); return; }
    const assumed = claims.rows.filter((row) => row.assumed);
    const hold = assumed.filter((row) => row.verdict === "PASS").length;
    const count = (verdict) => claims.rows.filter((row) => !row.assumed && row.verdict === verdict).length;
    const told = [["PASS", "pass"], ["FAIL", "fail"], ["UNRESOLVED", "unresolved"], ["NOT_APPLICABLE", "do not apply"]]
      .map(([verdict, text]) => [count(verdict), text]).filter(([k]) => k).map(([k, text]) => `${k} ${text}`);
    this.claims.replaceChildren(html("details", {}, html("summary", {}, `“${claims.title}”: ${hold} of ${assumed.length} assumptions hold; of the claims ${told.join(", ")}`),
      html("ul", {}, ...claims.rows.map((row) => html("li", { title: row.note || null },
        html("b", { class: `verdict ${row.verdict}` }, row.verdict.replace("_", " ").toLowerCase()), ` ${row.id}: ${row.title}`)))));
  }
}
