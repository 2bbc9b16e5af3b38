"""Classes of neurons, their projections, tangent kernel and outputs, against plain NumPy."""

import numpy as np
import pytest

from kernels.flow.scene import planes_at, planes_with, points_of
from reluflow.kernels.flow import classes
from reluflow.kernels.flow.forces import on_planes, pulls, spread
from reluflow.kernels.flow.planes import land


def random_modes(seed, m=40, size=4):
    rng = np.random.default_rng(seed)
    return rng.choice([0, 1, 2], size=(m, size), p=[0.4, 0.4, 0.2]).astype(np.int8)


def nobody(m):
    return np.zeros(m, dtype=bool)


@pytest.mark.parametrize("seed", range(8))
def test_classes_are_the_distinct_living_rows(seed):
    mode = random_modes(seed, m=int(3 + 30 * seed), size=1 + seed % 5)
    both = np.zeros(mode.shape[1], dtype=bool)
    both[0] = seed % 2
    fixed = np.random.default_rng(seed).random(len(mode)) < 0.1
    cid, first = classes.group(mode, both, fixed)
    alive = ((mode != 0) | both).any(axis=1) & ~fixed
    assert ((cid >= 0) == alive).all()
    assert len(first) == len(np.unique(mode[alive], axis=0))
    for j in np.flatnonzero(alive):
        np.testing.assert_array_equal(mode[j], mode[first[cid[j]]])


@pytest.mark.parametrize("d", [3, 6])
def test_lift_and_dual_project_out_the_planes_of_slides(d):
    rng = np.random.default_rng(d)
    mode = random_modes(5, m=30, size=5)
    X = rng.normal(size=(5, d))
    X[4] = X[1] - 2.0 * X[0]  # planes may depend on each other
    planes = planes_at(X)
    rows = classes.rows_of(mode, planes, nobody(30))
    c = rng.normal(size=(2, 5))
    g, _ = pulls(spread(*on_planes(c, planes), rows), rows, planes.U)
    several = 0
    for k in range(len(rows.face)):
        begin, end = rows.begin[k : k + 2]
        held = X[rows.plane[begin:end]]
        np.testing.assert_array_equal(rows.plane[begin:end], np.flatnonzero(rows.face[k] == 2))
        free = np.where(rows.face[k] == 1, c, 0.0) @ X
        w = rng.normal(size=d)
        on = w - (planes.U[rows.plane[begin:end]] @ w) @ rows.dual[begin:end]
        rank = np.linalg.matrix_rank(held) if len(held) else 0
        assert rows.free[k] == (rank == len(held))
        if len(held):
            free = free - (np.linalg.pinv(held) @ (held @ free.T)).T
            w = w - np.linalg.pinv(held) @ (held @ w)
        np.testing.assert_allclose(g[k], free, rtol=0, atol=1e-12)
        np.testing.assert_allclose(on, w, rtol=0, atol=1e-12)
        several += len(held) > 1
    assert several >= 2


def test_classes_on_a_ray_know_its_direction():
    planes = planes_at(np.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]]))
    mode = np.array([[1, 0, 0], [1, 1, 0], [2, 1, 1], [1, 1, 2]], dtype=np.int8)
    rows = classes.rows_of(mode, planes, nobody(4))
    assert rows.ray.tolist() == [True, False, True, True]
    np.testing.assert_allclose(np.abs(rows.axis[rows.cid[[0, 2, 3]]]), [[1, 0], [0, 1], [0.6, 0.8]])


def test_neurons_that_cannot_move_have_no_class():
    planes = planes_at(np.eye(2))
    rows = classes.rows_of(
        np.array([[1, 0], [1, 0], [0, 0]], np.int8), planes, np.array([True, False, False])
    )
    assert rows.cid.tolist() == [-1, 0, -1]


def settled_neurons(planes, seed, m=12):
    """Neurons in random rows, those that slide on their planes."""
    rng = np.random.default_rng(seed)
    mode = random_modes(seed, m=m, size=len(planes.U))
    a, w, weight = rng.normal(size=m), rng.normal(size=(m, 3)), rng.uniform(0.1, 2.0, m)
    for j in range(m):
        land(w[j], mode[j] >= 2, planes)
    return mode, a, w, weight, np.where(mode >= 2, 0.0, w @ planes.U.T)


def two_sided_planes(seed):
    rng = np.random.default_rng(seed)
    owner, length = [0, 1, 2, 3, 1, 1], [1.0, 2.0, 0.7, 1.3, -1.0, 0.5]
    return planes_with(rng.normal(size=(4, 3)), owner=owner, length=length)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_tangent_kernel_is_the_speed_of_the_outputs(hidden, seed):
    planes = two_sided_planes(seed)
    X, n = points_of(planes), len(planes.owner)
    mode, a, w, weight, z = settled_neurons(planes, 7 + seed)
    rows = classes.rows_of(mode, planes, nobody(12))
    kernel = classes.tangent_kernel(a, z, weight, rows, planes, hidden)
    c = np.random.default_rng(2).normal(size=n)
    own_mode = mode[:, planes.owner]
    active = np.where(planes.length > 0, own_mode == 1, own_mode == 0)
    expected = np.zeros(n)
    for j in np.flatnonzero(rows.cid >= 0):
        g = (c * active[j]) @ X
        held = planes.U[mode[j] == 2]
        g = g - np.linalg.pinv(held) @ (held @ g)
        slope_a = 0.0 if hidden else w[j] @ g
        expected += weight[j] * np.where(active[j], slope_a * (X @ w[j]) + a[j] ** 2 * (X @ g), 0.0)
    np.testing.assert_allclose(kernel @ c, expected, rtol=0, atol=1e-11)
    assert np.linalg.eigvalsh(kernel).min() >= -1e-12


@pytest.mark.parametrize("seed", range(4))
def test_outputs_count_each_point_where_its_neuron_is_active(seed):
    planes = two_sided_planes(seed)
    X = points_of(planes)
    mode, a, w, _, z = settled_neurons(planes, 20 + seed)
    for j in range(len(a)):  # rows that the weights have
        mode[j] = np.where(mode[j] >= 2, 2, w[j] @ planes.U.T > 0)
    sigma = np.random.default_rng(seed).normal(size=len(a))
    found, weight, h, most = classes.outputs(a, w, sigma, mode, planes)
    np.testing.assert_allclose(found, np.where(mode >= 2, 0.0, z), atol=1e-14)
    np.testing.assert_allclose(weight, np.exp(2 * sigma))
    parts = (weight * a)[:, None] * np.maximum(w @ X.T, 0.0)
    np.testing.assert_allclose(h, parts.sum(axis=0), atol=1e-12)
    assert most == pytest.approx(np.abs(parts).sum(axis=0).max(), rel=1e-12)


def test_rescaling_moves_powers_of_two_only():
    rng = np.random.default_rng(0)
    factor = 10.0 ** rng.integers(-8, 8, size=20)
    a, w, sigma = factor * rng.normal(size=20), factor[:, None] * rng.normal(size=(20, 3)), factor
    a1, w1, sigma1 = a.copy(), w.copy(), sigma.copy()
    a1[0], w1[0] = 0.0, 0.0
    classes.rescale(a1, w1, sigma1)
    top = np.maximum(np.abs(a1), np.abs(w1).max(axis=1))[1:]
    assert (top >= 0.25).all()
    assert (top < 8.0).all()
    ratio = a[1:] / a1[1:]
    assert (np.frexp(ratio)[0] == 0.5).all()
    np.testing.assert_allclose(sigma1[1:] - sigma[1:], np.log(ratio), rtol=0, atol=1e-8)
    assert sigma1[0] == sigma[0]
