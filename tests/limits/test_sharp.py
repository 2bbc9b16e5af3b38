"""Constants of the sharp jump times against integrations of the equations they summarise."""

import numpy as np
import pytest
from reference_flows import log_flow
from scipy.integrate import solve_ivp

import reluflow as rf
from reluflow.limits.sharp import alignment_constant, switch_constant


def unit_rows(rng, m, n):
    rows = rng.normal(size=(m, n))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def network(W, signs):
    return rf.Network(signs * np.linalg.norm(W, axis=1), W)


# ------------------------------------------------------------------ alignment


def integrated_chi(c, d, t_end):
    """lim e^{-gt} a(t) from the linear flow with wrong-sign coordinates switched off at zero."""
    state, t, active = np.append(1.0, c), 0.0, c > 0
    while True:

        def field(_, x, active=active):
            return np.append(x[1:] @ (d * active), x[0] * d * active)

        wrong = np.flatnonzero(active & (d < 0))
        if not len(wrong):
            break

        def lost(_, x, wrong=wrong):
            return x[1:][wrong].min()

        lost.terminal, lost.direction = True, -1
        run = solve_ivp(
            field, (t, t_end), state, method="DOP853", rtol=1e-12, atol=1e-14, events=lost
        )
        assert run.status == 1
        t, state = run.t[-1], run.y[:, -1]
        active = active & ~((d < 0) & (state[1:] < 1e-12))
    g = np.linalg.norm(d[active])
    return 0.5 * (state[0] + state[1:] @ (d * active) / g) * np.exp(-g * t)


@pytest.mark.parametrize("seed", range(5))
def test_alignment_constant_with_wrong_sign_points_matches_the_flow(seed):
    rng = np.random.default_rng(seed)
    c = unit_rows(rng, 1, 7)[0]
    d = rng.normal(size=7)
    c[:2], d[:2] = np.abs(c[:2]), np.abs(d[:2]) * [1, -1]
    rest = float((np.minimum(c, 0) ** 2).sum())
    log_chi = alignment_constant(c, rest, d)
    assert np.exp(log_chi) == pytest.approx(integrated_chi(c, d, 200.0), rel=1e-9)


def test_alignment_constant_without_wrong_sign_points_is_half_one_plus_cosine():
    c, d = np.array([0.36, 0.48, -0.8]), np.array([1.0, 2.0, 5.0])
    cosine = (0.36 + 2 * 0.48) / np.sqrt(5)
    assert alignment_constant(c, 0.64, d) == pytest.approx(np.log((1 + cosine) / 2), rel=1e-14)


def test_alignment_constant_of_a_nearly_lost_point_is_continuous():
    d = np.array([1.0, -1.0])
    without = alignment_constant(np.array([1.0, -1e-12]), 1e-24, d)
    with_point = alignment_constant(np.array([1.0, 1e-12]), 0.0, d)
    assert with_point == pytest.approx(without, abs=1e-11)


# ------------------------------------------------------------------ switch


def integrated_switch(P, Q, horizon=25.0):
    R, late = np.hypot(P, Q), horizon + 40.0 / Q

    def field(t, x):
        _, p, q = x
        f = 0.5 * (1.0 - np.tanh(t))
        growth = P * f * p + Q * q
        return [growth, P * f - p * growth, Q - q * growth]

    start = [0.0, P / R, Q / R]
    run = solve_ivp(field, (-horizon, late), start, method="DOP853", rtol=1e-12, atol=1e-14)
    return run.y[0, -1] - R * horizon - Q * late


@pytest.mark.parametrize(("P", "Q"), [(1.0, 1.0), (0.3, 2.0), (0.9, 0.2), (0.01, 5.0), (1.0, 0.05)])
def test_switch_constant_matches_its_differential_equation(P, Q):
    assert switch_constant(P, Q, 1.0) == pytest.approx(integrated_switch(P, Q), abs=1e-10)
    assert switch_constant(3 * P, 3 * Q, 3.0) == pytest.approx(
        switch_constant(P, Q, 1.0), rel=1e-12
    )


def test_switch_constant_of_disjoint_or_exhausted_groups_is_one():
    assert np.all(switch_constant([0.0, 2.0, 0.0], [1.0, 0.0, 0.0], 1.5) == 0.0)


# ------------------------------------------------------------------ half times of the flow


def problem(seed, n=4, m=4, mixed=False):
    rng = np.random.default_rng(seed)
    y = rng.uniform(0.5, 2.0, n) * (np.sign(rng.normal(size=n)) if mixed else 1.0)
    signs = np.sign(rng.normal(size=m)) if mixed else np.ones(m)
    return rf.Dataset(np.eye(n), y), network(unit_rows(rng, m, n), signs)


def compare(data, net, limit, log_scale):
    watch = list(zip(limit.groups, limit.norms, strict=True))
    sharp = limit.sharp_times(log_scale)
    found, _, _ = log_flow(
        net.directions, data.y, net.signs, limit.kappa, log_scale, 1.1 * sharp.max() + 20, watch
    )
    return np.abs(np.array(found) - sharp).max()


@pytest.mark.parametrize(
    ("seed", "n", "mixed"),
    [(2, 4, False), (9, 4, False), (5, 6, False), (12, 4, True), (6, 5, True)],
)
def test_sharp_times_match_the_flow_at_scale_1e_minus_100(seed, n, mixed):
    data, net = problem(seed, n=n, m=n, mixed=mixed)
    limit = rf.limits.saddle_to_saddle(data, net)
    log_scale = -100 * np.log(10)
    assert len(limit.times) >= 2
    assert limit.order_holds(log_scale)
    assert compare(data, net, limit, log_scale) < 1e-6


def test_near_tie_errs_by_a_power_of_the_scale():
    data, net = problem(4)
    limit = rf.limits.saddle_to_saddle(data, net)
    errors = [compare(data, net, limit, -k * np.log(10)) for k in (100, 150)]
    assert errors[0] > 1e-5
    assert errors[1] < 0.05 * errors[0]


def test_shared_masks_jump_together_and_split_by_their_constants():
    W = np.array([[0.6, 0.6, -0.3], [0.1, 0.9, -0.2], [-0.3, 0.3, 0.7]])
    data, net = rf.Dataset(np.eye(3), [1.5, 1.0, 0.7]), network(W, np.ones(3))
    net = rf.Network(net.a / np.exp(net.log_norms), net.directions)
    limit = rf.limits.saddle_to_saddle(data, net)
    assert limit.groups[0].tolist() == [0, 1]
    log_scale = -60 * np.log(10)
    watch = list(zip(limit.groups, limit.norms, strict=True))
    sharp = limit.sharp_times(log_scale)
    found, rho, _ = log_flow(
        net.directions, data.y, net.signs, limit.kappa, log_scale, sharp[-1] + 200, watch
    )
    assert np.abs(np.array(found) - sharp).max() < 1e-4
    assert np.exp(rho[:2]) == pytest.approx(limit.network.a[:2], rel=1e-4)
    assert limit.network.a[:2] @ limit.network.a[:2] == pytest.approx(limit.norms[0], rel=1e-14)


def test_individual_norms_shift_the_times_like_alignment_constants():
    data, net = problem(2)
    factors = np.array([2.0, 0.5, 3.0, 1.0])
    scaled = rf.Network(net.a * factors, net.W * factors[:, None])
    in_logs = rf.Network(net.a, net.W, np.log(factors) - 7.0)
    limits = [rf.limits.saddle_to_saddle(data, other) for other in (net, scaled, in_logs)]
    plain, by_norm, by_log = (limit.sharp_times(-500.0) for limit in limits)
    assert limits[1].log_chi - limits[0].log_chi == pytest.approx(np.log(factors), abs=1e-14)
    first, chi = limits[0].groups[0], np.exp(limits[0].log_chi)
    head_start = np.linalg.norm((factors * chi)[first]) / np.linalg.norm(chi[first])
    slope = 1.0 / limits[0].times[0]
    assert by_norm[0] == pytest.approx(plain[0] - np.log(head_start) / slope, rel=1e-13)
    # the common part of the log scales is the largest one
    shift = np.log(factors.max())
    assert by_log == pytest.approx(limits[1].sharp_times(-500.0 - shift), rel=1e-13)


def test_order_reversed_by_a_large_scale_is_reported():
    # group 0 wins by 1 % in the limit, but group 1 starts aligned and wins at moderate scales
    y = np.array([1.01, 1.0])
    W = np.array([[0.05, -1.0], [-0.01, 1.0]])
    limit = rf.limits.saddle_to_saddle(rf.Dataset(np.eye(2), y), network(W, np.ones(2)))
    assert limit.groups[0].tolist() == [0]
    assert limit.order_holds(-1e4)
    assert not limit.order_holds(-5.0)


def test_deep_scales_are_legal_and_linear():
    data, net = problem(2)
    limit = rf.limits.saddle_to_saddle(data, net)
    steps = limit.sharp_times(-2e6) - limit.sharp_times(-1e6)
    assert steps == pytest.approx(1e6 * limit.times, rel=1e-12)


@pytest.mark.parametrize("bad", [0.0, 1.0, np.nan, "x"])
def test_sharp_times_refuses_scales_that_are_not_small(bad):
    data, net = problem(2)
    with pytest.raises(rf.errors.InputError, match="log_scale"):
        rf.limits.saddle_to_saddle(data, net).sharp_times(bad)


# ------------------------------------------------------------------ exponents and rates of the flow


def distance_to_saddle(data, net, limit, tau, log_scale):
    _, rho, u = log_flow(
        net.directions, data.y, net.signs, limit.kappa, log_scale, -tau * log_scale
    )
    saddle = limit.saddle(int(np.searchsorted(limit.times, tau)))
    gap_a = net.signs * np.exp(rho) - saddle.a
    gap_c = np.exp(rho)[:, None] * u - saddle.W @ data.X.T
    return np.log(np.sqrt((gap_a**2).sum() + (gap_c**2).sum()))


@pytest.mark.parametrize(
    ("seed", "n", "mixed", "tau", "mechanism"),
    [
        (3, 4, False, 2.251, "dormant"),
        (3, 4, False, 4.4, "memory"),
        (3, 6, False, 3.356, "relaxation"),
        (3, 5, True, 2.977, "memory"),
    ],
)
def test_parameters_approach_the_saddle_at_the_stated_rate(seed, n, mixed, tau, mechanism):
    data, net = problem(seed, n=n, m=n, mixed=mixed)
    limit = rf.limits.saddle_to_saddle(data, net)
    one, two = -60 * np.log(10), -90 * np.log(10)
    errors = [distance_to_saddle(data, net, limit, tau, scale) for scale in (one, two)]
    rate = limit.rate(tau)
    assert (errors[1] - errors[0]) / (two - one) == pytest.approx(rate, rel=0.01)
    past = limit.times < tau
    dormant = -limit.exponents(tau)[limit.exponents(tau) < 0]
    relaxation = 2 * limit.kappa * limit.norms[past] * (tau - limit.times[past])
    decides = {"dormant": dormant, "relaxation": relaxation, "memory": np.array([])}[mechanism]
    everything = np.concatenate([dormant, relaxation])
    if mechanism == "memory":
        assert rate < everything.min() - 1e-3
    else:
        assert rate == pytest.approx(decides.min(), rel=1e-12)


def test_exponents_match_log_norms_of_the_flow_up_to_one_over_log():
    data, net = problem(5, n=6, m=6)
    limit = rf.limits.saddle_to_saddle(data, net)
    gaps = []
    for log_scale in (-300.0, -600.0):
        taus = [0.3 * limit.times[0], limit.times[1], limit.times[-1] + 1.0]
        gaps.append(
            max(
                np.abs(
                    log_flow(
                        net.directions, data.y, net.signs, limit.kappa, log_scale, -tau * log_scale
                    )[1]
                    / -log_scale
                    - limit.exponents(tau)
                ).max()
                for tau in taus
            )
        )
    assert gaps[0] < 5 / 300
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.2)
