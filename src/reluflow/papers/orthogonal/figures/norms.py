"""Figures 5 and 6: the norm that is reached, against the number of points and of neurons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.figures.description import Dash, Marker
from reluflow.papers.orthogonal.figures.norm_tables import (
    agreement,
    bands_by_size,
    by_engine,
    flow_points,
    means_by_size,
    run_table,
    size_ticks,
    unfinished_note,
)
from reluflow.papers.orthogonal.figures.problems import width_for
from reluflow.sweeps import Point, Result, seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import groups, slope

MEASURES = "reluflow.papers.orthogonal.figures.measures"
RUNS = 3


def points_by_n(size: Size, seed: int) -> list[Point]:
    """Figure 5: widths that cover all points, three runs each; by flow where n is small."""
    top, scales = (9, [1e-3]) if size == "quick" else (12, [1e-3, 1e-6])
    target = 1e-5 if size == "quick" else 1e-8
    descent = [
        seeded(
            f"{MEASURES}:norm_of_descent",
            {
                "n": 2**k,
                "m": width_for(2**k),
                "init": "balanced",
                "lambda0": lambda0,
                "lr": 0.5,
                "epochs": 10**6,
                "target": target,
                "label_seed": seed + 1000 * k + trial,
            },
            seed,
        )
        for k in range(4, top + 1)
        for lambda0 in scales
        for trial in range(RUNS)
    ]
    largest = 32 if size == "quick" else 64
    return [*descent, *_by_flow(descent, "n", largest)]


def points_by_m(size: Size, seed: int) -> list[Point]:
    """Figure 6: 32 points, growing width, small balanced start against fan-in start."""
    top = 10 if size == "quick" else 12
    target = 1e-5 if size == "quick" else 1e-8
    shared = {"n": 32, "epochs": 10**6, "target": target, "label_seed": seed}
    starts = [
        {"init": "balanced", "lambda0": 1e-3, "lr": 1.0},
        {"init": "fan_in", "lambda0": 0.0, "lr": 0.001},
    ]
    descent = [
        seeded(f"{MEASURES}:norm_of_descent", {**shared, **start, "m": 2**k}, seed, repeat=trial)
        for k in range(5, top + 1)
        for start in starts
        for trial in range(RUNS)
    ]
    return [*descent, *_by_flow(descent, "m", 32 if size == "quick" else 128)]


def _by_flow(points: Sequence[Point], name: str, largest: int) -> list[Point]:
    """The same starts by gradient flow, up to a size; a step of the flow costs O(n^3 + m n^2)."""
    return [
        Point(f"{MEASURES}:norm_of_flow", point.parameters, point.seed)
        for point in points
        if point.parameters[name] <= largest and point.parameters["lambda0"] in (0.0, 1e-3)
    ]


def draw_by_n(results: Sequence[Result]) -> Reproduction:
    """Figure 5: squared norms against n, both axes logarithmic."""
    descent, flow = by_engine(results)
    # a start that leaves a point uncovered never fits it: see the note
    by_scale = groups([r for r in descent if r.values["reached"]], "lambda0")
    group = by_scale[max(by_scale)]
    n, reached = means_by_size(group, "n", "squared_norm")
    limit, optimum = (means_by_size(group, "n", name)[1] for name in ("limit", "optimum"))
    layers: tuple[Line | Points, ...] = (
        *_lines_by_scale(by_scale),
        Line(n, limit, label="limit process", colour=1, dash="dash", marker="square"),
        Line(n, optimum, label="optimum", colour=2, dash="dot", marker="triangle"),
        *flow_points(flow, "n"),
    )
    figure = Figure(
        "fig5",
        "The norm that is reached grows like the optimal one",
        (_norm_panel("number of points n", n, layers),),
        caption=(
            "Descent with step 0.5 on n orthonormal points with Gaussian labels, width "
            "log(100 n)/log(4/3); means of the runs that fit all labels, three or nearly so, band "
            "from least to largest. Theory: all grow like sqrt(n), a constant factor apart "
            "(Theorem 3). At a finite scale neurons share points, so descent lies below the limit "
            "process."
        ),
        wide=False,
    )
    shape = (*_shape_by_n(n, reached, limit, optimum), agreement(descent, flow))
    return _with_runs(figure, results, shape)


def draw_by_m(results: Sequence[Result]) -> Reproduction:
    """Figure 6: squared norms against width for two initialisations."""
    descent, flow = by_engine(results)
    by_start = groups([r for r in descent if r.values["reached"]], "init")
    balanced, fan_in = (by_start.get((init,), []) for init in ("balanced", "fan_in"))
    small = _band_line(balanced, "m", "small balanced start", 0, "solid", "circle")
    fan = _band_line(fan_in, "m", "fan-in uniform start", 1, "dash", "square")
    m, limit = means_by_size(balanced, "m", "limit")
    optimum = float(results[0].values["optimum"])
    layers: tuple[Line | Points, ...] = (
        small,
        fan,
        Line(m, limit, label="limit process", colour=3, dash="dashdot", marker="diamond"),
        Line(m[[0, -1]], np.full(2, optimum), label="optimum", colour=2, dash="dot"),
        *flow_points(flow, "m"),
    )
    figure = Figure(
        "fig6",
        "Wider networks: smaller norm from a small start, larger from a large one",
        (_norm_panel("width m", m, layers),),
        caption=(
            "32 orthonormal points, one set of labels; means of three runs, band from least to "
            "largest. From a small balanced start the norm falls towards the optimum; from the "
            "usual fan-in start it keeps its initial size, about m/3."
        ),
        wide=False,
    )
    shape = (*_shape_by_m(small, fan, optimum), agreement(descent, flow))
    return _with_runs(figure, results, shape)


# -------------------------------------------------------------------- what both figures share


def _band_line(
    runs: Sequence[Result], along: str, label: str, colour: int, dash: Dash, marker: Marker
) -> Line:
    """Mean squared norm of the runs of each size, with a band from least to largest."""
    size, low, mean, high = bands_by_size(runs, along, "squared_norm")
    return Line(
        size, mean, label=label, colour=colour, dash=dash, marker=marker, low=low, high=high
    )


def _norm_panel(label: str, sizes: Array, layers: tuple[Line | Points, ...]) -> Panel:
    """Squared norms against sizes, both axes logarithmic."""
    return Panel(
        "",
        Axis(label, scale="log", ticks=size_ticks(sizes)),
        Axis("squared norm of the weights", scale="log"),
        layers,
    )


def _with_runs(
    figure: Figure, results: Sequence[Result], shape: tuple[Expectation, ...]
) -> Reproduction:
    """A figure with the table of its runs and the note on unfinished ones."""
    return Reproduction((figure,), {"norms": run_table(results)}, shape, unfinished_note(results))


# -------------------------------------------------------------------- figure 5


def _lines_by_scale(by_scale: dict[tuple[Any, ...], list[Result]]) -> tuple[Line, ...]:
    """A line of descent for each scale, the largest first."""
    return tuple(
        _band_line(
            own,
            "n",
            f"descent, scale {lambda0:g}",
            colour=(0, 3)[k % 2],
            dash=("solid", "dashdot")[k % 2],
            marker=("circle", "diamond")[k % 2],
        )
        for k, ((lambda0,), own) in enumerate(sorted(by_scale.items(), reverse=True))
    )


def _shape_by_n(n: Array, reached: Array, limit: Array, optimum: Array) -> tuple[Expectation, ...]:
    """How mean norms grow with n, and how that of descent compares with the other two."""
    return (
        Expectation("slope of the optimum", slope(n, optimum), 0.45, 0.55, "paper Fig. 5"),
        Expectation(
            "slope of the norm reached",
            slope(n, reached),
            0.45,
            0.67,
            "Fig. 5 of the paper (0.5 to 0.62, with 0.05 for label noise)",
        ),
        Expectation(
            "largest norm of descent over the limit process",
            float((reached / limit).max()),
            0.6,
            1.02,
            "Fig. 5 of the paper: between optimum and limit process",
        ),
        Expectation(
            "least norm of descent over the optimum",
            float((reached / optimum).min()),
            1.0,
            2.5,
            "paper Theorem 3 and eq. (15)",
        ),
    )


# -------------------------------------------------------------------- figure 6


def _shape_by_m(small: Line, fan: Line, optimum: float) -> tuple[Expectation, ...]:
    """How the norms of the two starts change with the width, and how far they part."""
    common = sorted(set(small.x.tolist()) & set(fan.x.tolist()))
    above = min(
        (float(fan.y[fan.x == w][0] / small.y[small.x == w][0]) for w in common),
        default=float("nan"),
    )
    return (
        Expectation(
            "norm at the largest width over the smallest, small start",
            float(small.y[-1] / small.y[0]),
            0.0,
            0.95,
            "paper Fig. 6: decreasing",
        ),
        Expectation(
            "norm over the optimum at the largest width, small start",
            float(small.y[-1] / optimum),
            1.0,
            1.35,
            "Fig. 6 of the paper: 1.05 to 1.3, still above it",
        ),
        Expectation(
            "norm over m/3 at the largest width, fan-in start",
            float(fan.y[-1] / (fan.x[-1] / 3.0)),
            0.95,
            1.5,
            "Fig. 6 of the paper: about m/3",
        ),
        Expectation(
            "fan-in over small start, least over widths", above, 1.0, np.inf, "paper Fig. 6"
        ),
    )


RECIPES = (
    Recipe("orthogonal/fig5", "Squared norm against the number of points", points_by_n, draw_by_n),
    Recipe("orthogonal/fig6", "Squared norm against the width", points_by_m, draw_by_m),
)
