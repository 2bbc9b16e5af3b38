r"""How directions follow the headings of their pulls, with a lag.

The direction of an aligned neuron is the heading :math:`\hat g` of its pull and a lag p beside it,

.. math:: \dot p = -|g|\,p - \hat g' .

The lag is a smooth solution, by collocation, which neurons of one class share, and what a neuron
begins beside that, which fades like the exponential of the boost. Arrays over classes begin with C,
those over neurons with k; S + 1 are the start of a step and its Radau nodes.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.clock import panels
from reluflow.engines.flow.tableau import Tableau


class Lag(NamedTuple):
    """Its largest size (C,) in a step, that of each neuron (k, d) at the end, and what sizes (k,)
    miss by it.
    """

    size: Array
    end: Array
    missed: Array


def follow(
    heading: Array, speed: Array, step: float, beside: Array, which: NDArray[np.int64],
    method: Tableau,
) -> Lag:  # fmt: skip
    """How neurons of classes ``which`` (k,) follow headings (C, S + 1, d).

    Their pulls have the sizes ``speed`` (C, S + 1); they begin ``beside`` (k, d).
    """
    path = smooth(heading, speed, step, method)
    rest = beside - path[which, 0]
    boost = step * (speed[:, 1:] @ method.weights)
    # what began beside the path fades near the start: panels shrink towards it
    values, integrals, weights = _panels(method, int(np.clip(np.ceil(np.log2(boost.max())), 0, 60)))
    there = values @ path
    weights = step * weights * (speed @ values.T)
    shared = 0.5 * np.einsum("ct,ctd,ctd->c", weights, there, there)
    fades = weights * np.exp(-step * (speed @ integrals.T))
    beside_it = (fades[:, None] @ there)[:, 0]
    missed = shared[which] + np.einsum("kd,kd->k", rest, beside_it[which])
    missed -= 0.25 * np.expm1(-2.0 * boost)[which] * np.square(rest).sum(axis=1)
    size = np.sqrt(np.square(path).sum(axis=2).max(axis=1))
    np.maximum.at(size, which, np.sqrt(np.square(beside).sum(axis=1)))
    return Lag(size, path[which, -1] + np.exp(-boost)[which, None] * rest, missed)


@cache
def _panels(method: Tableau, depth: int) -> tuple[Array, Array, Array]:
    """Matrices (T, S + 1) that take values at the start and the nodes to points of a step and to
    integrals up to there; the weights (T,) of the points. They halve ``depth`` times to the start.
    """
    tau, share = panels(depth)
    degrees = np.arange(method.stages + 1)
    powers = (1.0 - tau)[:, None] ** degrees
    integrals = (1.0 - tau)[:, None] * powers / (degrees + 1)
    return powers @ method.monomials, integrals @ method.monomials, np.exp(share)


def smooth(heading: Array, speed: Array, step: float, method: Tableau) -> Array:
    """Lags (C, S + 1, d) at the start and the nodes that nothing fades from.

    In a short step it begins with zero and is that of Radau collocation; in a long one it is the
    polynomial that obeys the equation at the start, too.
    """
    slopes, A = method.derivatives @ heading / step, method.tables.radau_a
    path = np.zeros_like(heading)
    long = step * speed.max(axis=1) > 1.0
    if long.any():
        rates = speed[long, :, None] * np.eye(speed.shape[1])
        path[long] = np.linalg.solve(method.derivatives / step + rates, -slopes[long])
    if not long.all():
        nodes = np.eye(len(A)) + step * A * speed[~long, None, 1:]
        path[~long, 1:] = np.linalg.solve(nodes, -step * A @ slopes[~long, 1:])
    return path
