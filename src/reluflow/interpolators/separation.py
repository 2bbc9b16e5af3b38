r"""The number M: how well two halves of the dual cone line up, against the teacher.

.. math:: M = \max\{\cos(p, q) - \sin(p, v^*) : p \in \mathrm{cone}(\chi_K),\;
          q \in \mathrm{cone}(\chi_{K^c}),\; \emptyset \ne K \subsetneq [d]\}

A vector :math:`u \in R^d` with both signs encodes a pair: :math:`p = \sum u_k^+ \chi_k`,
:math:`q = \sum u_k^- \chi_k`. For given p the best q is a projection, so the search is over p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.nonnegative import nonnegative_fit

_REFINED = 24


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
    U = _ascent(unit, v, np.concatenate([_start_vectors(unit, v), starts * scale]))
    best = Pair(-np.inf, np.zeros(len(chi)), np.zeros(len(chi)))
    for u in _leaders(U, _values(unit, v, U)):
        for p in (np.maximum(u, 0.0), _refine(unit, v, u)):
            q = best_partner(unit, p)
            value = pair_value(unit, v, p, q)
            if value > best.value:
                best = Pair(value, p / scale, q / scale)
    return best


def _leaders(U: Array, values: Array) -> Array:
    """The best row of each of the best cones."""
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(U[order] > 0, axis=0, return_index=True)
    return np.asarray(U[order[np.sort(first)[:_REFINED]]])


def _start_vectors(chi: Array, v: Array) -> Array:
    """Pairs of generators; for each cone its middle, and its points nearest to v and -v.

    All cones to d = 10, a sample beyond.
    """
    d = len(v)
    eye = np.eye(d)
    rows = [eye[i] - eye[j] for i in range(d) for j in range(d) if i != j]
    if d <= 10:
        cones = ((np.arange(1, 2**d - 1)[:, None] >> np.arange(d)) & 1).astype(bool)
    else:
        cones = np.random.default_rng(0).random((1000, d)) < 0.5
        cones = cones[cones.any(axis=1) & ~cones.all(axis=1)]
    for on in cones:
        rows.append(np.where(on, 1.0, -1.0))
        for target in (v, -v):
            p = np.zeros(d)
            p[on] = nonnegative_fit(chi[on].T, target).mu
            if p.any():
                q = best_partner(chi, np.where(on, np.maximum(p, 1e-300), 0.0))
                rows.append(p / p.max() - q / q.max())
    return np.array(rows)


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


def _refine(chi: Array, v: Array, u: Array) -> Array:
    """Sequential quadratic programming over (p, q) in orthonormal coordinates of their cones.

    Coefficients in the generators are badly conditioned when these are nearly dependent;
    coordinates of the span are not, and the cone becomes linear inequalities there.
    """
    from scipy.optimize import minimize

    on = u > 0
    dual = np.linalg.inv(chi).T  # rows: dual[k] . chi[i] = [k = i]
    spans = [np.linalg.qr(chi[part].T)[0] for part in (on, ~on)]
    limits = [dual[part] @ span for part, span in zip((on, ~on), spans, strict=True)]
    k = spans[0].shape[1]
    inside = np.block(
        [
            [limits[0], np.zeros((len(limits[0]), len(v) - k))],
            [np.zeros((len(limits[1]), k)), limits[1]],
        ]
    )

    def negative(x: Array) -> tuple[float, Array]:
        P, Q = spans[0] @ x[:k], spans[1] @ x[k:]
        lp, lq = (float(np.sqrt(R @ R)) or 1.0 for R in (P, Q))
        P, Q = P / lp, Q / lq
        across = P - v * (P @ v)
        sin = max(float(np.sqrt(across @ across)), 1e-12)
        toward = (Q - (P @ Q) * P) - (across - (across @ P) * P) / sin
        slope = np.append(spans[0].T @ toward / lp, spans[1].T @ (P - (P @ Q) * Q) / lq)
        return sin - float(P @ Q), -slope

    P, Q = np.maximum(u, 0.0) @ chi, np.maximum(-u, 0.0) @ chi
    start = np.append(spans[0].T @ P / np.sqrt(P @ P), spans[1].T @ Q / np.sqrt(Q @ Q))
    bounds = {"type": "ineq", "fun": lambda x: inside @ x, "jac": lambda _: inside}
    options = {"ftol": 1e-14, "maxiter": 200}
    found = minimize(negative, start, jac=True, constraints=bounds, method="SLSQP", options=options)
    p = np.where(on, dual @ (spans[0] @ found.x[:k]), 0.0)
    p = np.where(p > 1e-12 * np.abs(p).max(), p, 0.0)
    return np.asarray(p if p.any() and np.isfinite(p).all() else np.maximum(u, 0.0))


def _lengths(R: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", R, R)))
