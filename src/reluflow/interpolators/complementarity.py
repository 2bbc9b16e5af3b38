r"""Bound on the largest ReLU sum of independent points by relaxing complementarity.

Let :math:`Uw = p - q` with p, q >= 0 the positive and negative parts, :math:`p_i q_i = 0`. With
:math:`H = (UU^T)^{-1}` and any diagonal D,

.. math:: |w|^2 \ge (p-q)^T H (p-q) = p^T H p + q^T H q + 2 p^T (D - H) q

For :math:`0 \prec D \prec 2H` the right side is convex in (p, q), so maximising
:math:`\lambda\cdot p` where it is at most 1, without complementarity, bounds
:math:`\max_{|w|\le1} \sum_i \lambda_i \mathrm{relu}(u_i\cdot w)`. The bound is exact when the
relaxed maximiser is complementary: for orthonormal points, whenever H is a Z-matrix, and as a rule
in dimension far above the number of points. Otherwise branching on a point with
:math:`p_i q_i > 0` tightens it.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.interpolators.nonnegative import nonnegative_fit

_NODES = 200


def complementarity_bound(U: Array, lam: Array, target: float) -> float:
    """Upper bound on the largest sum for ``n`` independent rows of ``U`` (n, n).

    Branching goes on until the bound is at most ``target`` (a value known to be attained, times a
    little more) or 200 relaxations are solved.

    Numerics
    --------
    Every relaxation is bounded by a norm computed from non-negative multipliers, safe whatever
    their quality. Infinite if the points are too close to dependent.
    """
    form = _convex_form(U)
    if form is None:
        return np.inf
    c = np.append(lam, np.zeros(len(lam)))
    everything = np.ones(len(c), dtype=bool)
    bound, z = _relaxed(form, c, everything)
    heap = [(-bound, 0, everything, z)]
    nodes = 1
    while -heap[0][0] > target and nodes < _NODES:
        _, _, free, z = heapq.heappop(heap)
        both = z[: len(lam)] * z[len(lam) :]
        i = int(both.argmax())
        if both[i] <= 0.0:  # complementary: the relaxation is exact and cannot be refined
            heapq.heappush(heap, (-_relaxed(form, c, free)[0], nodes, free, z))
            break
        for part in (i, i + len(lam)):
            child = free.copy()
            child[part] = False
            bound, z_child = _relaxed(form, c, child)
            heapq.heappush(heap, (-bound, nodes, child, z_child))
            nodes += 1
    return float(-heap[0][0])


def relaxed_directions(U: Array, lam: Array) -> Array:
    """Direction (1, r) of the relaxed maximiser, a good guess; none for dependent points."""
    form = _convex_form(U) if len(U) == U.shape[1] else None
    if form is None:
        return np.zeros((0, U.shape[1]))
    z = _relaxed(form, np.append(lam, 0.0 * lam), np.ones(2 * len(lam), dtype=bool))[1]
    return np.asarray(np.linalg.solve(U, z[: len(lam)] - z[len(lam) :])[None, :], dtype=np.float64)


def _convex_form(U: Array) -> Array | None:
    """The quadratic form in (p, q), with D as large as a multiple of diag H can be."""
    try:
        H = np.linalg.inv(U @ U.T)
        root = np.sqrt(np.diag(H))
        smallest = float(np.linalg.eigvalsh(H / np.outer(root, root))[0])
        cross = np.diag(1.98 * smallest * root**2) - H
        form = np.block([[H, cross], [cross, H]])
        np.linalg.cholesky(form)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(form)


def _relaxed(form: Array, c: Array, free: NDArray[np.bool_]) -> tuple[float, Array]:
    """Bound and maximiser of ``c . z`` over ``z >= 0``, ``z' form z <= 1``, zero off ``free``."""
    L = np.linalg.cholesky(form[np.ix_(free, free)])
    inverse = np.linalg.inv(L)
    # any mu >= 0 gives a bound: c . z <= (c + mu) . z
    residual = nonnegative_fit(-inverse, inverse @ c[free]).residual
    z = np.zeros(len(c))
    z[free] = np.maximum(inverse.T @ residual, 0.0)
    return float(np.sqrt(residual @ residual)), z
