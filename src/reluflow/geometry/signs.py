r"""Where a network of one real input changes its predicted label.

The label of x is +1 if :math:`h(x) > 0` and -1 otherwise, so a plateau at zero predicts -1. A
single zero between two positive pieces is a set of measure zero and is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number
from reluflow.geometry.pieces import Line, line
from reluflow.geometry.regions import check_interval
from reluflow.network import Network


def sign_changes(
    net: Network, interval: Sequence[float] = (-np.inf, np.inf), *, tol: float = 1e-12
) -> Array:
    """Return the positions inside an interval where the predicted label changes, in order.

    Parameters
    ----------
    net : Network
        Two inputs ``(x, 1)``.
    interval : pair of float
        Ends may be infinite; the end slopes then decide.
    tol : float
        A value (or end slope) of at most ``tol`` times the sum of the sizes of its terms is zero.

    Returns
    -------
    (k,) array
        Places, in order.

    Examples
    --------
    >>> sign_changes(Network([1.0, -2.0], [[1.0, 0.0], [1.0, -1.0]]), (-3.0, 3.0))
    array([0., 2.])
    >>> sign_changes(Network([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]]), (-3.0, 3.0))  # |x|
    array([], dtype=float64)

    Numerics
    --------
    The function is evaluated at its kinks, where each term is formed from a difference of
    positions; between them one linear zero is solved for. Positions to about 1e-15 of the piece
    over the sine of the crossing. Values below ``tol`` are rounding. O(m^2).
    """
    number(tol, "tol", at_least=0.0, below=1.0)
    low, high = check_interval(interval)
    return sign_pieces(line(net), low, high, tol)[0]


def sign_pieces(
    function: Line, low: float, high: float, tol: float = 1e-12
) -> tuple[Array, NDArray[np.int64]]:
    """Return the sign changes inside ``(low, high)`` and the labels of the pieces they make."""
    nodes, values = _nodes(function, low, high, tol)
    cuts: list[float] = []
    labels: list[int] = []

    def append(start: float, label: int) -> None:
        if not labels:
            labels.append(label)
        elif label != labels[-1]:
            cuts.append(start)
            labels.append(label)

    for k in range(len(nodes) - 1):
        left, right = values[k], values[k + 1]
        # an end at zero says nothing about the open piece; two of them make a plateau
        first = 1 if (left if left != 0.0 else right) > 0.0 else -1
        second = 1 if (right if right != 0.0 else left) > 0.0 else -1
        append(float(nodes[k]), first)
        if first != second:
            append(_zero(nodes[k : k + 2], values[k : k + 2], function), second)
    return np.array(cuts), np.array(labels, dtype=np.int64)


def _nodes(function: Line, low: float, high: float, tol: float) -> tuple[Array, Array]:
    """Ends and kinks between them with the values there, rounding set to zero.

    At an infinite end the "value" is the sign of the function far out.
    """
    inside = function.kinks[(function.kinks > low) & (function.kinks < high)]
    nodes = np.concatenate([[low], np.unique(inside), [high]])
    finite = np.isfinite(nodes)
    values = np.zeros(len(nodes))
    plain, sizes = function.evaluate(nodes[finite])
    values[finite] = np.where(np.abs(plain) <= tol * sizes, 0.0, plain)
    for end, side, neighbour in ((0, -1.0, 1), (-1, 1.0, -2)):
        if not finite[end]:
            growth = end_growth(function, side)
            small = abs(growth) <= tol * function.total_jump
            nearest = values[neighbour] if finite[neighbour] else function.constant
            values[end] = np.sign(nearest if small else growth)
    return nodes, values


def end_growth(function: Line, side: float) -> float:
    """Growth of the function per unit step outwards, beyond its last kink on one side."""
    return math.fsum(function.jumps[function.sides == side])


def _zero(ends: Array, values: Array, function: Line) -> float:
    """The zero of a linear piece whose end values have opposite signs."""
    left, right = float(ends[0]), float(ends[1])
    if math.isfinite(left) and math.isfinite(right):
        share = abs(values[0]) / (abs(values[0]) + abs(values[1]))
        return min(left + (right - left) * float(share), right)
    if math.isfinite(left):
        return left + abs(float(values[0]) / end_growth(function, 1.0))
    return right - abs(float(values[1]) / end_growth(function, -1.0))
