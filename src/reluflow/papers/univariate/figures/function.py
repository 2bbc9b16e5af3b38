"""The learned function and its breakpoints (experiment 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Layer, Line, Panel, Points, Rule, Span
from reluflow.figures.description import DASHES
from reluflow.papers.univariate.figures.problems import point, problem, scale_of
from reluflow.papers.univariate.figures.tools import FALL, fates
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size

LEVELS = [2.0, 10.0, 100.0]


def _points(size: Size, seed: int) -> Iterable[Point]:
    scale, width = scale_of(3), 64 if size == "full" else 32
    start = problem(3, 20, width, 2.0 * scale, 0.2 * scale, levels=LEVELS)
    yield point("portrait", start, seed, "function")


def bands(points: Array, labels: Array, cuts: Sequence[float] | None = None) -> list[Span]:
    """Shaded stretches where the label is +1: of the teacher, or between points of unlike label.

    They have no text: it would lie on the curves.
    """
    order = np.argsort(points)
    x, y = points[order], labels[order]
    switch = np.flatnonzero(y[1:] != y[:-1])
    edges = 0.5 * (x[switch] + x[switch + 1]) if cuts is None else np.asarray(cuts)
    reach = 0.15 * float(x[-1] - x[0])
    nodes = np.concatenate([[x[0] - reach], edges, [x[-1] + reach]])
    first = float(y[0])
    spans: list[Span] = []
    for k in range(len(nodes) - 1):
        if first * (-1) ** k > 0:
            spans.append(Span(float(nodes[k]), float(nodes[k + 1]), colour=2))
    return spans


def function_panel(arrays: Mapping[str, Any], cuts: Sequence[float] | None = None) -> Panel:
    """``N(x)/|theta|^2`` at the levels, with points, kinks sized by jump and bands of labels."""
    x, points, labels = arrays["x"], arrays["points"], arrays["labels"]
    layers: list[Layer] = list(bands(points, labels, cuts))
    for k, level in enumerate(arrays["levels"]):
        last = k == len(arrays["levels"]) - 1
        layers.append(
            Line(
                x,
                arrays["values"][k],
                label=f"F = {level:.4g}",
                colour=0 if last else (k + 3) % 7,
                dash="solid" if last else DASHES[1 + k % 3],
                opacity=1.0 if last else 0.8,
                width=2.0 if last else 1.0,
            )
        )
    for sign, colour, marker in ((1.0, 2, "circle"), (-1.0, 1, "square")):
        own = points[labels == sign]
        layers.append(
            Points(
                own,
                np.zeros(len(own)),
                label=f"points labelled {sign:+.0f}",
                colour=colour,
                marker=marker,  # type: ignore[arg-type]
                size=4.0,
            )
        )
    inside = (arrays["kinks"] >= x[0]) & (arrays["kinks"] <= x[-1])
    places = arrays["kinks"][inside]
    layers.append(
        Points(
            places,
            np.interp(places, x, arrays["values"][-1]),
            label="kinks, by jump",
            colour=0,
            marker="diamond",
            size=3.0 + 12.0 * np.sqrt(np.abs(arrays["jumps"][inside])),
        )
    )
    layers.append(Rule(0.0, dash="dot"))
    return Panel("learned function", Axis("input x"), Axis("N(x) / |theta|^2"), tuple(layers))


def breakpoint_panel(arrays: Mapping[str, Any]) -> Panel:
    """Breakpoints of the strongest neurons against F; where they start to slide on a point."""
    x = arrays["points"]
    low, high = 1.3 * float(x.min()), 1.3 * float(x.max())
    layers: list[Layer] = []
    for sign, colour, dash in ((1.0, 2, "dot"), (-1.0, 1, "dash")):
        for k, place in enumerate(x[arrays["labels"] == sign]):
            layers.append(
                Line(
                    np.array([arrays["F"][0], arrays["F"][-1]]),
                    np.full(2, place),
                    label="" if k else f"point labelled {sign:+.0f}",
                    colour=colour,
                    dash=dash,  # type: ignore[arg-type]
                    width=0.6,
                    opacity=0.6,
                )
            )
    strongest = arrays["shares"].max()
    for k in range(arrays["breakpoints"].shape[1]):
        path, share = arrays["breakpoints"][:, k], float(arrays["shares"][-1, k])
        inside = (path > low) & (path < high)
        if not inside.any():
            continue
        named = any(layer.colour == 0 for layer in layers if isinstance(layer, Line))
        layers.append(
            Line(
                arrays["F"],
                np.where(inside, path, np.nan),
                label="" if named else "breakpoint (wide: large jump)",
                colour=0,
                width=0.5 + 2.5 * float(np.sqrt(share / strongest)),
                opacity=0.7,
            )
        )
    seen = arrays["slide_F"] > arrays["F"][0]
    layers.append(
        Points(
            arrays["slide_F"][seen],
            arrays["slide_x"][seen],
            label="a slide starts",
            colour=3,
            marker="triangle",
            size=4.0,
        )
    )
    return Panel(
        "breakpoints", Axis(FALL, "log"), Axis("input x", range=(low, high)), tuple(layers)
    )


def held_share(arrays: Mapping[str, Any]) -> float:
    """Share of the total jump of the limit that sits on a data point, to 1e-3."""
    near = np.abs(arrays["kinks"][:, None] - arrays["points"]).min(axis=1, initial=np.inf)
    sizes = np.abs(arrays["jumps"])
    inside = (arrays["kinks"] > arrays["points"].min()) & (arrays["kinks"] < arrays["points"].max())
    total = float(sizes[inside].sum())
    return float(sizes[inside & (near <= 1e-3)].sum()) / total if total else float("nan")


def _draw(results: Sequence[Result]) -> Reproduction:
    arrays = results[0].arrays
    r = int(results[0].point.parameters["r"])
    width = results[0].point.parameters["width"]
    cuts = np.linspace(-1.0, 1.0, r + 2)[1:-1]
    figure = Figure(
        "function",
        "A wide network learns a function with few pieces",
        (function_panel(arrays, list(cuts)), breakpoint_panel(arrays)),
        columns=2,
        caption=(
            f"Left: the function of the direction at several loss levels, width {width}; shaded "
            "where the teacher's label is +1. Right: breakpoints gather as the loss falls; some "
            f"are held exactly on a data point, where they slide. {fates(results)}"
        ),
    )
    right = bool(results[0].values["separated"])
    return Reproduction(
        (figure,),
        {
            "function": {
                "x": list(arrays["x"]),
                **{
                    f"F={level:.6g}": list(row)
                    for level, row in zip(arrays["levels"], arrays["values"], strict=True)
                },
            },
            "kinks": {"x": list(arrays["kinks"]), "relative_jump": list(arrays["jumps"])},
        },
        (
            Expectation(
                "share of the inner jumps that sits on a data point",
                held_share(arrays) if right else float("nan"),
                0.0,
                1.0,
                "reported, not tested: nothing proved says how many kinks end on a point",
            ),
            Expectation(
                "kinks of the limit", float(len(arrays["kinks"])), 1, 32 * r + 66, "Theorem 4.2"
            ),
        ),
        note=fates(results),
    )


RECIPES = (
    Recipe(
        "univariate/fig-function",
        "The learned function at several losses, and the paths of its breakpoints",
        _points,
        _draw,
    ),
)
