"""highdim/fig-primal: pre-activations through training in nine situations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Figure, Panel
from reluflow.papers.highdim.figures import panels
from reluflow.sweeps import Point, Result
from reluflow.sweeps.point import seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size

TASK = "reluflow.papers.highdim.figures.measures:primal"
NEURONS = ("one", "two", "many")
REGIMES = {
    "high": "high d",
    "moderate": "moderate d",
    "random": "random start",
}
CHECKPOINTS = (0, 1, 2, 5, 20, 100)
SHOWN = {"one": (0,), "two": (0, 1), "many": (0, 2)}


def points(size: Size, seed: int) -> Iterable[Point]:
    """Nine runs; ``full`` takes more points."""
    n = 40 if size == "full" else 20
    setting = {
        "high": {"d": 500 * n * n, "constant": 2.0},
        "moderate": {"d": (6 * n) // 5, "constant": 6.0},
        "random": {"d": 500 * n * n, "constant": 2.0, "sigma": 0.3},
    }
    for neurons in NEURONS:
        for regime, given in setting.items():
            constant = given["constant"] * (1.0 if neurons != "many" or regime != "random" else 2.0)
            yield seeded(
                TASK,
                {**given, "constant": constant, "n": n, "neurons": neurons, "regime": regime},
                seed,
            )


def draw(results: Sequence[Result]) -> Reproduction:
    """Three figures of curves, one of checkpoints, one of duals and patterns."""
    found = {(r.point.parameters["neurons"], r.point.parameters["regime"]): r for r in results}
    figures = [_curves(neurons, found) for neurons in NEURONS if (neurons, "high") in found]
    for regime in ("high", "moderate"):
        if ("one", regime) in found:
            figures.append(_checkpoints(regime, found["one", regime]))
    figures.append(_mechanism(found))
    table = {
        "neurons": [key[0] for key in found],
        "regime": [key[1] for key in found],
        "changes": [int(r.values["changes"]) for r in found.values()],
        "freeze": [int(r.values["freeze"]) for r in found.values()],
        "status": [str(r.values["status"]) for r in found.values()],
    }
    return Reproduction(tuple(figures), {"primal": table}, _expectations(found))


def _curves(neurons: str, found: dict[tuple[str, str], Result]) -> Figure:
    listed: list[Panel] = []
    for k in SHOWN[neurons]:
        for regime, words in REGIMES.items():
            if (neurons, regime) not in found:
                continue
            r = found[neurons, regime]
            sign = float(r.arrays["signs"][k])
            name = "" if neurons == "one" else f", output {'+1' if sign > 0 else '-1'}"
            freeze = float(r.values["freeze"]) if r.values["settles"] else None
            t = r.arrays["t"]
            last = min(float(t[-1]), max(100.0, 4.0 * float(r.values["freeze"])))
            shown = t <= last
            listed.append(
                panels.primal(
                    words + name,
                    t[shown],
                    r.arrays["P"][shown, k],
                    r.arrays["y"],
                    sign,
                    freeze,
                    last,
                    "pre-activation" if regime == "high" else "",
                )
            )
    heads = {"one": "one neuron", "two": "one neuron of each sign", "many": "two of each sign"}
    return Figure(
        f"primal-{neurons}",
        f"Pre-activations through training: {heads[neurons]}",
        tuple(listed),
        columns=3,
        caption=(
            "Pre-activations x_i . w of all points. In high dimension the first step throws points "
            "of the other sign below zero, where they stay, and points of the own sign rise to "
            "their labels. In moderate dimension points are switched on and kicked off again many "
            "times, and some of the own sign may die. From a random start in high dimension, "
            "points that begin inactive stay so. Dotted: the certified freeze, where there is one; "
            "without one the limit lies on a boundary and the pattern changes for ever."
        ),
    )


def _checkpoints(regime: str, r: Result) -> Figure:
    t, y, sign = r.arrays["t"], r.arrays["y"], float(r.arrays["signs"][0])
    P, limit = r.arrays["P"][:, 0], r.arrays["limit"][0]
    low, high = float(min(P.min(), 0.0)), float(max(P.max(), np.abs(y).max()))
    pad = 0.06 * (high - low)
    listed = []
    for moment in CHECKPOINTS:
        k = int(np.searchsorted(t, moment))
        p, title = (P[k], f"iteration {int(t[k])}") if k < len(t) else (limit, "limit")
        listed.append(panels.checkpoint(title, p, y, sign, (low - pad, high + pad)))
    return Figure(
        f"checkpoints-{regime}",
        f"Pre-activations example by example, {REGIMES[regime]}, one neuron",
        tuple(listed),
        columns=3,
        caption=(
            "Examples are sorted by label. Crosses are the labels that the neuron can fit; "
            "examples of the other sign are fitted as well as possible by any value below zero."
        ),
    )


def _mechanism(found: dict[tuple[str, str], Result]) -> Figure:
    """Primal against dual after the first step and in the end, and the pattern through time."""
    listed = []
    for regime in ("high", "moderate"):
        if ("one", regime) not in found:
            continue
        r = found["one", regime]
        t, y, sign = r.arrays["t"], r.arrays["y"], float(r.arrays["signs"][0])
        P, B = r.arrays["P"][:, 0], r.arrays["B"][:, 0]
        first = int(np.searchsorted(t, 1))
        for k, words in ((first, "after one step"), (len(t) - 1, "in the end")):
            listed.append(panels.primal_dual(f"{REGIMES[regime]}, {words}", P[k], B[k], y, sign))
        start = r.arrays["P"][0] > 0.0
        events = panels.as_events(
            r.arrays["event_t"], r.arrays["event_neuron"], r.arrays["event_point"], start
        )
        last = max(100.0, 2.0 * float(r.values["freeze"]))
        listed.append(
            panels.raster(f"{REGIMES[regime]}, pattern", start[0], events, 0, y, sign, last)
        )
    return Figure(
        "mechanism",
        "Why the pattern freezes: primal and dual variables",
        tuple(listed),
        columns=3,
        caption=(
            "A dual variable moves only while its example is active. In high dimension the Gram "
            "matrix is nearly l1 times the identity, so primal and dual variables lie on the "
            "diagonal: a dual below zero means an inactive example, and it never moves again. In "
            "moderate dimension the two decouple, and the pattern takes long to settle."
        ),
    )


def _expectations(found: dict[tuple[str, str], Result]) -> tuple[Expectation, ...]:
    made = []
    for neurons in NEURONS:
        if (neurons, "high") in found:
            freeze = float(found[neurons, "high"].values["freeze"])
            made.append(
                Expectation(
                    f"freeze iteration in high dimension, {neurons}",
                    freeze,
                    1.0,
                    1.0,
                    "Theorems 1, 3, 5",
                )
            )
        if (neurons, "moderate") in found:
            changes = float(found[neurons, "moderate"].values["changes"])
            made.append(
                Expectation(
                    f"changes of the pattern in moderate dimension, {neurons}",
                    changes,
                    5.0,
                    1e6,
                    "section 6.4: tens of changes",
                )
            )
    if ("one", "random") in found:
        r = found["one", "random"]
        before, after = r.arrays["P"][0, 0] > 0.0, r.arrays["limit"][0] > 0.0
        asleep = (r.arrays["y"] > 0.0) & ~before
        share = float((asleep & after).sum() / max(int(asleep.sum()), 1))
        made.append(
            Expectation(
                "share of sleeping points that wake up, random start",
                share,
                0.0,
                0.1,
                "section 6.5 at sigma sqrt(d) above 100",
            )
        )
    return tuple(made)


FIGURE = Recipe(
    "highdim/fig-primal",
    "pre-activations through training: high and moderate dimension, random start; 1, 2, 4 neurons",
    points,
    draw,
)
