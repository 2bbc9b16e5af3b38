"""Where things stand on axes: bent axes, cells and their middles, texts that would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reluflow.figures.description import Axis, Layer, Line, Points, Rule, Values


def on_the_left(layers: Sequence[Layer], axis: Axis) -> set[int]:
    """Which rules across the panel, by their number, have their text on the left: one is close
    above, with its text on the right.

    Close is a twelfth of the axis, as far as the data tell.
    """
    seen: list[Any] = [layer.y for layer in layers if isinstance(layer, Line | Points)]
    seen += [layer.value for layer in layers if isinstance(layer, Rule) and layer.axis == "y"]
    values = np.concatenate([np.empty(0), *(np.ravel(np.asarray(one, float)) for one in seen)])
    values = values[np.isfinite(values) & ((values > 0.0) | (axis.scale != "log"))]
    if not len(values):
        return set()
    show = np.log if axis.scale == "log" else np.asarray
    low, high = (show(end) for end in (axis.range or (values.min(), values.max())))
    named = [
        (float(show(layer.value)), k)
        for k, layer in enumerate(layers)
        if isinstance(layer, Rule)
        and layer.axis == "y"
        and layer.label
        and (layer.value > 0.0 or axis.scale != "log")
    ]
    pairs = pairwise(sorted(named))
    return {k for (value, k), (above, _) in pairs if above - value < (high - low) / 12.0}


def placed(values: Any, axis: Axis) -> Values:
    """Where a paced axis has these values; the values themselves on any other.

    Examples
    --------
    >>> placed([0.5, 2.0], Axis("t", pace=((0.0, 0.0), (1.0, 0.8), (3.0, 1.0))))
    array([0.4, 0.9])
    """
    given = np.asarray(values, float)
    return _bent(given, *np.array(axis.pace).T) if axis.pace else given


def unplaced(places: Any, axis: Axis) -> Values:
    """The values at places of a paced axis."""
    given = np.asarray(places, float)
    return _bent(given, *np.array(axis.pace).T[::-1]) if axis.pace else given


def _bent(given: Values, knots: Values, places: Values) -> Values:
    """Piecewise linear through the knots, going on straight beyond the first and the last."""
    found = np.interp(given, knots, places)
    for end, beyond in ((0, given < knots[0]), (-1, given > knots[-1])):
        other = 1 if end == 0 else -2
        slope = (places[end] - places[other]) / (knots[end] - knots[other])
        found = np.where(beyond, places[end] + slope * (given - knots[end]), found)
    return np.asarray(found)


def middles(cells: Values, axis: Axis) -> Values:
    """Middles between neighbouring edges, as the axis shows them.

    Examples
    --------
    >>> middles(np.array([1.0, 100.0]), Axis("t", "log"))
    array([10.])
    """
    low, high = np.asarray(cells[:-1], float), np.asarray(cells[1:], float)
    if axis.scale == "log":
        with np.errstate(invalid="ignore"):  # an edge below zero has no place on the axis: NaN
            return np.asarray(np.sqrt(low) * np.sqrt(high))
    low, high = placed(low, axis), placed(high, axis)
    return unplaced(low + (high - low) / 2, axis)


def edges(places: Values, count: int, axis: Axis) -> Values:
    """Edges of ``count`` cells from their edges or their middles, as the axis shows them.

    Examples
    --------
    >>> edges(np.array([1.0, 2.0, 3.0]), 3, Axis("x")), edges(np.array([0.0, 1.0]), 1, Axis("x"))
    (array([0.5, 1.5, 2.5, 3.5]), array([0., 1.]))
    """
    given = np.asarray(places, float)
    if len(given) == count + 1:
        return given
    middle = np.log(given) if axis.scale == "log" else given
    if count == 1:
        found = middle[0] + np.array([-0.5, 0.5])
    else:
        inner = (middle[1:] + middle[:-1]) / 2
        found = np.concatenate([[2 * middle[0] - inner[0]], inner, [2 * middle[-1] - inner[-1]]])
    return np.asarray(np.exp(found) if axis.scale == "log" else found)
