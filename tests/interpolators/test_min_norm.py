"""Minimum norm: certificates by hand, a second formulation, invariances, bad and hard data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow import Dataset
from reluflow.errors import InputError
from reluflow.interpolators import min_norm
from reluflow.interpolators.polish import Atoms, fit_exactly, merge_parallel, reduce_count

from .checks import (
    circle,
    dictionary_value,
    outputs,
    relu_sums,
    rotation,
    squared_norm,
    supremum_bound,
)

SIZES = [(1, 1), (2, 1), (3, 2), (6, 2), (5, 3), (6, 6), (5, 9)]


def draw(seed, n, d, kind="normal"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if d == 1:  # one point a ray
        X = np.array([[1.0], [-1.0]])[:n] * rng.uniform(0.5, 2, size=(n, 1))
    if kind == "teacher":
        X = X + 2 * np.eye(1, d)
        return Dataset(X, np.maximum(X @ np.ones(d), 0.0))
    y = rng.normal(size=n) if kind == "normal" else rng.choice([-1.0, 1.0], n)
    return Dataset(X, y)


@pytest.mark.parametrize("kind", ["normal", "signs", "teacher"])
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_primal_dual_and_gap_by_hand(n, d, kind):
    data = draw(n + 10 * d, n, d, kind)
    best = min_norm(data)
    assert best.certified
    assert best.is_exhaustive
    size = np.abs(data.y).max()
    assert np.abs(outputs(best.network, data.X) - data.y).max() <= 1e-11 * max(size, best.value)
    assert best.value == pytest.approx(squared_norm(best.network), rel=1e-13)
    np.testing.assert_allclose(best.network.balance, 0.0, atol=1e-12 * best.value)
    assert best.network.width <= n
    # feasible on every pattern, and the bound is its dual value
    assert supremum_bound(data.X, best.dual) <= 1 + 1e-8
    assert best.lower_bound == pytest.approx(2 * best.dual @ data.y, rel=1e-12)
    assert 0 <= best.gap <= 1e-7 * best.value
    # complementarity: every neuron is where the dual sum attains its bound
    values = relu_sums(data.X, best.dual, best.network.directions) * best.network.signs
    np.testing.assert_allclose(values, 1.0, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_linear_program_over_directions_of_the_plane_comes_from_above(seed):
    data = draw(seed, 5, 2)
    best = min_norm(data)
    kinks = np.stack([data.X[:, 1], -data.X[:, 0]], axis=1)
    kinks /= np.linalg.norm(kinks, axis=1)[:, None]
    coarse, fine = (
        dictionary_value(data.X, data.y, np.concatenate([kinks, -kinks, circle(k)]))
        for k in (360, 5760)
    )
    assert best.value * (1 - 1e-9) <= fine <= coarse * (1 + 1e-9)
    assert fine == pytest.approx(best.value, rel=1e-6)


def test_column_generation_agrees_with_all_patterns_at_once(monkeypatch):
    data = draw(3, 7, 4)
    everything = min_norm(data)
    monkeypatch.setattr("reluflow.interpolators.columns._ALL_AT_ONCE", 0)
    generated = min_norm(data)
    assert generated.certified
    assert generated.value == pytest.approx(everything.value, rel=1e-7)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([(4, 2), (4, 3), (5, 5)]))
def test_invariances(seed, shape):
    data = draw(seed, *shape)
    rng = np.random.default_rng(seed)
    value = min_norm(data).value
    order = rng.permutation(data.n)
    factors = rng.uniform(0.2, 5.0, data.n)
    twins = {
        "permuted": Dataset(data.X[order], data.y[order]),
        "rotated": Dataset(data.X @ rotation(rng, data.d), data.y),
        "embedded": Dataset(data.X @ np.eye(data.d, data.d + 3), data.y),
        "along rays": Dataset(factors[:, None] * data.X, factors * data.y),
        "negated": Dataset(data.X, -data.y),
    }
    for name, twin in twins.items():
        assert min_norm(twin).value == pytest.approx(value, rel=2e-7), name
    assert min_norm(Dataset(data.X, 7 * data.y)).value == pytest.approx(7 * value, rel=2e-7)
    assert min_norm(Dataset(data.X[1:], data.y[1:])).value <= value * (1 + 2e-7)


def test_one_point_needs_twice_its_label_over_its_norm():
    assert min_norm(Dataset([[3.0, 4.0]], [-10.0])).value == pytest.approx(4.0, rel=1e-12)


def test_a_fitting_teacher_of_many_independent_directions_is_found():
    X = np.array([[1.0, 0.2, 0.1], [0.1, 1.0, 0.3], [0.2, 0.1, 1.0]])
    v = np.array([1.0, 1.0, 1.0])
    best = min_norm(Dataset(X, X @ v))
    assert best.value == pytest.approx(2 * np.sqrt(3), rel=1e-9)
    assert best.network.width == 1


@pytest.mark.parametrize("n", [20, 60])
def test_orthonormal_points_are_certified_at_any_size(n):
    y = np.random.default_rng(n).normal(size=n)
    best = min_norm(Dataset(np.eye(n), y))
    expected = 2 * (np.linalg.norm(np.maximum(y, 0)) + np.linalg.norm(np.minimum(y, 0)))
    assert best.certified
    assert best.value == pytest.approx(expected, rel=1e-7)


def test_beyond_enumeration_the_bound_is_safe_and_the_gap_is_told(monkeypatch):
    data = draw(1, 8, 8)
    exact = min_norm(data)
    monkeypatch.setattr("reluflow.interpolators.supremum.enumerable", lambda _: False)
    told = min_norm(data)
    assert not told.is_exhaustive
    assert told.lower_bound <= exact.value * (1 + 1e-9)
    assert told.value >= exact.lower_bound * (1 - 1e-9)
    assert told.certified == (told.gap <= 1e-7 * told.value)
    assert supremum_bound(data.X, told.dual) <= 1 + 1e-8
    assert np.abs(outputs(told.network, data.X) - data.y).max() <= 1e-10


def test_high_dimensional_labels_of_one_size_are_certified_beyond_enumeration():
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(36, 4000)), np.where(np.arange(36) < 18, 1.0, -1.0))
    best = min_norm(data)
    assert best.certified
    assert not best.is_exhaustive


def test_opposite_points_may_differ_by_a_linear_map_only():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    both = np.concatenate([X, -X])
    fine = min_norm(Dataset(both, np.append(X @ [1.0, 2.0], np.zeros(3))))
    assert fine.certified
    with pytest.raises(InputError, match=r"opposite points \(0, 3\), \(1, 4\), \(2, 5\)"):
        min_norm(Dataset(both, [1.0, 2.0, 4.0, 0.0, 0.0, 0.0]))
    # two pairs in the plane never contradict
    assert min_norm(Dataset(both[[0, 1, 3, 4]], [1.0, 2.0, 3.0, 4.0])).certified


def test_contradictions_are_named():
    with pytest.raises(InputError, match=r"points 1 and 2 lie on one ray .* Drop one"):
        min_norm(Dataset([[0.0, 1.0], [1.0, 1.0], [2.0, 2.0]], [0.0, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"points 0 and 1 differ by 1\.0e-12 in direction"):
        min_norm(Dataset([[1.0, 0.0], [1.0, 1e-12], [0.0, 1.0]], [1.0, -1.0, 1.0]))


def test_labels_of_very_different_size_are_never_certified_without_a_fit():
    best = min_norm(Dataset([[1e8, 0.0], [0.0, 1e-8]], [1.0, -1.0]))
    assert best.certified == (best.residual <= 1e-9)


def test_nearly_contradictory_points_still_give_honest_bounds():
    data = Dataset([[1.0, 0.0], [1.0, 1e-6], [0.0, 1.0]], [1.0, -1.0, 1.0])
    best = min_norm(data)
    assert best.lower_bound <= best.value
    assert best.value > 1e6


def test_zero_labels_are_constraints_too():
    X = np.array([[1.0, 0.0], [0.8, 0.6]])
    free = min_norm(Dataset(X[:1], [1.0])).value
    held = min_norm(Dataset(X, [1.0, 0.0]))
    assert held.certified
    assert held.value > free * (1 + 1e-6)
    assert held.value == pytest.approx(2 / 0.6, rel=1e-9)  # the kink sits on the second point


def test_known_network_is_an_upper_bound():
    rng = np.random.default_rng(0)
    net = rf.Network(rng.normal(size=3), rng.normal(size=(3, 4)))
    data = Dataset(rng.normal(size=(6, 4)), np.zeros(6))
    data = Dataset(data.X, net.predict(data.X))
    assert min_norm(data).lower_bound <= net.squared_norm


# ---- the pieces


def test_merging_adds_parallel_vectors_of_one_sign():
    W = np.array([[1.0, 0.0], [2.0, 1e-9], [0.0, 1.0], [1.0, 0.0], [1e-12, 0.0]])
    merged = merge_parallel(Atoms(W, np.array([1.0, 1.0, 1.0, -1.0, 1.0])), 1e-6)
    assert len(merged.W) == 3
    assert merged.cost == pytest.approx(5.0)


def test_exact_fit_moves_little():
    rng = np.random.default_rng(0)
    U, W = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    signs = np.array([1.0, -1.0, 1.0])
    z = signs @ np.maximum(W @ U.T, 0.0)
    near = Atoms(W + 1e-6 * rng.normal(size=W.shape), signs)
    exact = fit_exactly(U, z, near)
    assert exact.residual(U, z) <= 1e-14
    assert np.abs(exact.W - near.W).max() <= 1e-4


def test_fewer_neurons_fit_as_well_at_no_larger_cost():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(3, 2))
    many = Atoms(rng.normal(size=(9, 2)), rng.choice([-1.0, 1.0], 9))
    z = many.signs @ np.maximum(many.W @ U.T, 0.0)
    few = reduce_count(U, many)
    assert len(few.W) <= 3
    assert few.residual(U, z) <= 1e-12
    assert few.cost <= many.cost * (1 + 1e-12)
