"""KKT residuals along runs (experiment 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reluflow.figures import Figure
from reluflow.papers.univariate.figures.problems import problem, trials
from reluflow.papers.univariate.figures.tools import fates, pick, separated
from reluflow.papers.univariate.figures.trends import residual_panel
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import median, slope


def _points(size: Size, seed: int) -> Iterable[Point]:
    return trials("history", problem(2, 15, 32, 4.0, 0.4), pick(size, 3, 12), seed, "kkt")


def late_power(history: Mapping[str, Any], x: str, y: str) -> float:
    """The power of F over its last two decades."""
    F = history[x]
    late = F[-1] / 100.0 < F
    return slope(F[late], history[y][late])


def _draw(results: Sequence[Result]) -> Reproduction:
    kept = separated(results)
    histories = [result.arrays for result in kept]
    figure = Figure(
        "kkt",
        "The direction of training tends to a KKT point",
        (residual_panel(histories),),
        wide=False,
        caption=(
            "Residuals of the margin problem's KKT conditions (Clarke sets, smallest margin 1) and "
            "misalignment of weights and gradient, one curve a start; r = 2, n = 15, width 32. "
            "Neurons that are dead from the start keep their weights, a share F^(-1/2) of the "
            "norm: "
            f"eps falls like F^(-1/2), 1 - cos like 1/F. {fates(results)}"
        ),
    )
    source = "derived: rates with frozen components"
    rows = (
        ("power of F in 1 - cos", "F", "misalignment", -1.4, -0.7, source),
        ("power of F in eps", "kkt_F", "kkt_eps", -0.8, -0.3, source),
        ("power of F in delta", "kkt_F", "kkt_delta", -1.3, -0.7, "delta = O(1/F), section 6.2"),
    )
    return Reproduction(
        (figure,),
        {"kkt": _table(results)},
        tuple(
            Expectation(
                f"median {text}",
                median([late_power(h, x, y) for h in histories]),
                low,
                high,
                origin,
            )
            for text, x, y, low, high, origin in rows
        ),
        note=fates(results),
    )


def _table(results: Sequence[Result]) -> dict[str, list[float]]:
    names = ("kkt_F", "kkt_eps", "kkt_delta")
    table: dict[str, list[float]] = {name: [] for name in ("run", *names)}
    for k, result in enumerate(results):
        table["run"] += [k] * len(result.arrays["kkt_F"])
        for name in names:
            table[name] += [float(value) for value in np.asarray(result.arrays[name])]
    return table


RECIPES = (
    Recipe(
        "univariate/fig-kkt",
        "KKT residuals and misalignment against the loss",
        _points,
        _draw,
    ),
)
