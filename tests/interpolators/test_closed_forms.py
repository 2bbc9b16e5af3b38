"""Interpolators against closed forms and against checks written with plain numpy."""

from itertools import combinations

import numpy as np
import pytest

import reluflow as rf
from reluflow import Dataset
from reluflow.errors import InputError
from reluflow.interpolators import (
    max_margin,
    min_norm,
    multi_relu,
    rank_versus_norm,
    single_relu,
    two_relu,
)

SIX = ([-2.0, -1.2, -0.3, 0.4, 1.1, 2.0], [1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
SIX_VALUE = 2 * (1 + 2 / 0.7 * np.sqrt(1.16) + 2 / 0.9 * np.sqrt(1.09))


def on_line(x, y):
    return Dataset(np.stack([x, np.ones(len(x))], axis=1), y)


def outputs(a, W, X):
    return np.maximum(X @ W.T, 0.0) @ a


def squared_norm(net):
    return float((net.a**2).sum() + (net.W**2).sum())


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


# ---- max_margin


@pytest.mark.parametrize(
    ("x", "y", "value"),
    [
        ([4.0, -4.0], [1.0, 1.0], 4 / np.sqrt(17)),
        ([0.2, -0.2], [1.0, 1.0], 2.0),
        ([0.2, -0.2], [-1.0, -1.0], 2.0),
        *[([x], [y], 2 / np.sqrt(1 + x**2)) for x in (0.0, 1.5, -3.0) for y in (1.0, -1.0)],
        (*SIX, SIX_VALUE),
    ],
)
def test_max_margin_closed_forms(x, y, value):
    data = on_line(x, y)
    best = max_margin(data)
    assert best.certified
    assert best.value == pytest.approx(value, rel=1e-8)
    assert best.lower_bound <= best.value
    assert best.margin == pytest.approx(1 / value, rel=1e-8)
    assert squared_norm(best.network) == pytest.approx(best.value, rel=1e-12)
    margins = data.y * outputs(best.network.a, best.network.W, data.X)
    assert margins.min() >= 1 - 1e-12


def test_six_points_have_the_decimal_value_of_the_specification():
    assert max_margin(on_line(*SIX)).value == pytest.approx(12.7946103, abs=1e-7)


def test_max_margin_multipliers_are_dual_feasible_on_a_grid():
    data = on_line(*SIX)
    best = max_margin(data)
    assert (best.multipliers >= 0).all()
    assert 2 * best.multipliers.sum() == pytest.approx(SIX_VALUE, rel=1e-7)
    angle = np.linspace(0, 2 * np.pi, 20001)
    sums = outputs(best.multipliers * data.y, data.X, np.stack([np.cos(angle), np.sin(angle)]).T)
    assert np.abs(sums).max() <= 1 + 1e-9


def test_max_margin_ignores_repetition_order_reflection_and_label_flip():
    x, y = map(np.array, SIX)
    for other in (on_line(x[::-1], y[::-1]), on_line(-x, y), on_line(x, -y)):
        assert max_margin(other).value == pytest.approx(SIX_VALUE, rel=1e-8)
    assert max_margin(on_line(np.tile(x, 2), np.tile(y, 2))).value == pytest.approx(SIX_VALUE)


def test_max_margin_refuses_bad_data():
    with pytest.raises(InputError, match=r"points 0 and 2 are both at x = 1 with opposite labels"):
        max_margin(on_line([1.0, 2.0, 1.0], [1.0, 1.0, -1.0]))
    with pytest.raises(InputError, match=r"label 1 is 0\.5; margins need labels 1 or -1"):
        max_margin(on_line([1.0, 2.0], [1.0, 0.5]))


# ---- min_norm


def check_min_norm(data, best):
    """A fit of its own norm, and a dual vector that is feasible on sampled directions."""
    size = np.abs(data.y).max()
    assert best.certified
    assert best.lower_bound <= best.value
    assert squared_norm(best.network) == pytest.approx(best.value, rel=1e-12)
    assert np.abs(outputs(best.network.a, best.network.W, data.X) - data.y).max() <= 1e-9 * size
    w = np.random.default_rng(1).normal(size=(20000, data.d))
    w = np.concatenate([w, data.X, -data.X, best.network.W])
    w = w[np.linalg.norm(w, axis=1) > 0]
    w /= np.linalg.norm(w, axis=1)[:, None]
    assert np.abs(outputs(best.dual, data.X, w)).max() <= 1 + 1e-9
    assert 2 * best.dual @ data.y == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 2), (5, 5), (4, 7)])
def test_min_norm_of_orthonormal_points(n, d, rotate):
    data = rf.datasets.orthonormal(n, d=d, rotate=rotate, seed=n)
    best = min_norm(data)
    positive, negative = np.maximum(data.y, 0), np.maximum(-data.y, 0)
    expected = 2 * (np.linalg.norm(positive) + np.linalg.norm(negative))
    assert best.value == pytest.approx(expected, rel=1e-8)
    check_min_norm(data, best)


@pytest.mark.parametrize(("n", "d"), [(4, 3), (6, 2), (5, 5)])
def test_min_norm_of_general_points(n, d):
    rng = np.random.default_rng(n)
    data = Dataset(rng.normal(size=(n, d)), rng.normal(size=n))
    best = min_norm(data)
    check_min_norm(data, best)
    turned = min_norm(Dataset(data.X @ rotation(rng, d), data.y))
    assert turned.value == pytest.approx(best.value, rel=1e-7)
    for factor in (-1.0, 3.0, 1e-4):
        scaled = min_norm(Dataset(data.X, factor * data.y))
        assert scaled.value == pytest.approx(abs(factor) * best.value, rel=1e-7)
        bigger = min_norm(Dataset(abs(factor) * data.X, data.y))
        assert bigger.value == pytest.approx(best.value / abs(factor), rel=1e-7)


def test_min_norm_of_zero_labels_is_zero():
    best = min_norm(Dataset([[1.0, 0.0], [0.5, 1.0]], [0.0, 0.0]))
    assert best.value == best.lower_bound == 0.0


def test_min_norm_lies_in_the_brackets_of_theorem_8():
    bends = []
    for seed in range(30):
        data = rf.datasets.cone(3, 3, half_angle=0.6, seed=seed)
        best, answer = min_norm(data), rank_versus_norm(data)
        tol = 1e-7
        assert best.certified
        assert 2 / max(answer.V, 1.0) - tol <= best.value <= 2 + tol
        assert best.value >= 2 * (data.X @ data.teacher).max() - tol
        if answer.min_rank_is_min_norm:
            assert best.value == pytest.approx(2.0, abs=tol)
        else:
            assert best.value <= answer.counterexample.squared_norm + tol
        bends.append(answer.V > 1)
    assert any(bends)
    assert not all(bends)


def test_min_norm_refuses_contradictions():
    with pytest.raises(InputError, match=r"points 0 and 2 lie on one ray"):
        min_norm(Dataset([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [1.0, 1.0, 3.0]))
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(InputError, match=r"label differences that no linear map gives"):
        min_norm(Dataset(np.concatenate([X, -X]), [1.0, 1.0, 5.0, 0.0, 0.0, 0.0]))


def test_points_that_agree_on_a_ray_count_once():
    once = min_norm(Dataset([[1.0, 0.0], [0.6, 0.8]], [1.0, -2.0]))
    twice = min_norm(Dataset([[1.0, 0.0], [0.6, 0.8], [3.0, 0.0]], [1.0, -2.0, 3.0]))
    assert twice.value == pytest.approx(once.value, rel=1e-8)


# ---- rank_versus_norm


@pytest.mark.parametrize("t", [0.05, 0.3, 0.6])
def test_negative_family_has_rank_and_norm_agree(t):
    data = rf.datasets.negative_family(3, t)
    answer = rank_versus_norm(data)
    assert answer.V < 1
    assert answer.M < 0
    assert answer.min_rank_is_min_norm is True
    assert answer.counterexample is None
    assert min_norm(data).value == pytest.approx(2.0, rel=1e-7)


@pytest.mark.parametrize(("d", "b"), [(3, 11.0), (3, 40.0), (5, 16.0)])
def test_positive_family_has_a_counterexample(d, b):
    data = rf.datasets.positive_family(d, b)
    answer = rank_versus_norm(data)
    assert answer.V > 1
    bound = (b - 1) / (b + 1) - np.sqrt(1 - 9 / 25 * b / (b + 1))
    assert answer.M - bound >= -1e-12
    assert answer.min_rank_is_min_norm is False
    net = answer.counterexample
    assert np.abs(outputs(net.a, net.W, data.X) - data.y).max() <= 1e-9 * data.y.max()
    assert squared_norm(net) < 2 - 1e-6
    assert squared_norm(net) == pytest.approx(net.squared_norm, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_two_dimensions_always_agree(seed):
    assert rank_versus_norm(rf.datasets.cone(2, 2, half_angle=0.7, seed=seed)).V < 1


def test_rank_versus_norm_refuses_what_the_theorem_does_not_cover():
    with pytest.raises(InputError, match=r"4 points in 3 dimensions"):
        rank_versus_norm(rf.datasets.cone(3, 4, half_angle=0.6, seed=0))
    with pytest.raises(InputError, match=r"the data has no teacher"):
        rank_versus_norm(Dataset(np.eye(2), [1.0, 1.0]))
    with pytest.raises(InputError, match=r"label 1 is 2 but the teacher gives 1"):
        rank_versus_norm(Dataset(np.eye(2), [1.0, 2.0], teacher=[1.0, 1.0]))


# ---- one neuron


def shortest_by_enumeration(X, y):
    """Smallest norm among feasible linear fits, over all sets of negatives held at zero."""
    plus, minus = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    best = np.inf
    for size in range(len(minus) + 1):
        for held in combinations(minus, size):
            S = np.concatenate([plus, np.array(held, dtype=int)])
            w = np.linalg.pinv(X[S]) @ np.maximum(y[S], 0.0)
            fits = np.abs(X[plus] @ w - y[plus]).max() < 1e-9 and (X[minus] @ w).max() < 1e-9
            best = min(best, w @ w) if fits else best
    return best


def one_neuron_data():
    for seed in range(4):
        yield rf.datasets.gaussian(7, 9, n_positive=3, seed=seed)
        yield rf.datasets.gaussian(8, 8, n_positive=2, seed=seed)
        rng = np.random.default_rng(seed)  # more points than dimensions, feasible by construction
        X, w = rng.normal(size=(9, 4)), rng.normal(size=4)
        kept = np.flatnonzero(X @ w > 0)[:2]
        X = np.concatenate([X[kept], X[X @ w < 0]])
        yield Dataset(X, np.where(X @ w > 0, X @ w, -1.0))


@pytest.mark.parametrize("data", list(one_neuron_data()))
def test_single_relu_against_enumeration_and_kkt(data):
    answer = single_relu(data)
    assert answer.certified
    assert answer.W.shape == (1, data.d)
    w, plus = answer.W[0], data.y > 0
    assert w @ w == pytest.approx(answer.value, rel=1e-12)
    assert answer.lower_bound <= answer.value
    assert answer.value == pytest.approx(shortest_by_enumeration(data.X, data.y), rel=1e-8)
    p = data.X @ w
    np.testing.assert_allclose(p[plus], data.y[plus], rtol=1e-8)
    assert p[~plus].max() <= 1e-8
    # stationarity on the active points; independent for these draws, so multipliers are unique
    active = plus | (p > -1e-8)
    b, *_ = np.linalg.lstsq(data.X[active].T, w, rcond=None)
    np.testing.assert_allclose(data.X[active].T @ b, w, atol=1e-8 * np.linalg.norm(w))
    assert b[~plus[active]].max(initial=0.0) <= 1e-8


def test_some_draws_hold_negatives_at_zero():
    held = [
        (np.abs(data.X @ single_relu(data).W[0])[data.y <= 0] < 1e-9).any()
        for data in one_neuron_data()
    ]
    assert any(held)


@pytest.mark.parametrize("size", [1e-12, 1e9])
def test_single_relu_scales_with_its_labels(size):
    X = np.array([[1.0, 0.2, 0.0], [0.1, 1.0, 0.3], [0.3, -0.2, 1.0]])
    y = np.array([1.0, 0.5, -1.0])
    one, many = single_relu(Dataset(X, y)), single_relu(Dataset(X, size * y))
    np.testing.assert_allclose(many.W, size * one.W, rtol=1e-10)
    assert many.certified


def test_rank_versus_norm_refuses_one_dimension():
    with pytest.raises(InputError, match="one dimension"):
        rank_versus_norm(Dataset([[2.0]], [2.0], teacher=[1.0]))


def test_single_relu_without_positive_labels_is_zero():
    assert single_relu(Dataset(np.eye(2), [-1.0, -2.0])).value == 0.0


def test_single_relu_refuses_contradictions():
    with pytest.raises(InputError, match=r"no neuron fits .* points \[0, 1\] contradict"):
        single_relu(Dataset([[1.0, 0.0], [2.0, 0.0]], [1.0, -1.0]))


# ---- fixed output signs


def check_fit(data, answer):
    fit = outputs(answer.signs, answer.W, data.X)
    np.testing.assert_allclose(fit, data.y, atol=1e-8 * np.abs(data.y).max())
    assert (answer.W**2).sum() == pytest.approx(answer.value, rel=1e-12)
    assert answer.lower_bound <= answer.value


@pytest.mark.parametrize("seed", range(3))
def test_two_relu_decouples_in_high_dimension(seed):
    data = rf.datasets.gaussian(8, 2000, seed=seed)
    answer = two_relu(data)
    check_fit(data, answer)
    assert answer.certified
    assert answer.W.shape == (2, data.d)
    np.testing.assert_array_equal(answer.signs, [1.0, -1.0])
    parts = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
    assert answer.value == pytest.approx(parts, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_two_relu_at_low_dimension_is_at_most_the_decoupled_cost(seed):
    data = rf.datasets.gaussian(6, 6, seed=seed)
    answer = two_relu(data)
    check_fit(data, answer)
    assert answer.certified
    parts = single_relu(data).value + single_relu(Dataset(data.X, -data.y)).value
    assert answer.value <= parts * (1 + 1e-9)
    # |w+| + |w-| is at least half the minimum norm over all widths
    assert answer.value >= (min_norm(data).lower_bound / 2) ** 2 / 2 * (1 - 1e-9)
    flipped = two_relu(Dataset(data.X, -data.y))
    assert flipped.value == pytest.approx(answer.value, rel=1e-7)


def test_two_relu_on_orthogonal_points_is_the_sum_of_squares():
    data = rf.datasets.orthonormal(6, rotate=True, seed=2)
    assert two_relu(data).value == pytest.approx(data.y @ data.y, rel=1e-9)


def test_two_relu_refuses_contradictions():
    with pytest.raises(InputError, match=r"points 0 and 1 lie on one ray"):
        two_relu(Dataset([[1.0, 0.0], [2.0, 0.0]], [1.0, -1.0]))


@pytest.mark.parametrize(("n", "signs"), [(3, [1, 1, -1, -1]), (4, [1, -1, 1]), (6, [1, 1, -1])])
def test_multi_relu_splits_evenly_in_high_dimension(n, signs):
    data = rf.datasets.gaussian(n, 1500, seed=1)
    answer = multi_relu(data, signs)
    check_fit(data, answer)
    assert answer.certified
    plus, minus = single_relu(data).value, single_relu(Dataset(data.X, -data.y)).value
    expected = plus / signs.count(1) + minus / signs.count(-1)
    assert answer.value == pytest.approx(expected, rel=1e-7)


def test_multi_relu_with_one_or_two_neurons_is_the_smaller_problem():
    data = rf.datasets.gaussian(5, 6, seed=0)
    assert multi_relu(data, [1, -1]).value == pytest.approx(two_relu(data).value, rel=1e-8)
    positive = Dataset(data.X, np.abs(data.y))
    assert multi_relu(positive, [1]).value == pytest.approx(single_relu(positive).value, rel=1e-9)


def test_multi_relu_refuses_signs_that_cannot_fit():
    data = Dataset(np.eye(2), [1.0, -1.0])
    with pytest.raises(InputError, match=r"1 labels are negative .* but no output sign is"):
        multi_relu(data, [1, 1])
    with pytest.raises(InputError, match=r"every entry must be 1 or -1"):
        multi_relu(data, [1, 2])
