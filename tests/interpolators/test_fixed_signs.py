"""Fixed output signs: enumeration, second solvers, certificates by hand, invariances, budgets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow import Dataset
from reluflow.errors import InputError
from reluflow.interpolators import min_norm, multi_relu, single_relu, two_relu
from reluflow.interpolators.cone_program import Cones, solve
from reluflow.interpolators.single_relu import solve_one

from .checks import outputs, rotation


def draw(seed, n, d, *, zeros=0):
    rng = np.random.default_rng(seed)
    y = rng.uniform(0.5, 2, n) * rng.choice([-1.0, 1.0], n)
    y[:zeros] = 0.0
    return Dataset(rng.normal(size=(n, d)), y)


def quadratic(E, f, A, b):
    """Shortest w with E w = f, A w >= b by the cone solver directly; inf if there is none."""
    matrix = np.concatenate([E, -A])
    answer = solve(
        np.eye(E.shape[1]), np.zeros(E.shape[1]), matrix, np.append(f, -b), Cones(len(f), len(b))
    )
    return answer.x @ answer.x if answer.status in ("solved", "almost_solved") else np.inf


def by_patterns(data, signs):
    """Minimum over every activation pattern of every neuron, one convex problem each."""
    n, d, m = data.n, data.d, len(signs)
    best = np.inf
    for bits in product([True, False], repeat=n * m):
        on = np.array(bits).reshape(n, m)
        E = np.einsum("ij,id->ijd", on * np.array(signs), data.X).reshape(n, m * d)
        A = np.zeros((n, m, m, d))
        for j in range(m):
            A[:, j, j] = np.where(on[:, j], 1.0, -1.0)[:, None] * data.X
        best = min(best, quadratic(E, data.y, A.reshape(n * m, m * d), np.zeros(n * m)))
    return best


# ---- one neuron


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (5, 5), (6, 9), (9, 40)]))
def test_single_relu_against_the_cone_solver_and_lemma_3(seed, shape):
    data = draw(seed, *shape)
    plus = data.y > 0
    answer = single_relu(data)
    assert answer.certified
    value = quadratic(data.X[plus], data.y[plus], -data.X[~plus], np.zeros((~plus).sum()))
    assert answer.value == pytest.approx(value, rel=1e-6, abs=1e-8)
    # with the points held at zero, w is the shortest linear fit of the clipped labels
    held = plus | (np.abs(data.X @ answer.W[0]) <= 1e-10)
    w = np.linalg.pinv(data.X[held]) @ np.maximum(data.y[held], 0.0)
    np.testing.assert_allclose(answer.W[0], w, atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_single_relu_multipliers_prove_the_bound(seed):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(6, 6))
    U /= np.linalg.norm(U, axis=1)[:, None]
    z = rng.normal(size=6)
    one = solve_one(U, z)
    assert (one.b[z <= 0] <= 0).all()
    g = U.T @ one.b
    assert 2 * one.b @ np.maximum(z, 0) - g @ g == pytest.approx(one.lower_bound, abs=1e-12)
    assert one.w @ one.w == pytest.approx(one.lower_bound, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(g, one.w, atol=1e-9)


def test_single_relu_with_dependent_points_uses_the_cone_solver():
    w = np.array([1.0, -2.0, 0.5])
    X = np.random.default_rng(0).normal(size=(12, 3))
    X = np.concatenate([X[X @ w > 0][:2], X[X @ w < 0]])
    answer = single_relu(Dataset(X, np.where(X @ w > 0, X @ w, -1.0)))
    assert answer.certified
    assert answer.value <= w @ w * (1 + 1e-9)
    twice = Dataset([[1.0, 0.0], [2.0, 0.0], [0.6, 0.8]], [1.0, 2.0, -1.0])
    assert single_relu(twice).value == pytest.approx(1 + 0.75**2)


def test_single_relu_zero_labels_are_inactive():
    data = Dataset([[1.0, 0.0], [0.6, 0.8]], [1.0, 0.0])
    assert single_relu(data).value == pytest.approx(1 + 0.75**2)


@pytest.mark.parametrize("c", [1e-3, 1e4])
def test_values_scale_with_the_square_of_the_labels(c):
    data = draw(2, 6, 8)
    scaled = Dataset(data.X, c * data.y)
    for solver in (single_relu, two_relu, lambda d: multi_relu(d, [1, 1, -1])):
        assert solver(scaled).value == pytest.approx(c**2 * solver(data).value, rel=1e-7)


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_invariances(seed):
    data = draw(seed, 5, 6)
    rng = np.random.default_rng(seed)
    order, turn = rng.permutation(5), rotation(rng, 6)
    factor = rng.uniform(0.2, 5.0, 5)
    for solver in (single_relu, two_relu):
        answer = solver(data)
        assert solver(Dataset(data.X[order], data.y[order])).value == pytest.approx(
            answer.value, rel=1e-7
        )
        turned = solver(Dataset(data.X @ turn, data.y))
        np.testing.assert_allclose(turned.value, answer.value, rtol=1e-7)
        along = solver(Dataset(factor[:, None] * data.X, factor * data.y))
        assert along.value == pytest.approx(answer.value, rel=1e-7)


# ---- two neurons


@pytest.mark.parametrize("zeros", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_two_relu_is_the_minimum_over_all_patterns(seed, zeros):
    data = draw(seed, 4, 4, zeros=zeros)
    answer = two_relu(data)
    assert answer.certified
    assert answer.value == pytest.approx(by_patterns(data, [1.0, -1.0]), rel=1e-6)
    np.testing.assert_allclose(outputs(answer.network, data.X), data.y, atol=1e-9)


def test_two_relu_can_beat_the_decoupled_solution():
    gains = []
    for seed in range(6):
        data = draw(seed, 5, 5)
        apart = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
        gains.append(two_relu(data).value / apart)
    assert min(gains) < 0.999
    assert max(gains) <= 1 + 1e-9


@pytest.mark.parametrize(("n", "d"), [(50, 60), (50, 3000)])
def test_two_relu_is_exact_with_fifty_points(n, d):
    answer = two_relu(draw(0, n, d))
    assert answer.certified
    assert answer.nodes <= 300


def test_two_relu_with_a_small_budget_keeps_valid_bounds():
    data = draw(0, 12, 12)
    exact, hasty = two_relu(data), two_relu(data, max_nodes=1)
    assert exact.certified
    assert exact.nodes > 1
    assert hasty.nodes == 1
    assert not hasty.certified
    assert hasty.lower_bound <= exact.value * (1 + 1e-9)
    assert hasty.value >= exact.value * (1 - 1e-9)
    np.testing.assert_allclose(outputs(hasty.network, data.X), data.y, atol=1e-8)


def test_two_relu_more_points_than_dimensions_can_fit_or_not():
    w = np.array([[1.0, 0.5], [-0.3, 1.0]])
    X = np.random.default_rng(0).normal(size=(7, 2))
    y = np.maximum(X @ w[0], 0) - np.maximum(X @ w[1], 0)
    answer = two_relu(Dataset(X, y))
    assert answer.certified
    assert answer.value <= (w**2).sum() * (1 + 1e-9)
    with pytest.raises(InputError, match=r"no positive and negative neuron together fit"):
        two_relu(Dataset(X, np.arange(7.0) - 3.5))


def test_two_relu_says_when_its_budget_left_the_question_open():
    rng = np.random.default_rng(6)
    data = Dataset(rng.normal(size=(5, 3)), rng.normal(size=5))
    with pytest.raises(InputError, match=r"in 1 nodes; whether one exists is open"):
        two_relu(data, max_nodes=1)
    with pytest.raises(InputError, match=r"`max_nodes` is 0; it must be at least 1"):
        two_relu(data, max_nodes=0)


def test_two_relu_names_points_that_contradict_each_other():
    with pytest.raises(InputError, match=r"points \[0, 1\] contradict each other"):
        two_relu(Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0]))


# ---- several neurons


@pytest.mark.parametrize(
    ("n", "d", "signs"),
    [(2, 2, [1, 1, -1]), (3, 3, [1, 1, -1]), (2, 3, [1, -1, 1, -1]), (2, 1, [1, 1])],
)
def test_multi_relu_is_the_minimum_over_all_patterns(n, d, signs):
    data = draw(n + d, n, d)
    if d == 1:
        data = Dataset([[1.0], [-2.0]], [1.0, 3.0])
    answer = multi_relu(data, signs)
    assert answer.certified
    assert answer.method == "all patterns"
    assert answer.value == pytest.approx(by_patterns(data, signs), rel=1e-6)
    np.testing.assert_allclose(outputs(answer.network, data.X), data.y, atol=1e-9)


def test_even_split_is_optimal_for_orthogonal_points_beyond_enumeration():
    y = np.array([1.0, -2.0, 3.0, -4.0, 5.0])
    answer = multi_relu(Dataset(np.eye(5), y), [1, 1, 1, -1, -1])
    assert answer.certified
    assert answer.value == pytest.approx(35 / 3 + 20 / 2, rel=1e-9)
    assert answer.nodes == 0


def test_even_split_can_fail_at_low_dimension():
    ratios = []
    for seed in range(5):
        data = draw(seed, 3, 3)
        even = single_relu(data).value / 2 + single_relu(Dataset(data.X, -data.y)).value / 1
        ratios.append(multi_relu(data, [1, 1, -1]).value / even)
    assert min(ratios) < 0.999
    assert max(ratios) <= 1 + 1e-8


def test_many_neurons_in_high_dimension_are_certified():
    answer = multi_relu(draw(0, 24, 3000), [1, 1, 1, -1, -1])
    assert answer.certified
    assert answer.method == "dual of the even split"


def test_beyond_enumeration_bounds_are_valid_and_told():
    data = draw(1, 7, 7)
    answer = multi_relu(data, [1, 1, -1])
    assert answer.lower_bound <= answer.value
    assert answer.certified == (answer.gap <= 1e-8 * answer.value)
    # two neurons are three with one at zero; three cannot cost more than the even split
    assert answer.value <= two_relu(data).value * 2
    assert answer.lower_bound >= (min_norm(data).lower_bound / 2) ** 2 / 3 * (1 - 1e-6)


def test_more_points_than_dimensions_are_fitted_with_enough_neurons():
    data = draw(0, 6, 3)
    answer = multi_relu(data, [1] * 6 + [-1] * 6)
    np.testing.assert_allclose(outputs(answer.network, data.X), data.y, atol=1e-9)
    assert answer.lower_bound <= answer.value
    with pytest.raises(InputError, match=r"no 3 neurons .* fit the 6 points"):
        multi_relu(data, [1, -1, -1])
    with pytest.raises(InputError, match=r"all patterns are infeasible"):
        multi_relu(Dataset([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 5.0]), [1, 1, 1])


def test_fewer_solutions_with_one_neuron():
    with pytest.raises(InputError, match=r"no 1 neurons .* points \[0, 1, 2\] contradict"):
        multi_relu(Dataset([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 5.0]), [1])
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    assert multi_relu(data, [1]).value == pytest.approx(data.y @ data.y, rel=1e-9)
    swapped = multi_relu(Dataset(data.X, -data.y), [-1])
    assert swapped.value == pytest.approx(data.y @ data.y, rel=1e-9)


def test_signs_are_checked():
    data = Dataset(np.eye(2), [1.0, -1.0])
    with pytest.raises(InputError, match=r"`signs` has shape \(\)"):
        multi_relu(data, 1)
    with pytest.raises(InputError, match=r"every entry must be 1 or -1"):
        multi_relu(data, [])
    with pytest.raises(InputError, match=r"1 labels are positive \(first: point 0, 1\)"):
        multi_relu(data, [-1, -1])
