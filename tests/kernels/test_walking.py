"""A neuron in given forces, across and along its planes, against small steps of the inclusion."""

import numpy as np
from scipy.optimize import lsq_linear

from reluflow.engines.flow import tableau
from reluflow.kernels.layout import FLIP, RELEASE, Points
from reluflow.kernels.walking import walk

NODES = tableau.START_RADAU


def small_steps(a, w, X, forces, count):
    """Explicit Euler with the smallest pull at every plane within reach of a step; final (a, w)."""
    at = (np.arange(count) + 0.5) / count
    path = tableau.lagrange_matrix(NODES, at) @ forces
    lengths = np.linalg.norm(X, axis=1)
    for c in path:
        z = X @ w
        g = (c * (z > 0)) @ X
        reach = np.abs(a) * lengths * np.abs(c).sum() * lengths.max() / count
        near = np.flatnonzero((np.abs(z) <= reach) & (a * c < 0))
        if len(near):
            # the plane is reached within the step: weights that keep the neuron on it, or let it go
            far = g - (c[near] * (z[near] > 0)) @ X[near]
            rate = a * (c[near, None] * X[near]) @ X[near].T
            target = -(z[near] * count + a * X[near] @ far)
            theta = lsq_linear(rate.T, target, bounds=(0, 1)).x
            g = far + (theta * c[near]) @ X[near]
        a, w = a + w @ g / count, w + a * g / count
    return a, w


def walked(a, w, X, forces, weight=1.0):
    """One neuron through the unit step: ``(a, w, row, log, tau, kinks)``."""
    gram = X @ X.T
    lengths = np.linalg.norm(X, axis=1)
    points = Points(X, gram, lengths, np.zeros(len(X)))
    w, z = w.copy(), X @ w
    row = (z > 0).astype(np.int8)
    pull = np.where(row == 1, forces, 0.0)
    log, kinks = np.zeros((400, 4)), np.zeros((tableau.STAGES, len(X)))
    slack = 1e-13 * np.hypot(a, np.linalg.norm(w)) * lengths
    a, used, tau, _ = walk(
        7, a, w, z, row, forces, pull.copy(), pull @ X, pull @ gram, NODES, points, tableau.TABLES,
        1.0, slack, 1e-11, 1e-11, 0.0, False, log, 0, weight, kinks,
    )  # fmt: skip
    return a, w, row, log[:used], tau, kinks


def drawn(seed):
    """A neuron, points and forces that turn in the step."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 13)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    w = rng.normal(size=d)
    a = float(rng.choice([-1.0, 1.0])) * np.linalg.norm(w) * 1.2
    forces = (NODES[:, None] - 0.5) ** np.arange(3) @ (0.6 * rng.normal(size=(3, n)))
    pull = (np.abs(forces) @ np.linalg.norm(X, axis=1)).max()
    return a, w, X, forces * min(1.0, 4.0 / pull)  # the flow takes no steps of larger boosts


def follows(seed):
    """Compare a walk with small steps; returns its codes and how many planes it ends on."""
    a, w, X, forces = drawn(seed)
    a1, w1, row, log, tau, _ = walked(a, w, X, forces)
    if tau <= 1.0:
        return set(), 0  # left to the caller
    coarse, fine = (np.append(*small_steps(a, w, X, forces, k)) for k in (1000, 2000))
    error = 5.0 * np.abs(fine - coarse).max() + 2e-3 * np.abs(fine).max()
    np.testing.assert_allclose(np.append(a1, w1), fine, atol=error)
    held = row >= 2
    np.testing.assert_allclose(X[held] @ w1, 0.0, atol=1e-12)
    assert ((X @ w1 > 0) == (row == 1))[~held & (np.abs(X @ w1) > 1e-9)].all()
    assert (np.diff(log[:, 0]) >= 0).all()
    return set(log[:, 3].astype(int)), int(held.sum())


def test_walks_follow_the_inclusion():
    codes = [follows(seed)[0] for seed in range(40)]
    assert set().union(*codes) >= {0, 1, 2, 3}


def test_walks_along_two_planes_and_off_them_follow_the_inclusion():
    found = {"two": 0, "released": 0}
    for seed in range(600):
        _, _, row, log, _, _ = walked(*drawn(seed))
        two, released = (row >= 2).sum() >= 2, (log[:, 3] == RELEASE).any()
        if two or (released and found["released"] < 10):
            follows(seed)
            found["two"] += two
            found["released"] += released
    assert min(found.values()) >= 4, found


def test_a_change_of_sign_between_the_planes_is_listed():
    found = 0
    for seed in range(40):
        a, w, X, forces = drawn(seed)
        a1, _, _, log, tau, _ = walked(0.05 * a, w, X, forces)
        flips = int((log[:, 3] == FLIP).sum())
        if tau > 1.0:
            assert (np.sign(a1) != np.sign(a)) == (flips % 2 == 1)
            found += flips
    assert found >= 5


def test_kinks_are_the_outputs_beyond_those_of_the_first_row():
    at_nodes = tableau.lagrange_matrix(NODES, np.linspace(0.0, 1.0, 4001)[:-1] + 0.5 / 4000)
    compared = 0
    for seed in range(30):
        a, w, X, forces = drawn(seed)
        *_, log, tau, kinks = walked(a, w, X, forces, weight=0.5)
        if tau <= 1.0 or not len(log):
            continue
        for k, node in enumerate(tableau.RADAU):
            # up to the node alone, in its row and in the first
            part = tableau.lagrange_matrix(NODES, node * NODES) @ forces * node
            # time is rescaled to the unit step: pulls shrink with it
            there, w_there, row, *_ = walked(a, w, X, part)
            b, v = np.float64(a), w.copy()
            first = X @ w > 0
            for c in at_nodes @ part:
                g = (c * first) @ X
                mid_b, mid_v = b + 0.5 * v @ g / 4000, v + 0.5 * b * g / 4000
                b, v = b + mid_v @ g / 4000, v + mid_b * g / 4000
            own = there * np.where(row == 1, X @ w_there, 0.0)
            smooth = b * np.where(first, X @ v, 0.0)
            error = 1e-3 * (np.abs(own).max() + np.abs(smooth).max())
            np.testing.assert_allclose(kinks[k], 0.5 * (own - smooth), atol=error)
        compared += 1
    assert compared >= 10
