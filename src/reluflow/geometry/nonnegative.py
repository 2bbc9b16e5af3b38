r"""Nonnegative least squares whose answer is checked.

.. math:: \min_{x \ge 0} |A x - b|

Optimality is easy to verify: with :math:`g = A^\top (b - A x)`, no entry of g may be positive and
those with :math:`x_k > 0` must vanish. SciPy's solver is tried first and believed only after this
test (release 1.17.1 returns wrong vectors for some degenerate inputs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, number, real_array
from reluflow.errors import InputError


@dataclass(frozen=True, eq=False)
class NonnegativeFit:
    """The minimiser with its certificate.

    Attributes
    ----------
    x : (k,) array
        The solution; no entry is negative.
    residual : float
        ``|A x - b|``.
    violation : float
        The largest violation of the optimality conditions, for unit columns and relative to
        ``max(|b|, sum x_k |A_k|)``; below the tolerance asked for unless columns are dependent
        beyond double precision.
    """

    x: Array
    residual: float
    violation: float


def nnls(A: ArrayLike, b: ArrayLike, *, tol: float = 1e-12) -> NonnegativeFit:
    """Minimise ``|A x - b|`` over ``x >= 0`` and certify the result.

    Parameters
    ----------
    A : (r, k) array
        Columns of any size; a zero column gets the weight 0.
    b : (r,) array
        Target.
    tol : float
        Accepted violation of the optimality conditions, relative as in `NonnegativeFit`.

    Returns
    -------
    NonnegativeFit
        The minimiser, its residual and its violation.

    Examples
    --------
    >>> nnls([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0]).x
    array([2., 0.])

    Numerics
    --------
    Tall matrices are first reduced by a QR factorisation. If SciPy's answer violates the
    conditions, the active-set method of Lawson and Hanson with orthogonal least squares on the
    passive set runs instead, which refuses columns whose entry would not lower the residual; the
    better of the two answers is returned with its violation. O(r k^2) and then O(k^3) per
    exchange of columns.
    """
    matrix, target = real_array(A, "A", 2), real_array(b, "b", 1)
    number(tol, "tol", above=0.0)
    if len(target) != len(matrix):
        raise InputError(
            f"`A` has {len(matrix)} rows but `b` has {len(target)} entries. Make them agree."
        )
    top = float(np.abs(target).max(initial=0.0))
    used = np.flatnonzero(matrix.any(axis=0))
    x = np.zeros(matrix.shape[1])
    if top == 0.0 or len(used) == 0:
        return NonnegativeFit(x, float(np.linalg.norm(target)), 0.0)
    columns = matrix[:, used] / np.abs(matrix[:, used]).max(axis=0)
    norms = np.linalg.norm(columns, axis=0)
    unit, goal = columns / norms, target / top
    if len(goal) > len(used) + 1:
        unit, goal = _reduce(unit, goal)
    weights, violation = _solve(unit, goal, tol)
    x[used] = weights * top / norms / np.abs(matrix[:, used]).max(axis=0)
    residual = float(np.linalg.norm(unit @ weights - goal)) * top
    return NonnegativeFit(x, residual, violation)


def violation_of(A: Array, b: Array, x: Array) -> float:
    """Return the largest violation of the optimality conditions for unit columns ``A``."""
    if np.any(x < 0):
        return float("inf")
    g = A.T @ (b - A @ x)
    worst = max(float(g.max()), float(np.abs(g[x > 0]).max(initial=0.0)), 0.0)
    return worst / max(float(np.linalg.norm(b)), float(x.sum()))


def active_set(A: Array, b: Array, tol: float) -> Array:
    """Lawson and Hanson's method for unit columns, with exact bookkeeping of what may enter."""
    x = np.zeros(A.shape[1])
    passive = np.zeros(A.shape[1], dtype=bool)
    blocked = np.zeros(A.shape[1], dtype=bool)
    for _ in range(10 * A.shape[1] + 10):
        residual = b - A @ x
        g = np.where(passive | blocked, -np.inf, A.T @ residual)
        entering = int(np.argmax(g))
        if g[entering] <= 0.1 * tol * max(float(np.linalg.norm(b)), float(x.sum())):
            break
        passive[entering] = True
        trial, kept = _feasible(A, b, x, passive)
        # a dependent column enters with a direction that is rounding: refuse it until x moves
        if not float(np.linalg.norm(b - A @ trial)) < float(np.linalg.norm(residual)):
            passive[entering] = False
            blocked[entering] = True
            continue
        x, passive = trial, kept
        blocked[:] = False
    return x


def _reduce(A: Array, b: Array) -> tuple[Array, Array]:
    """Rotate the rows so that at most one more than the number of columns is left."""
    _, upper = np.linalg.qr(np.column_stack([A, b]))
    return np.ascontiguousarray(upper[:, :-1]), np.ascontiguousarray(upper[:, -1])


def _solve(A: Array, b: Array, tol: float) -> tuple[Array, float]:
    from scipy.optimize import nnls as scipy_nnls

    try:
        x = np.asarray(scipy_nnls(A, b)[0])
    except (RuntimeError, ValueError):
        x = np.zeros(A.shape[1])
    violation = violation_of(A, b, x)
    if violation <= tol:
        return x, violation
    own = active_set(A, b, tol)
    own_violation = violation_of(A, b, own)
    return (own, own_violation) if own_violation < violation else (x, violation)


def _feasible(
    A: Array, b: Array, x: Array, passive: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """Least squares on the passive columns, shrinking the set until the solution is positive."""
    x, passive = x.copy(), passive.copy()
    while passive.any():
        z = np.zeros_like(x)
        z[passive] = np.linalg.lstsq(A[:, passive], b, rcond=None)[0]
        if np.all(z[passive] > 0):
            return z, passive
        negative = passive & (z <= 0)
        ratios = x[negative] / (x[negative] - z[negative])
        step = float(ratios.min())
        x = np.where(passive, np.maximum(x + step * (z - x), 0.0), 0.0)
        leaving = np.flatnonzero(negative)[ratios <= step]
        x[leaving] = 0.0
        passive[leaving] = False
    return x, passive
