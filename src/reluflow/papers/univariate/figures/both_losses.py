"""Exponential against logistic loss from one start (experiment 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Points, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.univariate.figures.function import bands
from reluflow.papers.univariate.figures.problems import LOSSES, problem, trials
from reluflow.papers.univariate.figures.tools import FALL, pick
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import extreme


def _points(size: Size, seed: int) -> Iterable[Point]:
    start = problem(2, 15, 32, 4.0, 0.4)
    return trials("both_losses", start, pick(size, 3, 12), seed, "losses")


def _right(result: Result) -> bool:
    return all(
        result.values[f"{name}_separated"] and not result.values[f"{name}_unfinished"]
        for name in LOSSES
    )


def _draw(results: Sequence[Result]) -> Reproduction:
    """Distance of the two paths at equal loss, and the functions at the end."""
    kept = [result for result in results if _right(result)]
    shown = (kept or list(results))[0]
    margins = _pairs(kept, "margin")
    regions = _pairs(kept, "regions")
    text = f"{len(kept)} of {len(results)} starts separate the points with both losses."
    return Reproduction(
        (_figure((_paths(kept), _functions(shown)), text),),
        {
            "losses": {
                "start": list(range(len(margins))),
                "margin_exponential": list(margins[:, 0]),
                "margin_logistic": list(margins[:, 1]),
                "regions_exponential": list(regions[:, 0]),
                "regions_logistic": list(regions[:, 1]),
            }
        },
        _expectations(margins, regions),
        note=text,
    )


def _pairs(kept: Sequence[Result], name: str) -> np.ndarray:
    """One number of each start with either loss: a row for each start."""
    return np.array(
        [[result.values[f"{loss}_{name}"] for loss in LOSSES] for result in kept]
    ).reshape(-1, 2)


def _figure(panels: tuple[Panel, ...], text: str) -> Figure:
    """The two panels and the caption, which ends with how many starts are drawn."""
    return Figure(
        "losses",
        "Two losses, two paths, limits of one kind",
        panels,
        columns=2,
        caption=(
            "The same starts with the exponential and the logistic loss (r = 2, n = 15, width 32). "
            "Left: distance of the unit vectors of all weights at equal F, one curve a start. "
            f"Right: the functions at the end, first start; shaded: label +1. {text}"
        ),
    )


def _paths(kept: Sequence[Result]) -> Panel:
    """Distance of the directions with the two losses at equal F, one curve a start."""
    paths: list[Layer] = [
        Line(
            result.arrays["levels"],
            result.arrays["apart"],
            colour=k % 7,
            dash=DASHES[k % 4],
            opacity=0.8,
        )
        for k, result in enumerate(kept)
    ]
    return Panel(
        "distance of the directions",
        Axis(FALL, "log"),
        Axis("|u_exp - u_log| at equal F", "log"),
        tuple(paths),
    )


def _expectations(margins: np.ndarray, regions: np.ndarray) -> tuple[Expectation, ...]:
    """Region counts that agree, and margins that may differ."""
    gaps = np.abs(margins[:, 1] / margins[:, 0] - 1.0) if len(margins) else np.empty(0)
    same = float(np.mean(np.abs(regions[:, 0] - regions[:, 1]) <= 1)) if len(regions) else np.nan
    return (
        Expectation(
            "share of the starts whose region counts differ by at most 1",
            same,
            0.6,
            1.0,
            "Theorem 4.2 holds for both losses",
        ),
        Expectation(
            "largest relative difference of the margins",
            extreme(gaps, "largest"),
            0.0,
            0.5,
            "Theorem 4.1: both limits are KKT points, not the same one",
        ),
    )


def _functions(result: Result) -> Panel:
    arrays = result.arrays
    layers: list[Layer] = list(bands(arrays["points"], arrays["labels"]))
    for k, name in enumerate(LOSSES):
        layers.append(
            Line(
                arrays["x"],
                arrays[f"{name}_values"],
                label=name,
                colour=k,
                dash=DASHES[k],
                width=2.0 - 0.5 * k,
            )
        )
    layers += [
        Points(arrays["points"], np.zeros(len(arrays["points"])), colour=7, size=3.0),
        Rule(0.0, dash="dot"),
    ]
    return Panel("functions at the end", Axis("input x"), Axis("N(x) / |theta|^2"), tuple(layers))


RECIPES = (
    Recipe(
        "univariate/fig-losses",
        "Exponential and logistic loss from the same start",
        _points,
        _draw,
    ),
)
