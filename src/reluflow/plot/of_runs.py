"""Panels of a run: losses, norms, directions, activations, singular values.

Described once (`reluflow.figures`): pages of studies and `reluflow.plot` draw the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.figures import Axis, Layer, Line, Panel, Points, Raster
from reluflow.figures.description import DASHES
from reluflow.figures.places import placed, unplaced
from reluflow.network import Network
from reluflow.plot import times
from reluflow.trajectory import Trajectory

LINES = 60  # neurons drawn as curves
CLOUD = 400  # neurons drawn as dots
NEURONS, ROWS = 12, 96  # of the raster, at most
COLUMNS = 160  # times of the raster
Whole = NDArray[np.int64]
LN10 = math.log(10.0)


def loss(runs: Sequence[tuple[str, Trajectory]], extra: Sequence[Layer] = ()) -> Panel:
    """Loss against time, both as decimal logarithms: no range is too large for them."""
    layers = [
        Line(
            *times.series(run, lambda one, k: one.log_loss[k] / LN10),
            label=label,
            colour=k % 7,
            dash=DASHES[k % 4],
        )
        for k, (label, run) in enumerate(runs)
    ]
    axis = times.axis([run for _, run in runs])
    return Panel("", axis, Axis("log10 of the loss"), (*layers, *extra))


def norms(run: Trajectory) -> Panel:
    """Norms of the neurons through time, those of the largest at the end."""
    x, stacked = times.series(run, lambda one, k: one.network(k).log_norms / LN10)
    layers = []
    named = set()
    for j in largest(stacked[-1], LINES):
        sign = int(run.net.signs[j])
        label = {1: "positive output weight", -1: "negative output weight"}.get(sign, "zero")
        layers.append(
            Line(
                x,
                stacked[:, j],
                label="" if label in named else label,
                colour=0 if sign > 0 else 1,
                dash="solid" if sign > 0 else "dash",
                width=1.0,
                opacity=0.6,
            )
        )
        named.add(label)
    return Panel("", times.axis([run]), Axis("log10 of the neuron's norm"), tuple(layers))


def spectrum(run: Trajectory) -> Panel:
    """Singular values of the hidden weights through time; 1e-15 of the largest is rounding."""
    from reluflow.geometry import log_singular_values

    x, logs = times.series(run, lambda one, k: log_singular_values(one.network(k)))
    with np.errstate(invalid="ignore"):
        seen = np.where(logs - logs[:, :1] > math.log(1e-15), logs / LN10, np.nan)
    layers = tuple(
        Line(
            x,
            seen[:, k],
            label=f"{k + 1}",
            colour=k % 7,
            dash=DASHES[k % 4],
        )
        for k in range(min(8, seen.shape[1]))
    )
    return Panel("", times.axis([run]), Axis("log10 of the singular values"), layers)


def neurons(run: Trajectory) -> Panel:
    """Directions of the neurons at the end, with the way they came."""
    plane, names = plane_of(run)
    shown = largest(np.array(run.final.log_norms), CLOUD)
    nets = [run.network(k) for k in range(len(run.t))]
    followed = largest(np.array(run.final.log_norms), LINES)
    layers = (*trails(nets, plane, followed, between=6), *cloud(run.final, plane, shown))
    return directions_panel(layers, names)


def neurons_of(net: Network) -> Panel:
    """Directions of the neurons of one network: in the plane, or on their two main axes."""
    if net.d == 1:
        plane, names = np.array([[1.0], [0.0]]), ("input coordinate", "")
    elif net.d == 2:
        plane, names = np.eye(2), ("first coordinate", "second coordinate")
    else:
        plane = np.linalg.svd(net.directions, full_matrices=False)[2][:2]
        plane = np.vstack([plane, np.zeros((2 - len(plane), net.d))])
        names = ("first main axis", "second main axis")
    shown = largest(np.array(net.log_norms), CLOUD)
    return directions_panel(cloud(net, plane, shown), names)


def directions_panel(layers: tuple[Layer, ...], names: tuple[str, str]) -> Panel:
    """The unit disc with these layers."""
    x, y = (Axis(name, range=(-1.08, 1.08)) for name in names)
    return Panel("", x, y, layers, equal=True)


def trails(
    nets: Sequence[Network], plane: Array, shown: Sequence[int], between: int = 0
) -> tuple[Line, ...]:
    """The ways of neurons through some networks, broken between neurons.

    ``between`` two networks so many places on the arc are added: in a plateau neurons turn far
    from one record to the next, and stay on the sphere.
    """
    if len(nets) < 2:
        return ()
    units = np.array([net.directions[shown] for net in nets])
    share = np.linspace(0.0, 1.0, between + 2)[:-1, None, None]
    arcs = [(1.0 - share) * a + share * b for a, b in pairwise(units)]
    units = np.concatenate([*arcs, units[-1:]])
    size = np.linalg.norm(units, axis=2, keepdims=True)
    seen = units / np.where(size > 0.0, size, 1.0) @ plane.T
    gap = np.full((1, *seen.shape[1:]), np.nan)
    ways = np.concatenate([seen, gap]).transpose(1, 0, 2)
    signs = nets[-1].signs[shown]
    groups: tuple[tuple[Array, int, str], ...] = (
        (ways[signs > 0], 0, "solid"),
        (ways[signs <= 0], 1, "dash"),
    )
    return tuple(
        Line(
            way[..., 0].ravel(),
            way[..., 1].ravel(),
            colour=colour,
            dash=dash,  # type: ignore[arg-type]
            width=0.8,
            opacity=0.35,
        )
        for way, colour, dash in groups
        if len(way)
    )


def raster(run: Trajectory) -> Panel:
    """Who is active on which point when, slides marked."""
    pairs, time = busiest_pairs(run), times.axis([run])
    low, high = placed(times.span([run]), time)
    edges = unplaced(np.linspace(low, high, COLUMNS + 1), time)
    cells = Raster(
        edges,
        np.arange(len(pairs) + 1.0),
        _raster(run, pairs, edges),
        ("inactive", "active", "sliding"),
        (7, 0, 1),
        tuple(f"neuron {j}, point {i}" for j, i in pairs),
    )
    axis = Axis("neuron, a row for each point", ticks=_neuron_ticks(pairs))
    return Panel("", time, axis, (cells, *_branches(run, pairs, edges)))


def largest(log_norms: Array, count: int) -> list[int]:
    """Indices of the largest neurons, in their own order."""
    order = np.argsort(-np.asarray(log_norms), kind="stable")[:count]
    return sorted(int(j) for j in order)


def plane_of(run: Trajectory) -> tuple[Array, tuple[str, str]]:
    """Two orthonormal rows to look along: the coordinates themselves in the plane, otherwise the
    teacher (or the first force on a neuron, X^T y) and the direction in which the end spreads most.
    """
    data = run.data
    if data.d == 1:
        return np.array([[1.0], [0.0]]), ("input coordinate", "")
    if data.d == 2:
        return np.eye(2), ("first coordinate", "second coordinate")
    if isinstance(data.teacher, np.ndarray):
        main, name = data.teacher, "along the teacher"
    else:
        main, name = data.X.T @ data.y, "along X^T y"
    if not np.linalg.norm(main) > 0:
        main, name = np.eye(data.d)[0], "first coordinate"
    main = main / np.linalg.norm(main)
    spread = np.concatenate([run.net.directions, run.final.directions])
    spread = spread - np.outer(spread @ main, main)
    second = np.linalg.svd(spread, full_matrices=False)[2][0]
    second = second - (second @ main) * main
    size = np.linalg.norm(second)
    if size < 1e-8:  # all directions parallel: any perpendicular one will do
        second = np.eye(data.d)[int(np.argmin(np.abs(main)))]
        second = second - (second @ main) * main
        size = np.linalg.norm(second)
    return np.array([main, second / size]), (name, "across it")


def cloud(net: Network, plane: Array, shown: Sequence[int]) -> tuple[Line | Points, ...]:
    """The unit circle, and dots for neurons: the larger their share, the larger."""
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = Line(np.cos(angle), np.sin(angle), colour=7, dash="dot", width=1.0)
    seen = net.directions[shown] @ plane.T
    log_norms = np.asarray(net.log_norms)[shown]
    top = log_norms.max()
    share = np.exp(log_norms - top) if np.isfinite(top) else np.zeros(len(log_norms))
    size = 3.0 + 9.0 * np.sqrt(share)
    signs = np.asarray(net.signs)[shown]
    groups = (
        (signs > 0, "positive output weight", 0, "circle"),
        (signs <= 0, "negative output weight", 1, "diamond"),
    )
    clouds = [
        Points(
            seen[part, 0],
            seen[part, 1],
            label=label,
            colour=colour,
            marker=marker,  # type: ignore[arg-type]
            size=size[part],
            opacity=0.6,
            text=[f"neuron {j}" for j in np.asarray(shown)[part]],
        )
        for part, label, colour, marker in groups
    ]
    return (circle, *clouds)


def busiest_pairs(run: Trajectory) -> list[tuple[int, int]]:
    """Neurons by number of events, all their points, as many as fit."""
    points = min(run.data.n, ROWS)
    neurons = min(NEURONS, max(1, ROWS // points))
    own = run.events["neuron"]
    counts = np.bincount(own[own >= 0], minlength=run.net.width)
    busiest = np.sort(np.argsort(-counts, kind="stable")[:neurons])
    return [(int(j), i) for j in busiest for i in range(points)]


def _raster(run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array) -> Whole:
    """State of each pair at the right edge of each column: 0 inactive, 1 active, 2 sliding."""
    rows = {pair: row for row, pair in enumerate(pairs)}
    start = run.modes(t=0.0)
    z = np.empty((len(pairs), len(edges) - 1), int)
    for (j, i), row in rows.items():
        z[row] = start[j, i]
    if run.engine == "descent" and not len(run.events):  # events exist where a limit is certified
        return _raster_of_records(run, pairs, edges, z)
    after = {"activate": 1, "deactivate": 0, "slide": 2}
    for event in run.events:
        found = rows.get((int(event["neuron"]), int(event["point"])))
        if found is not None and event["kind"] in after:
            column = np.searchsorted(edges[1:], event["log_t"] / LN10)
            z[found, column:] = after[str(event["kind"])]
    return z


def _branches(
    run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array
) -> tuple[Points, ...]:
    """Diamonds where a neuron of the raster could have gone on in another way."""
    x, y = [], []
    for event in run.branches:
        point = int(event["point"])
        rows = [
            row for row, (j, i) in enumerate(pairs) if j == event["neuron"] and point in (i, -1)
        ]
        if rows:
            x.append(float(np.clip(event["log_t"] / LN10, edges[0], edges[-1])))
            y.append(float(np.mean(rows)) + 0.5)
    if not x:
        return ()
    return (Points(np.array(x), np.array(y), "branch", colour=6, marker="diamond", size=9.0),)


def _raster_of_records(
    run: Trajectory, pairs: Sequence[tuple[int, int]], edges: Array, z: Whole
) -> Whole:
    for k in range(len(run.t)):
        active = run.modes(k)
        column = np.searchsorted(edges[1:], times.of_record(run, k))
        z[:, column:] = np.array([active[j, i] for j, i in pairs])[:, None]
    return z


def _neuron_ticks(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[float, str], ...]:
    neurons = sorted({j for j, _ in pairs})
    rows = len(pairs) // len(neurons)
    return tuple(((k + 0.5) * rows, str(j)) for k, j in enumerate(neurons))
