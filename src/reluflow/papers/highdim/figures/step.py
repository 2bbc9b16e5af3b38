"""highdim/fig-step: descent against flow: the distance is made by the first finite step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reluflow.figures import Axis, Figure, Line, Panel, Points, Rule
from reluflow.sweeps import Point, Result
from reluflow.sweeps.point import seeded
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.results import slope

TASK = "reluflow.papers.highdim.figures.measures:step"


def points(size: Size, seed: int) -> Iterable[Point]:
    """Draws with n = 12, d = 12000, steps over three and a half decades."""
    full = size == "full"
    constants = np.geomspace(2.0, 8192.0 if full else 2048.0, 13 if full else 11)
    given = {"n": 12, "d": 12_000, "constants": [float(C) for C in constants]}
    for repeat in range(20 if full else 6):
        yield seeded(TASK, given, seed, repeat)


def _mean(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.exp(np.mean(np.log(np.maximum(np.array(rows), 1e-300)), axis=0)))


def draw(results: Sequence[Result]) -> Reproduction:
    """Distances to the shortest fit and to the flow, and the number of pattern changes."""
    C = results[0].arrays["constants"]
    star = _mean([r.arrays["to_star"] for r in results])
    to_flow = _mean([r.arrays["to_flow"] for r in results])
    law = _mean([r.values["law"] / C for r in results])
    changes = np.mean([r.arrays["changes"] for r in results], axis=0)
    gaps = np.array([r.values["flow_gap"] for r in results])
    end = float(np.median(gaps))
    panels = (_distance_panel(C, law, star, to_flow, end), _changes_panel(C, changes))
    table = {
        "C": C.tolist(),
        "to_star": star.tolist(),
        "to_flow": to_flow.tolist(),
        "changes": changes.tolist(),
    }
    expectations = _expectations(C, star, to_flow, changes, end)
    return Reproduction((_figure(panels, end),), {"step": table}, expectations)


def _figure(panels: tuple[Panel, ...], end: float) -> Figure:
    """The two panels and the caption, which states the distance of the flow to w*."""
    return Figure(
        "step",
        "Descent against flow: the distance is proportional to the step",
        panels,
        columns=2,
        caption=(
            "One neuron, n = 12, d = 12000. The distance of descent to the shortest fit w* is made "
            "by its first step, which throws the points of the other sign below zero, and is "
            "proportional to the step. The gradient flow brings these points to zero and lets them "
            f"slide: it lands on w* up to {end:.1e} (median). Small steps chatter about zero "
            "instead, with many changes of the pattern (right: mean over draws), and approach the "
            "flow linearly."
        ),
    )


def _distance_panel(
    C: np.ndarray, law: np.ndarray, star: np.ndarray, to_flow: np.ndarray, end: float
) -> Panel:
    """Distances of descent to w* and to the flow's limit, beside 1/C and the end of the flow."""
    floor = f"flow: median {end:.1e}"
    return Panel(
        "distance to the shortest fit w*",
        Axis("C = 1 / (step x l1)", "log"),
        Axis("distance / length of w*", "log"),
        (
            Line(C, law, "law of the first kick, 1/C", 7, "dash"),
            Line(C, star, "descent to w*", 0, marker="circle"),
            Points(C, to_flow, "descent to the flow's limit", 1, "cross", 7.0),
            *((Rule(end, "y", floor, 2, "dashdot"),) if end > 1e-7 else ()),
        ),
    )


def _changes_panel(C: np.ndarray, changes: np.ndarray) -> Panel:
    """Mean number of iterations in which the pattern changes."""
    return Panel(
        "changes of the pattern",
        Axis("C = 1 / (step x l1)", "log"),
        Axis("iterations with a change", "log"),
        (Line(C, np.maximum(changes, 0.5), "", 0, marker="circle"),),
    )


def _expectations(
    C: np.ndarray, star: np.ndarray, to_flow: np.ndarray, changes: np.ndarray, end: float
) -> tuple[Expectation, ...]:
    """Distances in proportion to the step, a flow that lands on w*, and chattering."""
    first = C <= 8.0
    spread = float((star[first] * C[first]).max() / (star[first] * C[first]).min() - 1.0)
    small = C >= 64.0
    return (
        Expectation("spread of distance x C for C <= 8", spread, 0.0, 0.25, "HD-20"),
        Expectation(
            "slope of the distance to the flow against C, from 64 on",
            slope(C[small].tolist(), to_flow[small].tolist()),
            -1.3,
            -0.7,
            "HD-32: error of first order in the step",
        ),
        Expectation(
            "median relative distance of the flow to w*", end, 0.0, 1e-3, "section 7, d >> n"
        ),
        Expectation(
            "mean number of changes at the smallest step over that at the largest",
            float(changes[-1] / max(changes[0], 1.0)),
            10.0,
            1e6,
            "section 7: chattering",
        ),
    )


FIGURE = Recipe(
    "highdim/fig-step",
    "descent against flow: the gap is proportional to the step, the flow lands on the shortest fit",
    points,
    draw,
)
