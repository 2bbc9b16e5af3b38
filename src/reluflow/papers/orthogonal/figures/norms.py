"""Figures 5 and 6: the norm that is reached, against the number of points and of neurons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points
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
    lines: list[Line] = []
    for k, ((lambda0,), own) in enumerate(sorted(by_scale.items(), reverse=True)):
        n, low, mean, high = bands_by_size(own, "n", "squared_norm")
        lines.append(
            Line(
                n,
                mean,
                label=f"descent, scale {lambda0:g}",
                colour=(0, 3)[k % 2],
                marker=("circle", "diamond")[k % 2],
                dash=("solid", "dashdot")[k % 2],
                low=low,
                high=high,
            )
        )
    n, limit = means_by_size(group, "n", "limit")
    lines.append(Line(n, limit, label="limit process", colour=1, dash="dash", marker="square"))
    n_opt, optimum = means_by_size(group, "n", "optimum")
    lines.append(Line(n_opt, optimum, label="optimum", colour=2, dash="dot", marker="triangle"))
    lines_and_points: list[Line | Points] = [*lines, *flow_points(flow, "n")]
    figure = Figure(
        "fig5",
        "The norm that is reached grows like the optimal one",
        (
            Panel(
                "",
                Axis("number of points n", scale="log", ticks=size_ticks(n_opt)),
                Axis("squared norm of the weights", scale="log"),
                tuple(lines_and_points),
            ),
        ),
        caption=(
            "Descent with step 0.5 on n orthonormal points with Gaussian labels, width "
            "log(100 n)/log(4/3); means of the runs that fit all labels, three or nearly so, band "
            "from least to largest. Theory: all grow like sqrt(n), a constant factor apart "
            "(Theorem 3). At a finite scale neurons share points, so descent lies below the limit "
            "process."
        ),
        wide=False,
    )
    reached = means_by_size(group, "n", "squared_norm")
    shape = (
        Expectation("slope of the optimum", slope(n_opt, optimum), 0.45, 0.55, "paper Fig. 5"),
        Expectation(
            "slope of the norm reached",
            slope(*reached),
            0.45,
            0.67,
            "Fig. 5 of the paper (0.5 to 0.62, with 0.05 for label noise)",
        ),
        Expectation(
            "largest norm of descent over the limit process",
            float((reached[1] / limit).max()),
            0.6,
            1.02,
            "Fig. 5 of the paper: between optimum and limit process",
        ),
        Expectation(
            "least norm of descent over the optimum",
            float((reached[1] / optimum).min()),
            1.0,
            2.5,
            "paper Theorem 3 and eq. (15)",
        ),
        agreement(descent, flow),
    )
    return Reproduction((figure,), {"norms": run_table(results)}, shape, unfinished_note(results))


def draw_by_m(results: Sequence[Result]) -> Reproduction:
    """Figure 6: squared norms against width for two initialisations."""
    descent, flow = by_engine(results)
    by_start = groups([r for r in descent if r.values["reached"]], "init")
    small, fan = (by_start.get((init,), []) for init in ("balanced", "fan_in"))
    m, low, mean, high = bands_by_size(small, "m", "squared_norm")
    lines = [
        Line(m, mean, label="small balanced start", colour=0, marker="circle", low=low, high=high)
    ]
    m_fan, low, mean_fan, high = bands_by_size(fan, "m", "squared_norm")
    lines.append(
        Line(
            m_fan,
            mean_fan,
            label="fan-in uniform start",
            colour=1,
            dash="dash",
            marker="square",
            low=low,
            high=high,
        )
    )
    m_limit, limit = means_by_size(small, "m", "limit")
    lines.append(
        Line(m_limit, limit, label="limit process", colour=3, dash="dashdot", marker="diamond")
    )
    optimum = float(results[0].values["optimum"])
    flat = np.full(2, optimum)
    lines.append(Line(m[[0, -1]], flat, label="optimum", colour=2, dash="dot"))
    figure = Figure(
        "fig6",
        "Wider networks: smaller norm from a small start, larger from a large one",
        (
            Panel(
                "",
                Axis("width m", scale="log", ticks=size_ticks(m)),
                Axis("squared norm of the weights", scale="log"),
                (*lines, *flow_points(flow, "m")),
            ),
        ),
        caption=(
            "32 orthonormal points, one set of labels; means of three runs, band from least to "
            "largest. From a small balanced start the norm falls towards the optimum; from the "
            "usual fan-in start it keeps its initial size, about m/3."
        ),
        wide=False,
    )
    common = sorted(set(m.tolist()) & set(m_fan.tolist()))
    above = min(
        (float(mean_fan[m_fan == w][0] / mean[m == w][0]) for w in common), default=float("nan")
    )
    shape = (
        Expectation(
            "norm at the largest width over the smallest, small start",
            float(mean[-1] / mean[0]),
            0.0,
            0.95,
            "paper Fig. 6: decreasing",
        ),
        Expectation(
            "norm over the optimum at the largest width, small start",
            float(mean[-1] / optimum),
            1.0,
            1.35,
            "Fig. 6 of the paper: 1.05 to 1.3, still above it",
        ),
        Expectation(
            "norm over m/3 at the largest width, fan-in start",
            float(mean_fan[-1] / (m_fan[-1] / 3.0)),
            0.95,
            1.5,
            "Fig. 6 of the paper: about m/3",
        ),
        Expectation(
            "fan-in over small start, least over widths", above, 1.0, np.inf, "paper Fig. 6"
        ),
        agreement(descent, flow),
    )
    return Reproduction((figure,), {"norms": run_table(results)}, shape, unfinished_note(results))


RECIPES = (
    Recipe("orthogonal/fig5", "Squared norm against the number of points", points_by_n, draw_by_n),
    Recipe("orthogonal/fig6", "Squared norm against the width", points_by_m, draw_by_m),
)
