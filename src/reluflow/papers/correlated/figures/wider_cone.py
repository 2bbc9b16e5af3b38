"""Beyond pi/4: what the flow ends in when points spread up to pi/2 around the teacher."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Rule
from reluflow.figures.description import DASHES, MARKERS
from reluflow.papers.correlated.figures.tables import (
    distinct,
    point,
    spread,
    table,
    where,
)
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction

DIMENSIONS = {"quick": (3, 6, 12), "full": (3, 6, 12, 24)}
DEGREES = {"quick": (30, 44, 50, 56, 62, 68, 74, 80, 88), "full": tuple(range(30, 90, 3))}
POWERS = {"quick": (-6, -14), "full": (-6, -10, -14, -20)}
TRIALS = {"quick": 20, "full": 100}
WIDTH = 50
ALIGNED = math.log(math.radians(5.0))
FITTED = math.log(1e-12)
SOURCE = "open question of arXiv 2306.06479, section 9"


def points(size: str, seed: int) -> Iterator[Point]:
    """Trials for each dimension, cone and scale."""
    for d in DIMENSIONS[size]:
        for degrees in DEGREES[size]:
            for trial in range(TRIALS[size]):
                for power in POWERS[size]:
                    parameters: dict[str, Any] = {
                        "scheme": "cone",
                        "d": d,
                        "half_angle": math.radians(degrees),
                        "width": WIDTH,
                        "power": power,
                    }
                    yield point("wider_cone", seed, f"cone {d} {degrees} {trial}", parameters)


def draw(results: Sequence[Result]) -> Reproduction:
    """Shares that fit and that end parallel, and the largest angle, against the cone."""
    smallest = min(distinct(results, "power"))
    last = where(results, power=smallest)
    panels = (
        _shares(last),
        _curves(
            where(results, d=max(distinct(results, "d"))),
            "largest angle",
            Axis("degrees", "log"),
            "power",
            lambda r: math.degrees(math.exp(r.values["log_angle"])),
        ),
        _curves(
            last,
            "squared norm",
            Axis("norm squared"),
            "d",
            lambda r: r.values["squared_norm"],
            Rule(2.0, "y", "rank 1"),
        ),
    )
    caption = (
        f"Left: share of trials at scale 4^{smallest} whose carrying neurons end within 5 degrees "
        "of each other. Middle: their largest angle (median, range) in dimension "
        f"{max(distinct(results, 'd'))}, which shrinks with the scale only where the end has rank "
        "1. Right: squared norm of the end. The theory covers cones up to 45 degrees; beyond, what "
        "happens is open, and this is an experiment with points of unit length: for lengths 100 "
        "and 0.1 rank 1 fails at 45.7 degrees with all products positive."
    )
    figure = Figure("wider_cone", "Relaxing the angle of pi/4", panels, 3, caption)
    inside = [r for r in last if r.values["largest_angle"] < math.pi / 4]
    beyond = [r for r in last if r.values["largest_angle"] >= math.pi / 4]
    positive = [r for r in beyond if r.values["is_positive"]]
    negative = [r for r in beyond if not r.values["is_positive"]]
    expected = (
        Expectation(
            f"within pi/4: share that fits and ends parallel ({len(inside)} trials)",
            _mean(inside, _is_good),
            0.95,
            1.0,
            "Theorem 7 of arXiv 2306.06479, for vanishing scale",
        ),
        Expectation(
            f"beyond pi/4, unit points, positive products: the same share ({len(positive)} trials)",
            _mean(positive, _is_good),
            0.95,
            1.0,
            f"{SOURCE}; observed, not proved, and not so for points of unlike lengths",
        ),
        Expectation(
            f"beyond pi/4, some inner product negative: the same share ({len(negative)} trials)",
            _mean(negative, _is_good),
            0.2,
            0.95,
            f"{SOURCE}; first observed here: rank 1 is not the rule any more",
        ),
    )
    rows = table(results, ("d", "half_angle", "width", "power"))
    return Reproduction((figure,), {"wider_cone": rows}, expected, _note(beyond))


def _is_aligned(result: Result) -> float:
    return float(result.values["log_angle"] < ALIGNED)


def _is_good(result: Result) -> float:
    return float(_is_aligned(result) and result.values["log_loss"] < FITTED)


def _mean(results: Sequence[Result], value: Callable[[Result], float]) -> float:
    return float(np.mean([value(r) for r in results])) if results else math.nan


def _shares(results: Sequence[Result]) -> Panel:
    layers: list[Layer] = [Rule(45.0, "x", "pi/4")]
    for k, d in enumerate(distinct(results, "d")):
        own = where(results, d=d)
        angles = distinct(own, "half_angle")
        shares = [_mean(where(own, half_angle=angle), _is_aligned) for angle in angles]
        layers.append(
            Line(np.degrees(angles), np.array(shares), f"d = {d}", k, DASHES[k % 4], MARKERS[k % 4])
        )
    return Panel(
        "ends with rank 1",
        Axis("half-angle of the cone (degrees)"),
        Axis("share of trials", range=(-0.03, 1.03)),
        tuple(layers),
    )


def _curves(
    results: Sequence[Result],
    title: str,
    axis: Axis,
    by: str,
    value: Callable[[Result], float],
    *rules: Rule,
) -> Panel:
    """Medians and ranges against the cone, one curve for each dimension or scale."""
    layers: list[Layer] = [Rule(45.0, "x"), *rules]
    for k, each in enumerate(distinct(results, by)):
        x, middle, low, high = spread(where(results, **{by: each}), "half_angle", value)
        colour = k if by == "d" else 4 + k % 3
        label = f"d = {each}" if by == "d" else f"scale 4^{each}"
        marker = MARKERS[k % 4] if by == "d" else "none"
        line = Line(np.degrees(x), middle, label, colour, DASHES[k % 4], marker, low=low, high=high)
        layers.append(line)
    return Panel(title, Axis("half-angle of the cone (degrees)"), axis, tuple(layers))


def _note(beyond: Sequence[Result]) -> str:
    fitted = [r for r in beyond if r.values["log_loss"] < FITTED]
    apart = [r for r in fitted if not _is_aligned(r)]
    stuck = sum(r.values["status"] == "stationary" for r in beyond)
    norms = sorted(r.values["squared_norm"] for r in apart)
    text = (
        f"Beyond pi/4, at the smallest scale: {len(beyond)} trials, {len(fitted)} reach zero loss, "
        f"{len(apart)} of them with more than one direction, and {stuck} end at a stationary point "
        "with positive loss."
    )
    if norms:
        text += (
            f" Squared norms of the ends with more than one direction: {norms[0]:.4g} to "
            f"{norms[-1]:.4g} (rank 1: 2)."
        )
    return text


RECIPES = [
    Recipe(
        "correlated/fig-wider-cone",
        "points up to pi/2 from the teacher: does the flow still end at rank 1?",
        points,
        draw,
    )
]
