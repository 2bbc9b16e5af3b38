"""Maximum margin on the line: certificates by hand, a second formulation, hard and bad data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Dataset, Network
from reluflow.errors import InputError
from reluflow.interpolators import max_margin, min_norm
from reluflow.interpolators.dictionary import grow_dictionary
from reluflow.interpolators.margin_program import solve_margin_program
from reluflow.interpolators.planar import arcs, largest_sum, line, suffix_prefix_sums

from .checks import circle, dictionary_value, outputs, relu_sums, squared_norm, supremum_bound


def on_line(x, y):
    return Dataset(np.stack([x, np.ones(len(x))], axis=1), y)


def draw(seed, n):
    rng = np.random.default_rng(seed)
    return on_line(np.round(rng.uniform(-3, 3, n), 1), np.ones(n)).X[:, 0], rng


def separable(seed, n):
    x, rng = draw(seed, n)
    x = np.unique(x)
    return on_line(rng.permutation(x), rng.choice([-1.0, 1.0], len(x)))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_primal_dual_and_gap_by_hand(seed, n):
    data = separable(seed, n)
    best = max_margin(data)
    assert best.certified
    margins = data.y * outputs(best.network, data.X)
    assert margins.min() == pytest.approx(1.0, abs=1e-12)
    assert best.value == pytest.approx(squared_norm(best.network), rel=1e-12)
    assert best.margin * best.value == pytest.approx(1.0, rel=1e-12)
    assert (best.multipliers >= 0).all()
    assert best.lower_bound == pytest.approx(2 * best.multipliers.sum(), rel=1e-12)
    assert supremum_bound(data.X, best.multipliers * data.y) <= 1 + 1e-7
    # complementary slackness
    assert np.abs(best.multipliers * (margins - 1)).max() <= 1e-5 * best.value


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_no_network_has_a_larger_margin(seed, n):
    data = separable(seed, n)
    bound = 1 / max_margin(data).lower_bound
    rng = np.random.default_rng(seed)
    nets = [
        Network(rng.normal(size=6), rng.normal(size=(6, 2))),
        min_norm(data).network,  # it fits the labels: margins all one
    ]
    for net in nets:
        assert (data.y * net.predict(data.X)).min() / net.squared_norm <= bound * (1 + 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_linear_program_over_directions_comes_from_above(seed):
    data = separable(seed, 6)
    kinks = np.stack([np.ones(data.n), -data.X[:, 0]], axis=1)
    kinks /= np.linalg.norm(kinks, axis=1)[:, None]
    table = np.concatenate([kinks, -kinks, circle(3600)])
    value = dictionary_value(data.X, data.y, table, margin=True)
    best = max_margin(data)
    assert best.value * (1 - 1e-9) <= value <= best.value * (1 + 1e-5)


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_invariances(seed):
    data = separable(seed, 6)
    value = max_margin(data).value
    rng = np.random.default_rng(seed)
    x, y = data.X[:, 0], data.y
    order = rng.permutation(data.n)
    for other in (on_line(x[order], y[order]), on_line(-x, y), on_line(x, -y)):
        assert max_margin(other).value == pytest.approx(value, rel=1e-7)
    fewer = on_line(x[1:], y[1:]) if data.n > 1 else data
    assert max_margin(fewer).value <= value * (1 + 1e-7)


def test_equal_labels_need_one_constant_or_two_slanted_neurons():
    for x in (0.1, 1.7):  # the constant neuron
        assert max_margin(on_line([x, -x], [1.0, 1.0])).value == pytest.approx(2.0, rel=1e-9)
    for x in (1.8, 4.0):  # a neuron along each point: cheaper beyond sqrt(3)
        value = 4 / np.sqrt(1 + x**2)
        assert max_margin(on_line([x, -x], [1.0, 1.0])).value == pytest.approx(value, rel=1e-9)


def test_repeated_points_share_one_multiplier():
    x, y = np.array([-1.0, 0.5, 0.5, 2.0]), np.array([1.0, -1.0, -1.0, 1.0])
    best, once = max_margin(on_line(x, y)), max_margin(on_line(x[[0, 1, 3]], y[[0, 1, 3]]))
    assert best.value == pytest.approx(once.value, rel=1e-9)
    assert best.multipliers[2] == 0.0
    np.testing.assert_allclose(best.multipliers[[0, 1, 3]], once.multipliers, rtol=1e-6)


def test_five_hundred_points():
    x = np.random.default_rng(0).uniform(-1, 1, 500)
    data = on_line(x, np.where(np.sin(6 * x) > 0, 1.0, -1.0))
    best = max_margin(data)
    assert best.certified
    assert best.gap <= 1e-9 * best.value
    assert (data.y * best.network.predict(data.X)).min() >= 1 - 1e-9


def test_random_labels_on_close_points_fall_back_on_linear_programs():
    rng = np.random.default_rng(0)
    data = on_line(np.sort(rng.uniform(-1, 1, 60)), rng.choice([-1.0, 1.0], 60))
    best = max_margin(data)
    assert best.certified
    assert best.value > 1e3
    points = line(data.X[:, 0], data.y)
    *_, (atoms, lam) = grow_dictionary(points)
    lam = lam / largest_sum(points.points, points.y * lam)
    assert 2 * (lam / points.norms).sum() <= best.value * (1 + 1e-7)
    assert 2 * atoms.cost == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("gap", [1e-6, 1e-9, np.finfo(float).eps])
def test_points_too_close_to_certify_are_separated_as_far_as_floats_go(gap):
    data = on_line([1.0, 1.0 + gap, 3.0], [1.0, -1.0, 1.0])
    best = max_margin(data)
    assert best.lower_bound <= best.value
    assert best.certified == (best.gap <= 1e-7 * best.value)
    rounding = 4 * np.finfo(float).eps * best.value
    assert (data.y * best.network.predict(data.X)).min() >= 1 - rounding


def test_a_failed_solver_does_not_break_the_answer(monkeypatch):
    from reluflow.interpolators import margin_program
    from reluflow.interpolators.cone_program import ConeSolution

    def fail(P, q, A, b, cones, tol):
        return ConeSolution("failed", np.full(len(q), np.nan), np.full(len(b), np.nan))

    monkeypatch.setattr(margin_program, "solve", fail)
    data = on_line([-1.0, 0.0, 2.0], [1.0, -1.0, 1.0])
    best = max_margin(data)
    assert best.solver_status == "failed"
    assert best.certified  # the linear programs found and proved it
    monkeypatch.undo()
    assert best.value == pytest.approx(max_margin(data).value, rel=1e-7)


def test_bad_data_gets_a_sentence():
    with pytest.raises(InputError, match=r"points 1 and 3 are both at x = 2 with opposite labels"):
        max_margin(on_line([1.0, 2.0, 3.0, 2.0], [1.0, 1.0, 1.0, -1.0]))
    with pytest.raises(InputError, match=r"label 0 is 0; margins need labels 1 or -1"):
        max_margin(on_line([1.0], [0.0]))


# ---- the pieces


def test_arcs_hold_exactly_the_directions_of_their_pattern():
    data = line(np.array([-1.0, 0.2, 2.0]), np.ones(3))
    ends = arcs(data.points)
    W = circle(997)
    active = W @ data.points.T > 0
    inside = (W @ ends.first.T >= 0) & (W @ ends.second.T >= 0)
    suffixes = [np.arange(3) >= k for k in range(3)]
    prefixes = [np.arange(3) <= k for k in range(2)]
    for k, pattern in enumerate([*suffixes, *prefixes]):
        np.testing.assert_array_equal(inside[:, k], (active == pattern).all(axis=1))


def test_pattern_sums_add_up():
    v = np.arange(6.0).reshape(3, 2)
    sums = suffix_prefix_sums(v)
    np.testing.assert_array_equal(sums, [v.sum(0), v[1:].sum(0), v[2], v[0], v[:2].sum(0)])


def test_the_cone_program_has_the_value_of_its_dual():
    data = line(np.array([-2.0, -0.5, 1.0]), np.array([1.0, -1.0, 1.0]))
    status, atoms, lam = solve_margin_program(data)
    assert status == "solved"
    assert atoms.cost == pytest.approx((lam / data.norms).sum(), rel=1e-7)
    grid = np.abs(relu_sums(data.points, data.y * lam, circle(9999))).max()
    assert grid <= 1 + 1e-7
