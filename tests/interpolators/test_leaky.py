"""Least norm and largest margin of leaky networks: brute force, certificates by hand, limits."""

import numpy as np
import pytest

from reluflow import Dataset, Network, datasets
from reluflow.errors import InputError
from reluflow.geometry import kkt, margin
from reluflow.interpolators import max_margin, min_norm
from reluflow.interpolators.supremum import bracket, relu_sum, violators

from .checks import circle
from .exchange import bent, decay_bounds, fit_bounds, margin_bounds, peaks

SOME = [*range(6), *(pytest.param(k, marks=pytest.mark.long) for k in range(6, 60))]


def draw(seed):
    """At most 6 points in at most 3 dimensions, every third on a lattice (ties), and a slope."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    slope = float(rng.choice([0.01, 0.1, 0.3, 0.6, 0.9]))
    X = rng.normal(size=(n, d))
    if seed % 3 == 1:
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        X[~X.any(axis=1), 0] = 1.0
    net = Network(rng.normal(size=8), rng.normal(size=(8, d)), slope=slope)
    y = net.predict(X) if seed % 3 == 1 or d == 1 else rng.normal(size=n)
    return Dataset(X, y), slope


def with_labels(data):
    return Dataset(data.X, np.where(data.y > 0, 1.0, -1.0))


def is_between(value, bounds):
    lower, upper = bounds
    assert upper - lower <= 1e-8 * upper
    return value == pytest.approx((lower + upper) / 2, rel=1e-8)


@pytest.mark.parametrize("seed", SOME)
def test_the_least_norm_is_that_of_brute_force(seed):
    data, slope = draw(seed)
    best = min_norm(data, slope=slope)
    assert best.certified
    assert best.network.slope == slope
    assert is_between(best.value, fit_bounds(data.X, data.y, slope))


@pytest.mark.parametrize("seed", SOME)
def test_the_optimum_under_decay_is_that_of_brute_force(seed):
    data, slope = draw(seed)
    best = min_norm(data, decay=0.03, slope=slope)
    assert best.certified
    assert is_between(best.objective, decay_bounds(data.X, data.y, 0.03, 1 / data.n, slope))


@pytest.mark.parametrize("seed", SOME)
def test_the_largest_margin_is_that_of_brute_force(seed):
    data, slope = draw(seed)
    data = with_labels(data)
    best = max_margin(data, slope=slope)
    assert best.certified
    assert is_between(best.value, margin_bounds(data.X, data.y, slope))
    assert best.margin == pytest.approx(margin(data, best.network), rel=1e-10)
    assert kkt(data, best.network).eps_rel < 1e-6


@pytest.mark.parametrize("shape", [(5, 2), (6, 3), (4, 6)])
def test_primal_dual_and_gap_by_hand(shape):
    rng = np.random.default_rng(sum(shape))
    data = Dataset(rng.normal(size=shape), rng.normal(size=shape[0]))
    best = min_norm(data, slope=0.3)
    assert best.certified
    assert best.is_exhaustive
    net = best.network
    outputs = bent(data.X @ net.W.T, 0.3) @ net.a
    np.testing.assert_allclose(outputs, data.y, atol=1e-12)
    assert best.value == pytest.approx((net.a**2).sum() + (net.W**2).sum(), rel=1e-12)
    np.testing.assert_allclose(net.balance, 0.0, atol=1e-12 * best.value)
    assert net.width <= data.n
    assert peaks(data.X, best.dual, 0.3)[0] <= 1 + 1e-8
    assert best.lower_bound == pytest.approx(2 * best.dual @ data.y, rel=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_point_is_fitted_from_its_active_side(sign):
    data = Dataset([[3.0, 4.0]], [10.0 * sign])
    best = min_norm(data, slope=0.9)
    assert best.value == pytest.approx(4.0)
    assert (best.network.W @ data.X.T).min() > 0.0


def test_a_line_costs_two_neurons_or_one():
    """h(x) = x at 1 and -1: one leaky neuron gives (1, -alpha), a second adds what is missing."""
    data = Dataset([[1.0], [-1.0]], [1.0, -0.5])
    assert min_norm(data, slope=0.5).value == pytest.approx(2.0)
    assert min_norm(data).value == pytest.approx(3.0)
    # a phi(x) - b phi(-x): a + alpha b = 1, alpha a + b = 1/2
    a, b = np.linalg.solve([[1.0, 0.2], [0.2, 1.0]], [1.0, 0.5])
    assert min_norm(data, slope=0.2).value == pytest.approx(2 * (a + b))


def test_the_answer_is_continuous_in_the_slope():
    data = Dataset(np.random.default_rng(3).normal(size=(5, 2)), [1.0, -2.0, 0.5, 1.0, -1.0])
    assert min_norm(data, slope=1e-9).value == pytest.approx(min_norm(data).value, rel=1e-7)
    signs = with_labels(data)
    assert max_margin(signs, slope=1e-9).value == pytest.approx(max_margin(signs).value, rel=1e-7)


def test_points_on_a_line_with_a_bias():
    data = datasets.from_points([-1.0, 0.3, 0.9, 2.0], [1.0, -1.0, -1.0, 1.0])
    best = max_margin(data, slope=0.2)
    assert best.certified
    assert best.network.bias
    assert is_between(best.value, margin_bounds(data.X, data.y, 0.2))


@pytest.mark.parametrize("seed", [1, 9, 14])
def test_a_given_width_costs_no_less_than_any(seed):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.normal(size=(5, 2)), rng.choice([-1.0, 1.0], 5))
    free = max_margin(data, slope=0.3)
    values = []
    for width in range(1, free.network.width + 1):
        try:
            best = max_margin(data, width=width, slope=0.3)
        except InputError:
            continue
        assert best.certified
        assert best.network.width <= width
        assert (data.y * best.network.predict(data.X)).min() == pytest.approx(1.0, abs=1e-12)
        values.append(best.value)
    assert values[-1] == pytest.approx(free.value, rel=1e-7)
    assert (np.diff(values) <= 1e-7 * values[0]).all()


def test_one_neuron_has_the_value_of_a_fine_grid():
    data = Dataset([[1.0, 0.2], [0.6, -0.8], [-0.7, 0.4]], [1.0, 1.0, -1.0])
    directions = circle(100_000)
    lowest = max((s * data.y * bent(directions @ data.X.T, 0.3)).min(axis=1).max() for s in (1, -1))
    assert lowest > 0.0
    best = max_margin(data, width=1, slope=0.3)
    assert best.value == pytest.approx(2.0 / lowest, rel=1e-4)


# ---- sums of activations


@pytest.mark.parametrize("seed", range(8))
def test_brackets_meet_the_peaks_of_all_patterns(seed):
    rng = np.random.default_rng(seed)
    n, r = 5, 2 + seed % 2
    U = rng.normal(size=(n, r))
    U /= np.linalg.norm(U, axis=1)[:, None]
    lam = rng.normal(size=n)
    if not seed:  # without gains a leak is still positive
        U, lam = np.abs(U), -np.ones(n)
    found = bracket(U, lam, slope=0.3)
    assert found.is_exhaustive
    assert found.upper - found.lower <= 1e-12
    assert relu_sum(U, lam, found.direction[None], 0.3)[0] == pytest.approx(found.lower)
    both = max(found.upper, bracket(U, -lam, slope=0.3).upper)
    assert both == pytest.approx(peaks(U, lam, 0.3)[0], rel=1e-9)
    above = violators(U, lam, 0.5 * found.lower, 0.3)
    assert relu_sum(U, lam, above, 0.3).max() == pytest.approx(found.lower)


@pytest.mark.parametrize("seed", range(6))
def test_relaxations_are_never_below_the_supremum(seed, monkeypatch):
    from reluflow.interpolators import supremum

    rng = np.random.default_rng(seed)
    U = rng.normal(size=(6, 3))
    U /= np.linalg.norm(U, axis=1)[:, None]
    lam = rng.normal(size=6) if seed else -np.ones(6)
    exact = bracket(U, lam, slope=0.3).upper
    monkeypatch.setattr(supremum, "enumerable", lambda U: False)
    safe = bracket(U, lam, slope=0.3)
    assert safe.lower <= exact * (1 + 1e-12)
    assert safe.upper >= exact * (1 - 1e-12)


def test_column_generation_agrees_with_all_patterns_at_once(monkeypatch):
    from reluflow.interpolators import columns

    rng = np.random.default_rng(4)
    data = Dataset(rng.normal(size=(7, 3)), rng.normal(size=7))
    at_once = min_norm(data, slope=0.3)
    monkeypatch.setattr(columns, "_ALL_AT_ONCE", 0)
    by_columns = min_norm(data, slope=0.3)
    assert by_columns.certified
    assert by_columns.value == pytest.approx(at_once.value, rel=1e-7)


def test_bad_slopes_get_a_sentence():
    data = Dataset([[1.0, 0.0]], [1.0])
    for solve in (min_norm, max_margin):
        with pytest.raises(InputError, match="`slope` is 1; it must be below 1"):
            solve(data, slope=1.0)
    zero = min_norm(Dataset([[1.0, 0.0]], [0.0]), slope=0.3)
    assert zero.network.slope == 0.3
