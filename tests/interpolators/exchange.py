"""Brute force for the convex problems over directions, between bounds of its own: no code of ours.

A network is a non-negative measure on unit directions and signs. The exchange method keeps finitely
many, solves that problem by a method with exact vertices, and adds every direction at which its
dual vector is infeasible, pattern by pattern over all 2^n. Both bounds are computed from scratch.
"""

from contextlib import suppress
from itertools import product

import numpy as np
from scipy.optimize import linprog, nnls

ROUNDS = 60
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def bent(t, slope):
    return np.where(t > 0, t, slope * t)


def non_negative(A, b):
    """The x >= 0 with the least ``|A x - b|``.

    SciPy's answer if it is optimal: on some inputs 1.14 gives up and 1.15 is wrong.
    """
    sizes = np.linalg.norm(A, axis=0)
    with suppress(RuntimeError):
        x = nnls(A, b, maxiter=10_000)[0]
        pull = A.T @ (b - A @ x)
        if (np.where(x > 0, np.abs(pull), pull) <= 1e-12 * sizes * np.linalg.norm(b)).all():
            return x
    A = A / np.where(sizes > 0, sizes, 1.0)
    x, used, refused = np.zeros(A.shape[1]), [], set()
    while True:
        rest = b - A @ x
        pull = A.T @ rest
        pull[[*used, *refused]] = -np.inf
        k = int(np.argmax(pull))
        if pull[k] <= 1e-14 * np.linalg.norm(b):
            return x / np.where(sizes > 0, sizes, 1.0)
        trial, left = x.copy(), [*used, k]
        while left:
            best = np.zeros_like(x)
            best[left] = np.linalg.lstsq(A[:, left], b, rcond=None)[0]
            falls = [j for j in left if best[j] <= 0]
            if not falls:
                break
            shares = [trial[j] / max(trial[j] - best[j], 1e-300) for j in falls]
            first = falls[int(np.argmin(shares))]
            trial += min(shares) * (best - trial)
            trial[first] = 0.0
            left.remove(first)
        if left and np.linalg.norm(b - A @ best) < np.linalg.norm(rest):
            x, used, refused = best, left, set()
        else:
            refused.add(k)


def peaks(X, lam, slope=0.0):
    """Upper bound on ``|lam . phi(X w)|`` over unit w, and the directions of the patterns' peaks.

    On the cone of a pattern the sum is linear, and largest along the projection of its gradient;
    any non-negative multipliers of the cone's sides bound it from above.
    """
    top, found = 0.0, []
    for signs in product([1.0, -1.0], repeat=len(X)):
        inward = np.array(signs)[:, None] * X
        for sign in (1.0, -1.0):
            gradient = sign * (lam * np.where(np.array(signs) > 0, 1.0, slope)) @ X
            mu = non_negative(inward.T, -gradient)
            peak = gradient + mu @ inward
            size = np.sqrt(peak @ peak)
            top = max(top, size)
            if size > 1e-9:
                found.append(peak / size)
    return top, np.array(found).reshape(-1, X.shape[1])


def fit_bounds(X, y, slope=0.0):
    """Bounds on the least squared norm of a network that fits; ``_exchange`` starts rich enough."""

    def solve(table):
        answer = linprog(
            np.ones(table.shape[1]), A_eq=table, b_eq=y, method="highs-ds", options=EXACT
        )
        assert answer.status == 0
        return np.maximum(answer.x, 0.0), answer.eqlin.marginals

    lower, upper = _exchange(
        X, solve, lambda weights, _: weights.sum(), lambda lam, top: lam @ y / top, slope
    )
    return 2 * lower, 2 * upper


def margin_bounds(X, y, slope=0.0):
    """Bounds on the least squared norm of a network with margins at least 1."""

    def solve(table):
        answer = linprog(
            np.ones(table.shape[1]),
            A_ub=-y[:, None] * table,
            b_ub=-np.ones(len(y)),
            method="highs-ds",
            options=EXACT,
        )
        assert answer.status == 0
        return np.maximum(answer.x, 0.0), y * np.maximum(-answer.ineqlin.marginals, 0.0)

    def value(weights, outputs):
        lowest = (y * outputs).min()
        return weights.sum() / lowest if lowest > 0 else np.inf

    lower, upper = _exchange(X, solve, value, lambda lam, top: np.abs(lam).sum() / top, slope)
    return 2 * lower, 2 * upper


def decay_bounds(X, y, decay, kappa, slope=0.0):
    """Bounds on the least ``kappa/2 |h - y|^2 + decay/2 |theta|^2``."""
    soft = decay / kappa

    def solve(table):
        # soft times the dual vector is the projection of y on a polytope: the least-distance
        # problem of Lawson and Hanson. Its support gives the answer to rounding.
        system = np.concatenate([-table, [table.T @ y - soft]])
        last = np.eye(1, len(y) + 1, len(y))[0]
        u = non_negative(system, last)
        weights = u / (last - system @ u)[-1]
        on = np.flatnonzero(weights)
        used = table[:, on]
        k = len(on)
        matrix = np.block([[np.zeros((k, k)), used.T], [used, soft * np.eye(len(y))]])
        exact = np.linalg.lstsq(matrix, np.append(np.ones(k), y), rcond=1e-14)[0]
        if (exact[:k] >= 0).all():
            weights[on] = exact[:k]
        return weights, (y - table @ weights) / soft

    def value(weights, outputs):
        return weights.sum() + ((outputs - y) ** 2).sum() / (2 * soft)

    def bound(lam, top):
        best = min(lam @ y / (soft * lam @ lam), 1 / top) if lam @ y > 0 else 0.0
        return best * (lam @ y) - soft * best**2 * (lam @ lam) / 2

    lower, upper = _exchange(X, solve, value, bound, slope)
    return decay * lower, decay * upper


def _exchange(X, solve, value, bound, slope):
    rng = np.random.default_rng(0)
    directions = np.concatenate([X, -X, rng.normal(size=(60 * len(X), X.shape[1]))])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    lower, upper = 0.0, np.inf
    for _ in range(ROUNDS):
        features = bent(X @ directions.T, slope)
        table = np.concatenate([features, -features], axis=1)
        weights, lam = solve(table)
        upper = min(upper, value(weights, table @ weights))
        top, found = peaks(X, lam, slope)
        lower = max(lower, bound(lam, top))
        if upper - lower <= 1e-10 * upper:
            break
        high = np.abs(bent(found @ X.T, slope) @ lam) > 1.0
        directions = np.unique(np.concatenate([directions, found[high]]), axis=0)
    return lower, upper
