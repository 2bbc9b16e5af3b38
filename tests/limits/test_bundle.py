"""The bundle limit against the integrated flow, the conserved products and its hypotheses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_flows import bundle_flow

import reluflow as rf
from reluflow.errors import InputError


def correlated(seed, n=4, d=3, m=5, size=1.0, spread=0.3, signs=None):
    rng = np.random.default_rng(seed)
    direction = np.eye(d)[0]
    X = direction + spread * rng.normal(size=(n, d))
    W = rng.normal(size=(m, d))
    s = np.ones(m) if signs is None else np.asarray(signs, dtype=float)
    data = rf.Dataset(X, size * X[:, 0], teacher=size * direction)
    return data, rf.Network(s * np.linalg.norm(W, axis=1), W)


def largest_angle(directions):
    return max(2 * np.arcsin(np.linalg.norm(u - v) / 2) for u in directions for v in directions)


# ------------------------------------------------------------------ against the flow


@pytest.mark.parametrize(("seed", "size"), [(4, 1.7), (9, 1.0)])
def test_limit_and_slope_match_the_flow_to_first_order_in_the_scale(seed, size):
    data, net = correlated(seed, size=size, signs=[1, 1, -1, 1, 1])
    assert data.gram.min() > 0
    limit = rf.limits.bundle(data, net)
    J = limit.positive
    assert len(J) >= 2
    ratios, gaps = [], []
    for lam in (1e-3, 1e-4):
        logs, directions = bundle_flow(data.X, data.y, net.W, net.signs, lam, 700.0)
        ratios.append(largest_angle(directions[J]) / (lam * limit.angle_slope))
        ends = np.exp(logs)[:, None] * directions
        gaps.append(np.linalg.norm(ends - limit.network.W))
        pair = largest_angle(directions[list(limit.pair)])
        assert pair == pytest.approx(largest_angle(directions[J]), rel=1e-6)
    assert ratios == pytest.approx([1.0, 1.0], abs=0.02)
    assert abs(ratios[1] - 1) < 0.3 * abs(ratios[0] - 1)
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.1)


def test_slope_equals_the_conserved_minkowski_products():
    data, net = correlated(11, n=8, d=4, m=30, spread=0.2)
    limit = rf.limits.bundle(data, net)
    late = limit.yardsticks.T0
    state = limit.yardsticks.at(late)
    J = limit.positive
    alpha = np.exp(state.log_norms[J])[:, None] * state.directions[J]
    sizes = np.linalg.norm(alpha, axis=1)
    # |alpha||beta| - alpha.beta = |alpha||beta| |alphabar - betabar|^2 / 2, without cancellation
    gaps = np.linalg.norm(state.directions[J][:, None] - state.directions[J], axis=2)
    products = 0.5 * np.outer(sizes, sizes) * gaps**2
    weights = limit.weights[J]
    slopes = np.sqrt(2 * products / np.outer(weights, weights))
    assert limit.angle_slope == pytest.approx(slopes.max(), rel=1e-9)
    first, second = np.unravel_index(np.argmax(slopes), slopes.shape)
    assert {int(J[first]), int(J[second])} == set(limit.pair)
    assert limit.log_max_angle(-50.0) == pytest.approx(np.log(limit.angle_slope) - 50.0)


# ------------------------------------------------------------------ facts


def test_limit_interpolates_with_minimal_rank_and_the_stated_norm():
    data, net = correlated(2, n=6, m=12, size=2.5, spread=0.2, signs=[1, -1] * 6)
    limit = rf.limits.bundle(data, net)
    assert limit.network.predict(data.X) == pytest.approx(data.y, rel=1e-13)
    assert limit.network.squared_norm == pytest.approx(5.0, rel=1e-13)
    assert limit.weights @ limit.weights == pytest.approx(2.5, rel=1e-13)
    assert np.linalg.matrix_rank(limit.network.W) == 1
    others = np.setdiff1d(np.arange(12), limit.positive)
    assert np.all(limit.network.a[others] == 0)
    assert np.all(limit.weights[limit.positive] > 0)


def test_scale_of_the_start_does_not_change_the_limit():
    data, net = correlated(2)
    one = rf.limits.bundle(data, net)
    deep = rf.limits.bundle(data, net.with_scale(-1e6))
    assert np.array_equal(one.weights, deep.weights)
    assert one.angle_slope == deep.angle_slope
    # lam = exp(log_scale) with z = W as given: ten times larger z means ten times larger slope
    larger = rf.limits.bundle(data, rf.Network(10 * net.a, 10 * net.W))
    assert larger.weights == pytest.approx(one.weights, rel=1e-13)
    assert larger.angle_slope == pytest.approx(10 * one.angle_slope, rel=1e-12)


def test_splitting_a_neuron_splits_its_weight():
    data, net = correlated(2)
    j = int(rf.limits.bundle(data, net).positive[0])
    W = np.vstack([net.W, net.W[j]])
    a = np.append(net.a, net.a[j])
    for k in (j, net.width):
        W[k], a[k] = W[k] / np.sqrt(2), a[k] / np.sqrt(2)
    base, split = rf.limits.bundle(data, net), rf.limits.bundle(data, rf.Network(a, W))
    assert split.weights[j] == pytest.approx(base.weights[j] / np.sqrt(2), rel=1e-12)
    assert np.delete(split.weights, [j, -1]) == pytest.approx(np.delete(base.weights, j), rel=1e-12)
    assert split.angle_slope == pytest.approx(base.angle_slope, rel=1e-12)


def test_one_neuron_has_no_angle():
    data, net = correlated(2, m=1)
    net = rf.Network(np.abs(net.a), data.X[:1] * net.a / np.linalg.norm(data.X[0]))
    limit = rf.limits.bundle(data, net)
    assert limit.angle_slope == 0.0
    assert limit.log_angle_slope == -np.inf
    assert limit.pair is None
    assert limit.network.W[0] == pytest.approx(np.eye(3)[0], abs=1e-13)


def test_weights_and_slopes_survive_exponents_beyond_the_range_of_floats():
    # a point almost orthogonal to the others is reached late: exp(|gamma| tau) is astronomical
    X = np.array([[1.0, 0.0], [1e-250, 1.0]])
    y = X @ [1.0, 1e-120]
    data = rf.Dataset(X, y)
    limit = rf.limits.bundle(data, rf.Network([1.0, 1.0], [[0.6, -0.8], [0.8, -0.6]]))
    assert limit.yardsticks.times[0][0] > 1000
    assert np.isfinite(limit.log_angle_slope)
    assert limit.weights @ limit.weights == pytest.approx(np.linalg.norm(limit.vector), rel=1e-12)


def test_points_that_do_not_span_see_the_projected_teacher():
    data, net = correlated(5, n=2, d=4, spread=0.2)
    limit = rf.limits.bundle(data, net)
    basis = np.linalg.qr(data.X.T)[0]
    assert limit.vector == pytest.approx(basis @ (basis.T @ data.teacher), abs=1e-12)
    assert limit.network.predict(data.X) == pytest.approx(data.y, rel=1e-12)


@pytest.mark.parametrize("kind", ["none", "network"])
def test_teacher_may_be_missing_or_a_network(kind):
    data, net = correlated(2, size=3.0)
    teacher = None if kind == "none" else rf.Network([1.5], [2.0 * np.eye(3)[0]])
    limit = rf.limits.bundle(rf.Dataset(data.X, data.y, teacher=teacher), net)
    assert limit.vector == pytest.approx(3.0 * np.eye(3)[0], abs=1e-12)


def test_angles_decide_whether_the_theorem_covers_the_limit():
    assert rf.limits.bundle(*correlated(2, spread=0.1)).proved
    X = np.array([[1.0, 0.9], [1.0, 1.2]])
    data = rf.Dataset(X, X[:, 0], teacher=[1.0, 0.0])
    limit = rf.limits.bundle(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert limit.angle == pytest.approx(np.arctan(1.2), rel=1e-14)
    assert not limit.proved


# ------------------------------------------------------------------ hypotheses that fail


def test_each_broken_hypothesis_is_named():
    data, net = correlated(2)
    X, v = data.X, np.eye(3)[0]
    with pytest.raises(InputError, match="J\\+ is empty"):
        rf.limits.bundle(data, rf.Network(-np.abs(net.a), net.W))
    with pytest.raises(InputError, match="not balanced"):
        rf.limits.bundle(data, rf.Network(1.1 * net.a, net.W))
    with pytest.raises(InputError, match=r"label y\[3\] is 0, not positive"):
        rf.limits.bundle(rf.Dataset(X, [1.0, 1, 1, 0]), net)
    with pytest.raises(InputError, match=r"not relu\(v\.x\) of one vector"):
        rf.limits.bundle(rf.Dataset(X, (X @ v) ** 2), net)
    with pytest.raises(InputError, match=r"not relu\(v\.x\) of one vector"):
        rf.limits.bundle(rf.Dataset(X, X @ v, teacher=[1.0, 0.5, 0.0]), net)
    wide = np.array([[1.0, 2.0, 0], [1.0, -2.0, 0], [1.0, 0, 0]])
    with pytest.raises(InputError, match="points 0 and 1 have inner product -3"):
        rf.limits.bundle(rf.Dataset(wide, wide @ v), net)


# ------------------------------------------------------------------ invariances


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.floats(0.2, 5.0))
def test_invariances(seed, factor):
    data, net = correlated(2, n=6, m=7, spread=0.2)
    rng = np.random.default_rng(seed)
    net = rf.Network(net.a, net.a[:, None] * np.linalg.qr(rng.normal(size=(7, 7)))[0][:, :3])
    net = rf.Network(np.linalg.norm(net.W, axis=1), net.W)
    base = rf.limits.bundle(data, net)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = rf.limits.bundle(rf.Dataset(data.X @ Q, data.y), rf.Network(net.a, net.W @ Q))
    assert pytest.approx(base.network.W, abs=1e-10) == turned.network.W @ Q.T
    assert turned.angle_slope == pytest.approx(base.angle_slope, rel=1e-8)
    order, points = rng.permutation(7), rng.permutation(6)
    mixed = rf.limits.bundle(
        rf.Dataset(data.X[points], data.y[points]), rf.Network(net.a[order], net.W[order])
    )
    assert mixed.weights == pytest.approx(base.weights[order], abs=1e-10)
    assert mixed.angle_slope == pytest.approx(base.angle_slope, rel=1e-8)
    # time only rescales when labels do: weights grow by the root, angles shrink by it
    larger = rf.limits.bundle(rf.Dataset(data.X, factor * data.y), net)
    assert larger.weights == pytest.approx(np.sqrt(factor) * base.weights, rel=1e-9)
    assert larger.angle_slope == pytest.approx(base.angle_slope / np.sqrt(factor), rel=1e-9)
