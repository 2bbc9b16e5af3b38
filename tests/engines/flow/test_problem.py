"""Planes of points, balances of neurons and coordinates, against plain linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.engines.flow.problem import Problem, planes_of, spectral_norm


def rebuilt(normals, owner, length):
    return length[:, None] * normals[owner]


def test_multiples_opposites_and_copies_share_a_plane():
    x, z = np.array([0.3, -0.7, 0.2]), np.array([1.0, 1.0, -2.0])
    X = np.array([x, 2 * x, z, -x, x, -0.1 * z, [0.0, 1.0, 0.0]])
    normals, owner, length = planes_of(X)
    assert owner.tolist() == [0, 0, 1, 0, 0, 1, 2]
    np.testing.assert_array_equal(np.sign(length), [1, 1, 1, -1, 1, -1, 1])
    np.testing.assert_allclose(rebuilt(normals, owner, length), X, rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, rtol=1e-15)


def test_a_normal_points_along_the_first_of_its_points():
    X = np.array([[-1.0, -1.0], [3.0, 3.0], [0.0, -2.0], [0.0, 5.0]])
    normals, owner, length = planes_of(X)
    assert owner.tolist() == [0, 0, 1, 1]
    assert np.sign(length).tolist() == [1, -1, 1, -1]
    np.testing.assert_allclose(normals, [[-np.sqrt(0.5), -np.sqrt(0.5)], [0.0, -1.0]])


@pytest.mark.parametrize("angle", [1e-3, 1e-8, 1e-12, 1e-14])
def test_nearly_parallel_points_keep_their_own_planes(angle):
    X = np.array([[1.0, 0.0], [1.0, angle], [-1.0, angle]])
    assert planes_of(X)[1].tolist() == [0, 1, 2]


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_points_are_grouped_as_by_comparing_all_pairs(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    base = rng.normal(size=(int(rng.integers(1, 6)), d)) * 10.0 ** rng.uniform(-5, 5)
    if rng.random() < 0.5:
        base = np.round(base / np.abs(base).max() * 3.0)  # a lattice: many parallel by chance
        base = base[np.abs(base).any(axis=1)]
    if not len(base):
        return
    which = rng.integers(len(base), size=12)
    factor = rng.choice([-3.0, -1.0, 1.0, 0.1, 7.3], size=12)
    X = factor[:, None] * base[which]
    normals, owner, length = planes_of(X)
    units = X / np.linalg.norm(X, axis=1)[:, None]
    for i in range(12):
        for k in range(12):
            gap = min(np.abs(units[i] - s * units[k]).max() for s in (1.0, -1.0))
            assert (owner[i] == owner[k]) == (gap < 1e-12)
    # planes are numbered as their first points appear
    firsts = [int(np.flatnonzero(owner == p)[0]) for p in range(len(normals))]
    assert firsts == sorted(firsts)
    np.testing.assert_allclose(rebuilt(normals, owner, length), X, rtol=1e-13, atol=1e-300)
    assert (length[firsts] > 0).all()


def test_grouping_takes_many_points_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40))
    X[1500:] = -2.0 * X[:1500]
    normals, owner, _ = planes_of(X)
    assert len(normals) == 1500
    np.testing.assert_array_equal(owner, np.tile(np.arange(1500), 2))


# ---------------------------------------------------------------------- problems


def problem_of(X, y, a, W, train="both", **scales):
    return Problem(rf.Dataset(X, y), rf.Network(a, W, **scales), rf.losses.Square(), train)


def test_both_marks_planes_with_points_on_either_side():
    X = [[1.0, 0.0], [0.0, 1.0], [-2.0, 0.0], [1.0, 1.0]]
    problem = problem_of(X, [1.0, 1.0, 1.0, 1.0], [1.0], [[1.0, 0.0]])
    assert problem.planes.both.tolist() == [True, False, False]
    np.testing.assert_array_equal(np.diag(problem.planes.gram), 1.0)
    np.testing.assert_allclose(problem.planes.gram, problem.planes.U @ problem.planes.U.T)


@pytest.mark.parametrize("scale", [0.0, -1e5])
def test_balances_are_known_in_logarithms(scale):
    a = np.array([2.0, 1.0, -1.0, 0.0, 1.0 + 1e-15])
    W = np.array([[1.0, 0.0], [2.0, 0.0], [0.6, 0.8], [1.0, 1.0], [1.0, 0.0]])
    problem = problem_of(np.eye(2), [1.0, 1.0], a, W, log_scale=scale)
    assert problem.sign.tolist() == [1.0, -1.0, 0.0, -1.0, 0.0]
    shift = 2.0 * scale - 2.0 * problem.units.hidden * np.log(2.0)
    known = problem.log_balance[[0, 1, 3]] - shift
    np.testing.assert_allclose(known, np.log([3.0, 3.0, 2.0]), atol=1e-9)
    assert (problem.log_balance[[2, 4]] == -np.inf).all()


def test_what_lies_outside_the_span_of_the_points_counts_as_balance():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(2, 5)), rng.normal(size=(3, 5))
    a = np.linalg.norm(W, axis=1)  # balanced as a whole
    problem = problem_of(X, [1.0, -1.0], a, W)
    inside = W @ np.linalg.pinv(X) @ X
    outside = np.linalg.norm(W, axis=1) ** 2 - np.linalg.norm(inside, axis=1) ** 2
    assert (problem.sign == 1.0).all()
    known = np.exp(problem.log_balance + 2.0 * problem.units.hidden * np.log(2.0))
    np.testing.assert_allclose(known, outside, rtol=1e-12)
    np.testing.assert_allclose(
        problem.planes.U @ problem.basis.T, X / np.linalg.norm(X, axis=1)[:, None], atol=1e-14
    )


def test_a_scale_of_the_output_layer_alone_enters_the_balance():
    problem = problem_of(
        np.eye(2), [1.0, 1.0], [1.0], [[1.0, 0.0]], log_scale=-3.0, log_scale_out=-2.0
    )
    expected = np.log(np.exp(-4.0) - np.exp(-6.0)) - 2.0 * problem.units.hidden * np.log(2.0)
    assert problem.sign[0] == 1.0
    assert problem.log_balance[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(600, 520), (520, 600)])
def test_the_largest_singular_value_of_a_large_matrix_is_that_of_all(shape):
    rng = np.random.default_rng(0)
    # alternating signs: the start of the iteration is orthogonal to the largest by hand
    wave = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    X = rng.normal(size=shape) + 0.2 * np.outer(wave, rng.normal(size=shape[1]))
    assert spectral_norm(X) == pytest.approx(np.linalg.svd(X, compute_uv=False)[0], rel=1e-10)
