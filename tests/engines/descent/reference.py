"""The textbook loop, and problems to compare it on."""

import numpy as np

import reluflow as rf


def gradient_descent(X, y, a, W, lr, steps, loss, *, hidden=False, shares=False):
    for _ in range(steps):
        P = X @ W.T
        H = np.maximum(P, 0.0)
        h = H @ a
        c = y * loss.shares(y * h) if shares else loss.forces(h, y)
        pull = ((P > 0) * c[:, None]).T @ X
        a, W = (a if hidden else a + lr * (H.T @ c)), W + lr * a[:, None] * pull
    return a, W


def problem(n, d, m, loss, seed, *, scale=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    y = rng.normal(size=n) if loss.name == "square" else rng.choice([-1.0, 1.0], n)
    net = rf.Network(scale * rng.normal(size=m), scale * rng.normal(size=(m, d)))
    return rf.Dataset(X, y), net


def gap(net, a, W):
    """Largest difference to the weights a, W, relative to the largest weight of each layer."""
    flat = net.flat()
    return max(
        np.abs(flat.a - a).max() / np.abs(a).max(), np.abs(flat.W - W).max() / np.abs(W).max()
    )


def same(one, two):
    """Bitwise equality of networks, sign of zero aside."""
    return all(
        np.array_equal(one.to_arrays()[name], array) for name, array in two.to_arrays().items()
    )
