"""How wide a network must be: success and the floor of Theorem 3.2 (experiment 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Layer, Line, Panel, Points, Rule
from reluflow.papers.univariate.constants import (
    least_wrong_cells,
    optimisation_requirements,
    quarter_tail,
)
from reluflow.papers.univariate.figures.problems import trials
from reluflow.papers.univariate.figures.tools import pick
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import columns, extreme, groups, values

FEW, MANY = 6, 40
SIGMA = 10.0
MEASURED = ("reached", "dead", "alive", "mass", "risk", "unfinished")
# live neurons per cell up to which wrong masses are drawn; beyond there is no bound
SHOWN = 2.0


def _points(size: Size, seed: int) -> Iterable[Point]:
    for ratio in pick(size, (1, 2, 4, 8, 16), (1, 1.5, 2, 4, 8, 16, 32, 64)):
        start = _problem(FEW, int(ratio * FEW), 3, 1e6)
        yield from trials("cells", start, pick(size, 8, 40), seed, "few")
    for ratio in pick(size, (1, 1.3), (1, 1.15, 1.3, 1.6, 2.0)):
        start = _problem(MANY, int(ratio * MANY), 2, 1e4)
        yield from trials("cells", start, pick(size, 4, 20), seed, "many")


def _problem(cells: int, width: int, per_cell: int, t_end: float) -> dict[str, float]:
    return {
        "cells": cells,
        "width": width,
        "per_cell": per_cell,
        "sigma": SIGMA,
        "output": float(1.0 / (4.0 * width * SIGMA * np.log(60.0 * width))),
        "t_end": t_end,
    }


def _draw(results: Sequence[Result]) -> Reproduction:
    """Share of successful starts against the width, and wrong mass above its floor."""
    few = [run for run in results if run.point.parameters["cells"] == FEW]
    ratios, share, low, high, dead = _success(few)
    panels = (_success_panel(ratios, share, low, high, dead), _floor_panel(results))
    return Reproduction(
        (_figure(panels),),
        {"width_needed": columns(results, ("cells", "width"), MEASURED)},
        _expectations(results, float(share[-1] - share[0])),
        note=(
            "The floor (1 - 0.75 alpha)/4 of the loss is positive for alpha < 4/3 only; the bound "
            "drawn counts the live neurons of each run. Training ends at t = 1e6 (6 cells) or 1e4 "
            "(40 cells), or where the points are separated."
        ),
    )


def _figure(panels: tuple[Panel, ...]) -> Figure:
    """The two panels and the caption, which states the width of Theorem 3.1."""
    needed = optimisation_requirements(3 * FEW, FEW, 1.0, 1.0 / FEW, 2.0, 0.1).width
    return Figure(
        "width_needed",
        "Over-parameterisation is needed, but far less than is proved",
        panels,
        columns=2,
        caption=(
            "Data on the positive axis in alternating cells (the construction of Theorem 3.2). "
            "Left: share of the starts that separate the points (95 % interval) and mean share of "
            "neurons dead for ever, 1/4; Theorem 3.1 asks for a width of "
            f"{needed:.2g}. Right: mass on the wrong side after training against the number of "
            "live neurons; few neurons cannot alternate often enough, and no run is below the line."
        ),
    )


def _success_panel(
    ratios: np.ndarray, share: np.ndarray, low: np.ndarray, high: np.ndarray, dead: np.ndarray
) -> Panel:
    """Share of the starts that succeed, with its interval, and of the neurons that are dead."""
    return Panel(
        f"{FEW} alternating cells",
        Axis("width over cells, k/r", "log"),
        Axis("share", range=(-0.03, 1.03)),
        (
            Line(
                ratios,
                share,
                label="starts that reach loss(0)/n",
                marker="circle",
                low=low,
                high=high,
            ),
            Line(
                ratios,
                dead,
                label="neurons dead at the start",
                colour=1,
                dash="dash",
                marker="square",
            ),
            Rule(0.25, dash="dot"),
        ),
    )


def _expectations(results: Sequence[Result], gain: float) -> tuple[Expectation, ...]:
    """No wrong mass below the floor, enough dead neurons, and success that grows with the width."""
    surplus = [_surplus(result) for result in results]
    quarter = [run.values["dead"] >= run.point.parameters["width"] / 4 for run in results]
    tail = min(quarter_tail(int(run.point.parameters["width"])) for run in results)
    return (
        Expectation(
            "smallest surplus of wrong mass over the bound",
            extreme(surplus, "least"),
            -1e-12,
            np.inf,
            "Theorem 3.2 with sign capacity A + 1",
        ),
        Expectation(
            "share of the starts with a quarter of the neurons dead",
            float(np.mean(quarter)),
            tail - 3.0 * float(np.sqrt(0.25 / len(quarter))),
            1.0,
            "P[Bin(k, 1/4) >= k/4] >= 1/4",
        ),
        Expectation(
            "gain of success from the narrowest to the widest",
            gain,
            0.5,
            1.0,
            "Theorems 3.1 and 3.2: width is needed, and enough of it suffices",
        ),
    )


def _success(runs: Sequence[Result]) -> tuple[np.ndarray, ...]:
    from scipy.stats import binomtest

    rows = []
    for (width,), part in sorted(groups(runs, "width").items()):
        reached = int(sum(bool(run.values["reached"]) for run in part))
        interval = binomtest(reached, len(part)).proportion_ci(0.95, method="exact")
        dead = float(values(part, "dead").mean() / width)
        rows.append((width / FEW, reached / len(part), interval.low, interval.high, dead))
    return tuple(np.array(rows).T)


def _bound(cells: int, alive: int) -> float:
    return least_wrong_cells(cells, alive) / cells


def _surplus(result: Result) -> float:
    cells = int(result.point.parameters["cells"])
    return float(result.values["mass"]) - _bound(cells, int(result.values["alive"]))


def _floor_panel(results: Sequence[Result]) -> Panel:
    layers: list[Layer] = []
    for k, ((cells,), members) in enumerate(groups(results, "cells").items()):
        part = [run for run in members if run.values["alive"] <= SHOWN * cells]
        layers.append(
            Points(
                values(part, "alive") / cells,
                values(part, "mass"),
                label=f"{cells} cells",
                colour=k,
                marker="circle" if k else "square",
                size=4.0,
                opacity=0.6,
            )
        )
    alive = np.arange(MANY + 1)
    layers.append(
        Line(
            alive / MANY,
            np.array([_bound(MANY, int(a)) for a in alive]),
            label=f"lower bound, {MANY} cells",
            colour=7,
        )
    )
    return Panel(
        "mass on the wrong side",
        Axis("live neurons over cells, A/r", range=(0.0, SHOWN + 0.1)),
        Axis("mass of y N <= 0", range=(-0.03, 0.8)),
        tuple(layers),
    )


RECIPES = (
    Recipe(
        "univariate/fig-width-needed",
        "Success and wrong mass against the width",
        _points,
        _draw,
    ),
)
