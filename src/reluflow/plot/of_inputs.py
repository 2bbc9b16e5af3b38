"""Panels over the inputs: the function on a line, the surface over a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.figures import Axis, Heat, Layer, Line, Panel, Points, Text
from reluflow.network import Network
from reluflow.trajectory import Trajectory

GRID = 81  # of a surface, a side
CURVE = 121  # of a function, with the kinks in addition
NEURON_LINES = 60
SMALL = 1e-3  # a neuron whose |a||w| is below this share of the largest is not drawn
BEYOND = 3.0  # margins of a classifier are cut here


def has_bias(data: Dataset | None, net: Network) -> bool:
    """Whether the last coordinate is the constant 1."""
    if data is None:
        return net.bias
    return bool(data.bias or (data.d > 1 and np.all(data.X[:, -1] == 1.0)))


def inputs_of(data: Dataset | None, net: Network) -> int:
    """Number of inputs without the bias."""
    return net.d - int(has_bias(data, net))


def moments(run: Trajectory, count: int) -> list[int]:
    """Records between which the outputs change by equal amounts, start and end included."""
    outputs = np.array([run.network(k).predict(run.data.X) for k in range(len(run.t))])
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(outputs, axis=0)).max(axis=1))])
    if not np.isfinite(way[-1]) or way[-1] == 0.0:
        return sorted({0, len(run.t) - 1})
    places = np.searchsorted(way, way[-1] * np.linspace(0.0, 1.0, count))
    return sorted({0, *(int(min(k, len(run.t) - 1)) for k in places), len(run.t) - 1})


def points_at(x: Array, net: Network, bias: bool) -> Array:
    """Values of one input as points of the network."""
    return np.column_stack([x, np.ones(len(x))]) if bias else x[:, None]


def span_of(values: Array) -> tuple[float, float]:
    """The range of values with a margin."""
    low, high = float(values.min()), float(values.max())
    room = 0.15 * (high - low) or 1.0
    return low - room, high + room


def curve(
    net: Network, bias: bool, span: tuple[float, float]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Places and values of the function, its kinks among them, and which places are kinks."""
    x = np.linspace(*span, CURVE)
    corners = np.empty(0)
    if bias:
        from reluflow.geometry import kinks

        found = kinks(net, tol_jump=1e-6).positions
        corners = found[(found > span[0]) & (found < span[1])]
    x = np.concatenate([x, corners])
    order = np.argsort(x, kind="stable")
    is_kink = np.arange(len(x)) >= CURVE
    x, is_kink = x[order], is_kink[order]
    return x, net.predict(points_at(x, net, bias)), is_kink


def ghost(
    net: Network, bias: bool, span: tuple[float, float], label: str, colour: int, dash: str
) -> Line:
    """The function of another network, dashed."""
    x, y, _ = curve(net, bias, span)
    return Line(x, y, label=label, colour=colour, dash=dash, width=2.0)  # type: ignore[arg-type]


def function(
    nets: Sequence[tuple[str, Network]], data: Dataset | None, ghosts: Sequence[Layer] = ()
) -> Panel:
    """The function on the line: the last network in full, earlier ones faint, kinks, data."""
    last = nets[-1][1]
    bias = has_bias(data, last)
    if last.d - bias != 1:
        raise InputError(
            f"the network takes {last.d - bias} inputs; a function can be drawn over one. "
            "Use rf.plot.surface for two, rf.plot.neurons for more."
        )
    span = span_of(data.X[:, 0]) if data is not None else (-2.0, 2.0)
    layers: list[Layer] = list(ghosts)
    for label, net in nets[:-1]:
        x, y, _ = curve(net, bias, span)
        layers.append(Line(x, y, label=label, colour=7, dash="dashdot", width=1.1))
    x, y, is_kink = curve(last, bias, span)
    layers.append(Line(x, y, label=nets[-1][0], colour=0, dash="solid", width=2.2))
    if is_kink.any():
        layers.append(
            Points(x[is_kink], y[is_kink], label="kinks", colour=0, marker="triangle", size=7.0)
        )
    if data is not None:
        names = [f"point {i}" for i in range(data.n)]
        layers.append(
            Points(data.X[:, 0], data.y, "data", colour=6, marker="circle", size=6.0, text=names)
        )
    return Panel("", Axis("x", range=span), Axis("h(x)"), tuple(layers))


def surface(net: Network, data: Dataset | None, *, classes: bool = False) -> Panel:
    """Values over the plane, or margins and the decision boundary, with the neurons' lines."""
    bias = has_bias(data, net)
    if net.d - bias != 2:
        raise InputError(
            f"the network takes {net.d - bias} inputs; a surface needs two. "
            "Use rf.plot.function for one, rf.plot.neurons for more."
        )
    box = [span_of(data.X[:, k]) if data is not None else (-2.0, 2.0) for k in range(2)]
    x, y = (np.linspace(*span, GRID) for span in box)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    full = np.column_stack([grid, np.ones(len(grid))]) if bias else grid
    z = net.predict(full).reshape(GRID, GRID)
    label = "h(x)"
    if classes and data is not None:
        least = float(np.abs(net.predict(data.X)).min())
        z = np.clip(z / least if least > 0 else z, -BEYOND, BEYOND)
        label = "h(x) / smallest |h| on the data"
    layers: list[Layer] = [Heat(x, y, z, label=label)]
    layers += _neuron_lines(net, bias, box)
    if classes:
        layers += _boundary(x, y, z)
    if data is not None:
        layers += _labelled(data, classes)
    first, second = (Axis(f"x{k + 1}", range=span) for k, span in enumerate(box))
    return Panel("", first, second, tuple(layers))


def _labelled(data: Dataset, classes: bool) -> list[Layer]:
    if not classes:
        text = [f"point {i}, y = {value:.4g}" for i, value in enumerate(data.y)]
        points = Points(data.X[:, 0], data.X[:, 1], "data", colour=6, size=5.0, text=text)
        numbers = [
            Text(float(row[0]), float(row[1]), f"{value:.3g}", colour=6)
            for row, value in zip(data.X, data.y, strict=True)
        ]
        return [points, *(numbers if data.n <= 12 else [])]
    groups = ((data.y > 0, "label 1", 1, "circle"), (data.y <= 0, "label -1", 6, "diamond"))
    return [
        Points(
            data.X[part, 0],
            data.X[part, 1],
            name,
            colour=colour,
            marker=marker,  # type: ignore[arg-type]
            size=6.0,
            text=[f"point {i}" for i in np.flatnonzero(part)],
        )
        for part, name, colour, marker in groups
        if part.any()
    ]


def _neuron_lines(net: Network, bias: bool, box: Sequence[tuple[float, float]]) -> list[Layer]:
    """Where neurons switch: the part of the line ``w . x + b = 0`` inside the box."""
    strength = net.log_norms + net.log_outputs
    order = np.argsort(-strength, kind="stable")[:NEURON_LINES]
    xs: list[float] = []
    ys: list[float] = []
    middle = np.array([sum(span) / 2 for span in box])
    reach = float(np.linalg.norm([span[1] - span[0] for span in box]))
    for j in order:
        if not strength[j] > strength.max() + np.log(SMALL):
            continue
        w, b = net.directions[j, :2], float(net.directions[j, 2]) if bias else 0.0
        size = float(w @ w)
        if size < 1e-24:
            continue
        foot = middle - (w @ middle + b) / size * w
        along = np.array([-w[1], w[0]]) / np.sqrt(size)
        line = foot + np.linspace(-reach, reach, 257)[:, None] * along
        inside = np.all([(s[0] <= line[:, k]) & (line[:, k] <= s[1]) for k, s in enumerate(box)], 0)
        if inside.any():
            kept = line[inside][[0, -1]]
            xs += [*kept[:, 0].tolist(), np.nan]
            ys += [*kept[:, 1].tolist(), np.nan]
    if not xs:
        return []
    where = np.array(xs), np.array(ys)
    return [Line(*where, "a neuron switches", colour=7, dash="dot", width=1.0, opacity=0.8)]


def _boundary(x: Array, y: Array, z: Array) -> list[Layer]:
    """The set where the output is zero, from the grid."""
    from contourpy import contour_generator

    parts: Any = contour_generator(x, y, z).lines(0.0)
    if not parts:
        return []
    broken = np.concatenate([np.vstack([part, [[np.nan, np.nan]]]) for part in parts])
    return [Line(broken[:, 0], broken[:, 1], "decision boundary", colour=4, width=2.4)]
