"""The crossing kernel against a readable twin that keeps vectors and uses the asinh formulas."""

import numpy as np
import pytest

from reluflow.kernels import yardsticks as kernel


def twin(X, force, z, s):
    """Order, times, log-norms at stage starts, smallest distance of term 9, last cosine."""
    alpha, t = z / np.linalg.norm(z), 0.0
    pre = X @ alpha
    active = pre > 0
    order, times, logs, closest, cosine = [], [], [], np.inf, np.nan
    norms = np.linalg.norm(X, axis=1)
    while active.any():
        g = (active * force) @ X
        size = np.linalg.norm(g)
        unit = g / size
        p = alpha @ unit
        perp = alpha - p * unit
        q = np.linalg.norm(perp)
        cosine = p / np.linalg.norm(alpha)
        waiting = np.flatnonzero(active != (s > 0))
        if not len(waiting):
            break
        waits = s * (np.arcsinh(-(X[waiting] @ perp) / (X[waiting] @ unit) / q) - np.arcsinh(p / q))
        i = int(waiting[np.argmin(waits)])
        others = [k for k in range(len(X)) if k != i and k not in order[-1:]]
        before = np.abs(X[others] @ alpha) / np.linalg.norm(alpha)
        logs.append(np.log(np.linalg.norm(alpha)))
        alpha = perp + q * np.sinh(np.arcsinh(p / q) + s * waits.min()) * unit
        alpha -= (alpha @ X[i]) / (unit @ X[i]) * unit  # put it on the plane
        after = np.abs(X[others] @ alpha) / np.linalg.norm(alpha)
        closest = min(closest, *(np.minimum(before, after) / norms[others]), np.inf)
        t += waits.min() / size
        order.append(i)
        times.append(t)
        active[i] = s > 0
    return order, times, logs, closest, cosine


def run(X, force, Z, signs):
    gram = X @ X.T
    units = Z / np.linalg.norm(Z, axis=1)[:, None]
    P = units @ X.T
    active = P > 0
    alive = active.sum(axis=1)
    counts = np.where(signs > 0, len(X) - alive, alive) * (alive > 0)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    forces = (active * force) @ X
    size = np.linalg.norm(forces, axis=1)
    along = forces / np.where(size > 0, size, 1)[:, None]
    sines = np.linalg.norm(units - np.einsum("ij,ij->i", units, along)[:, None] * along, axis=1)
    total = offsets[-1]
    order, flat = np.zeros(total, np.int32), [np.zeros(total) for _ in range(3)]
    summary = np.zeros((len(Z), 6))
    kernel.crossings(
        P,
        (active * force) @ gram,
        kernel.Points(gram, force, 1 / np.linalg.norm(X, axis=1)),
        signs,
        sines,
        offsets,
        kernel.Trace(order, *flat, summary),
    )
    return offsets, order, *flat, summary


def points(rng, n, d, spread=0.3):
    return (np.eye(d)[0] + spread * rng.normal(size=(n, d)) / np.sqrt(d)) * rng.uniform(
        0.5, 2, (n, 1)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("d", [2, 5])
def test_kernel_equals_its_twin(seed, d):
    rng = np.random.default_rng(seed)
    X = points(rng, 13, d)
    assert (X @ X.T).min() > 0
    Z, signs = rng.normal(size=(12, d)), np.sign(rng.normal(size=12))
    force = rng.uniform(0.01, 2, 13)
    offsets, order, times, logs, _, summary = run(X, force, Z, signs)
    for j in range(12):
        mine = slice(offsets[j], offsets[j + 1])
        expected = twin(X, force, Z[j], signs[j])
        assert order[mine].tolist() == expected[0]
        assert times[mine] == pytest.approx(expected[1], rel=1e-11, abs=1e-13)
        assert logs[mine] == pytest.approx(expected[2], abs=1e-11)
        assert summary[j, kernel.CLOSEST] == pytest.approx(expected[3], rel=1e-9, abs=0.0)
        assert summary[j, kernel.DONE] == len(expected[0])
        assert summary[j, kernel.HORIZON] == np.inf
        if signs[j] > 0:
            assert summary[j, kernel.LAST_COSINE] == pytest.approx(
                expected[4], abs=1e-12, nan_ok=True
            )


def test_forces_of_very_different_size_do_not_drown_the_last_ones():
    # the heavy points leave first; what is left is 1e-12 of the sum they were subtracted from
    rng = np.random.default_rng(3)
    X = points(rng, 8, 3)
    force = np.where(np.arange(8) < 4, 1.0, 1e-12)
    z = np.array([[-0.1, 1.0, 0.2], [0.3, -0.4, 1.0], [1.0, 0.5, 1.5]])
    offsets, order, times, _, _, _ = run(X, force, z, -np.ones(3))
    for j in range(3):
        mine = slice(offsets[j], offsets[j + 1])
        expected = twin(X, force, z[j], -1.0)
        assert order[mine].tolist() == expected[0]
        assert times[mine] == pytest.approx(expected[1], rel=1e-9)
    assert times.max() > 1e9


def test_force_pushing_a_boundary_the_wrong_way_stops_the_neuron():
    X = np.array([[1.0, 0.0], [-0.5, 1.0], [1.0, 0.4]])
    _, _, _, _, _, summary = run(X, np.ones(3), np.array([[1.0, -0.1]]), np.ones(1))
    assert summary[0, kernel.HORIZON] == 0.0
    assert summary[0, kernel.DONE] == 0


def test_neuron_without_active_points_is_left_alone():
    X = points(np.random.default_rng(0), 4, 3)
    *_, summary = run(X, np.ones(4), -X[:1], np.ones(1))
    assert summary[0, kernel.DONE] == 0
    assert np.isnan(summary[0, kernel.FIRST_COSINE])
