"""Gradient descent beside the flow: chattering and balance against the step (experiment 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel
from reluflow.figures.description import DASHES, MARKERS
from reluflow.papers.univariate.figures.problems import problem, trials
from reluflow.papers.univariate.figures.tools import pick
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import columns, groups, median, slope, values

# powers are fitted up to this step; at 10^-2 the drift leaves first order, as the figure shows
SMALL_STEP = 10.0**-2.45
ROWS = (
    ("apart", "distance of the direction to the flow's"),
    ("chatter", "angle of held kinks to their points"),
    ("drift", "drift of the balance over |theta|^2"),
)


def _points(size: Size, seed: int) -> Iterable[Point]:
    exponents = pick(size, (-2.0, -3.0, -3.5, -4.0), (-2.0, -2.5, -3.0, -3.5, -4.0))
    for exponent in exponents:
        start = problem(2, 12, 16, 1.0, 1.0, 8.0, alpha=float(10.0**exponent), clock=150.0)
        yield from trials("steps", start, pick(size, 3, 9), seed, "descent")


def _draw(results: Sequence[Result]) -> Reproduction:
    """Distance to the flow, chattering and drift of descent against the step."""
    kept = [result for result in results if result.values["reached"]]
    alpha, middles = _medians(kept)
    small = alpha <= SMALL_STEP
    powers = {name: slope(alpha[small], middle[small]) for name, middle in middles.items()}
    text = (
        f"{len(kept)} of {len(results)} runs of descent reach the loss e^-8. Powers are fitted for "
        f"alpha up to 10^-2.5; over all steps drawn the power of the drift is "
        f"{slope(alpha, middles['drift']):.2f}."
    )
    return Reproduction(
        (_figure(alpha, middles, text),),
        {"descent": columns(results, ("alpha",), (*(name for name, _ in ROWS), "reached"))},
        _expectations(powers),
        note=text,
    )


def _medians(kept: Sequence[Result]) -> tuple[Array, dict[str, Array]]:
    """The steps, and the median over starts of each measurement at each of them."""
    cells = {alpha: part for (alpha,), part in groups(kept, "alpha").items()}
    alpha = np.array(sorted(cells))
    middles = {}
    for name, _ in ROWS:
        found = [values(cells[a], name) for a in alpha]
        middles[name] = np.array([median(part[np.isfinite(part)]) for part in found])
    return alpha, middles


def _figure(alpha: Array, middles: dict[str, Array], text: str) -> Figure:
    """One panel with a line for each measurement; the caption ends with the powers."""
    lines = [
        Line(alpha, middles[name], label=label, colour=k, dash=DASHES[k], marker=MARKERS[k])
        for k, (name, label) in enumerate(ROWS)
    ]
    return Figure(
        "descent",
        "Descent follows the flow to first order in the step",
        (
            Panel(
                "descent at loss e^-8",
                Axis("step on the rescaled clock, alpha", "log"),
                Axis("median over starts", "log"),
                tuple(lines),
            ),
        ),
        wide=False,
        caption=(
            "Loss-based steps alpha/L (exponential loss; r = 2, n = 12, width 16). Where the flow "
            "holds a kink on a point, descent jitters across it with an amplitude proportional to "
            f"the step; balance drifts in proportion too. {text}"
        ),
    )


def _expectations(powers: dict[str, float]) -> tuple[Expectation, ...]:
    """First order in the step for each measurement."""
    first = "first order in the step"
    return (
        Expectation(
            "power of alpha in the drift, alpha up to 10^-2.5",
            powers["drift"],
            0.85,
            1.15,
            first,
        ),
        Expectation(
            "power of alpha in the distance, alpha up to 10^-2.5",
            powers["apart"],
            0.7,
            1.3,
            first,
        ),
        Expectation(
            "power of alpha in the chatter, alpha up to 10^-2.5",
            powers["chatter"],
            0.6,
            1.4,
            first,
        ),
    )


RECIPES = (
    Recipe(
        "univariate/fig-descent",
        "Descent beside the flow: chattering and balance against the step",
        _points,
        _draw,
    ),
)
