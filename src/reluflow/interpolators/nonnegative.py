r"""Non-negative least squares whose answer is checked before it is believed.

.. math:: \min_{\mu \ge 0} |A \mu - b|^2

``scipy.optimize.nnls`` 1.17.1 can return a grossly wrong vector on degenerate inputs (typically
when the solution is 0 and the gradient is at rounding level), so its answer is accepted only if it
satisfies the optimality conditions; an active-set method of our own takes over otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

NDBool = NDArray[np.bool_]

_TOL = 1e-10


@dataclass(frozen=True)
class NonnegativeFit:
    r"""A minimiser ``mu`` and the proof.

    Attributes
    ----------
    mu : (k,) array
        Non-negative coefficients.
    residual : (r,) array
        :math:`b - A\mu`, the projection of ``b`` on the polar of the cone of the columns.
    kkt : float
        The larger of the violation of :math:`A^T(b - A\mu) \le 0`, over ``|b|`` and the column
        lengths, and of the complementarity gap :math:`|\mu|\cdot|A^T(b - A\mu)| / |b|^2`.
    """

    mu: Array
    residual: Array
    kkt: float

    @property
    def is_verified(self) -> bool:
        """Whether the optimality conditions hold to rounding."""
        return self.kkt <= _TOL


def nonnegative_fit(A: Array, b: Array) -> NonnegativeFit:
    """Best non-negative fit of ``b`` by the columns of ``A`` (r, k), verified.

    Numerics
    --------
    Columns are scaled to unit length. SciPy's solver is tried first, then Lawson-Hanson with
    relative tolerances; the better of the two is returned with its violation ``kkt``. The norm of
    the residual is exact to ``kkt`` relative to ``|b|``. O(r k^2) a column entering the basis.
    """
    lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
    safe = np.where(lengths > 0, lengths, 1.0)
    unit = A / safe
    best = _fit(unit, b, np.zeros(A.shape[1]))
    for candidate in (_scipy, lawson_hanson):
        if best.is_verified:
            break
        other = _fit(unit, b, candidate(unit, b))
        best = other if other.kkt < best.kkt else best
    return NonnegativeFit(best.mu / safe, best.residual, best.kkt)


def _fit(A: Array, b: Array, mu: Array) -> NonnegativeFit:
    residual = b - A @ mu
    scale = float(np.sqrt(b @ b))
    if scale == 0.0 or A.shape[1] == 0:
        return NonnegativeFit(mu, residual, 0.0)
    slope = A.T @ residual
    ascent = max(float(slope.max()), 0.0) / scale
    # |residual|^2 exceeds the squared distance by at most the complementarity gap
    gap = float(np.abs(mu * slope).sum()) / scale**2
    return NonnegativeFit(mu, residual, max(ascent, gap))


def _scipy(A: Array, b: Array) -> Array:
    from scipy.optimize import nnls

    try:
        return np.asarray(nnls(A, b)[0], dtype=np.float64)
    except RuntimeError:  # its iteration limit; the caller compares residuals
        return np.zeros(A.shape[1])


def lawson_hanson(A: Array, b: Array) -> Array:
    """Active-set non-negative least squares with relative tolerances (columns of unit length)."""
    k = A.shape[1]
    mu = np.zeros(k)
    passive = np.zeros(k, dtype=bool)
    tol = 1e-13 * float(np.sqrt(b @ b))
    blocked = np.zeros(k, dtype=bool)
    for _ in range(10 * k + 30):
        slope = np.where(passive | blocked, -np.inf, A.T @ (b - A @ mu))
        entering = int(slope.argmax()) if k else 0
        if not k or slope[entering] <= tol:
            return mu
        passive[entering] = True
        trial = _restricted(A, b, passive)
        if trial[entering] <= 0.0:  # rounding decided the slope: it cannot enter now
            passive[entering] = False
            blocked[entering] = True
            continue
        blocked[:] = False
        mu, passive = _walk(A, b, mu, trial, passive)
    return mu


def _restricted(A: Array, b: Array, passive: NDBool) -> Array:
    full = np.zeros(A.shape[1])
    full[passive] = np.linalg.lstsq(A[:, passive], b, rcond=1e-13)[0]
    return full


def _walk(A: Array, b: Array, mu: Array, trial: Array, passive: NDBool) -> tuple[Array, NDBool]:
    """Move from ``mu`` towards the unconstrained fit, dropping coefficients that reach zero."""
    while passive.any() and trial[passive].min() <= 0.0:
        falling = passive & (trial <= 0.0)
        ratios = mu[falling] / (mu[falling] - trial[falling])
        step = float(ratios.min())
        mu = np.where(passive, mu + step * (trial - mu), 0.0)
        dropped = np.flatnonzero(falling)[ratios <= step]
        passive = passive.copy()
        passive[dropped] = False
        mu[dropped] = 0.0
        trial = _restricted(A, b, passive)
    return np.maximum(trial, 0.0), passive
