r"""Gradient descent of the hidden layer, written down plainly: by weights and in Gram form.

Setting: :math:`f(x) = \sum_k s_k \mathrm{relu}(w_k\cdot x)` with fixed signs :math:`s_k = \pm 1`,
risk :math:`R = \frac12 |f(X) - y|^2`. Letters: ``P[k, i] = x_i . w_k`` (primal), ``B`` duals with
``P = B G``, ``G = X X^T``, ``A = P > 0`` the pattern, ``r = f(X) - y``. These loops are references:
the checks compare the engine with them, and follow lemmas along them step by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

Pattern = NDArray[np.bool_]


def residual(s: Array, P: Array, y: Array) -> Array:
    """``r = sum_k s_k relu(p_k) - y``."""
    return np.asarray(s @ np.maximum(P, 0.0) - y)


@dataclass(frozen=True)
class Loop:
    """States of a loop: ``P`` and ``B`` (T + 1, m, n), one a step, and residuals (T + 1, n)."""

    P: Array
    B: Array
    r: Array

    @property
    def active(self) -> Pattern:
        """Patterns (T + 1, m, n)."""
        return self.P > 0.0

    @property
    def steps(self) -> int:
        """T."""
        return len(self.P) - 1

    def changes(self) -> list[tuple[int, int, int]]:
        """(iteration, neuron, point) of every change of sign."""
        t, k, i = np.nonzero(self.active[1:] != self.active[:-1])
        return list(zip((t + 1).tolist(), k.tolist(), i.tolist(), strict=True))


def gram_loop(G: Array, y: Array, s: Array, P0: Array, B0: Array, eta: float, steps: int) -> Loop:
    """Equations (4a), (4b): all neurons from the same residual, ``steps`` times."""
    P, B = np.empty((steps + 1, *P0.shape)), np.empty((steps + 1, *P0.shape))
    r = np.empty((steps + 1, len(y)))
    P[0], B[0], r[0] = P0, B0, residual(s, P0, y)
    for t in range(steps):
        kick = -eta * s[:, None] * np.where(P[t] > 0.0, r[t], 0.0)
        B[t + 1] = B[t] + kick
        P[t + 1] = P[t] + kick @ G
        r[t + 1] = residual(s, P[t + 1], y)
    return Loop(P, B, r)


def weight_loop(X: Array, y: Array, s: Array, W: Array, eta: float, steps: int) -> Array:
    """Update (2) in weight space: the weights after ``steps`` steps."""
    for _ in range(steps):
        P = W @ X.T
        W = W - eta * s[:, None] * (np.where(P > 0.0, residual(s, P, y), 0.0) @ X)
    return W


def linear_loop(
    X: Array, y: Array, s: Array, W: Array, A: Pattern, eta: float, steps: int
) -> tuple[Array, Array]:
    """Linear regression on the active points (Lemmas 1, 11): no relu, the pattern A fixed.

    Returns the last weights and the norms of the residual on the active points.
    """
    covered, norms = A.any(axis=0), []
    for _ in range(steps):
        r = s @ np.where(A, W @ X.T, 0.0) - y
        norms.append(float(np.linalg.norm(r[covered])))
        W = W - eta * s[:, None] * (np.where(A, r, 0.0) @ X)
    return W, np.array(norms)


def frozen_limit(G: Array, y: Array, s: Array, P: Array, A: Pattern) -> Array:
    r"""Duals added between a state P and its limit when the pattern A stays (Lemmas 2, 11).

    With :math:`K = (G \circ A^T A)_{SS}` on the points S some neuron is active on and
    :math:`c = K^{-1} r_S`, neuron k moves by :math:`-s_k X^T(A_k \circ c)`. For one neuron this is
    the projection onto the fits of S, for disjoint sets one projection a neuron.
    """
    S = np.flatnonzero(A.any(axis=0))
    shared = A.astype(np.float64).T @ A
    c = np.zeros(len(y))
    r = s @ np.where(A, P, 0.0) - y
    c[S] = np.linalg.solve((G * shared)[np.ix_(S, S)], r[S])
    return np.asarray(-s[:, None] * np.where(A, c, 0.0))


def smoothness(G: Array, A: Pattern) -> float:
    """Largest eigenvalue of ``K`` of `frozen_limit`: the final phase converges below 2 over it."""
    S = np.flatnonzero(A.any(axis=0))
    shared = A.astype(np.float64).T @ A
    return float(np.linalg.eigvalsh((G * shared)[np.ix_(S, S)])[-1]) if len(S) else 0.0


def limit_by_owner(
    G: Array, y: Array, s: Array, P0: Array, B0: Array, eta: float, owner: Pattern
) -> Array:
    r"""Duals at infinity when one step makes ``owner`` the pattern for ever (Theorems 1, 3, 5).

    Off its own points a neuron keeps the duals of the first step; on them it fits the labels:
    :math:`b_{own} = G_{own,own}^{-1}(s_k y_{own} - G_{own,off} b_{off})`.
    """
    B = B0 - eta * s[:, None] * np.where(P0 > 0.0, residual(s, P0, y), 0.0)
    for k, own in enumerate(owner):
        rest = s[k] * y[own] - G[np.ix_(own, ~own)] @ B[k, ~own]
        B[k, own] = np.linalg.solve(G[np.ix_(own, own)], rest) if own.any() else 0.0
    return B
