r"""Limits of hidden-layer descent that lie on a boundary, where patterns change for ever.

Let theta* fit the points it is active on, L, and let N be the pairs (neuron, point) with
``p*_ji = 0``. In a ball around theta* in which all other pairs keep their signs,
:math:`\sum_j a_j A_{ji} (p_{ji} - p^*_{ji}) = h_i - y_i = -r_i` whatever the pattern on N, so

.. math:: |\theta' - \theta^*|^2 = |\theta - \theta^*|^2 - 2 \eta |r|^2
          + \eta^2 \sum_j a_j^2 |X^T (A_j \circ r)|^2 .

For a step below :math:`2/\mu`, :math:`\mu` an upper bound of the last sum over :math:`|r|^2`, the
distance to theta* never grows: descent stays in the ball, its residuals are square summable, and
it converges to a fit no further from theta* than it is now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

EPS = 2.0**-52
TINY = 2.0**-1022
# parts of the neuron's largest pre-activation below which one may be zero in the limit; a limit
# that is small but not zero is told from zero by the smaller ones
NEAR = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
TIGHT = 1e-11  # largest radius accepted, relative to the weights in the span of the points


class BoundaryLimit(NamedTuple):
    """Duals of a fit on a boundary, the distance within which descent ends, and what is fitted."""

    B: Array
    error: float
    fits_all: bool


def boundary_limit(
    G: Array, a: Array, P: Array, B: Array, y: Array, eta: float
) -> BoundaryLimit | None:
    """The limit near a state with pre-activations P and duals B, or None if nothing is proved.

    Numerics
    --------
    theta* is the smallest correction of the state that fits L exactly and puts N to zero: a
    linear system of size |L| + |N|, O((|L| + |N|)^3), solved for a few choices of N. Systems
    without solution, a step of 2/mu or more, and radii above 1e-11 prove nothing.
    """
    lengths = np.sqrt(np.diag(G))
    parts = np.abs(P) / ((np.abs(P) / lengths).max(axis=1)[:, None] * lengths + TINY)
    tried = -1
    for threshold in NEAR:
        near = (a != 0.0)[:, None] & (parts <= threshold)
        if near.sum() != tried:
            tried = int(near.sum())
            found = _limit_with_zeros(G, a, P, B, y, eta, near)
            if found is not None:
                return found
    return None


def _limit_with_zeros(
    G: Array, a: Array, P: Array, B: Array, y: Array, eta: float, near: NDArray[np.bool_]
) -> BoundaryLimit | None:
    """The limit where the pairs ``near`` are zero, or None if nothing is proved."""
    lengths = np.sqrt(np.diag(G))
    reach = (np.abs(P) / lengths).max(axis=1)
    live = (a != 0.0)[:, None]
    active = live & (P > 0.0) & ~near
    if eta * _curvature(G, a, active | near) >= 2.0:
        return None
    fitted = active.any(axis=0)
    alone = near.any(axis=0) & ~fitted
    if (np.abs(y[alone]) > EPS * np.abs(y).max()).any():
        return None  # a kick awaits whoever crosses there
    found = _correction(G, a, P, y, active & fitted, near)
    if found is None:
        return None
    D, error = found
    size = np.sqrt(np.abs(((B + D) * ((B + D) @ G)).sum()) + (reach**2).sum())
    final = P + D @ G
    signs = np.where(active, final, -final)
    safe = near | ~live | (signs > 2 * error * lengths)
    if error > TIGHT * size or not safe.all():
        return None
    return BoundaryLimit(B + D, error, bool((fitted | alone).all()))


def _curvature(G: Array, a: Array, may: NDArray[np.bool_]) -> float:
    """A bound of ``sum_j a_j^2 |X^T (A_j o r)|^2 / |r|^2`` over all patterns inside ``may``."""
    tops = [float(np.linalg.eigvalsh(G[np.ix_(row, row)])[-1]) if row.any() else 0.0 for row in may]
    return float((may.T @ (a**2 * np.array(tops))).max(initial=0.0))


def _correction(
    G: Array, a: Array, P: Array, y: Array, active: NDArray[np.bool_], near: NDArray[np.bool_]
) -> tuple[Array, float] | None:
    """Duals of the smallest correction, and the distance it covers with what rounding leaves."""
    points = np.flatnonzero(active.any(axis=0))
    neurons, zeros = np.nonzero(near)
    where = np.concatenate([points, zeros])
    single = np.zeros((len(a), len(zeros)))
    single[neurons, np.arange(len(zeros))] = 1.0
    coefficients = np.hstack([a[:, None] * active[:, points], single])
    wanted = np.concatenate([y[points] - (a @ np.where(active, P, 0.0))[points], -P[near]])
    system = G[np.ix_(where, where)] * (coefficients.T @ coefficients)
    values, vectors = np.linalg.eigh(system)
    keep = values > len(values) * EPS * values.max(initial=0.0)
    if not keep.any():
        return np.zeros_like(P), 0.0
    parts = vectors.T @ wanted
    rounding = len(y) * EPS * (np.abs(y).max() + float((np.abs(a) @ np.abs(P)).max()))
    if np.abs(parts[~keep]).max(initial=0.0) > 100 * rounding:
        return None
    weights = vectors[:, keep] @ (parts[keep] / values[keep])
    D = np.zeros_like(P)
    np.add.at(D.T, where, (coefficients * weights).T)
    distance = float(np.sqrt((parts[keep] ** 2 / values[keep]).sum()))
    return D, distance + rounding / float(np.sqrt(values[keep][0]))
