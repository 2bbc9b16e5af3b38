"""Gradient flow against closed forms and published exact values."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import reluflow as rf
from reluflow.losses import Exponential, Logistic, Square

MSE = Square("1/n")
SCALES = (-5.0, -300.0, float(np.log(1e-160)), -1e6)


def log_contribution(net, j=0):
    """``log(|a_j| |w_j|)`` of one neuron, at any scale."""
    return float(net.log_norms[j] + net.log_outputs[j])


def log_logistic(t, rate, limit, log_start):
    """Logarithm of S with S' = rate (limit - S) S / limit, by the closed form, in 50 digits."""
    with mp.workdps(50):
        start = mp.exp(mp.mpf(log_start))
        decay = (limit / start - 1) * mp.exp(-mp.mpf(rate) * mp.mpf(t))
        return float(mp.log(limit / (1 + decay)))


# ---------------------------------------------------------------------- one aligned neuron


@pytest.mark.parametrize("log_scale", SCALES)
def test_aligned_neuron_on_one_point_follows_the_logistic_law(log_scale):
    x, y = np.array([1.2, -0.9, 0.4]), 0.7
    length = float(np.linalg.norm(x))
    net = rf.Network([length], [x], log_scale)
    run = rf.flow(rf.Dataset(x[None], [y]), net, rtol=1e-10)
    # S = a |w| |x| fits y; a = |w| throughout, kappa = 1
    rate, start = 2.0 * length * y, 3.0 * np.log(length) + 2.0 * log_scale
    half = (np.log(y) - start) / rate
    for shift in (-0.5 * half, -3.0, -0.3, 0.0, 0.5, 4.0):
        t = half + shift
        seen = log_contribution(run.at(t)) + np.log(length)
        # one ulp of t is a relative error of rate * spacing(t) in S before the fit
        assert seen == pytest.approx(
            log_logistic(t, rate, y, start), abs=1e-9 + 4 * rate * np.spacing(t)
        )
    assert run.status == "converged"
    assert run.final.predict(x[None])[0] == pytest.approx(y, rel=1e-12)
    assert len(run.events) == 0


@pytest.mark.parametrize("log_scale", SCALES)
@pytest.mark.parametrize("factor", ["1/2n", "1/2", "1/n"])
def test_aligned_neuron_on_orthonormal_points_follows_the_logistic_law(log_scale, factor):
    y = np.array([0.3, 1.1, 0.6, 0.9])
    data = rf.Dataset(np.linalg.qr(np.random.default_rng(0).normal(size=(6, 4)))[0].T, y)
    loss = Square(factor)
    Y = float(np.linalg.norm(y))
    net = rf.Network([1.0], [data.X.T @ y / Y], log_scale)
    run = rf.flow(data, net, loss=loss, rtol=1e-10)
    rate = 2.0 * loss.kappa(4) * Y
    half = (np.log(Y) - 2.0 * log_scale) / rate
    for share in (0.3, 0.999, 1.0, 1.0 + 2.0 / (rate * half)):
        t = share * half
        expected = log_logistic(t, rate, Y, 2.0 * log_scale)
        seen = log_contribution(run.at(t))
        assert seen == pytest.approx(expected, abs=1e-8 + 4 * rate * np.spacing(t))
    assert run.status == "converged"


# ---------------------------------------------------------------------- regression examples


@pytest.mark.parametrize(("seed", "log_scale"), [(0, -30.0), (1, -30.0), (2, -3000.0)])
def test_two_orthogonal_points_end_at_the_minimal_norm(seed, log_scale):
    data = rf.datasets.from_points([-0.5, 2.0], [-1.0, 1.0])
    run = rf.flow(data, rf.networks.balanced(2, 60, log_scale=log_scale, seed=seed))
    assert run.status == "converged"
    expected = 2.0 * (1.0 / np.sqrt(1.25) + 1.0 / np.sqrt(5.0))
    assert run.final.squared_norm == pytest.approx(expected, rel=1e-9)
    assert run.limit_error <= 1e-9
    np.testing.assert_allclose(run.final.predict(data.X), data.y, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_three_points_with_positive_neurons_stop_at_the_least_squares_line(seed):
    data = rf.datasets.from_points([-0.75, -0.5, 0.125], [1.1, 0.1, 0.8])
    net = rf.networks.balanced(2, 60, log_scale=-30.0, signs="positive", seed=seed)
    run = rf.flow(data, net, loss=MSE)
    line = data.X @ np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    assert run.status == "stationary"
    assert run.loss[-1] == pytest.approx(np.mean((line - data.y) ** 2), rel=1e-12)
    assert run.loss[-1] == pytest.approx(0.175042735, abs=5e-10)
    np.testing.assert_allclose(run.final.predict(data.X), line, rtol=1e-8)
    assert run.limit_error <= 1e-8


FIVE = rf.datasets.from_points([-1, -0.6, -0.1, 0.3, 0.7], [0.28, -0.1, 0.03, 0.23, -0.22])


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_five_points_pass_a_plateau_and_end_in_a_local_minimum(seed):
    net = rf.networks.gaussian(2, 50, sigma_hidden=8e-6, sigma_output=8e-6, seed=seed)
    run = rf.flow(FIVE, net, loss=MSE)
    assert run.status == "stationary"
    assert run.loss[-1] == pytest.approx(0.0278859611, abs=5e-11)
    assert run.limit_error <= 1e-9
    # the plateau: tens of units of time for a relative fall of 1e-3 of the loss
    high, low = np.interp(-np.array([0.0302, 0.03017]), -run.loss, run.t)
    assert low - high > 40.0
    assert MSE.value(run.at(0.5 * (low + high)).predict(FIVE.X), FIVE.y) == pytest.approx(
        0.030185, abs=4e-6
    )


# ---------------------------------------------------------------------- classification


def log_time_of_example(name, square):
    """``log t`` at which a^2 reaches ``square`` in Example 1 (Ei from mpmath)."""
    with mp.workdps(40):
        t = (mp.ei(mp.mpf(square)) - mp.ei(1)) / 2
        if name == "logistic":
            t += mp.log(mp.mpf(square)) / 2
        return float(mp.log(t))


def test_logistic_loss_below_one_over_n_does_not_imply_separation():
    data = rf.datasets.from_points([1.0, -1.0], [1.0, 1.0])
    run = rf.flow(data, rf.Network([3.0], [[1.0, -0.5]]), loss=Logistic())
    assert run.loss[0] == pytest.approx(0.4473, abs=5e-5)
    assert run.loss[0] < 0.5
    assert run.status == "stationary"
    assert run.loss[-1] == pytest.approx(np.log(2.0) / 2.0, rel=1e-7)
    assert np.isinf(run.limit_error)  # the weights grow for ever, only the loss has a limit
    w, b = run.final.flat().W[0]
    assert b - w == pytest.approx(-1.5, rel=1e-9)


# ---------------------------------------------------------------------- staircase


@pytest.mark.parametrize("log_scale", [-1e4, -1e5])
def test_staircase_on_orthonormal_data_jumps_at_the_sharp_times(log_scale):
    data = rf.datasets.orthonormal(16, seed=3)
    net = rf.networks.balanced(16, 12, log_scale=log_scale, directions="sphere", seed=4)
    run = rf.flow(data, net)
    limit = rf.limits.saddle_to_saddle(data, net)
    times = limit.sharp_times(log_scale)
    assert run.status == ("converged" if limit.interpolates else "stationary")
    assert run.final.squared_norm == pytest.approx(limit.squared_norm, rel=1e-6)
    loss = Square()
    for k, (T, Y) in enumerate(zip(times, limit.norms, strict=True)):
        # sum a^2 of the group is half its final value at the sharp time
        half = run.at(T).flat()
        assert (half.a[limit.groups[k]] ** 2).sum() == pytest.approx(Y / 2, rel=1e-4)
        gap = 0.4 * min(np.diff(times, prepend=0.0, append=times[-1] * 2)[k : k + 2])
        for moment, plateau in ((T - gap, limit.losses[k]), (T + gap, limit.losses[k + 1])):
            seen = loss.value(run.at(moment).predict(data.X), data.y)
            assert seen == pytest.approx(plateau, rel=1e-5, abs=1e-6)


# ---------------------------------------------------------------------- dead and flipping neurons


def test_network_inactive_on_every_point_is_stationary_at_once():
    data = rf.Dataset([[1.0, 0.2], [0.5, 0.5]], [1.0, -1.0])
    net = rf.Network([1.0, -2.0], [[-1.0, -1.0], [-0.3, -0.1]])
    run = rf.flow(data, net)
    assert run.status == "stationary"
    assert run.limit_error == 0.0
    assert run.t[-1] == 0.0
    assert len(run.events) == 0
    np.testing.assert_array_equal(run.final.flat().W, net.W)
    assert run.loss[-1] == pytest.approx(0.5)


def hyperbolic_time(start, end, force):
    """Time for the rapidity of one neuron on one unit point to move, th' = force(th)."""
    return quad(lambda th: 1.0 / force(th), start, end, epsabs=1e-14, epsrel=1e-13)[0]


@pytest.mark.parametrize("log_scale", [0.0, -2.0])
def test_neuron_that_unlearns_its_only_point_dies_at_the_closed_form_time(log_scale):
    # a = b cosh th, w = b sinh th on x = 1, y = -1: th' = -(1 + b^2 sinh(2 th)/2) until th = 0
    lam = np.exp(log_scale)
    square = 0.75 * lam**2
    begin = np.arcsinh(0.5 * lam / np.sqrt(square))
    run = rf.flow(rf.Dataset([[1.0]], [-1.0]), rf.Network([1.0], [[0.5]], log_scale), rtol=1e-10)
    assert run.status == "stationary"
    assert run.events["kind"].tolist() == ["deactivate", "die"]
    assert run.events["point"].tolist() == [0, -1]
    expected = hyperbolic_time(begin, 0.0, lambda th: -(1.0 + 0.5 * square * np.sinh(2 * th)))
    np.testing.assert_allclose(run.events["t"], expected, rtol=1e-9)
    assert run.final.flat().a[0] == pytest.approx(np.sqrt(square), rel=1e-10)
    assert run.final.flat().W[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert run.loss[-1] == pytest.approx(0.5, rel=1e-12)


def test_balanced_neuron_never_changes_the_sign_of_its_output_weight():
    data = rf.datasets.centred(d=4, seed=0)
    run = rf.flow(data, rf.networks.balanced(4, 20, log_scale=-3.0, seed=1))
    assert "flip" not in run.events["kind"]
    np.testing.assert_array_equal(run.final.signs, run.net.signs)


@pytest.mark.parametrize("loss", [Exponential(), Logistic()], ids=lambda loss: loss.name)
def test_univariate_example_follows_the_exponential_integral_to_log_loss_23026(loss):
    data = rf.datasets.from_points([4.0, -4.0], [1.0, 1.0])
    net = rf.Network([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]])
    run = rf.flow(data, net, loss=loss, stop_log_loss=-23026.0)
    assert run.status == "stop_loss"
    assert run.log_loss[-1] == pytest.approx(-23026.0, rel=1e-9)
    for log_loss in (-2.0, -20.0, -700.0, -23026.0):
        part = rf.flow(data, net, loss=loss, stop_log_loss=log_loss, record=2)
        # the same curve reached by a stop of its own: its a^2 determines its time
        a = float(part.final.flat().a[0])
        assert a**2 == pytest.approx(loss.inverse(log_loss), rel=1e-8)
        # log t is as uncertain as a^2: late, d(log t)/d(a^2) tends to 1
        slack = 1e-7 + 2e-9 * a**2
        assert part.log_t[-1] == pytest.approx(log_time_of_example(loss.name, a**2), abs=slack)
    network = run.final
    assert network.mantissa.a[1] == 0.0
    assert not network.mantissa.W[1].any()
    assert network.mantissa.W[0, 0] == pytest.approx(0.0, abs=1e-12)


def test_dead_network_with_zero_labels_is_converged():
    run = rf.flow(rf.Dataset([[1.0]], [0.0]), rf.Network([1.0], [[-1.0]]))
    assert run.status == "converged"
    assert run.log_loss[-1] == -np.inf


@pytest.mark.parametrize("log_scale", [0.0, -4.0])
def test_output_weight_changes_sign_at_the_closed_form_time(log_scale):
    # a = b sinh th, w = b cosh th on x = 1, y = 1: th' = 1 - b^2 sinh(2 th)/2
    lam = np.exp(log_scale)
    square = 0.75 * lam**2
    begin = -np.arcsinh(0.5 * lam / np.sqrt(square))
    run = rf.flow(rf.Dataset([[1.0]], [1.0]), rf.Network([-0.5], [[1.0]], log_scale), rtol=1e-10)
    assert run.status == "converged"

    def force(th):
        return 1.0 - 0.5 * square * np.sinh(2 * th)

    assert run.events["kind"].tolist() == ["flip"]
    assert run.events["t"][0] == pytest.approx(hyperbolic_time(begin, 0.0, force), rel=1e-9)
    end = brentq(force, 0.0, 40.0, xtol=1e-15)
    final = run.final.flat()
    assert final.a[0] == pytest.approx(np.sqrt(square) * np.sinh(end), rel=1e-9)
    assert final.W[0, 0] == pytest.approx(np.sqrt(square) * np.cosh(end), rel=1e-9)


def test_a_neuron_that_only_shrinks_is_a_limit():
    """w + a = 0 exactly: the growing part of the boost is zero, and nothing ever wakes up."""
    data = rf.Dataset([[1.0]], [2.0])
    run = rf.flow(data, rf.Network([-1.0], [[1.0]], -50.0))
    assert run.status == "stationary"
    assert run.final.predict(data.X)[0] == 0.0


@pytest.mark.parametrize(("length", "eps"), [(2.0, 1e-3), (2.0, 1e-14), (2.0, 1e-30), (1e10, 1e-3)])
def test_hidden_weights_of_any_size_leave_their_start(length, eps):
    """The fixed output weight is no measure of how near a plane a hidden weight is."""
    data = rf.Dataset(length * np.eye(3), [1.0, -1.0, 1.0])
    run = rf.flow(data, rf.networks.by_preactivations(data, eps, [1]), train="hidden")
    assert run.status == "stationary"
    np.testing.assert_allclose(run.final.predict(data.X), [1.0, 0.0, 1.0], atol=1e-8)


@pytest.mark.parametrize("length", [1e2, 4e8])
def test_huge_hidden_weights_leave_the_output_layer_to_train_alone(length):
    # hidden weights turn by a part in length^2: the outputs obey h' = K c(h), K fixed
    X, y = np.array([[-0.8, 1.0], [-0.1, 1.0], [0.3, 1.0], [0.9, 1.0]]), np.array([1, 1, -1, -1])
    rng = np.random.default_rng(1)
    W, a = length * rng.normal(size=(64, 2)), rng.normal(size=64) / (500.0 * length)
    stop = np.log(1 / 8)
    run = rf.flow(rf.Dataset(X, y), rf.Network(a, W), loss=Exponential(), stop_log_loss=stop)
    assert run.status == "stop_loss"
    features = np.maximum(X @ W.T, 0.0) / length

    def field(_, h):
        return features @ features.T @ (y * np.exp(-y * h)) / 4

    def reached(_, h):
        return np.log(np.mean(np.exp(-y * h))) - stop

    reached.terminal = True
    start = features @ (length * a)
    alone = solve_ivp(field, (0, 100.0), start, "DOP853", events=reached, rtol=1e-11, atol=1e-13)
    assert run.t[-1] * length**2 == pytest.approx(alone.t[-1], rel=20.0 / length**2 + 1e-7)
    np.testing.assert_allclose(run.final.predict(X), alone.y[:, -1], rtol=20.0 / length**2 + 1e-7)


def test_late_losses_are_reached_at_tight_tolerances():
    data = rf.datasets.from_points([-2.0, -1.2, -0.3, 0.4, 1.1, 2.0], [1, 1, -1, -1, 1, 1])
    net = rf.networks.gaussian(2, 20, sigma_hidden=0.1, sigma_output=0.1, seed=0)
    runs = [
        rf.flow(data, net, loss=Exponential(), stop_log_loss=-1e5, rtol=rtol)
        for rtol in (1e-8, 1e-10)
    ]
    assert all(run.status == "stop_loss" for run in runs)
    # log t = F minus a few logarithms of F: the tolerance is relative to F
    assert runs[0].log_t[-1] == pytest.approx(runs[1].log_t[-1], abs=1e-3)
    assert runs[1].stats["steps"] < 2000
