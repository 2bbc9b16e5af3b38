"""Independent references for the interpolator tests: plain numpy and SciPy, no code of ours."""

from itertools import product

import numpy as np
from scipy.optimize import linprog, lsq_linear


def relu_sums(X, lam, W):
    """Sums ``lam . relu(X w)`` for the rows of ``W``."""
    return np.maximum(W @ X.T, 0.0) @ lam


def supremum_bound(X, lam):
    """Upper bound on ``|lam . relu(X w)| / |w|``, over every sign pattern, realised or not.

    On the cone of a pattern the sum is linear; its maximum is the length of a projection, which
    any non-negative multipliers bound from above.
    """
    best = 0.0
    for signs in product([1.0, -1.0], repeat=len(X)):
        inward = np.array(signs)[:, None] * X
        active = np.array(signs) > 0
        for sign in (1.0, -1.0):
            target = sign * (lam * active) @ X
            if np.linalg.norm(target) > best:
                mu = np.maximum(
                    lsq_linear(inward.T, -target, bounds=(0, np.inf), method="bvls").x, 0.0
                )
                best = max(best, np.linalg.norm(target + mu @ inward))
    return best


def circle(count):
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def dictionary_value(X, y, directions, *, margin=False):
    """Twice the smallest total weight over a dictionary: an upper bound on the squared norm."""
    features = np.maximum(X @ directions.T, 0.0)
    table = np.concatenate([features, -features], axis=1)
    cost = np.ones(table.shape[1])
    if margin:
        answer = linprog(cost, A_ub=-y[:, None] * table, b_ub=-np.ones(len(y)))
    else:
        answer = linprog(cost, A_eq=table, b_eq=y)
    assert answer.status == 0
    return 2 * answer.fun


def squared_norm(network):
    return float((network.a**2).sum() + (network.W**2).sum())


def outputs(network, X):
    return np.maximum(X @ network.W.T, 0.0) @ network.a


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]
