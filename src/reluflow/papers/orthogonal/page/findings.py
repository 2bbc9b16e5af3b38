"""The study of orthogonal data: its preset, and what it shows and compares of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reluflow.errors import InputError
from reluflow.limits import SaddleToSaddle, alternating, saddle_to_saddle
from reluflow.limits.hypotheses import imbalance
from reluflow.limits.jumps import failures
from reluflow.losses import Square
from reluflow.papers.orthogonal.measure import half_times
from reluflow.papers.orthogonal.page.sections import (
    Prediction,
    exponents,
    losses_of,
    norms,
    scale_of,
    staircase,
    who_fits_what,
)
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Section
from reluflow.trajectory import Trajectory

TENS = math.log(10.0)


@paper.page
def findings(runs: Sequence[LabelledRun]) -> Findings:
    """Sections and comparisons of runs of one problem at several scales."""
    usable = [item for item in runs if scale_of(item.run) > 0.0 and _is_square(item.run)]
    if not usable:
        return Findings((Section("Staircase", _no_prediction("no run has a small start")),))
    try:
        process = prediction(usable[0].run)
    except InputError as error:
        return Findings((Section("Staircase", _no_prediction(str(error))),))
    if not len(process.times):
        text = _no_prediction("no neuron is active on a label of its own sign")
        return Findings((Section("Staircase", text),))
    first = usable[0]
    sections = (
        staircase(usable, process),
        exponents(first, process),
        who_fits_what(first, process),
        norms(usable, process),
    )
    return Findings(sections, tuple(comparisons(usable, process)))


def prediction(run: Trajectory) -> Prediction:
    """The jump process; on other points the alternating prediction, which is a guess."""
    assert isinstance(run.loss_function, Square)
    kappa = run.loss_function.kappa(run.data.n)
    if not failures(run.data, run.net):
        return saddle_to_saddle(run.data, run.net, kappa=kappa)
    if imbalance(run.net):
        raise InputError(imbalance(run.net)[0])
    return alternating(run.data, run.net, kappa=kappa)


def comparisons(runs: Sequence[LabelledRun], process: Prediction) -> list[Comparison]:
    """Half times, plateau losses and final norms beside their predictions."""
    found: list[Comparison] = []
    first = runs[0]
    if isinstance(process, SaddleToSaddle) and first.run.engine == "flow":
        L = scale_of(first.run)
        times, sharp = half_times(first.run, process), process.sharp_times(-L)
        for k, (predicted, seen) in enumerate(zip(sharp, times, strict=True)):
            note = f"{len(process.fitted[k])} points; sharp prediction at this scale"
            found.append(Comparison(f"time of jump {k + 1}, {first.label}", predicted, seen, note))
        edges = np.append(0.0, sharp)
        for k in range(len(sharp)):
            seen = losses_of(first.run, np.array([0.5 * (edges[k] + edges[k + 1]) / L]))[0]
            name = f"loss on plateau {k}, {first.label}"
            found.append(Comparison(name, float(process.losses[k]), float(seen), "mid-plateau"))
    for item in runs:
        note = "the limit of a vanishing scale; a finite one lets neurons share points"
        name = f"final squared norm, {item.label}"
        found.append(Comparison(name, process.squared_norm, item.run.final.squared_norm, note))
    return found


def _is_square(run: Trajectory) -> bool:
    return isinstance(run.loss_function, Square) and run.options.get("train", "both") == "both"


def _no_prediction(reason: str) -> str:
    return f"There is no staircase to show: {reason}"
