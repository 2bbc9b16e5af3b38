r"""The number M: how well two halves of the dual cone line up, against the teacher.

.. math:: M = \max\{\cos(p, q) - \sin(p, v^*) : p \in \mathrm{cone}(\chi_K),\;
          q \in \mathrm{cone}(\chi_{K^c}),\; \emptyset \ne K \subsetneq [d]\}

A vector :math:`u \in R^d` with both signs encodes a pair: :math:`p = \sum u_k^+ \chi_k`,
:math:`q = \sum u_k^- \chi_k`. For given p the best q is a projection, so the search is over p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.interpolators.nonnegative import nonnegative_fit


@dataclass(frozen=True)
class Pair:
    """Coefficients of unit ``p`` and ``q`` in the generators, and ``cos(p,q) - sin(p,v*)``."""

    value: float
    p: Array
    q: Array


def pair_value(chi: Array, v: Array, p: Array, q: Array) -> float:
    r""":math:`\cos(p, q) - \sin(p, v)` for coefficient vectors, without cancellation in sin."""
    P, Q = p @ chi, q @ chi
    P, Q = P / np.sqrt(P @ P), Q / np.sqrt(Q @ Q)
    across = P - v * (P @ v)
    return float(P @ Q - np.sqrt(across @ across))


def best_partner(chi: Array, p: Array) -> Array:
    """Coefficients of the best ``q`` for ``p``, supported off the support of ``p``."""
    P = p @ chi
    free = np.flatnonzero(p == 0.0)
    products = chi[free] @ P
    q = np.zeros(len(p))
    if products.max() > 0:
        q[free] = nonnegative_fit(chi[free].T, P).mu
    if not q.any():
        q[free[int((products / _lengths(chi[free])).argmax())]] = 1.0
    return q


def largest_separation(chi: Array, v: Array, starts: Array) -> Pair:
    r"""Best pair found by projected ascent from all pairs of generators and the given ``u``.

    Parameters
    ----------
    chi : (d, d) array
        Rows of the inverse of the data.
    v : (d,) array
        Unit teacher.
    starts : (k, d) array
        Further starting vectors u, for instance :math:`(w\cdot x_i)_i` for the maximiser w of V.

    Numerics
    --------
    The maximum of a non-convex function by many starts (every cone to d = 10, a sample beyond), so
    formally a lower bound on M; tests compare it with a grid for d <= 4. The sign of M is
    decided by V, not here. O(2^d d^2) a sweep.
    """
    scale = _lengths(chi)
    unit = chi / scale[:, None]
    U = np.concatenate([_start_vectors(len(chi)), starts * scale])
    U = _ascent(unit, v, U)
    values = _values(unit, v, U)
    best = Pair(-np.inf, np.zeros(len(chi)), np.zeros(len(chi)))
    for k in np.argsort(-values, kind="stable")[:12]:
        p = _refine(unit, v, np.maximum(U[k], 0.0))
        q = best_partner(unit, p)
        value = pair_value(unit, v, p, q)
        if value > best.value:
            best = Pair(value, p / scale, q / scale)
    return best


def _start_vectors(d: int) -> Array:
    """All ordered pairs of generators, and the middle of each cone (a sample beyond d = 10)."""
    eye = np.eye(d)
    pairs = [eye[i] - eye[j] for i in range(d) for j in range(d) if i != j]
    if d <= 10:
        bits = (np.arange(1, 2**d - 1)[:, None] >> np.arange(d)) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, size=(1000, d))
        bits = bits[bits.any(axis=1) & ~bits.all(axis=1)]
    return np.concatenate([np.array(pairs), 2.0 * bits - 1.0])


def _parts(chi: Array, U: Array) -> tuple[Array, Array, Array, Array]:
    P, Q = np.maximum(U, 0.0) @ chi, np.maximum(-U, 0.0) @ chi
    return P, Q, _lengths(P), _lengths(Q)


def _values(chi: Array, v: Array, U: Array) -> Array:
    P, Q, lp, lq = _parts(chi, U)
    P, Q = P / lp[:, None], Q / lq[:, None]
    return np.asarray(np.einsum("ij,ij->i", P, Q) - _lengths(P - np.outer(P @ v, v)))


def _ascent(chi: Array, v: Array, U: Array, sweeps: int = 150) -> Array:
    """Gradient steps inside each cone, with a step size of its own for every row."""
    step = np.full(len(U), 0.3)
    current = _values(chi, v, U)
    sign = np.sign(U)
    for _ in range(sweeps):
        moved = U + step[:, None] * _gradient(chi, v, U, sign)
        moved = np.where(moved * sign > 0, moved, 0.0)
        alive = np.any(moved > 0, axis=1) & np.any(moved < 0, axis=1)
        moved = np.where(alive[:, None], moved, U)
        after = _values(chi, v, moved)
        better = np.greater(after, current)
        U = np.where(better[:, None], moved, U)
        current = np.where(better, after, current)
        step = np.where(better, step * 1.3, step * 0.5)
        U = U / np.abs(U).max(axis=1)[:, None]
    return U


def _gradient(chi: Array, v: Array, U: Array, sign: Array) -> Array:
    P, Q, lp, lq = _parts(chi, U)
    P, Q = P / lp[:, None], Q / lq[:, None]
    cos = np.einsum("ij,ij->i", P, Q)
    along = P @ v
    sin = np.maximum(_lengths(P - np.outer(along, v)), 1e-12)
    # d cos(p,q) and -d sin(p,v) = (cos/sin) d cos, on the unit sphere
    toward = (Q - cos[:, None] * P) + (along / sin)[:, None] * (v - along[:, None] * P)
    gp = toward / lp[:, None] @ chi.T
    gq = (P - cos[:, None] * Q) / lq[:, None] @ chi.T
    return np.asarray(np.where(sign > 0, gp, -gq) * np.abs(sign))


def _refine(chi: Array, v: Array, p: Array) -> Array:
    """Quasi-Newton on the coefficients of ``p`` with the best partner at every step."""
    from scipy.optimize import minimize

    support = np.flatnonzero(p > 1e-9 * p.max())
    if len(support) < 2:
        return np.asarray(np.where(p > 1e-9 * p.max(), p, 0.0))

    def negative(b: Array) -> float:
        full = np.zeros(len(p))
        full[support] = np.maximum(b, 0.0)
        return -pair_value(chi, v, full, _partner_off(chi, full, support)) if full.any() else 1.0

    start = p[support] / p.max()
    answer = minimize(negative, start, bounds=[(0.0, None)] * len(support), method="L-BFGS-B")
    b = np.maximum(answer.x, 0.0) if answer.fun <= negative(start) else start
    refined = np.zeros(len(p))
    refined[support] = np.where(b > 1e-9 * b.max(), b, 0.0)
    return refined


def _partner_off(chi: Array, p: Array, support: NDArray[np.intp]) -> Array:
    """Best partner supported off ``support``, which contains the support of ``p``."""
    marked = np.array(p)
    marked[support] = np.maximum(marked[support], 1e-300)
    return best_partner(chi, marked)


def _lengths(R: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", R, R)))
