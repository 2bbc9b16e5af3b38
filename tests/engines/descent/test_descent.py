"""Gradient descent against the textbook loop, an independent derivative, and known dynamics."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reluflow as rf

from .reference import gap, gradient_descent, problem

LOSSES = (
    rf.losses.Square(),
    rf.losses.Square("1/2"),
    rf.losses.Square("1/n"),
    rf.losses.Exponential(),
    rf.losses.Logistic(),
)
SIZES = (
    (1, 1, 1),
    (1, 3, 2),
    (7, 1, 4),
    (5, 2, 9),
    (8, 8, 30),
    (4, 12, 6),
    (40, 6, 12),
    (70, 65, 8),
)


@given(
    loss=st.sampled_from(LOSSES),
    sizes=st.sampled_from(SIZES),
    train=st.sampled_from(("both", "hidden")),
    loss_based=st.booleans(),
    scale=st.sampled_from((1e-8, 0.3, 30.0)),
    seed=st.integers(0, 10**6),
)
@example(
    loss=LOSSES[3], sizes=(5, 2, 9), train="both", loss_based=False, scale=30.0, seed=0
)  # forces beyond floats
def test_one_step_equals_the_textbook_loop(loss, sizes, train, loss_based, scale, seed):
    shares = loss_based and loss.name != "square"
    data, net = problem(*sizes, loss, seed, scale=scale)
    lr = 0.07
    with np.errstate(over="ignore", invalid="ignore"):  # infinite forces: a run that diverges
        a, W = gradient_descent(
            data.X, data.y, net.a, net.W, lr, 1, loss, hidden=train == "hidden", shares=shares
        )
    run = rf.descend(
        data, net, lr=rf.LossBased(lr) if shares else lr, steps=1, loss=loss, train=train
    )
    if run.status == "diverged":
        assert loss.log_value(net.predict(data.X), data.y) > 100
    else:
        assert gap(run.final, a, W) < 1e-13


@pytest.mark.parametrize("loss", LOSSES[:1] + LOSSES[3:], ids=lambda loss: loss.name)
@pytest.mark.parametrize("train", ["both", "hidden"])
@pytest.mark.parametrize("sizes", [(5, 2, 9), (8, 8, 30), (4, 12, 6)])
def test_many_steps_equal_the_textbook_loop(loss, train, sizes):
    data, net = problem(*sizes, loss, seed=11)
    a, W = gradient_descent(
        data.X, data.y, net.a, net.W, 0.05, 10_000, loss, hidden=train == "hidden"
    )
    run = rf.descend(data, net, lr=0.05, steps=10_000, loss=loss, train=train)
    if run.status == "unchanged":  # then more steps make no difference
        assert run.t[-1] < 10_000
    else:
        assert (run.status, run.t[-1]) == ("steps", 10_000)
    assert gap(run.final, a, W) < 1e-9


@pytest.mark.parametrize("loss", LOSSES[3:], ids=lambda loss: loss.name)
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_many_loss_based_steps_equal_the_textbook_loop(loss, train):
    # with alpha = 0.1 the two-layer dynamics amplify one rounding error to order one within 1000
    # steps (a second textbook loop started one ulp away shows the same), so alpha is smaller here
    data, net = problem(8, 8, 30, loss, seed=12)
    a, W = gradient_descent(
        data.X, data.y, net.a, net.W, 1e-3, 10_000, loss, hidden=train == "hidden", shares=True
    )
    run = rf.descend(data, net, lr=rf.LossBased(1e-3), steps=10_000, loss=loss, train=train)
    assert gap(run.final, a, W) < 1e-9


def test_a_large_problem_with_many_patterns_equals_the_textbook_loop():
    loss = rf.losses.Square()
    data, net = problem(150, 90, 60, loss, seed=13)
    a, W = gradient_descent(data.X, data.y, net.a, net.W, 0.5, 300, loss)
    assert gap(rf.descend(data, net, lr=0.5, steps=300).final, a, W) < 1e-11


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_the_step_is_the_gradient(loss, train):
    """Central differences with 50 digits: an independent derivative, good to 1e-12."""
    data, net = problem(5, 3, 4, loss, seed=3)
    lr = 2.0**-10
    final = rf.descend(data, net, lr=lr, steps=1, loss=loss, train=train).final.flat()
    with mpmath.workdps(50):
        for j in range(net.width):
            for k in range(-1, net.d):
                step = (final.a[j] - net.a[j]) if k < 0 else (final.W[j, k] - net.W[j, k])
                if train == "hidden" and k < 0:
                    assert step == 0.0
                    continue
                slope = _derivative(data, net, loss, j, k)
                scale = abs(float(slope)) + (abs(net.a[j]) if k < 0 else abs(net.W[j, k])) / lr
                assert abs(step + lr * float(slope)) < 1e-12 * lr * scale


def _derivative(data, net, loss, j, k):
    width = mpmath.mpf(10) ** -15

    def value(shift):
        total = mpmath.mpf(0)
        for x, y in zip(data.X, data.y, strict=True):
            h = mpmath.mpf(0)
            for i in range(net.width):
                w = [mpmath.mpf(v) for v in net.W[i]]
                a = mpmath.mpf(net.a[i])
                if i == j and k < 0:
                    a += shift
                elif i == j:
                    w[k] += shift
                h += a * max(mpmath.mpf(0), mpmath.fdot(w, [mpmath.mpf(v) for v in x]))
            if loss.name == "square":
                kappa = {"1/2n": mpmath.mpf(1) / data.n, "1/2": 1, "1/n": mpmath.mpf(2) / data.n}
                total += kappa[loss.factor] * (h - mpmath.mpf(y)) ** 2 / 2
            elif loss.name == "exponential":
                total += mpmath.exp(-y * h) / data.n
            else:
                total += mpmath.log1p(mpmath.exp(-y * h)) / data.n
        return total

    return (value(width) - value(-width)) / (2 * width)


def test_relu_has_slope_zero_at_zero():
    data = rf.Dataset([[1.0, 0.0], [1.0, 1.0]], [1.0, 1.0])
    net = rf.Network([1.0, 1.0], [[0.0, -1.0], [0.0, 0.0]])  # zero on a point; zero altogether
    for train in ("both", "hidden"):
        run = rf.descend(data, net, lr=0.1, steps=50, train=train)
        assert run.status == "unchanged"
        assert run.final == net


def test_hidden_only_keeps_output_weights_and_the_part_orthogonal_to_the_points():
    data, net = problem(4, 12, 6, rf.losses.Square(), seed=5)
    run = rf.descend(data, net, lr=0.05, steps=3000, train="hidden")
    assert run.stats["form"] == "gram"
    assert np.array_equal(run.final.flat().a, net.a)
    basis = np.linalg.qr(data.X.T)[0]
    for W in (net.W, run.final.flat().W):
        outside = W - W @ basis @ basis.T
        start = net.W - net.W @ basis @ basis.T
        np.testing.assert_allclose(outside, start, atol=1e-13)


def test_balance_drifts_at_second_order():
    data, net = problem(8, 8, 10, rf.losses.Square(), seed=6)
    net = rf.Network(np.linalg.norm(net.W, axis=1) * net.signs, net.W)
    time, drifts = 8.0, []
    for lr in (0.04, 0.02, 0.01):
        run = rf.descend(data, net, lr=lr, steps=round(time / lr))
        drifts.append(np.abs(run.final.balance).max())
    # one step adds lr^2 times a bounded amount: halving lr halves the drift at a fixed time
    orders = np.log2(np.array(drifts[:-1]) / drifts[1:])
    assert drifts[0] > 1e-6
    np.testing.assert_allclose(orders, 1.0, atol=0.2)


def test_one_step_changes_the_balance_by_the_square_of_the_step():
    data, net = problem(8, 8, 10, rf.losses.Square(), seed=6)
    changes = [
        np.abs(rf.descend(data, net, lr=lr, steps=1).final.balance - net.balance).max()
        for lr in (2e-3, 1e-3)
    ]
    assert changes[0] / changes[1] == pytest.approx(4.0, rel=1e-6)


def test_a_step_too_long_diverges_without_nan():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=7)
    for lr, train in ((8.0, "both"), (1e200, "both"), (1e300, "hidden")):
        run = rf.descend(data, net, lr=lr, steps=10_000, train=train)
        assert run.status == "diverged", (lr, train)
        assert run.t[-1] < 10_000
        assert np.isfinite(run.log_loss).all()
        for k in range(len(run.t)):
            assert np.isfinite(run.network(k).W).all()
        assert np.isfinite(run.final.log_squared_norm)
        # the state returned is the one of that iteration
        assert run.final == run.at(run.t[-1])


def test_a_loss_that_cannot_be_stepped_from_is_divergence_at_the_start():
    data = rf.Dataset([[1.0]], [-1.0])
    net = rf.Network([30.0], [[30.0]])  # exp(900): the loss has a logarithm, the force overflows
    run = rf.descend(data, net, lr=1.0, steps=5, loss=rf.losses.Exponential())
    assert (run.status, run.t[-1], run.log_loss[-1]) == ("diverged", 0, 900.0)
    assert run.final == net
    assert (
        rf.descend(data, net, lr=rf.LossBased(0.01), steps=5, loss=rf.losses.Exponential()).status
        == "steps"
    )


def test_loss_based_steps_do_not_stall_where_forces_underflow():
    data = rf.Dataset([[1.0, 0.2], [0.3, -1.0]], [1.0, -1.0])
    net = rf.Network([40.0, -40.0], [[40.0, 0.0], [0.0, -40.0]])  # margins 1600: forces are 0
    stalled = rf.descend(data, net, lr=1.0, steps=100, loss=rf.losses.Exponential())
    assert stalled.status == "unchanged"
    run = rf.descend(data, net, lr=rf.LossBased(0.01), steps=100, loss=rf.losses.Exponential())
    assert run.status == "steps"
    assert run.log_loss[-1] < stalled.log_loss[-1] - 100


def test_the_loss_is_tested_before_the_step():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=8)
    run = rf.descend(data, net, lr=0.3, steps=5000, stop_loss=1e-6, record=np.arange(0, 5001))
    assert run.status == "stop_loss"
    assert run.loss[-1] <= 1e-6 < run.loss[-2]
    h = run.final.predict(data.X)
    assert rf.losses.Square().value(h, data.y) == pytest.approx(run.loss[-1], rel=1e-9)
    again = rf.descend(data, net, lr=0.3, steps=5000, stop_log_loss=np.log(1e-6))
    assert (again.status, again.t[-1]) == ("stop_loss", run.t[-1])
    at_once = rf.descend(data, net, lr=0.3, steps=5000, stop_loss=1e6)
    assert (at_once.status, at_once.t[-1]) == ("stop_loss", 0)
    assert at_once.final == net


def test_weights_that_no_longer_change_end_the_run():
    data, net = problem(4, 12, 6, rf.losses.Square(), seed=2)
    for train in ("both", "hidden"):
        run = rf.descend(data, net, lr=0.5, steps=100_000, train=train)
        assert run.status == "unchanged"
        flat = run.final.flat()
        again = rf.descend(data, run.final, lr=0.5, steps=1, train=train).final.flat()
        assert np.abs(again.W - flat.W).max() <= 1e-15 * np.abs(flat.W).max()


def test_time_ends_a_run():
    data, net = problem(8, 8, 30, rf.losses.Exponential(), seed=9)
    run = rf.descend(
        data, net, lr=1e-6, steps=np.inf, loss=rf.losses.Exponential(), max_seconds=0.2
    )
    assert run.status == "budget"
    assert run.reason == f"max_seconds = 0.2 is used up at iteration {run.t[-1]:.0f}"
    assert 0 < run.t[-1] < 1e9
    assert run.final == run.at(run.t[-1])


def test_time_is_looked_at_between_close_records():
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=9)
    run = rf.descend(data, net, lr=1e-6, steps=10_000, record=np.arange(10_001), max_seconds=0.02)
    assert run.status == "budget"
    assert "max_seconds = 0.02" in run.reason
    assert run.t[-1] < 10_000


def test_no_steps_return_the_start():
    data, net = problem(5, 2, 9, rf.losses.Square(), seed=1)
    net = net.with_scale(-3.0)
    run = rf.descend(data, net, lr=0.1, steps=0)
    assert (run.status, list(run.t)) == ("steps", [0.0])
    assert run.final == net
