"""The largest ReLU sum: brackets against brute force, relaxations above it, exact special cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpolators.checks import circle, relu_sums
from interpolators.checks import supremum_bound as reference
from reluflow.interpolators import supremum
from reluflow.interpolators.complementarity import complementarity_bound, relaxed_directions
from reluflow.interpolators.planar import largest_sum, line
from reluflow.interpolators.relaxation import supremum_bound
from reluflow.interpolators.supremum import ascend, bracket, violators


def problem(seed, n, r):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, r))
    return U / np.linalg.norm(U, axis=1)[:, None], rng.normal(size=n)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4))
def test_bracket_meets_the_projections_on_all_patterns(seed, n, r):
    U, lam = problem(seed, n, r)
    both = [bracket(U, lam), bracket(U, -lam)]
    assert all(side.is_exhaustive for side in both)
    assert max(side.upper for side in both) == pytest.approx(reference(U, lam), rel=1e-6)
    for sign, side in zip((1, -1), both, strict=True):
        assert side.upper - side.lower <= 1e-10 * np.abs(lam).sum()
        if side.lower > 0:
            assert np.linalg.norm(side.direction) == pytest.approx(1.0)
            attained = relu_sums(U, sign * lam, side.direction[None, :])[0]
            assert attained == pytest.approx(side.lower, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_bracket_in_the_plane_meets_a_fine_grid(seed):
    U, lam = problem(seed, 9, 2)
    grid = relu_sums(U, lam, circle(200_001)).max()
    assert -1e-14 <= bracket(U, lam).lower - grid <= 1e-4  # the peak may be a kink


def test_no_gain_means_zero():
    U, lam = problem(0, 4, 3)
    side = bracket(U, -np.abs(lam))
    assert side.lower == side.upper == 0.0


def test_violators_contain_the_largest_sum_and_only_sums_above_the_threshold():
    U, lam = problem(3, 12, 4)
    top = bracket(U, lam).lower
    found = violators(U, lam, 0.8 * top)
    values = relu_sums(U, lam, found)
    assert values.max() == pytest.approx(top, rel=1e-9)
    assert values.min() > 0.8 * top
    assert not len(violators(U, lam, 1.01 * top))


def test_ascent_never_beats_the_bracket_and_finds_it_from_enough_starts():
    U, lam = problem(5, 14, 3)
    starts = np.random.default_rng(0).normal(size=(200, 3))
    best = relu_sums(U, lam, ascend(U, lam, starts, 0.0)).max()
    assert best == pytest.approx(bracket(U, lam).upper, rel=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 7))
def test_relaxations_are_never_below_the_supremum(seed, n, r):
    U, lam = problem(seed, n, r)
    assert supremum_bound(U, lam, 0.0) >= bracket(U, lam).lower * (1 - 1e-12)


def test_relaxation_is_exact_for_orthonormal_points_and_z_matrices():
    rng = np.random.default_rng(1)
    lam = rng.normal(size=40)
    plus = np.linalg.norm(np.maximum(lam, 0))
    assert supremum_bound(np.eye(40), lam, 0.0) == pytest.approx(plus, rel=1e-12)
    X = 0.4 * np.eye(6) + 0.1  # positive correlations of one size: a Z-matrix inverse
    U = X / np.linalg.norm(X, axis=1)[:, None]
    inverse = np.linalg.inv(U @ U.T)
    assert inverse[~np.eye(6, dtype=bool)].max() < 0
    exact = bracket(U, lam[:6]).upper
    assert complementarity_bound(U, lam[:6], 0.0) == pytest.approx(exact, rel=1e-9)


def test_branching_makes_the_relaxation_exact_on_near_orthogonal_points():
    U, lam = problem(2, 10, 300)
    U = np.linalg.qr(U.T)[1].T  # coordinates in the span: square
    exact = bracket(U, lam)
    assert complementarity_bound(U, lam, exact.lower * (1 + 1e-10)) <= exact.upper * (1 + 1e-9)
    guess = relaxed_directions(U, lam)
    found = relu_sums(U, lam, ascend(U, lam, guess, 0.0)).max()
    assert found == pytest.approx(exact.lower, rel=1e-9)


def test_dependent_points_have_no_complementarity_bound():
    U = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert complementarity_bound(U, np.ones(2), 0.0) == np.inf
    assert len(relaxed_directions(np.ones((3, 2)), np.ones(3))) == 0


def test_too_many_patterns_give_a_safe_bracket(monkeypatch):
    U, lam = problem(7, 9, 9)
    exact = bracket(U, lam)
    monkeypatch.setattr(supremum, "enumerable", lambda _: False)
    side = bracket(U, lam)
    assert not side.is_exhaustive
    assert side.lower <= exact.upper * (1 + 1e-12)
    assert side.upper >= exact.lower * (1 - 1e-12)
    assert bracket(U, lam, relax=False).upper == np.inf


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_largest_sum_on_the_line_meets_a_fine_grid_and_the_bracket(seed, n):
    rng = np.random.default_rng(seed)
    points = line(np.sort(rng.normal(size=n)), np.ones(n)).points
    lam = rng.normal(size=n)
    top = largest_sum(points, lam)
    grid = np.abs(relu_sums(points, lam, circle(20_001))).max()
    assert -1e-12 <= top - grid <= 1e-5 * np.abs(lam).sum()
    assert top == pytest.approx(
        max(bracket(points, lam).upper, bracket(points, -lam).upper), rel=1e-9
    )
