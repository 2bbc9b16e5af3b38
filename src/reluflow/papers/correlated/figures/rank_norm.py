"""How often rank and norm part: share of random data sets with M > 0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Heat, Layer, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.figures.tables import distinct, point, table, where
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction

DIMENSIONS = {"quick": (2, 3, 4, 5, 6), "full": (2, 3, 4, 5, 6, 7, 8, 9, 10)}
DEGREES = {"quick": tuple(range(5, 90, 5)), "full": tuple(range(5, 90, 5))}
COUNT = {"quick": 200, "full": 1000}
BLOCK = 100  # data sets of one computation


def points(size: str, seed: int) -> Iterator[Point]:
    """Blocks of random data sets for each dimension and cone."""
    for d in DIMENSIONS[size]:
        for degrees in DEGREES[size]:
            for block in range(COUNT[size] // BLOCK):
                parameters: dict[str, Any] = {
                    "d": d,
                    "half_angle": math.radians(degrees),
                    "count": BLOCK,
                    "compared": 3,
                }
                yield point("rank_shares", seed, f"rank {d} {degrees} {block}", parameters)


def draw(results: Sequence[Result]) -> Reproduction:
    """Shares as curves over the cone angle, and as a map over angle and dimension."""
    dimensions, angles = distinct(results, "d"), distinct(results, "half_angle")
    share, error = _shares(results, dimensions, angles)
    degrees = np.degrees(angles)
    panels = (
        _over_angle(dimensions, degrees, share, error),
        _over_dimension(dimensions, degrees, share),
    )
    caption = (
        "Share of random data sets (d unit points, uniform in a cap around the teacher) on which "
        "rank-1 networks have not the least norm, so that a flow that minimises rank cannot "
        "minimise norm. Bands: two standard errors. In two dimensions the share is 0 by theory as "
        "long as inner products are positive."
    )
    figure = Figure("rank_norm", "How often rank and norm part", panels, 2, caption)
    expected = _expected(results, dimensions, degrees, share)
    rows = table(results, ("d", "half_angle", "count"))
    return Reproduction((figure,), {"rank_norm": rows}, expected)


def _over_angle(dimensions: Sequence[int], degrees: Array, share: Array, error: Array) -> Panel:
    """A curve with its band for each dimension, every second one where there are many."""
    shown = dimensions if len(dimensions) <= 7 else dimensions[::2]
    lines: list[Layer] = [Rule(45.0, "x", "pi/4 of the theory")]
    for k, d in enumerate(shown):
        row = dimensions.index(d)
        low, high = share[row] - error[row], share[row] + error[row]
        lines.append(
            Line(
                degrees, share[row], f"d = {d}", k % 7, DASHES[k % 4], "circle", low=low, high=high
            )
        )
    return Panel(
        "share with M > 0",
        Axis("half-angle of the cone (degrees)", range=(0.0, 90.0)),
        Axis("share of data sets", range=(-0.02, 1.02)),
        tuple(lines),
    )


def _over_dimension(dimensions: Sequence[int], degrees: Array, share: Array) -> Panel:
    """The shares of all dimensions as a map."""
    return Panel(
        "over dimension",
        Axis("half-angle of the cone (degrees)"),
        Axis("dimension", ticks=tuple((float(d), str(d)) for d in dimensions)),
        (Heat(degrees, np.array(dimensions, float), share, "share with M > 0"),),
    )


def _expected(
    results: Sequence[Result], dimensions: Sequence[int], degrees: Array, share: Array
) -> tuple[Expectation, ...]:
    """No share in the plane up to 45 degrees, Theorem 8 on all compared, both cases in space."""
    flat = [
        r
        for r in where(results, d=2)
        if r.point.parameters["half_angle"] <= math.pi / 4 * (1 + 1e-12)
    ]
    agreed = sum(r.values["agreed"] for r in results)
    compared = sum(r.values["compared"] for r in results)
    quarter = int(np.argmin(np.abs(degrees - 45.0)))
    return (
        Expectation(
            "data sets with M > 0 in two dimensions, cones up to 45 degrees",
            float(sum(r.values["above"] for r in flat)),
            0.0,
            0.0,
            "positive inner products make the inverse Gram matrix a Z-matrix if d = 2",
        ),
        Expectation(
            f"rank-2 network beats rank 1 exactly when V > 1: share of {compared}",
            agreed / compared if compared else math.nan,
            1.0,
            1.0,
            "Theorem 8 of arXiv 2306.06479",
        ),
        Expectation(
            "share in three dimensions, cone near 45 degrees",
            float(share[dimensions.index(3), quarter]) if 3 in dimensions else math.nan,
            0.01,
            0.99,
            "both cases of Theorem 8 occur at random; measured here",
        ),
    )


def _shares(
    results: Sequence[Result], dimensions: Sequence[int], angles: Sequence[float]
) -> tuple[Any, Any]:
    share = np.full((len(dimensions), len(angles)), np.nan)
    error = np.zeros_like(share)
    for i, d in enumerate(dimensions):
        for k, angle in enumerate(angles):
            own = where(results, d=d, half_angle=angle)
            total = sum(r.point.parameters["count"] for r in own)
            if total:
                share[i, k] = sum(r.values["above"] for r in own) / total
                error[i, k] = 2.0 * math.sqrt(share[i, k] * (1 - share[i, k]) / total)
    return share, error


RECIPES = [
    Recipe(
        "correlated/fig-rank-norm",
        "share of random data on which rank-1 networks have not the least norm",
        points,
        draw,
    )
]
