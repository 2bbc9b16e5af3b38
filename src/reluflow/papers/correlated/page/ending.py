"""The ending: a bundle of parallel neurons, of rank one, and not always of least norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Points, Rule
from reluflow.interpolators import min_norm
from reluflow.limits.hypotheses import common_scale
from reluflow.papers.correlated.assumptions import LARGEST_PROGRAM
from reluflow.papers.correlated.case import Correlated
from reluflow.theory.contract import LabelledRun, Said, Section
from reluflow.trajectory import Trajectory

SMALLEST = -300.0  # log scales below are off every axis


def log_final_angle(case: Correlated, run: Trajectory) -> float:
    """Logarithm of the largest angle between neurons of J+ at the end of a run."""
    return run.log_max_angle(float(run.t[-1]), case.positive)


def bundle(case: Correlated, runs: Sequence[LabelledRun]) -> Section:
    """Final angles against the scale, and output weights against their closed form."""
    practical = [item for item in runs if common_scale(item.run.net)[0] > SMALLEST]
    scales = np.array([common_scale(item.run.net)[0] for item in practical])
    order = np.argsort(scales)
    angles = np.array([log_final_angle(case, practical[k].run) for k in order])
    x = np.exp(scales[order])
    closed = np.minimum(case.bundle.log_angle_slope + scales[order], np.log(np.pi))
    angle_panel = Panel(
        "Largest angle between two neurons",
        Axis("initial scale", "log"),
        Axis("degrees at the end of training", "log"),
        (
            Line(x, np.degrees(np.exp(closed)), "closed form: slope 1", 6, "dash", width=1.2),
            Points(x, np.degrees(np.exp(angles)), "flow", 0, "circle", 5.0),
        ),
    )
    figure = Figure(
        "bundle",
        "The bundle and its limit",
        (angle_panel, _weights(case, [practical[k] for k in order])),
        2,
        "Left: largest angle between neurons that started active with positive output weight. "
        "Right: final output weights against the closed form for vanishing scale.",
    )
    text = (
        "How much each neuron would carry at the end, and by how little their directions would "
        "differ, follows from the yardsticks without training: the largest angle is the scale "
        f"times {case.bundle.angle_slope:.4g} radians on these data."
    )
    said = Said(
        "All neurons with positive output weight that saw a point end nearly parallel to the "
        "teacher, at an angle proportional to the scale.",
        ("T7",),
    )
    return Section("The ending", text, (figure,), (said,))


def _weights(case: Correlated, runs: Sequence[LabelledRun]) -> Panel:
    predicted = case.bundle.weights[case.positive]
    top = 1.05 * float(predicted.max())
    layers: list[Layer] = [Line(np.array([0.0, top]), np.array([0.0, top]), "", 7, "dot")]
    picks = [runs[0]] if len(runs) == 1 else [runs[-1], runs[0]]
    looks = ((1, "square"), (0, "circle"))[-len(picks) :]
    for item, (colour, marker) in zip(picks, looks, strict=True):
        trained = np.abs(item.run.final.flat().a[case.positive])
        layers.append(Points(predicted, trained, item.label, colour, marker, 4.5, 0.8))  # type: ignore[arg-type]
    return Panel(
        "Output weight of each neuron",
        Axis("closed form", range=(0.0, top)),
        Axis("trained", range=(0.0, top)),
        tuple(layers),
        equal=True,
    )


def rank_and_norm(case: Correlated, runs: Sequence[LabelledRun]) -> Section | None:
    """Squared norms of the ends against the least one, where Theorem 8 speaks."""
    if not case.met("3") or case.data.n > LARGEST_PROGRAM:
        return None
    answer, least = case.rank, min_norm(case.labelled)
    best = 2.0 * float(np.linalg.norm(case.teacher))
    practical = [item for item in runs if common_scale(item.run.net)[0] > SMALLEST]
    x = np.exp([common_scale(item.run.net)[0] for item in practical])
    y = np.array([item.run.final.squared_norm for item in practical])
    order = np.argsort(x)
    rules: list[Layer] = [Rule(best, "y", "rank 1", 2)]
    if answer.min_rank_is_min_norm is False:
        rules.append(Rule(least.value, "y", "least norm", 1, "dot"))
    panel = Panel(
        "",
        Axis("initial scale", "log"),
        Axis("squared norm of all weights"),
        (*rules, Line(x[order], y[order], "end of training", 0, "solid", "circle")),
    )
    said: tuple[Said, ...] = ()
    if answer.min_rank_is_min_norm:
        verdict = (
            f"Here V = {answer.V:.4g} < 1: exactly the rank-1 networks have the least norm, "
            f"{best:g}."
        )
    else:
        verdict = (
            f"Here V = {answer.V:.4g} > 1: a network of two directions fits with squared norm "
            f"{answer.counterexample.squared_norm:.6g}, and the least of all is "  # type: ignore[union-attr]
            f"{least.value:.6g}."
        )
        said = (
            Said(
                f"The flow ends at rank 1 and {best:g} all the same: it minimises rank, not norm.",
                ("T8c",),
            ),
        )
    text = (
        "Is the rank-1 network also the one of least norm? Theorem 8 decides by one number of the "
        f"data. {verdict}"
    )
    figure = Figure(
        "norm",
        "Norm of the end against the least norm",
        (panel,),
        caption="Squared norm at the end of training; lines: rank-1 networks, least norm.",
        wide=False,
    )
    return Section("Rank and norm", text, (figure,), said)
