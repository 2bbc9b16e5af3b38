"""Flow with weight decay against 40 digits, small steps, and stationarity checked on its own."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import reluflow as rf
from numerics.problems import distance, draw, kinds
from reluflow.engines.flow import decayed
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start

TOLERANCES = 10.0 ** -np.arange(4, 12, 2)


@cache
def solved(seed):
    """A small problem with decay, every other one leaky, and its 40-digit solution."""
    rng = np.random.default_rng([seed, 7])
    decay = float(rng.choice([0.02, 0.1, 0.3, 1.0]))
    slope = float(rng.choice([0.01, 0.125, 0.5])) if seed % 2 else 0.0
    problem = replace(draw(seed), decay=decay, slope=slope)
    return problem, problem.reference()


def test_error_is_proportional_to_the_tolerance():
    found = []
    for seed in (0, 4, 5, 7, 8, 10, 14, 16, 20, 23, 28):
        problem, exact = solved(seed)
        runs = [problem.flow(rtol=rtol) for rtol in TOLERANCES]
        assert kinds(runs[2].events) == [event[1:] for event in exact.events]
        found.append([distance(run.final, exact) for run in runs])
    share = np.array(found) / TOLERANCES
    assert (np.median(share, axis=0) <= 1.0).all()
    assert (share <= 10.0).all()
    slope = np.polyfit(np.log(TOLERANCES), np.log(np.median(found, axis=0)), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("seed", range(4))
def test_balance_decays_twice_as_fast_as_the_weights(seed):
    problem, _ = solved(seed)
    run = problem.flow(rtol=1e-6)
    before = run.net.balance * np.exp(-2.0 * problem.decay * run.t[-1])
    size = run.final.a**2 + np.square(run.final.W).sum(axis=1)
    assert (np.abs(run.final.balance - before) <= 1e-12 * np.maximum(size, np.abs(before))).all()


# ---------------------------------------------------------------------- limits


def task(seed):
    """Data, network, loss and decay; starts from exp(-50) to 1, every third network leaky."""
    rng = np.random.default_rng([seed, 11])
    n, d, m = int(rng.integers(2, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 15))
    X, loss = rng.normal(size=(n, d)), ("square", "square", "logistic", "exponential")[seed % 4]
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    decay = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.5))))
    W = rng.normal(size=(m, d))
    a = rng.choice([-1, 1], m) * np.linalg.norm(W, axis=1) * rng.choice([1.0, 0.5])
    scale = float(rng.choice([0.0, -1.0, -5.0, -50.0]))
    slope = 0.25 if seed % 3 == 2 else 0.0
    return rf.Dataset(X, y), rf.Network(a, W, log_scale=scale, slope=slope), loss, decay


def unrest(data, net, loss, decay):
    """Distance of ``mu theta`` from -dL, relative to it; on planes the best of all slopes."""
    z, length = data.X @ net.W.T, np.linalg.norm(data.X, axis=1)
    c = rf.losses.named(loss).forces(net.predict(data.X), data.y)
    worst = 0.0
    for a, w, own in zip(net.a, net.W, z.T, strict=True):
        on = np.abs(own) <= 1e-7 * np.linalg.norm(w) * length
        theta = np.where(own > 0.0, 1.0, net.slope)
        outer = c @ (theta * own) - decay * a
        inner = a * ((theta * c)[~on] @ data.X[~on]) - decay * w
        if on.any() and a != 0.0:
            pulls = (a * c[on, None] * data.X[on]).T
            best = lsq_linear(pulls, -inner, bounds=(net.slope, 1.0), tol=1e-14)
            inner = inner + pulls @ best.x
        worst = max(worst, abs(outer), float(np.linalg.norm(inner)))
    return worst / (decay * max(np.sqrt(net.squared_norm), 1e-3))


@pytest.mark.parametrize(
    "seeds",
    [range(16), pytest.param(range(200), marks=pytest.mark.long)],
    ids=["sample", "many"],
)
def test_limits_are_stationary_and_never_below_the_optimum(seeds):
    bounded = 0
    for seed in seeds:
        data, net, loss, decay = task(seed)
        run = rf.flow(data, net, loss=loss, decay=decay, max_seconds=60)
        assert run.status == "stationary", (seed, run.reason)
        assert unrest(data, run.final, loss, decay) <= 1e-8, seed
        bounded += np.isfinite(run.limit_error)
        if loss == "square" and net.slope == 0.0:
            value = run.loss[-1] + 0.5 * decay * run.final.squared_norm
            best = rf.interpolators.min_norm(data, decay=decay)
            assert value >= best.lower_bound - 1e-9 * value
    assert bounded >= 0.9 * len(seeds)


def test_the_bound_on_the_distance_to_the_limit_holds():
    for seed in (0, 1, 2, 3, 6):
        data, net, loss, decay = task(seed)
        loose = rf.flow(data, net, loss=loss, decay=decay, rtol=1e-5)
        later = rf.flow(loose, t_end=10.0 * loose.t[-1], rtol=1e-11)
        moved = np.hypot(
            np.linalg.norm(later.final.a - loose.final.a),
            np.linalg.norm(later.final.W - loose.final.W),
        )
        assert moved <= 2.0 * loose.limit_error + 1e-11 * np.sqrt(loose.final.squared_norm)


@pytest.mark.parametrize("slides", [False, True])
@pytest.mark.parametrize("seed", [4, 6, 7, 8])  # all losses, the last leaky
def test_the_hessian_is_the_derivative_of_the_velocity(seed, slides):
    data, net, loss, decay = task(seed)
    problem = Problem(data, net.with_scale(0.0), rf.losses.named(loss), "both", decay)
    state = start(problem)
    along = np.eye(net.width * (problem.d + 1))
    if slides:  # along the plane: off it the neuron does not slide
        normal = problem.planes.U[0]
        state.w[0] -= (state.w[0] @ normal) * normal
        state.mode[0, 0] = 2
        own = slice(net.width, net.width + problem.d)
        along[own, own] -= np.outer(normal, normal)
    at = begin_at(problem, state)
    everyone = np.ones(net.width, np.bool_)
    found = decayed.hessian(at, everyone, decayed.motion(at).g)
    k, d = net.width, problem.d
    scale, eps = np.exp(state.sigma), 1e-6

    def velocity(change):
        moved = state.copy()
        moved.a = moved.a + change[:k] / scale
        moved.w = moved.w + change[k:].reshape(k, d) / scale[:, None]
        there = begin_at(problem, moved)
        scaled = np.exp(there.state.sigma)
        motion = decayed.motion(there)
        return np.concatenate([scaled * motion.a, (scaled[:, None] * motion.w).ravel()])

    for shift in along:
        slope = (velocity(eps * shift) - velocity(-eps * shift)) / (2 * eps)
        bound = 1e-6 * max(1.0, np.abs(found).max())
        np.testing.assert_allclose(found @ shift, -slope, atol=bound)


def test_all_neurons_may_fade():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [0.1, -0.2])
    rng = np.random.default_rng(0)
    W = rng.normal(size=(5, 2))
    net = rf.Network(rng.choice([-1.0, 1.0], 5) * np.linalg.norm(W, axis=1), W, log_scale=-30.0)
    run = rf.flow(data, net, decay=1.0)
    assert run.status == "stationary"
    assert run.final.squared_norm < 1e-25


def test_a_dormant_neuron_grows_by_what_its_pull_exceeds_the_decay():
    """One neuron along one point: ``log |w|`` grows at ``|g| - mu`` until outputs count."""
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    net = rf.Network([1.0], [[1.0, 0.0]], log_scale=-1000.0)
    run = rf.flow(data, net, decay=0.25, rtol=1e-9)
    assert run.status == "stationary"
    assert run.final.predict([[1.0, 0.0]])[0] == pytest.approx(0.75, rel=1e-9)  # y - mu
    there = run.at(t=1000.0)
    assert there.log_norms[0] == pytest.approx(-250.0, rel=1e-12)
    gone = rf.flow(data, net, decay=1.5, t_end=100.0)
    assert gone.final.log_norms[0] == pytest.approx(-1050.0, rel=1e-12)


def test_between_saddles_plateaus_are_closed_forms_too():
    """Two orthogonal points, the second weaker: its neuron escapes long after the first."""
    data = rf.Dataset(np.eye(2), [1.0, 0.6])
    net = rf.Network([1.0, 1.0], np.eye(2), log_scale=-2000.0)
    decay = 0.1
    run = rf.flow(data, net, decay=decay, rtol=1e-9)
    assert run.status == "stationary"
    assert run.stats["plateaus"] >= 2
    expected = np.array([1.0, 0.6]) - 2.0 * decay  # kappa = 1/2
    np.testing.assert_allclose(run.final.predict(np.eye(2)), expected, rtol=1e-9)
    assert run.stats["steps"] < 200


@pytest.mark.parametrize(
    ("loss", "margin"),
    [
        (rf.losses.Square(), lambda mu: 1.0 - 2.0 * mu),
        (rf.losses.Square("1/2"), lambda mu: 1.0 - mu),
        (rf.losses.Exponential(), lambda mu: -np.log(2.0 * mu)),
        (rf.losses.Logistic(), lambda mu: np.log(1.0 / (2.0 * mu) - 1.0)),
    ],
    ids=["square, mean", "square, sum", "exponential", "logistic"],
)
def test_at_rest_the_force_on_a_point_is_the_decay(loss, margin):
    """Two orthogonal unit points, a neuron each: ``|g| = |c_i| = mu`` says what the outputs are."""
    data = rf.Dataset(np.eye(2), [1.0, -1.0])
    net = rf.Network([0.5, -0.5], 0.5 * np.eye(2))
    for decay in (0.01, 0.1):
        run = rf.flow(data, net, loss=loss, decay=decay)
        assert run.status == "stationary"
        outputs = margin(decay) * data.y
        np.testing.assert_allclose(run.final.predict(data.X), outputs, rtol=1e-8)


def test_without_decay_nothing_changes():
    problem = replace(draw(5), decay=0.0)
    plain = rf.flow(rf.Dataset(problem.X, problem.y), rf.Network(problem.a, problem.W), t_end=4.0)
    zero = rf.flow(
        rf.Dataset(problem.X, problem.y), rf.Network(problem.a, problem.W), t_end=4.0, decay=0.0
    )
    np.testing.assert_array_equal(plain.final.W, zero.final.W)
    tiny = rf.flow(
        rf.Dataset(problem.X, problem.y), rf.Network(problem.a, problem.W), t_end=4.0, decay=1e-13
    )
    np.testing.assert_allclose(tiny.final.W, plain.final.W, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"decay": -0.1}, "decay"),
        ({"decay": np.nan}, "decay"),
        ({"decay": 0.1, "train": "hidden"}, "both layers"),
        ({"decay": 0.1, "train": "output"}, "both layers"),
        ({"decay": 0.1, "rates": (1.0, 2.0)}, "rates"),
    ],
)
def test_what_has_no_flow_with_decay_is_refused(options, what):
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    with pytest.raises(rf.InputError, match=what):
        rf.flow(data, rf.Network([1.0], [[1.0, 0.0]]), **options)


# ---------------------------------------------------------------------- what a reader found


def test_the_part_outside_the_span_of_the_points_decays():
    data, net = rf.Dataset([[1.0, 0.0, 0.0]], [1.0]), rf.Network([1.0], [[1.0, 1.0, 0.5]])
    later = rf.flow(data, net, decay=0.25, t_end=200.0)
    np.testing.assert_allclose(later.final.W[0, 1:], [np.exp(-50.0), 0.5 * np.exp(-50.0)])
    run = rf.flow(data, net, decay=0.25)
    assert run.status == "stationary"
    assert np.linalg.norm(run.final.W[0, 1:]) <= run.limit_error < 1e-10


def test_a_neuron_without_a_pull_fades():
    data = rf.Dataset(np.eye(2), [1.0, 0.0])
    net = rf.Network([1.0, 1.0], np.eye(2), log_scale=-1000.0)
    run = rf.flow(data, net, decay=0.1, t_end=1000.0)
    np.testing.assert_allclose(run.final.log_norms, [-600.0, -1100.0], rtol=1e-12)
    small = rf.Network([1.0, 1.0], np.eye(2), log_scale=[-12.0, -11.0])
    end = rf.flow(rf.Dataset(np.eye(2), [0.3, 0.0]), small, decay=0.2, max_seconds=30)
    assert end.status == "stationary"
    assert end.limit_error < 1e-10


def test_a_fading_neuron_that_will_turn_round_is_no_limit():
    """Its output weight changes sign, and it leaves for a cell where it grows."""
    angles = np.deg2rad([10.0, -10.0, 190.0])
    data = rf.Dataset(np.column_stack([np.cos(angles), np.sin(angles)]), [-1.65, 1.5, 6.0])
    turn = np.deg2rad(-75.0)
    net = rf.Network([-0.05], [[np.cos(turn), np.sin(turn)]], log_scale=-30.0)
    run = rf.flow(data, net, decay=0.3)
    later = rf.flow(data, net, decay=0.3, t_end=500.0)
    assert run.status == "stationary"
    assert run.final.squared_norm > 1.0
    np.testing.assert_allclose(later.final.W, run.final.W, rtol=1e-8)


@pytest.mark.parametrize("size", [-30.0, 30.0])
def test_losses_beyond_floats_are_refused(size):
    with pytest.raises(rf.InputError, match="log-loss"):
        rf.flow(
            rf.Dataset([[1.0]], [1.0]), rf.Network([size], [[30.0]]), loss="exponential", decay=0.1
        )


@pytest.mark.parametrize("decay", [1e-20, 1e-5, 1e3, 1e100])
def test_any_size_of_decay_ends(decay):
    rng = np.random.default_rng(0)
    data = rf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    W = rng.normal(size=(8, 3))
    a = rng.choice([-1.0, 1.0], 8) * np.linalg.norm(W, axis=1)
    scale = -1000.0 if decay == 1e-5 else 0.0
    run = rf.flow(data, rf.Network(a, W, log_scale=scale), decay=decay, max_seconds=60)
    assert run.status == "stationary"
    if decay > 1.0:
        assert run.final.squared_norm < 1e-20
    if decay == 1e-20:  # below rounding: the fit, and no bound
        assert np.isinf(run.limit_error)
        plain = rf.flow(data, rf.Network(a, W)).final
        np.testing.assert_allclose(run.final.predict(data.X), plain.predict(data.X), atol=1e-6)
