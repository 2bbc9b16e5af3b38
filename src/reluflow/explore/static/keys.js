// Keys for everything, and the help that lists them.
import { html } from "./svg.js";

const KEYS = [
  ["Tab", "to a point, a neuron or a control"],
  ["arrows", "move the point (Shift: ten times as far), turn the neuron"],
  ["+ / −", "raise or lower the label of an input in the plane"],
  ["f", "flip the sign of the neuron that has the focus"],
  ["a", "add a point"],
  ["Delete", "delete the point that has the focus"],
  ["Space", "play or pause"],
  [", and .", "previous and next event"],
  ["Home, End", "start and end of the run"],
  ["t", "next time axis"],
  ["l", "logarithmic or linear loss"],
  ["g", "pin this run, to compare"],
  ["n", "new draw of the neurons"],
  ["?", "this help"],
];

export function helpDialog() {
  const dialog = html("dialog", { class: "help", "aria-label": "Help" },
    html("h2", {}, "What is this?"),
    html("p", {}, "A network with one hidden layer of ReLU neurons is trained by exact gradient flow, again at every "
      + "movement of your hand. Draft means computed while you drag, exact to the tolerance chosen, undecided that two "
      + "tolerances disagree, so that the picture is one of several."),
    html("dl", {}, ...KEYS.flatMap(([key, text]) => [html("dt", {}, html("kbd", {}, key)), html("dd", {}, text)])),
    html("form", { method: "dialog" }, html("button", {}, "Close")));
  return dialog;
}

export function bindKeys(app) {
  const acts = {
    " ": () => app.player.toggle(),
    ",": () => app.player.step(-1),
    ".": () => app.player.step(1),
    Home: () => app.setIndex(0),
    End: () => app.setIndex(Infinity),
    t: () => app.setAxis({ log: "scaled", scaled: "progress", progress: "log" }[app.axis ? app.axis.kind : "log"]),
    l: () => { app.logLoss = !app.scenes[2].isLog(); app.redraw(); },
    a: () => app.frozen || app.addPoint(),
    g: () => app.pin(),
    n: () => app.frozen || app.changeNet({ seed: (app.state.net.seed ?? 0) + 1 }),
    "?": () => app.help.showModal(),
  };
  app.root.ownerDocument.addEventListener("keydown", (event) => {
    const target = event.composedPath()[0];
    const inside = target === document.body || app.root.contains(target);
    if (!inside || event.ctrlKey || event.metaKey || event.altKey || app.help.open) return;
    const slides = target.type === "range" && !["Home", "End"].includes(event.key); // its own keys
    if (!slides && target.closest && target.closest("input, select, textarea, dialog")) return;
    if (event.key === " " && target.closest && target.closest("button, summary")) return;
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
