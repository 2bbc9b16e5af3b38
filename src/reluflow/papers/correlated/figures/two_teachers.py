"""Two teachers with opposite clusters: two bundles, learned one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.figures.tables import (
    distinct,
    point,
    spread,
    table,
    where,
)
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction

RHOS = {
    "quick": (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "full": (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0),
}
TRIALS = {"quick": 5, "full": 15}
SOURCE = "two-teacher experiments of arXiv 2306.06479 (appendix)"
LN10 = math.log(10.0)


def points(size: str, seed: int) -> Iterator[Point]:
    """Trials for each spread of the clusters, teachers at the centres or beside them."""
    for uncentred in (False, True):
        for rho in RHOS[size]:
            for trial in range(TRIALS[size]):
                parameters: dict[str, Any] = {
                    "d": 16,
                    "width": 25,
                    "power": -7,
                    "rho": rho,
                    "uncentred": uncentred,
                }
                key = f"two {uncentred} {rho} {trial}"
                yield point("two_teachers", seed, key, parameters)


def draw(results: Sequence[Result]) -> Reproduction:
    """Angles of the two groups against the spread; the loss of one run with its two escapes."""
    panels = [_angles(results, uncentred) for uncentred in distinct(results, "uncentred")]
    panels.append(_losses(results))
    caption = (
        "Left, middle: largest final angle in the group of each teacher (median, range), against "
        "the variance of the clusters. Right: training loss of the tightest clusters; the teacher "
        "of norm 3 is learned first, then a plateau, then the one of norm 1."
    )
    figure = Figure("two_teachers", "Two teachers, two bundles", tuple(panels), 3, caption)
    tight = where(results, rho=min(distinct(results, "rho")))
    wide = where(results, rho=max(distinct(results, "rho")))
    expected = (
        Expectation(
            "tight clusters: median squared norm at the end",
            float(np.median([r.values["squared_norm"] for r in tight])),
            7.98,
            8.02,
            f"{SOURCE}: 2 (1 + 3) for small variance",
        ),
        Expectation(
            "tight clusters: median of the larger angle (degrees)",
            float(np.median([_degrees(r) for r in tight])),
            0.0,
            1.0,
            f"{SOURCE}: small angles for small variance only",
        ),
        Expectation(
            "wide clusters: median of the larger angle (degrees)",
            float(np.median([_degrees(r) for r in wide])),
            1.0,
            180.0,
            f"{SOURCE}: angles grow with the variance",
        ),
        Expectation(
            "tight clusters: loss on the plateau between the escapes, over that at the start",
            _plateau(tight),
            0.05,
            0.2,
            "one cluster fitted, of labels 3 against 1: 1/10 remains",
        ),
    )
    rows = table(results, ("d", "width", "power", "rho", "uncentred"))
    return Reproduction((figure,), {"two_teachers": rows}, expected)


def _degrees(result: Result) -> float:
    names = ("log_angle_positive", "log_angle_negative")
    return max(math.degrees(math.exp(result.values[name])) for name in names)


def _angles(results: Sequence[Result], uncentred: bool) -> Panel:
    own = where(results, uncentred=uncentred)
    layers: list[Layer] = []
    groups = (("log_angle_positive", "teacher of norm 1"), ("log_angle_negative", "norm 3"))
    for k, (name, label) in enumerate(groups):

        def degrees(result: Result, name: str = name) -> float:
            return math.degrees(math.exp(result.values[name]))

        x, middle, low, high = spread(own, "rho", degrees)
        marker = ("circle", "square")[k]
        line = Line(x, middle, label, k, DASHES[k], marker, low=low, high=high)  # type: ignore[arg-type]
        layers.append(line)
    return Panel(
        "angle, teachers aside" if uncentred else "angle, teachers at centres",
        Axis("variance of the clusters", "log"),
        Axis("degrees", "log"),
        tuple(layers),
    )


def _losses(results: Sequence[Result]) -> Panel:
    tight = where(results, rho=min(distinct(results, "rho")), uncentred=False)
    layers: list[Layer] = []
    for k, result in enumerate(tight[:3]):
        iterations, logs = result.arrays["iterations"], result.arrays["log_loss"]
        seen = iterations > 0
        style: dict[str, Any] = {"colour": 2 + k, "dash": DASHES[k]}
        layers.append(Line(iterations[seen], np.exp(logs[seen]), f"trial {k + 1}", **style))
    if tight:
        start = float(np.exp(tight[0].arrays["log_loss"][0]))
        layers.append(Rule(start / 10.0, "y", "norm-3 class fitted"))
    return Panel("two escapes", Axis("iterations", "log"), Axis("loss", "log"), tuple(layers))


def _plateau(results: Sequence[Result]) -> float:
    """Loss, over that at the start, where it stands still between its two falls (median)."""
    found = []
    for result in results:
        logs, t = result.arrays["log_loss"], result.arrays["iterations"]
        low, high = logs[0] - 6 * LN10 / 2, logs[0] - 0.5
        inner = np.flatnonzero((logs > low) & (logs < high))
        if len(inner) < 3:
            continue
        steep = np.abs(np.diff(logs[inner]) / np.maximum(np.diff(t[inner]), 1e-9))
        found.append(math.exp(float(logs[inner][int(np.argmin(steep))] - logs[0])))
    return float(np.median(found)) if found else math.nan


RECIPES = [
    Recipe(
        "correlated/fig-two-teachers",
        "two teachers: angles of both bundles against the spread of the clusters",
        points,
        draw,
    )
]
