"""Figure 1 and its companions: final angles, their mean and the nuclear norm against the scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.figures.tables import (
    distinct,
    point,
    spread,
    table,
    trials,
    where,
)
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction
from reluflow.theory.fits import line

DIMENSIONS = {"quick": (4, 16, 64), "full": (4, 16, 64, 256, 1024)}
TRIALS = {"quick": 3, "full": 5}
POWERS = tuple(range(2, -14, -1))
WIDTH = 200
SCHEMES = ("centred", "uncentred")
TAIL = math.log(math.radians(1.0))
CLOSE = math.log(math.radians(0.3))


def points(
    size: str,
    seed: int,
    *,
    descent: bool = False,
    dimensions: Sequence[int] | None = None,
    powers: Sequence[int] = POWERS,
) -> Iterator[Point]:
    """One training for each scheme, dimension, trial and scale; small dimensions first."""
    for d in dimensions or DIMENSIONS[size]:
        for scheme in SCHEMES:
            for trial in range(TRIALS[size]):
                for power in powers:
                    parameters: dict[str, Any] = {
                        "scheme": scheme,
                        "d": d,
                        "width": WIDTH,
                        "power": power,
                        "engine": "descent" if descent else "flow",
                    }
                    yield point("final_angles", seed, f"{scheme} {d} {trial}", parameters)


def degrees(result: Result) -> float:
    """Largest angle at the end, in degrees."""
    return math.degrees(math.exp(result.values["log_angle"]))


def draw(results: Sequence[Result]) -> Reproduction:
    """Medians with their range, and the closed-form tail."""
    panels = tuple(
        _panel(
            where(results, scheme=scheme),
            degrees,
            Axis("degrees at the end of training", "log"),
            with_tail=True,
        )
        for scheme in distinct(results, "scheme")
    )
    caption = (
        "Largest angle between neurons that started active with positive output weight, against "
        "the initial scale: medians, range over trials, and dashed the closed-form tail (median; "
        "no training), where all inner products of points are positive. Draws of the data spread "
        "over orders of magnitude; some of those with a negative product keep two directions."
    )
    figure = Figure("fig1", "Neurons become parallel as the scale vanishes", panels, 2, caption)
    return Reproduction(
        (figure,),
        {"fig1": table(results, ("scheme", "d", "width", "power", "engine"))},
        tuple(expectations(results)),
        _note(results),
    )


def _panel(
    results: Sequence[Result],
    value: Callable[[Result], float],
    axis: Axis,
    *,
    with_tail: bool = False,
) -> Panel:
    layers: list[Layer] = []
    for k, d in enumerate(distinct(results, "d")):
        own = where(results, d=d)
        power, middle, low, high = spread(own, "power", value)
        x = 4.0**power
        marker = ("circle", "square", "triangle", "diamond", "circle")[k]
        layers.append(
            Line(x, middle, f"d = {d}", k, "solid", marker, low=low, high=high)  # type: ignore[arg-type]
        )
        if with_tail:
            layers += _tails(own)
    return Panel(str(distinct(results, "scheme")[0]), scale_axis(), axis, tuple(layers))


def scale_axis() -> Axis:
    """The axis of scales, in powers of 4, large ones first as in the paper."""
    ticks = tuple((4.0**p, f"4^{p}") for p in (2, -1, -4, -7, -10, -13))
    return Axis("initial scale", "log", (4.0**2.4, 4.0**-13.4), ticks)


def _tails(results: Sequence[Result]) -> list[Layer]:
    slopes = [t[0].values["log_slope"] for t in trials(results)]
    if not slopes or np.isnan(slopes).any():
        return []
    power = np.arange(2, -14, -1)
    angles = np.degrees(np.exp(np.median(slopes) + power * math.log(4.0)))
    small = angles < 30.0
    # one colour for all dimensions: each lies on the tail that it predicts
    label = "closed form, no training"
    return [Line(4.0 ** power[small], angles[small], label, 6, "dash", width=1.0)]


def expectations(results: Sequence[Result]) -> Iterator[Expectation]:
    """Slope and level of the tail, plateau at large scales, how many of all draws have a tail.

    Where all products are positive the closed form says which scales are in the tail, so a draw
    whose neurons stay apart counts as one that misses it.
    """
    slopes, ratios = [], []
    for group in trials(results):
        if len(tail := _tail(group)) >= 3:
            x = [_log_scale(r) for r in tail]
            slopes.append(line(x, [r.values["log_angle"] for r in tail]).slope)
        ratios += [
            r.values["log_angle"] - _closed_form(r) for r in group if _closed_form(r) < CLOSE
        ]
    yield Expectation(
        f"log-log slope below one degree: worst of {len(slopes)} draws",
        max(slopes, key=lambda s: abs(s - 1.0)) if slopes else math.nan,
        0.98,
        1.02,
        "Theorem 7: proportional to the scale",
    )
    yield Expectation(
        "angle over its closed form where that is below 0.3 degrees: worst of all draws with "
        "positive products",
        math.exp(max(ratios, key=abs)) if ratios else math.nan,
        0.98,
        1.02,
        "derived from the conserved products; positive inner products",
    )
    large = [degrees(r) for r in results if r.point.parameters["power"] >= 0]
    yield Expectation(
        "median angle at scales 1 and above (degrees)",
        float(np.median(large)) if large else math.nan,
        85.0,
        175.0,
        "no theorem: directions of a large start hardly turn, and random ones are far apart",
    )
    ends = [group[-1].values["log_angle"] < TAIL for group in trials(results)]
    yield Expectation(
        f"share of all {len(ends)} draws whose largest angle ends below one degree",
        float(np.mean(ends)) if ends else math.nan,
        0.7,
        1.0,
        "Theorem 7 where products are positive; some draws with a negative one keep two directions",
    )


def _log_scale(result: Result) -> float:
    return float(result.point.parameters["power"]) * math.log(4.0)


def _closed_form(result: Result) -> float:
    """Logarithm of the angle that the products predict; nan where one is not positive."""
    return float(result.values["log_slope"]) + _log_scale(result)


def _tail(group: Sequence[Result]) -> list[Result]:
    """The scales of a draw at which all angles are below one degree."""
    return [r for r in group if r.values["log_angle"] < TAIL]


def _note(results: Sequence[Result]) -> str:
    ended = [r.values["status"] for r in results]
    counts = ", ".join(f"{ended.count(s)} {s}" for s in dict.fromkeys(ended))
    kind = distinct(results, "engine")[0]
    draws = trials(results)
    apart = sum(not _tail(group[-1:]) for group in draws)
    mixed = sum(math.isnan(group[-1].values["log_slope"]) for group in draws)
    return (
        f"{len(results)} trainings ({kind}): {counts}. {mixed} of {len(draws)} draws of the data "
        f"have a negative product; {apart} keep an angle above one degree at the smallest scale."
    )


def draw_mean(results: Sequence[Result]) -> Reproduction:
    """The mean angle in place of the largest."""
    panels = tuple(
        _panel(
            where(results, scheme=scheme),
            lambda r: math.degrees(r.values["mean_angle"]),
            Axis("mean angle at the end (degrees)", "log"),
        )
        for scheme in distinct(results, "scheme")
    )
    slopes = []
    for group in trials(results):
        tail = [r for r in _tail(group) if r.values["mean_angle"] > 1e-12]
        if len(tail) >= 3:
            y = [math.log(r.values["mean_angle"]) for r in tail]
            slopes.append(line([_log_scale(r) for r in tail], y).slope)
    expected = Expectation(
        f"log-log slope of the mean below one degree: worst of {len(slopes)} draws",
        max(slopes, key=lambda s: abs(s - 1.0)) if slopes else math.nan,
        0.98,
        1.02,
        "Theorem 7: angles are proportional to the scale, and so is their mean",
    )
    caption = (
        "Mean angle over pairs of neurons that started active with positive output weight: the "
        "same shape as the largest one, lower."
    )
    figure = Figure("average_angle", "The mean angle", panels, 2, caption)
    rows = table(results, ("scheme", "d", "width", "power", "engine"))
    return Reproduction((figure,), {"average_angle": rows}, (expected,), _note(results))


def draw_nuclear(results: Sequence[Result]) -> Reproduction:
    """The nuclear norm of the hidden matrix, which tends to 1."""
    panels = []
    for scheme in distinct(results, "scheme"):
        panel = _panel(
            where(results, scheme=scheme),
            lambda r: r.values["nuclear_norm"],
            Axis("nuclear norm of the hidden weights", "log"),
        )
        rule = Rule(1.0, "y", "rank 1")
        panels.append(Panel(panel.title, panel.x, panel.y, (rule, *panel.layers)))
    last = [
        r.values["nuclear_norm"]
        for r in where(results, power=min(distinct(results, "power")))
        if _closed_form(r) < TAIL
    ]
    expected = Expectation(
        "nuclear norm at the smallest scale: furthest from 1, all draws with positive products",
        max(last, key=lambda v: abs(v - 1.0)) if last else math.nan,
        0.95,
        1.001,
        "1 for rank 1 (Theorem 7), slightly below where training stops early",
    )
    caption = (
        "Nuclear norm of the hidden weights at the end of training. It is 1 for a rank-1 network "
        "that fits; training stops at a mean squared error of 1e-9."
    )
    figure = Figure("nuclear_norm", "The nuclear norm tends to 1", tuple(panels), 2, caption)
    rows = table(results, ("scheme", "d", "width", "power", "engine"))
    return Reproduction((figure,), {"nuclear_norm": rows}, (expected,), _note(results))


WIDTHS = (25, 50, 200)
WIDTH_DIMENSION = {"quick": 64, "full": 1024}


def width_points(size: str, seed: int) -> Iterator[Point]:
    """Three widths in one dimension (1024 in the paper), centred."""
    d = WIDTH_DIMENSION[size]
    for width in WIDTHS:
        for trial in range(TRIALS[size]):
            for power in POWERS:
                parameters = {
                    "scheme": "centred",
                    "d": d,
                    "width": width,
                    "power": power,
                    "engine": "flow",
                }
                yield point("final_angles", seed, f"width {width} {d} {trial}", parameters)


def draw_widths(results: Sequence[Result]) -> Reproduction:
    """Largest angle against the scale, by width."""
    layers: list[Layer] = []
    for k, width in enumerate(distinct(results, "width")):
        power, middle, low, high = spread(where(results, width=width), "power", degrees)
        line = Line(4.0**power, middle, f"{width} neurons", k, DASHES[k], low=low, high=high)
        layers.append(line)
    d = distinct(results, "d")[0]
    panel = Panel(
        f"centred, d = {d}",
        scale_axis(),
        Axis("degrees at the end of training", "log"),
        tuple(layers),
    )
    caption = "Largest final angle for three widths: medians and range over trials."
    figure = Figure("widths", "The width changes little", (panel,), 1, caption, wide=False)
    kept = tuple(expectations(results))[:2]
    rows = table(results, ("scheme", "d", "width", "power"))
    return Reproduction((figure,), {"widths": rows}, kept, _note(results))


RECIPES = [
    Recipe(
        "correlated/fig1",
        "largest angle between neurons against the initial scale",
        points,
        draw,
        ("descent",),
    ),
    Recipe(
        "correlated/fig-average-angle",
        "mean angle between neurons against the initial scale",
        points,
        draw_mean,
        ("descent",),
    ),
    Recipe(
        "correlated/fig-nuclear-norm",
        "nuclear norm of the hidden weights against the initial scale",
        points,
        draw_nuclear,
        ("descent",),
    ),
    Recipe(
        "correlated/fig-widths",
        "largest angle against the initial scale for three widths",
        width_points,
        draw_widths,
    ),
]
