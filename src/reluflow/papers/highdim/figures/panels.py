"""Panels shared by the page and the figures: primal variables, primal against dual, raster.

The two classes are told apart by colour and by line or marker: labels of the neuron's own sign blue
and solid, of the other sign vermilion and dashed. Iterations are drawn on a logarithmic axis with
the start, iteration 0, at one half.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.figures import Axis, Layer, Line, Panel, Points, Raster, Rule
from reluflow.trajectory import EVENT_DTYPE

START = 0.5  # where iteration 0 is drawn
COLUMNS = 120
STATES = {"deactivate": 0, "activate": 1, "slide": 2}
CLASSES: tuple[tuple[str, int, Literal["solid", "dash"], Literal["circle", "diamond"]], ...] = (
    ("label of the neuron's sign", 0, "solid", "circle"),
    ("label of the other sign", 1, "dash", "diamond"),
)
Pattern = NDArray[np.bool_]
Kinds = NDArray[np.int64]


def iteration_axis(last: float) -> Axis:
    """Iterations up to ``last``, with a tick for the start."""
    powers = range(int(np.floor(np.log10(max(last, 1.0)))) + 1)
    ticks = ((START, "0"), *((10.0**k, f"{10**k:,}".replace(",", " ")) for k in powers))
    return Axis("iteration", "log", (0.9 * START, 1.1 * max(last, 2.0)), ticks)


def primal(
    title: str,
    t: Array,
    P: Array,
    y: Array,
    sign: float,
    freeze: float | None,
    last: float,
    label: str = "pre-activation",
) -> Panel:
    """Pre-activations (k, n) of one neuron at iterations t, a curve for each point."""
    x = np.maximum(t, START)
    layers: list[Layer] = [Rule(0.0, "y", "", 7, "solid")]
    if freeze is not None:
        layers.append(Rule(max(freeze, START), "x", f"freeze at {freeze:g}", 7, "dot"))
    for own, (name, colour, dash, _) in zip((True, False), CLASSES, strict=True):
        for k, i in enumerate(np.flatnonzero((sign * y > 0.0) == own)):
            layers.append(
                Line(x, P[:, i], name if k == 0 else "", colour, dash, width=1.0, opacity=0.8)
            )
    return Panel(title, iteration_axis(last), Axis(label), tuple(layers))


def checkpoint(title: str, p: Array, y: Array, sign: float, limit: tuple[float, float]) -> Panel:
    """Pre-activations of one neuron at one iteration, example by example, and the labels."""
    order = np.argsort(-(sign * y), kind="stable")
    rank = np.arange(len(y), dtype=np.float64)
    goal = np.where(sign * y[order] > 0.0, sign * y[order], np.nan)
    layers: list[Layer] = [
        Rule(0.0, "y", "", 7, "solid"),
        Points(rank, goal, "label to fit", 7, "cross", 4.0),
    ]
    for own, (name, colour, _, marker) in zip((True, False), CLASSES, strict=True):
        mine = (sign * y[order] > 0.0) == own
        layers.append(Points(rank[mine], p[order][mine], name, colour, marker, 4.0))
    return Panel(title, Axis("example"), Axis("pre-activation", range=limit), tuple(layers))


def primal_dual(title: str, p: Array, b: Array, y: Array, sign: float) -> Panel:
    """Pre-activation against dual (times l1) of one neuron, a dot for each point."""
    layers: list[Layer] = [Rule(0.0, "y", "", 7, "solid"), Rule(0.0, "x", "", 7, "solid")]
    for own, (name, colour, _, marker) in zip((True, False), CLASSES, strict=True):
        mine = (sign * y > 0.0) == own
        layers.append(Points(p[mine], b[mine], name, colour, marker, 4.5, 0.8))
    return Panel(title, Axis("primal x_i . w"), Axis("dual l_1 b_i"), tuple(layers))


def raster(
    title: str,
    start: Pattern,
    events: NDArray[np.void],
    neuron: int,
    y: Array,
    sign: float,
    last: float,
) -> Panel:
    """On which point the neuron is active when: a row for each point, its own sign below."""
    edges = np.geomspace(START, max(last, 2.0) * 1.05, COLUMNS + 1)
    order = np.argsort(-(sign * y), kind="stable")
    state = np.repeat(start[order].astype(np.int64)[:, None], COLUMNS, axis=1)
    rank = np.empty(len(y), dtype=np.int64)
    rank[order] = np.arange(len(y))
    mine = events[(events["neuron"] == neuron) & np.isin(events["kind"], list(STATES))]
    for event in mine:
        column = int(np.searchsorted(edges[1:], float(event["t"]), side="right"))
        state[rank[int(event["point"])], column:] = STATES[str(event["kind"])]
    names = ("inactive", "active", "sliding")[: max(2, int(state.max()) + 1)]
    own = int((sign * y > 0.0).sum())
    ticks = ((own / 2.0, "own"), ((own + len(y)) / 2.0, "other"))
    layers: list[Layer] = [
        Raster(edges, np.arange(len(y) + 1.0), state, names, (7, 0, 1)[: len(names)])
    ]
    if 0 < own < len(y):
        layers.append(Rule(float(own), "y", "", 6, "solid"))
    axis = Axis("points, by sign of the label", ticks=ticks)
    return Panel(title, iteration_axis(last), axis, tuple(layers))


def as_events(t: Array, neuron: Kinds, point: Kinds, start: Pattern) -> NDArray[np.void]:
    """Events from their dates and places; kinds follow from the start pattern (m, n)."""
    found = np.zeros(len(t), EVENT_DTYPE)
    found["t"], found["neuron"], found["point"] = t, neuron, point
    active = start.copy()
    for k in range(len(t)):
        if found["point"][k] >= 0:
            place = int(found["neuron"][k]), int(found["point"][k])
            active[place] = ~active[place]
            found["kind"][k] = "activate" if active[place] else "deactivate"
    return found


def changes_of_records(t: Array, active: NDArray[np.bool_]) -> NDArray[np.void]:
    """Events at the first record that shows a change, for runs that list none."""
    k, neuron, point = np.nonzero(active[1:] != active[:-1])
    order = np.lexsort((point, neuron, k))
    return as_events(t[k + 1][order], neuron[order], point[order], active[0])
