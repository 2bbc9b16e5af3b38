"""Margins, the share of global optima, and the basin of Example 1 (experiment 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points, Rule
from reluflow.papers.univariate.figures.problems import problem, trials
from reluflow.papers.univariate.figures.tools import fates, pick, separated
from reluflow.papers.univariate.figures.trends import History, gap_panel
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import extreme

BEST = float(np.sqrt(17.0) / 4.0)
OPTIMAL = 1e-3


def _points(size: Size, seed: int) -> Iterable[Point]:
    yield from trials("history", problem(3, 16, 32, 3.0, 0.3), pick(size, 6, 30), seed, "margin")
    for size_of in pick(size, (1e-3, 0.1, 1.0), (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0)):
        example = {"size": size_of, "level": 1e4}
        yield from trials("basin", example, pick(size, 6, 16), seed, "basin")


def _draw(results: Sequence[Result]) -> Reproduction:
    """Margins below the optimum, how close the ends are, and the basin of Example 1."""
    runs = [result for result in results if "optimum" in result.values]
    basins = [result for result in results if "angle" in result.values]
    kept = separated(runs)
    optima = [float(result.values["optimum"]) for result in kept]
    histories = [result.arrays for result in kept]
    ratios = np.sort([h["margin"][-1] / best for h, best in zip(histories, optima, strict=True)])
    panels = (gap_panel(histories, optima), _shares(ratios), _basin(basins))
    return Reproduction(
        (_figure(panels, runs),),
        {
            "margins": {
                "run": list(range(len(ratios))),
                "margin_over_optimum": list(ratios),
            },
            "basin": {
                "size": [result.point.parameters["size"] for result in basins],
                "angle": [result.values["angle"] for result in basins],
                "margin": [result.values["margin"] for result in basins],
            },
        },
        _expectations(histories, optima, ratios, basins),
        note=fates(runs),
    )


def _figure(panels: tuple[Panel, ...], runs: Sequence[Result]) -> Figure:
    """The three panels and the caption, which ends with how the runs ended."""
    return Figure(
        "margin",
        "Margins rise, never beyond the optimum, and often stop below it",
        panels,
        columns=3,
        caption=(
            "Left: margin and smoothed margin below the certified optimum over all widths, one "
            "curve a start (r = 3, n = 16, width 32). Middle: how close the ends are. Right: "
            "Example 1 with its zero neuron replaced by one of the given size: which KKT point is "
            f"reached depends on the start; the optimum is sqrt(17)/4. {fates(runs)}"
        ),
    )


def _expectations(
    histories: Sequence[History],
    optima: Sequence[float],
    ratios: np.ndarray,
    basins: Sequence[Result],
) -> tuple[Expectation, ...]:
    """Margins that rise up to the optimum at most, some that reach it, and Example 1."""
    rises = [
        float(np.diff(h["smoothed"][h["F"] > np.log(16)]).min(initial=np.inf)) for h in histories
    ]
    best_share = float(np.mean(ratios > 1.0 - OPTIMAL)) if len(ratios) else float("nan")
    return (
        Expectation(
            "largest margin over the optimum",
            extreme(
                [(h["margin"] / b).max() for h, b in zip(histories, optima, strict=True)],
                "largest",
            ),
            0.0,
            1.0 + 1e-8,
            "convex duality: the optimum is a bound for every network",
        ),
        Expectation(
            "smallest increment of the smoothed margin after separation",
            extreme(rises, "least"),
            -1e-10,
            np.inf,
            "Lyu and Li: monotone once the total loss is below loss(0)",
        ),
        Expectation(
            f"share of the starts within {OPTIMAL:g} of the optimum",
            best_share,
            0.0,
            1.0,
            "Theorem 4.1 promises a KKT point only (Example 1)",
        ),
        Expectation(
            "margin reached from the smallest perturbation of Example 1",
            _smallest(basins),
            0.49,
            0.6,
            "Example 1: the start is a KKT point of margin 1/2",
        ),
    )


def _smallest(basins: Sequence[Result]) -> float:
    if not basins:
        return float("nan")
    least = min(float(result.point.parameters["size"]) for result in basins)
    own = [r.values["margin"] for r in basins if r.point.parameters["size"] == least]
    return float(np.median(own))


def _shares(ratios: np.ndarray) -> Panel:
    line = Line(
        np.maximum(1.0 - ratios[::-1], 1e-8),
        np.arange(1, len(ratios) + 1) / max(1, len(ratios)),
        marker="circle",
    )
    return Panel(
        "share this close",
        Axis("1 - margin / optimum at the end", "log"),
        Axis("share of the starts", range=(0.0, 1.05)),
        (line, Rule(OPTIMAL, axis="x", label="within 0.1 %")),
    )


def _basin(basins: Sequence[Result]) -> Panel:
    x = np.array([float(result.point.parameters["size"]) for result in basins])
    y = np.array([float(result.values["margin"]) for result in basins])
    return Panel(
        "Example 1, perturbed",
        Axis("size of the second neuron", "log"),
        Axis("margin reached", range=(0.4, 1.15)),
        (
            Points(x, y, colour=0, size=4.0, opacity=0.7),
            Rule(0.5, label="Example 1: 1/2", dash="dot"),
            Rule(BEST, label="optimum sqrt(17)/4"),
        ),
    )


RECIPES = (
    Recipe(
        "univariate/fig-margin",
        "Margins against the certified optimum, and the basin of Example 1",
        _points,
        _draw,
    ),
)
