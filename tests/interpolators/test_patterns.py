"""Activation patterns: counts, samples, degenerate arrangements, rays."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Dataset
from reluflow.interpolators.patterns import all_patterns, chamber_bound, enumerable, pattern_of
from reluflow.interpolators.rays import rays, span_coordinates


def unit(X):
    X = np.asarray(X, dtype=float)
    return X / np.linalg.norm(X, axis=1)[:, None]


def as_set(patterns):
    return {row.tobytes() for row in np.asarray(patterns, dtype=bool)}


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 6))
def test_general_position_has_the_known_number_of_patterns(seed, r, extra):
    rng = np.random.default_rng(seed)
    U = unit(rng.normal(size=(r + extra, r)))
    patterns = all_patterns(U)
    expected = 2 if r == 1 else chamber_bound(r + extra, r)
    assert len(as_set(patterns)) == len(patterns) == expected
    assert as_set(rng.normal(size=(500, r)) @ U.T > 0) <= as_set(patterns)
    # opposite directions have opposite patterns
    assert as_set(~patterns) == as_set(patterns)


@pytest.mark.parametrize(
    ("points", "count"),
    [
        ([v for v in product([-1, 0, 1], repeat=3) if v > (0, 0, 0)], 96),
        ([v for v in product([0, 1], repeat=4) if any(v)], 370),
        ([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], 12),
    ],
)
def test_degenerate_arrangements_have_every_sampled_pattern_and_no_other(points, count):
    U = unit(points)
    sampled = as_set(np.random.default_rng(0).normal(size=(200_000, U.shape[1])) @ U.T > 0)
    assert as_set(all_patterns(U)) == sampled
    assert len(sampled) == count


def test_opposite_and_equal_rows_share_their_hyperplane():
    U = unit([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
    patterns = all_patterns(U)
    assert len(patterns) == 8
    assert (patterns[:, 0] != patterns[:, 1]).all()
    assert (patterns[:, 3] == patterns[:, 4]).all()


def test_enumerable_knows_its_limits():
    assert enumerable(np.eye(16))
    assert not enumerable(np.eye(17))
    assert enumerable(np.ones((500, 2)))
    assert not enumerable(np.ones((60, 8)))


def test_pattern_of_a_direction_on_a_boundary_is_chosen():
    w = np.array([1.0, 0.0])
    np.testing.assert_array_equal(pattern_of(np.eye(2), w), [True, False])
    np.testing.assert_array_equal(pattern_of(np.eye(2), w, boundary=True), [True, True])


def test_span_coordinates_keep_products_and_find_the_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 9))
    coordinates, basis = span_coordinates(X)
    assert coordinates.shape == (4, 2)
    np.testing.assert_allclose(coordinates @ basis, X, atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-12)


def test_rays_merge_multiples_and_scale():
    problem = rays(Dataset([[3.0, 4.0], [0.0, 2.0], [6.0, 8.0]], [5.0, -8.0, 10.0]))
    np.testing.assert_array_equal(problem.first, [0, 1])
    np.testing.assert_allclose(problem.z * problem.scale, [1.0, -4.0])
    assert problem.scale == 4.0
