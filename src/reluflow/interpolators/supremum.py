r"""Largest value of a signed sum of activations over unit directions, bracketed from both sides.

.. math:: F(\lambda) = \max_{|w| \le 1} \sum_i \lambda_i\,\varphi(u_i \cdot w), \qquad
          \varphi(t) = \max(t, \sigma t)

The slope :math:`\sigma` is 0 for ReLU.

A dual vector :math:`\lambda` of the minimum-norm problem is feasible iff
:math:`F(\lambda) \le 1` and :math:`F(-\lambda) \le 1`. Points with :math:`\lambda_i > 0` make the
sum convex, the others concave, so

.. math:: F(\lambda) = \max_K \min_{\alpha \in [\sigma,1]^N}
          \Bigl|\sum_{i \in P} \theta_i \lambda_i u_i
          - \sum_{i \in N} \alpha_i |\lambda_i| u_i\Bigr|

where N collects :math:`\lambda_i < 0`, K runs over the activation patterns of the others P (far
fewer than the patterns of all points), and :math:`\theta_i` is 1 on K and :math:`\sigma` off it.
With :math:`\alpha = \sigma + (1 - \sigma) \beta` the box is that of :math:`\beta \in [0,1]^N`.
Every :math:`\alpha` gives an upper bound for its K, and the vector inside the norm a direction that
gives a lower bound, so the bracket holds whatever the inner solver did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.complementarity import relaxed_directions
from reluflow.interpolators.patterns import Patterns, all_patterns, enumerable
from reluflow.interpolators.rays import span_coordinates
from reluflow.interpolators.relaxation import supremum_bound
from reluflow.network import activation, gates

_SWEEPS = 100
_REFINED = 40


@dataclass(frozen=True)
class Supremum:
    """Bracket of the largest value; ``upper`` comes from all patterns if ``is_exhaustive``,
    else from a relaxation. ``lower`` is attained at the unit vector ``direction``.
    """

    lower: float
    upper: float
    direction: Array
    is_exhaustive: bool


def relu_sum(U: Array, lam: Array, W: Array, slope: float = 0.0) -> Array:
    r"""Values :math:`\sum_i \lambda_i \varphi(u_i \cdot w_k)` for the rows of ``W``."""
    return np.asarray(activation(W @ U.T, slope) @ lam)


def bracket(U: Array, lam: Array, *, slope: float = 0.0, relax: bool = True) -> Supremum:
    """Bracket ``F(lam)`` over all unit directions, for unit rows ``U`` (n, r).

    Numerics
    --------
    Coordinate descent on all patterns at once, dropping those below the best value so far, then
    an active-set method on the survivors. ``upper`` is a norm actually computed,
    hence safe to rounding (about 1e-15 of ``|lam|_1``). With too many patterns to list, ``lower``
    comes from local search and ``upper`` from `relaxation` (infinity without ``relax``).
    """
    patterns = _gain_patterns(U, lam, slope)
    if patterns is None:
        random = np.random.default_rng(0).normal(size=U.shape)
        starts = np.concatenate([relaxed_directions(U, lam), U, -U, random])
        found = ascend(U, lam, starts, 0.0, slope=slope)[:1]
        lower = float(relu_sum(U, lam, found, slope).max(initial=0.0))
        upper = supremum_bound(U, lam, lower * (1 + 1e-10), slope) if relax else np.inf
        return Supremum(lower, max(lower, upper), found.sum(axis=0), False)
    C, B = _parts(U, lam, patterns, slope)
    C, alpha, best, upper = _screen(U, lam, C, B, 0.0, slope=slope, raises=True)
    R = C - alpha @ B
    lower, direction = 0.0, np.zeros(U.shape[1])
    for k in np.argsort(-_norms(R), kind="stable"):
        residual = _refined(C[k], B, R[k]) if np.sqrt(R[k] @ R[k]) > best else R[k]
        norm = float(np.sqrt(residual @ residual))
        value = float(relu_sum(U, lam, residual[None, :] / norm, slope)[0]) if norm > 0 else 0.0
        upper = max(upper, norm, value)
        if value > lower:
            lower, direction, best = value, residual / norm, max(best, value)
    return Supremum(lower, upper, direction, True)


def violators(U: Array, lam: Array, threshold: float, slope: float = 0.0) -> Array:
    """Unit directions with a sum above ``threshold``, best first: one a pattern that has one.

    The largest sum is always among them, unless the patterns are too many to list: then only the
    best of a local search is.
    """
    patterns = _gain_patterns(U, lam, slope)
    found = np.zeros((0, U.shape[1]))
    if patterns is not None:
        found = _above(U, lam, patterns, threshold, slope)
    best = bracket(U, lam, slope=slope, relax=False)
    if best.lower > max(threshold, relu_sum(U, lam, found, slope).max(initial=0.0)):
        found = np.concatenate([best.direction[None, :], found])
    return found


def ascend(
    U: Array, lam: Array, starts: Array, threshold: float, rounds: int = 8, *, slope: float = 0.0
) -> Array:
    """Directions above ``threshold`` by local search from the rows of ``starts``.

    Each direction found gives the next pattern to search. The best value of a start never falls,
    since the new pattern contains the direction that gave it.
    """
    gain = U[lam > 0]
    patterns = seen = np.unique(starts @ gain.T > 0, axis=0)
    for _ in range(rounds):
        C, B = _parts(U, lam, patterns, slope)
        C, alpha, _, _ = _screen(U, lam, C, B, 0.0, slope=slope, raises=False)
        patterns = np.unique(_unit(C - alpha @ B) @ gain.T > 0, axis=0)
        known = len(seen)
        seen = np.unique(np.concatenate([seen, patterns]), axis=0)
        if len(seen) == known:
            break
    return _above(U, lam, seen, threshold, slope)


def _above(U: Array, lam: Array, patterns: Patterns, threshold: float, slope: float) -> Array:
    C, B = _parts(U, lam, patterns, slope)
    C, alpha, _, _ = _screen(U, lam, C, B, threshold, slope=slope, raises=False)
    R = C - alpha @ B
    W = _unit(R)
    if not (relu_sum(U, lam, W, slope) > threshold).any():  # slow convergence can hide a violation
        leading = np.argsort(-_norms(R), kind="stable")[:_REFINED]
        W = _unit(np.array([_refined(C[k], B, R[k]) for k in leading]).reshape(-1, U.shape[1]))
    values = relu_sum(U, lam, W, slope)
    order = np.argsort(-values, kind="stable")
    return np.asarray(W[order[values[order] > threshold]])


def _gain_patterns(U: Array, lam: Array, slope: float) -> Patterns | None:
    """All patterns of the points of positive weight, None if there are too many."""
    gain = U[lam > 0]
    if not len(gain):  # sums of ReLUs are then nowhere positive
        return np.zeros((1 if slope else 0, 0), dtype=bool)
    reduced = span_coordinates(gain)[0]
    return all_patterns(reduced) if enumerable(reduced) else None


def _parts(U: Array, lam: Array, patterns: Patterns, slope: float) -> tuple[Array, Array]:
    """Vectors ``C`` of the convex part, one a pattern; generators ``B`` of the concave part."""
    gain, loss = lam > 0, lam < 0
    C, B = (gates(patterns, slope) * lam[gain]) @ U[gain], -lam[loss, None] * U[loss]
    return (C - slope * B.sum(axis=0), (1.0 - slope) * B) if slope else (C, B)


def _screen(
    U: Array, lam: Array, C: Array, B: Array, best: float, *, slope: float, raises: bool
) -> tuple[Array, Array, float, float]:
    """Drop patterns whose bound falls to ``best`` (which ``raises`` with the values met).

    Coordinate descent, one coefficient of all patterns at a time: blind to the very different
    sizes that the weights have on badly conditioned data.
    Returns the surviving ``C`` and ``alpha``, the best value and the largest bound dropped.
    """
    dropped = 0.0
    alpha = np.zeros((len(C), len(B)))
    squares = np.einsum("ij,ij->i", B, B)
    for sweep in range(_SWEEPS):
        R = C - alpha @ B
        moved = 0.0
        for i, (b, square) in enumerate(zip(B, squares, strict=True)):
            after = np.clip(alpha[:, i] + (R @ b) / square, 0.0, 1.0)
            change = after - alpha[:, i]
            R -= change[:, None] * b
            alpha[:, i] = after
            moved = max(moved, float(np.abs(change).max(initial=0.0)))
        if sweep % 5 == 0 or moved <= 1e-15:
            tops = _norms(R)
            if raises:
                best = max(best, float(relu_sum(U, lam, _unit(R), slope).max(initial=0.0)))
            low = tops < best * (1 - 1e-13)  # rounding must not drop the best itself
            dropped = max(dropped, float(tops[low].max(initial=0.0)))
            C, alpha = C[~low], alpha[~low]
            if moved <= 1e-15 or len(C) <= (3 if raises else 0):
                break
    return C, alpha, best, dropped


def _refined(c: Array, B: Array, residual: Array) -> Array:
    """Smallest ``c - alpha B`` over the box by an active-set method, never worse than given."""
    from scipy.optimize import lsq_linear

    if not len(B):
        return residual
    fit = lsq_linear(B.T, c, bounds=(0.0, 1.0), method="bvls", tol=1e-15, max_iter=200)
    other = c - np.clip(fit.x, 0.0, 1.0) @ B
    return np.asarray(other if other @ other < residual @ residual else residual)


def _unit(R: Array) -> Array:
    norms = _norms(R)
    return np.asarray(R[norms > 0] / norms[norms > 0, None])


def _norms(R: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", R, R)))
