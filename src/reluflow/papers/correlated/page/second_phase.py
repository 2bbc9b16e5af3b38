"""Second act: the bundle leaves the saddle, and coordinates are learned one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.moments import departure, second_phase
from reluflow.papers.correlated.regions import place
from reluflow.theory.contract import LabelledRun, Said, Section
from reluflow.theory.verdicts import NotApplicable, Unresolved

LN10 = float(np.log(10.0))
FLOOR = float(np.log(1e-20))  # losses below are rounding
COORDINATES = 6  # drawn


def escape(cases: Sequence[tuple[LabelledRun, Correlated]]) -> Section:
    """Loss against time, and against the time since departure: one curve for all scales."""
    before: list[Layer] = []
    after: list[Layer] = []
    for k, (item, case) in enumerate(cases):
        run = item.run
        t = run.t * case.rate
        style = {"label": item.label, "colour": k % 7, "dash": DASHES[k % 4]}
        seen = (t > 0) & (run.log_loss > FLOOR)
        before.append(Line(t[seen], run.log_loss[seen] / LN10, **style))  # type: ignore[arg-type]
        try:
            since = t - departure(case)
        except (NotApplicable, Unresolved):
            continue
        late = (since > 1e-2) & seen
        after.append(Line(since[late], run.log_loss[late] / LN10, **style))  # type: ignore[arg-type]
    panels = [
        Panel(
            "Loss of each run",
            Axis("time", "log"),
            Axis("log10 of the loss"),
            tuple(before),
        )
    ]
    if after:
        axes = Axis("time since half of the first coordinate", "log"), Axis("log10 of the loss")
        panels.append(Panel("The same since T2", *axes, tuple(after)))
    text = (
        "The start is a saddle; T2 is the time when half of the first coordinate of the teacher is "
        "learned."
    )
    said = (
        Said(
            "The aligned neurons grow like exp(|gamma| t), so the loss stays on its plateau for a "
            "time proportional to ln(1/scale).",
            ("T6a",),
        ),
        Said(
            "After T2 nothing depends on the scale any more: the curves fall onto one, and the "
            "tail is exponential with the rate of the slowest mode.",
            ("T6b", "R1"),
        ),
    )
    caption = "Left: loss of each run. Right: the same against the time since T2."
    figure = Figure("escape", "Leaving the saddle", tuple(panels), len(panels), caption)
    return Section("Second act: leaving the saddle", text, (figure,), said)


def coordinates(item: LabelledRun, case: Correlated) -> Section:
    """Coordinates of the bundle vector along the eigenvectors, and their handovers."""
    moments = second_phase(case)
    kept = [m for m in moments if np.linalg.norm(m.error) > max(1e-7, 1e4 * case.rtol)]
    t = np.array([m.t for m in kept])
    learned = np.array([np.exp(m.log_size) * m.ratios for m in kept])
    left = np.array([case.spectrum[1] @ m.error for m in kept]) / case.target
    parts = [place(case, m).index for m in kept]
    count = min(case.data.d, COORDINATES)
    rules = tuple(
        Rule(float(t[parts.index(index)]), "x", f"into S_{index}")
        for index in range(2, count + 1)
        if index in parts
    )
    labels = [f"k = {k + 1} (eigenvalue {case.eta[k]:.3g})" for k in range(count)]
    share = tuple(Line(t, learned[:, k], labels[k], k, DASHES[k % 4]) for k in range(count))
    missing = tuple(
        Line(t, np.log10(np.abs(left[:, k])), labels[k], k, DASHES[k % 4]) for k in range(count)
    )
    panels = (
        Panel(
            "Learned share of each coordinate",
            Axis("time", "log"),
            Axis("u_k . v / u_k . v*"),
            (Rule(1.0, "y", "learned", dash="dot"), *rules, *share),
        ),
        Panel(
            "What is missing, |u_k . (v* - v)|",
            Axis("time", "log"),
            Axis("log10 of the missing share"),
            (*rules, *missing),
        ),
    )
    order = " -> ".join(f"S_{index}" for index in sorted(set(parts)))
    text = (
        "The sum v of the neurons in the eigenvectors u_k of the second moments of the points. The "
        f"set S has one part for each coordinate that is next; here v is seen in {order}."
    )
    said = (
        Said("From T1 on the neurons act as this one vector.", ("B1", "B3")),
        Said(
            "Its coordinates overtake those of the teacher one after the other, in the order of "
            "the eigenvalues: each overtaking hands v over from one part of S to the next, never "
            "back, and at the end all coordinates but the last are too large.",
            ("S1",),
        ),
    )
    caption = f"{item.label}. A dip to minus infinity on the right is a change of sign."
    figure = Figure("coordinates", "Coordinates through training", panels, 2, caption)
    return Section("Through the set S", text, (figure,), said)
