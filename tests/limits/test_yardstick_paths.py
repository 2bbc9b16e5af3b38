"""Yardsticks against their equation, against 50-digit arithmetic, and by definition."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_flows import yardstick

import reluflow as rf
from reluflow.errors import InputError


def correlated(seed, n=5, d=3, m=6, spread=0.3, signs=None):
    rng = np.random.default_rng(seed)
    teacher = np.eye(d)[0]
    X = teacher + spread * rng.normal(size=(n, d)) / np.sqrt(d)
    W = rng.normal(size=(m, d))
    s = np.sign(rng.normal(size=m)) if signs is None else np.asarray(signs, dtype=float)
    data = rf.Dataset(X, X @ teacher, teacher=teacher)
    assert data.gram.min() > 0
    return data, rf.Network(s * np.linalg.norm(W, axis=1), W, -20.0)


# ------------------------------------------------------------------ against the equation


@pytest.mark.parametrize("seed", [0, 1])
def test_orders_times_and_states_match_the_integrated_equation(seed):
    data, net = correlated(seed, n=6, m=9)
    sticks = rf.limits.yardsticks(data, net)
    assert sticks.valid
    assert sum(len(order) for order in sticks.order) > 6
    for j in range(net.width):
        end = min(sticks.T0, 12.0)
        order, times, pieces = yardstick(data.X, data.y, net.mantissa.W[j], net.signs[j], end)
        before = sticks.times[j] < end
        assert sticks.order[j][before].tolist() == order
        assert sticks.times[j][before] == pytest.approx(times, abs=1e-9)
        for start, stop, solution in pieces:
            t = 0.3 * start + 0.7 * stop
            alpha = solution(t)
            state = sticks.at(t)
            size = np.linalg.norm(alpha)
            assert state.directions[j] == pytest.approx(alpha / size, abs=1e-9)
            assert state.log_norms[j] == pytest.approx(np.log(size), abs=1e-9)


def exact_state(X, y, z, s, t):
    """State at time t and crossings before it, with 50 digits and the asinh formulas."""
    with mpmath.workdps(50):
        n, d = X.shape
        points = [mpmath.matrix(row.tolist()) for row in X]
        alpha, now, crossings = mpmath.matrix(z.tolist()), mpmath.mpf(0), []
        active = [mpmath.fdot(x, alpha) > 0 for x in points]
        while any(active):
            g = mpmath.matrix([0] * d)
            for x, label, on in zip(points, y, active, strict=True):
                if on:
                    g += x * (mpmath.mpf(float(label)) / n)
            size = mpmath.norm(g)
            unit = g / size
            p = mpmath.fdot(alpha, unit)
            perp = alpha - p * unit
            q = mpmath.norm(perp)
            waits = [
                (s * (mpmath.asinh(-mpmath.fdot(perp, x) / mpmath.fdot(unit, x) / q)
                      - mpmath.asinh(p / q)) / size, i)
                for i, x in enumerate(points)
                if active[i] != (s > 0)
            ]  # fmt: skip
            wait, i = min(waits, default=(mpmath.inf, -1))
            step = min(wait, t - now)
            alpha = perp + q * mpmath.sinh(mpmath.asinh(p / q) + s * size * step) * unit
            now += step
            if now >= t:
                break
            crossings.append((i, float(now)))
            active[i] = s > 0
        size = mpmath.norm(alpha)
        return [float(v / size) for v in alpha], float(mpmath.log(size)), crossings


@pytest.mark.parametrize("t", [0.5, 40.0, 3000.0])
def test_states_match_fifty_digits_also_where_norms_overflow(t):
    data, net = correlated(2, m=5, signs=[1, 1, -1, -1, 1])
    sticks = rf.limits.yardsticks(data, net)
    state, logs = sticks.at(t), sticks.log_norms(t)
    for j in range(net.width):
        direction, log_norm, crossings = exact_state(
            data.X, data.y, net.mantissa.W[j], int(net.signs[j]), t
        )
        assert state.directions[j] == pytest.approx(direction, abs=1e-13)
        assert logs[j] == pytest.approx(log_norm, rel=1e-13, abs=1e-13)
        before = sticks.times[j] <= t
        assert sticks.order[j][before].tolist() == [i for i, _ in crossings]
        assert sticks.times[j][before] == pytest.approx([u for _, u in crossings], rel=1e-13)
    if t == 3000.0:
        assert logs.max() > 709


def test_start_next_to_a_boundary_keeps_its_relative_accuracy():
    # the first crossing is 1e-12 away: a difference of two asinh would be mostly rounding
    data = rf.Dataset([[1.0, 0.5], [1.0, -0.25]], [1.0, 1.0], teacher=[1.0, 0.0])
    z = np.array([0.25 - 2.0**-40, 1.0])
    sticks = rf.limits.yardsticks(data, rf.Network([np.linalg.norm(z)], [z]))
    _, _, ((point, time),) = exact_state(data.X, data.y, z, 1, 1.0)
    assert sticks.order[0].tolist() == [point]
    assert 0 < time < 3e-12
    assert sticks.times[0][0] == pytest.approx(time, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("angle", [1e-3, 1e-6])
def test_negative_neuron_almost_along_the_force_is_resolved(angle):
    data, _ = correlated(5)
    gamma = data.X.T @ data.y / data.n
    side = np.cross(gamma, [0.0, 0.6, 0.8])
    z = gamma / np.linalg.norm(gamma) + angle * side / np.linalg.norm(side)
    sticks = rf.limits.yardsticks(data, rf.Network([-np.linalg.norm(z)], [z]))
    _, _, crossings = exact_state(data.X, data.y, z, -1, 200.0)
    # the angle of z is known to 1e-16 / angle only
    assert sticks.order[0].tolist() == [i for i, _ in crossings]
    assert sticks.times[0] == pytest.approx([t for _, t in crossings], rel=1e-14 / angle)
    for t in (0.5 * sticks.times[0][0], 0.99 * sticks.times[0][0]):
        direction, log_norm, _ = exact_state(data.X, data.y, z, -1, t)
        assert sticks.at(t).directions[0] == pytest.approx(direction, abs=1e-14 / angle)
        assert sticks.log_norms(t)[0] == pytest.approx(log_norm, abs=1e-14 / angle)
    sine = angle / np.hypot(1.0, angle)
    assert sticks.terms["8 sine of J- to force"] == pytest.approx(sine, rel=1e-15 / angle, abs=0.0)


def test_negative_neuron_exactly_along_the_force_shrinks_for_ever():
    data = rf.Dataset([[1.0, 0.5], [1.0, -0.5]], [1.0, 1.0], teacher=[1.0, 0.0])
    sticks = rf.limits.yardsticks(data, rf.Network([-2.0], [[2.0, 0.0]]))
    logs = sticks.log_norms([0.0, 2.0, 900.0])[:, 0]
    assert logs == pytest.approx(np.log(2) - np.array([0, 2, 900.0]), rel=1e-14)
    assert len(sticks.times[0]) == 0
    assert sticks.at(900.0).directions[0].tolist() == [1.0, 0.0]
    assert sticks.terms["8 sine of J- to force"] == 0.0
    assert sticks.delta == 0.0


def test_states_are_continuous_and_on_the_boundary_at_crossings():
    data, net = correlated(7, n=40, d=6, m=30)
    sticks = rf.limits.yardsticks(data, net)
    for j in range(0, net.width, 5):
        for i, t in list(zip(sticks.order[j], sticks.times[j], strict=True))[::7]:
            assert abs(sticks.at(t).directions[j] @ data.X[i]) < 1e-12
            left, right = sticks.at(t * (1 - 1e-15)), sticks.at(t)
            assert left.directions[j] == pytest.approx(right.directions[j], abs=1e-12)
            assert left.log_norms[j] == pytest.approx(right.log_norms[j], abs=1e-12)


def test_all_points_end_active_for_plus_and_inactive_for_minus():
    data, net = correlated(8, n=20, m=25)
    sticks = rf.limits.yardsticks(data, net)
    pre = data.X @ sticks.at(sticks.T0).directions.T
    assert np.all(pre[:, sticks.positive] > 0)
    assert np.all(pre[:, sticks.negative] <= 1e-14)
    active = (data.X @ net.mantissa.W.T > 0).sum(axis=0)
    for j in sticks.positive:
        assert sorted(sticks.order[j]) == np.flatnonzero(data.X @ net.mantissa.W[j] <= 0).tolist()
    for j in sticks.negative:
        assert len(sticks.order[j]) == active[j]
    still = np.setdiff1d(np.arange(net.width), np.union1d(sticks.positive, sticks.negative))
    assert np.all(active[still] == 0)
    assert len(still)
    assert sticks.at(5.0).directions[still] == pytest.approx(net.directions[still], abs=1e-15)
    assert max(t[-1] for t in sticks.times if len(t)) + 1 == sticks.T0


# ------------------------------------------------------------------ delta, Delta, the bound


def test_terms_of_delta_by_their_definitions():
    data, net = correlated(3, n=4, d=3, m=14)
    sticks = rf.limits.yardsticks(data, net)
    X, n, d = data.X, data.n, data.d
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    eta, U = np.linalg.eigh(X.T @ X / n)
    zbar = net.mantissa.W / np.linalg.norm(net.mantissa.W, axis=1)[:, None]
    forces = ((net.mantissa.W @ X.T > 0) * data.y) @ X / n

    def cosine(j):
        return zbar[j] @ forces[j] / np.linalg.norm(forces[j])

    distances, waits = [], []
    for j in [*sticks.positive, *sticks.negative]:
        tau, order = np.append(0.0, sticks.times[j]), sticks.order[j]
        waits += list(np.diff(tau))
        for stage in range(len(order)):
            skip = {int(order[stage])} | ({int(order[stage - 1])} if stage else set())
            keep = [i for i in range(n) if i not in skip]
            for t in np.linspace(tau[stage], tau[stage + 1], 21):
                distances.append(np.abs(unit[keep] @ sticks.at(t).directions[j]).min())
    expected = [
        np.linalg.norm(X, axis=1).min(),
        (unit @ unit.T).min(),
        (d - 1) * np.diff(np.sqrt(eta)).min(),
        np.sqrt(eta[0]),
        np.sqrt(d) * np.abs(U[0]).min(),
        np.linalg.norm(net.mantissa.W, axis=1).min(),
        min(cosine(j) for j in sticks.positive),
        min(np.sqrt(1 - cosine(j) ** 2) for j in sticks.negative),
        min(distances),
        min(zbar[j] @ unit[sticks.order[j][0]] for j in sticks.negative),
        min(waits),
    ]
    assert list(sticks.terms.values()) == pytest.approx(expected, rel=1e-9)
    assert sticks.delta == min(sticks.terms.values()) == sticks.terms[sticks.smallest_term]
    largest = max(
        np.linalg.norm(X, axis=1).max(), np.linalg.norm(net.mantissa.W, axis=1).max(), 1.0
    )
    assert sticks.Delta == pytest.approx(largest, rel=1e-14)


def test_bound_on_the_scale():
    data, net = correlated(3, n=4, d=3, m=8)
    sticks = rf.limits.yardsticks(data, net)
    inner = np.log(8) + 9 * 4 * sticks.Delta**2 / sticks.delta**3 * np.log(4)
    assert sticks.log_scale_bound(0.2) == pytest.approx(-3 / 0.2 * inner, rel=1e-13)
    assert sticks.T1(0.25) == pytest.approx(0.25 * 20 / np.linalg.norm(sticks.gamma))
    for eps in (0.0, 0.26, np.nan):
        with pytest.raises(InputError, match="`eps`"):
            sticks.log_scale_bound(eps)


def test_delta_depends_on_the_split_of_the_scale_and_the_paths_do_not():
    data, net = correlated(4)
    other = rf.Network(net.mantissa.a * 0.01, net.mantissa.W * 0.01, -20.0 + np.log(100))
    one, two = rf.limits.yardsticks(data, net), rf.limits.yardsticks(data, other)
    assert two.terms["6 neuron norm"] == pytest.approx(0.01 * one.terms["6 neuron norm"])
    assert two.log_norms(3.0) + two.log_scale == pytest.approx(one.log_norms(3.0) - 20.0, abs=1e-12)
    assert np.concatenate(two.times) == pytest.approx(np.concatenate(one.times), rel=1e-12)


def test_log_scales_of_single_neurons_are_factors_of_the_common_one():
    data, net = correlated(4, m=3)
    split = rf.Network(*net.mantissa, [-20.0, -21.0, -22.5])
    sticks = rf.limits.yardsticks(data, split)
    assert sticks.log_scale == -20.0
    shift = sticks.log_norms(0.0) - rf.limits.yardsticks(data, net).log_norms(0.0)
    assert shift == pytest.approx([0.0, -1.0, -2.5], abs=1e-13)


def test_single_point_has_a_finite_bound():
    data = rf.Dataset([[2.0, 1.0]], [1.0], teacher=[0.5, 0.0])
    sticks = rf.limits.yardsticks(data, rf.Network([1.0], [[1.0, 0.0]]))
    assert sticks.delta == 0.0  # one point does not span the plane
    assert sticks.log_scale_bound(0.25) == 0.0


def test_unknown_teacher_makes_delta_unknown():
    data, net = correlated(0)
    bent = rf.Dataset(data.X, data.y**2)
    sticks = rf.limits.yardsticks(bent, net)
    assert sticks.valid
    assert np.isnan(sticks.terms["5 teacher along eigenvectors"])
    assert np.isnan(sticks.delta)
    unnamed = rf.limits.yardsticks(rf.Dataset(data.X, data.y), net)
    assert unnamed.delta == pytest.approx(rf.limits.yardsticks(data, net).delta, rel=1e-9)


# ------------------------------------------------------------------ broken hypotheses


def test_repeated_points_tie_and_void_the_bound():
    X = np.array([[1.0, 0.3], [1.0, -0.2], [1.0, -0.2]])
    data = rf.Dataset(X, X[:, 0], teacher=[1.0, 0.0])
    sticks = rf.limits.yardsticks(data, rf.Network([1.0], [[0.0, 1.0]]))
    assert sticks.ties == ((0, 1, 2),)
    assert sticks.valid
    assert sticks.times[0][0] == pytest.approx(sticks.times[0][1], abs=1e-13)
    assert sticks.terms["11 time between crossings"] < 1e-13
    assert rf.limits.yardsticks(*correlated(1, n=30, m=20)).ties == ()


def test_start_on_a_boundary_crosses_at_once_and_has_delta_zero():
    data = rf.Dataset([[1.0, 0.0], [1.0, 0.5]], [1.0, 1.0], teacher=[1.0, 0.0])
    plus = rf.limits.yardsticks(data, rf.Network([1.0], [[0.0, 1.0]]))
    assert plus.order[0].tolist() == [0]
    assert plus.times[0].tolist() == [0.0]
    assert plus.delta == 0.0
    assert plus.log_scale_bound(0.25) == -np.inf
    minus = rf.limits.yardsticks(data, rf.Network([-1.0], [[0.0, 1.0]]))
    assert minus.order[0].tolist() == [1]
    assert minus.delta == 0.0


def test_negative_inner_products_are_reported_not_answered():
    X = np.array([[1.0, 0.0], [-0.5, 1.0], [1.0, 0.4]])
    data = rf.Dataset(X, [1.0, 1.0, 1.0])
    net = rf.Network([1.0, 1.0], [[0.8, 0.6], [0.6, -0.8]])
    sticks = rf.limits.yardsticks(data, net)
    assert not sticks.valid
    assert "inner product -0.5" in sticks.reason
    assert "neuron 1 at t = 0" in sticks.reason
    # neuron 0 sees all three points and their sum pushes each of them up: nothing is wrong there
    assert sticks.horizon.tolist() == [np.inf, 0.0]
    assert sticks.delta == 0.0
    sticks.at(0.0)
    with pytest.raises(InputError, match="closed form of neuron 1 ends at 0"):
        sticks.at(0.1)


def test_crossings_before_the_hypothesis_fails_are_kept():
    # the third label is negative: once its point is active it is pushed back at once
    X = np.array([[1.0, 0.3], [1.0, -0.1], [1.0, -0.5]])
    data = rf.Dataset(X, [1.0, 1.0, -5.0])
    z = np.array([0.05, 1.0])
    sticks = rf.limits.yardsticks(data, rf.Network([np.linalg.norm(z)], [z]))
    assert not sticks.valid
    assert "the smallest label is -5" in sticks.reason
    order, times, _ = yardstick(X, data.y, z, 1.0, sticks.horizon[0] * 0.999999)
    assert sticks.order[0].tolist() == [*order, 2]
    assert sticks.times[0][:-1] == pytest.approx(times, abs=1e-9)
    assert sticks.horizon[0] == sticks.times[0][-1]


def test_unbalanced_or_mismatched_networks_are_refused():
    data, net = correlated(0)
    with pytest.raises(InputError, match=r"not balanced: log\|a\| - log\|w\| is .* at neuron 0"):
        rf.limits.yardsticks(data, rf.Network(2 * net.mantissa.a, net.mantissa.W))
    with pytest.raises(InputError, match="takes 2 inputs"):
        rf.limits.yardsticks(data, rf.Network([1.0], [[1.0, 0.0]]))
    with pytest.raises(InputError, match="`data` is a ndarray"):
        rf.limits.yardsticks(data.X, net)
    with pytest.raises(InputError, match="`net` is a Dataset"):
        rf.limits.yardsticks(data, data)
    with pytest.raises(InputError, match="`t` is -1"):
        rf.limits.yardsticks(data, net).at(-1.0)


def test_zero_neurons_stay_zero():
    data, net = correlated(0, m=2)
    W = np.vstack([net.mantissa.W, np.zeros(3)])
    sticks = rf.limits.yardsticks(data, rf.Network(np.append(net.mantissa.a, 0.0), W))
    assert sticks.at(3.0).log_norms[2] == -np.inf
    assert sticks.terms["6 neuron norm"] == 0.0


# ------------------------------------------------------------------ invariances


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.floats(0.1, 10.0))
def test_invariances(seed, factor):
    data, net = correlated(seed % 50, n=6, m=5)
    rng = np.random.default_rng(seed)
    base = rf.limits.yardsticks(data, net)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = rf.limits.yardsticks(
        rf.Dataset(data.X @ Q, data.y, teacher=data.teacher @ Q),
        rf.Network(net.mantissa.a, net.mantissa.W @ Q, -20.0),
    )
    assert turned.delta == pytest.approx(base.delta, rel=1e-7, abs=1e-12)
    assert turned.at(1.5).directions @ Q.T == pytest.approx(base.at(1.5).directions, abs=1e-11)
    points, neurons = rng.permutation(data.n), rng.permutation(net.width)
    mixed = rf.limits.yardsticks(
        rf.Dataset(data.X[points], data.y[points]),
        rf.Network(net.mantissa.a[neurons], net.mantissa.W[neurons]),
    )
    faster = rf.limits.yardsticks(rf.Dataset(data.X, factor * data.y), net)
    for j in range(net.width):
        assert np.array_equal(turned.order[j], base.order[j])
        assert turned.times[j] == pytest.approx(base.times[j], rel=1e-9)
        assert np.array_equal(points[mixed.order[j]], base.order[neurons[j]])
        assert mixed.times[j] == pytest.approx(base.times[neurons[j]], rel=1e-9)
        assert np.array_equal(faster.order[j], base.order[j])
        assert faster.times[j] == pytest.approx(base.times[j] / factor, rel=1e-9)
    assert faster.log_norms(2.0 / factor) == pytest.approx(base.log_norms(2.0), abs=1e-9)
