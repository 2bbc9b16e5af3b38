"""Layers at rates of their own: the change of variables done by hand, and small steps."""

import numpy as np
import pytest

import reluflow as rf
from engines.descent.reference import problem, same
from reluflow.engines import checkpoints, resume
from reluflow.statuses import Status
from reluflow.verify import check_records

SQUARE = rf.losses.Square()
RATES = (0.3, 2.0)


def by_hand(data, net, rates):
    hidden, output = np.sqrt(rates)
    flat = net.flat()
    return rf.Dataset(hidden * output * data.X, data.y), rf.Network(
        flat.a / output, flat.W / hidden
    )


@pytest.mark.parametrize("loss", ["square", "logistic", "exponential"])
@pytest.mark.parametrize(("train", "rates"), [("both", RATES), ("hidden", (0.3, 1.0))])
def test_it_equals_the_change_of_variables_done_by_hand(loss, train, rates):
    data, net = problem(6, 3, 8, rf.losses.named(loss), seed=4)
    run = rf.flow(data, net, loss=loss, train=train, rates=rates, t_end=6.0, rtol=1e-11)
    inner = rf.flow(*by_hand(data, net, rates), loss=loss, train=train, t_end=6.0, rtol=1e-11)
    hidden, output = np.sqrt(rates)
    np.testing.assert_allclose(run.final.W, hidden * inner.final.W, atol=1e-10)
    np.testing.assert_allclose(run.final.a, output * inner.final.a, atol=1e-10)
    assert len(run.events) == len(inner.events)
    np.testing.assert_allclose(run.events["t"], inner.events["t"], rtol=1e-9)
    np.testing.assert_allclose(run.log_loss[-1], inner.log_loss[-1], atol=1e-9)
    h = run.final.predict(data.X)
    assert run.log_loss[-1] == pytest.approx(rf.losses.named(loss).log_value(h, data.y), abs=1e-9)


def test_small_steps_of_each_layer_lead_there():
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    run = rf.flow(data, net, rates=RATES, t_end=4.0)
    gaps = []
    for lr in (2e-3, 1e-3):
        a, W = net.flat().a, net.flat().W
        for _ in range(round(4.0 / lr)):
            P = data.X @ W.T
            H = np.maximum(P, 0.0)
            c = SQUARE.forces(H @ a, data.y)
            pull = ((P > 0) * c[:, None]).T @ data.X
            a, W = a + lr * RATES[1] * (H.T @ c), W + lr * RATES[0] * a[:, None] * pull
        gaps.append(max(np.abs(run.final.a - a).max(), np.abs(run.final.W - W).max()))
    assert gaps[1] < 1e-3
    assert gaps[1] < 0.6 * gaps[0]


def test_balance_is_that_of_the_rates():
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    run = rf.flow(data, net, rates=RATES)
    assert run.status in ("converged", "stationary")

    def balance(at):
        return at.a**2 / RATES[1] - (at.W**2).sum(axis=1) / RATES[0]

    np.testing.assert_allclose(balance(run.final), balance(net), atol=1e-10)


def test_tiny_starts_have_rates_too():
    data = rf.datasets.orthonormal(3, labels=np.array([2.0, 1.0, 0.5]), seed=0)
    net = rf.networks.balanced(3, width=5, log_scale=-500.0, seed=5)
    run = rf.flow(data, net, rates=RATES)
    hidden, output = np.sqrt(RATES)
    inner = rf.flow(
        rf.Dataset(hidden * output * data.X, data.y),
        rf.Network(net.mantissa.a / output, net.mantissa.W / hidden, -500.0, log_scale_out=-500.0),
    )
    assert run.status == inner.status
    np.testing.assert_allclose(run.final.W, hidden * inner.final.W, atol=1e-7)


def test_times_losses_and_samples_are_of_the_same_run():
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    run = rf.flow(data, net, rates=RATES, t_end=6.0, rtol=1e-10)
    short = rf.flow(data, net, rates=RATES, t_end=2.5, rtol=1e-10)
    np.testing.assert_allclose(run.at(2.5).W, short.final.W, atol=1e-8)
    np.testing.assert_allclose(run.at(log_loss=short.log_loss[-1]).W, short.final.W, atol=1e-6)
    sampled = run.sample([np.log(2.5)])
    np.testing.assert_allclose(sampled.network(0).W, short.final.W, atol=1e-8)
    exact = rf.flow(data, net, rates=RATES, t_end=6.0, rtol=1e-10, record=[0.0, 2.5])
    np.testing.assert_allclose(exact.network(1).W, short.final.W, atol=1e-8)
    assert run.log_max_angle(2.5) == pytest.approx(
        np.log(rf.geometry.max_angle(short.final)), abs=1e-6
    )
    onward = rf.flow(short, t_end=6.0)
    np.testing.assert_allclose(onward.final.W, run.final.W, atol=1e-8)
    assert onward.options["rates"] == list(RATES)


def test_files_keep_rates(tmp_path):
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    run = rf.flow(data, net, rates=RATES, t_end=6.0)
    run.save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf")
    check_records(loaded)
    assert loaded.options["rates"] == list(RATES)
    assert same(loaded.at(2.0), run.at(2.0))


def test_what_is_saved_on_the_way_is_in_the_weights_of_the_caller(tmp_path):
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    options = {"rates": RATES, "t_end": 6.0, "record": 50, "loss": SQUARE, "train": "both"}
    saved = []
    with checkpoints.saving(0.0, saved.append):
        whole = rf.flow(data, net, **options)
    part = saved[len(saved) // 2]
    assert part.status is Status.INTERRUPTED
    assert part.data is data
    part.save(tmp_path / "part.rf")
    again = resume(rf.load(tmp_path / "part.rf"), **options)
    np.testing.assert_allclose(again.final.W, whole.final.W, atol=1e-7)


def test_equal_rates_of_one_are_the_plain_flow():
    data, net = problem(6, 3, 8, SQUARE, seed=4)
    one, two = rf.flow(data, net, t_end=2.0), rf.flow(data, net, t_end=2.0, rates=[1, 1])
    assert same(one.final, two.final)
    assert "rates" not in two.options
