r"""The number V: whether a network that bends can beat the teacher neuron in norm.

With d independent points and labels :math:`y_i = v^*\cdot x_i > 0`, :math:`|v^*| = 1`, let
:math:`\chi_k` be the rows of :math:`X^{-1}` (:math:`\chi_k \cdot x_i = [k = i]`) and
:math:`\zeta_i = \chi_i \cdot v^*`. Then

.. math:: V = \max_{K,\,\pm,\,|w| \le 1} \pm\sum_{i \in K} \zeta_i\, w\cdot x_i
          \quad\text{s.t.}\quad w\cdot x_i \ge 0 \;(i \in K),\; \le 0 \;(i \notin K)

over proper non-empty K. Each inner maximum is the length of the projection of
:math:`\pm\sum_K \zeta_i x_i` on a simplicial cone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.interpolators.nonnegative import nonnegative_fit
from reluflow.interpolators.supremum import ascend, relu_sum

_VERIFIED = 1e-10


@dataclass(frozen=True)
class Bend:
    """A value of the inner maximum, where it is attained, and how well that was verified.

    Attributes
    ----------
    value : float
        Largest value found; the maximum if ``is_exact``.
    w : (d,) array
        Unit direction that attains it.
    kkt : float
        Worst optimality violation among the projections (0 if none was needed).
    is_exact : bool
        Whether every pattern was searched and every projection verified.
    """

    value: float
    w: Array
    kkt: float
    is_exact: bool


def bend_exactly(X: Array, zeta: Array) -> Bend:
    """V by all ``2 (2^d - 2)`` projections.

    Numerics
    --------
    A projection is skipped when the length of what is projected is below the best value. The
    others are verified to 1e-10; `Bend.is_exact` is False if one resists. About 0.05 ms each.
    """
    d = len(X)
    proper = ((np.arange(1, 2**d - 1)[:, None] >> np.arange(d)) & 1).astype(bool)
    targets = (proper * zeta) @ X
    lengths = np.sqrt(np.einsum("ij,ij->i", targets, targets))
    best, direction, worst = 0.0, np.zeros(d), 0.0
    for k in np.argsort(-lengths, kind="stable"):
        if lengths[k] <= best:
            break
        for sign in (1.0, -1.0):
            w, size, kkt = _projection(X, sign * zeta, proper[k])
            worst = max(worst, kkt)
            if size > best:
                best, direction = size, w
    return Bend(best, direction, worst, worst <= _VERIFIED)


def bend_by_ascent(X: Array, zeta: Array, samples: int = 400) -> Bend:
    """A lower bound on V; a value above 1 settles the question, others do not.

    Projections for single points, their complements and random subsets, then local ascent from
    the directions found.
    """
    d = len(X)
    rng = np.random.default_rng(0)  # any subsets are valid
    single = np.eye(d, dtype=bool)
    proper = np.concatenate([single, ~single, rng.random((samples, d)) < 0.5])
    proper = proper[proper.any(axis=1) & ~proper.all(axis=1)]
    best, direction, worst = 0.0, np.zeros(d), 0.0
    for subset in proper:
        for sign in (1.0, -1.0):
            w, size, kkt = _projection(X, sign * zeta, subset)
            worst = max(worst, kkt)
            if kkt <= _VERIFIED and size > best:
                best, direction = size, w
    for sign in (1.0, -1.0):
        found = ascend(X, sign * zeta, np.concatenate([direction[None, :], X, -X]), 0.0)
        active = found @ X.T > 0
        bent = found[active.any(axis=1) & ~active.all(axis=1)][:1]
        if relu_sum(X, sign * zeta, bent).max(initial=0.0) > best:
            best, direction = float(relu_sum(X, sign * zeta, bent)[0]), bent[0]
    return Bend(best, direction, worst, False)


def _projection(X: Array, zeta: Array, subset: NDArray[np.bool_]) -> tuple[Array, float, float]:
    """Direction and length of the projection of ``sum_K zeta_i x_i`` on the cone of K, and KKT."""
    inward = np.where(subset, 1.0, -1.0)[:, None] * X
    # projection on {w : inward w >= 0} = target - (projection on the polar cone)
    fit = nonnegative_fit(-inward.T, (subset * zeta) @ X)
    size = float(np.sqrt(fit.residual @ fit.residual))
    return (fit.residual / size if size > 0 else fit.residual), size, fit.kkt
