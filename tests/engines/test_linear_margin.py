"""Classification with fixed features: exact solutions, an independent solver, and the limits."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import reluflow as rf
from engines.descent.reference import problem, same
from reluflow.verify import check_records

LOSSES = (rf.losses.Exponential(), rf.losses.Logistic())
BOTH = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
KINDS = pytest.mark.parametrize("kind", ["output", "linearised"])


def features(data, net, kind):
    z = data.X @ net.W.T
    gates = (z > 0.0) * net.a
    inner = (gates[:, :, None] * data.X[:, None, :]).reshape(data.n, -1)
    outer = np.maximum(z, 0.0)
    return outer if kind == "output" else np.hstack([outer, inner])


def displacement(net, start, kind):
    moved = [net.a - start.a, (net.W - start.W).ravel()]
    return moved[0] if kind == "output" else np.concatenate(moved)


@BOTH
@KINDS
@pytest.mark.parametrize("shape", [(6, 3, 12), (8, 2, 3)])
def test_it_agrees_with_another_solver(loss, kind, shape):
    data, net = problem(*shape, loss, seed=4)
    times = [0.0, 0.5, 4.0, 40.0]
    run = rf.flow(data, net, loss=loss, train=kind, t_end=40.0, rtol=1e-11, record=times)
    assert run.status == "t_end"
    F = features(data, net, kind)

    def force(t, z):
        return F.T @ loss.forces(net.predict(data.X) + F @ z, data.y)

    other = solve_ivp(force, (0, 40), np.zeros(F.shape[1]), "DOP853", times, rtol=1e-12, atol=1e-14)
    for k in range(4):
        moved = displacement(run.network(k), net, kind)
        np.testing.assert_allclose(moved, other.y[:, k], atol=1e-10)
        h = net.predict(data.X) + F @ other.y[:, k]
        np.testing.assert_allclose(run.states["outputs"][k], h, atol=1e-10)
        assert run.log_loss[k] == pytest.approx(loss.log_value(h, data.y), abs=1e-9)
    np.testing.assert_allclose(displacement(run.at(4.0), net, kind), other.y[:, 2], atol=1e-10)


def test_one_point_has_a_solution_in_closed_form():
    """Of the exponential loss: ``h' = K e^-h``, so ``h = log(e^h0 + K t)``."""
    data, net = rf.Dataset([[2.0]], [1.0]), rf.Network([0.5], [[0.3]])
    K = 0.6**2 + (0.5 * 2.0) ** 2
    run = rf.flow(data, net, loss="exponential", train="linearised", stop_log_loss=-1e6)
    assert run.status == "stop_loss"
    assert run.log_t[-1] == pytest.approx(1e6 - np.log(K), rel=1e-9)
    assert run.stats["steps"] < 200
    for log_t in (-3.0, 0.0, 5.0, 600.0, 5e5):
        h = np.logaddexp(0.3, np.log(K) + log_t)
        found = run.sample([log_t]).states["outputs"][0, 0]
        assert found == pytest.approx(h, rel=1e-7)


@BOTH
@KINDS
def test_weights_turn_to_the_largest_margin(loss, kind):
    data, net = problem(6, 3, 12, loss, seed=4)
    run = rf.flow(data, net, loss=loss, train=kind)
    assert run.status == "stop_loss"
    assert run.log_loss[-1] == pytest.approx(-1000.0, abs=1e-6)
    limit = rf.limits.kernel(data, net, loss=loss, train=kind)
    moved = displacement(run.final, net, kind)
    wanted = (
        limit.direction.a
        if kind == "output"
        else displacement(limit.direction, rf.Network(0.0 * net.a, 0.0 * net.W), kind)
    )
    cosine = moved @ wanted / np.linalg.norm(moved) / np.linalg.norm(wanted)
    assert 1.0 - cosine < 1e-4  # as 1 / log(t)^2


@BOTH
def test_points_that_cannot_be_separated_have_a_minimum(loss):
    X = np.array([[1.0, 0.2], [1.0, 0.2], [0.3, 1.0], [0.3, 1.0], [0.3, 1.0]])
    data = rf.Dataset(X, [1.0, -1.0, 1.0, -1.0, 1.0])
    _, net = problem(5, 2, 9, loss, seed=1)
    run = rf.flow(data, net, loss=loss, train="linearised")
    assert run.status == "stationary"
    assert run.limit_error < 1e-10
    F, h0 = features(data, net, "linearised"), net.predict(X)
    best = minimize(
        lambda z: loss.value(h0 + F @ z, data.y),
        np.zeros(F.shape[1]),
        jac=lambda z: -F.T @ loss.forces(h0 + F @ z, data.y),
        options={"gtol": 1e-10},
    )
    assert run.loss[-1] == pytest.approx(best.fun, rel=1e-12)
    moved = displacement(run.final, net, "linearised")
    np.testing.assert_allclose(F @ moved, F @ best.x, atol=1e-6)
    np.testing.assert_allclose(F.T @ loss.forces(h0 + F @ moved, data.y), 0.0, atol=1e-13)
    assert same(run.at(np.inf), run.final)


@BOTH
def test_a_loss_that_stays_above_zero_while_a_margin_grows_is_seen(loss):
    data = rf.Dataset([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, -1.0, 1.0])
    net = rf.Network([1.0, 0.5], [[1.0, 0.1], [0.1, 1.0]])
    run = rf.flow(data, net, loss=loss, train="linearised")
    assert run.status == "stationary"
    assert run.limit_error == np.inf  # the weights have no limit
    least = 2.0 * loss.value(np.zeros(1), np.ones(1)) / 3.0
    assert run.loss[-1] == pytest.approx(least, rel=1e-6)


def test_losses_times_and_files_are_of_the_same_run(tmp_path):
    loss = LOSSES[1]
    data, net = problem(6, 3, 12, loss, seed=4)
    options = {"loss": loss, "train": "linearised", "rates": (0.5, 2.0), "rtol": 1e-10}
    run = rf.flow(data, net, t_end=1e4, **options)
    short = rf.flow(data, net, t_end=30.0, **options)
    np.testing.assert_allclose(run.at(30.0).W, short.final.W, atol=1e-8)
    np.testing.assert_allclose(run.at(log_loss=short.log_loss[-1]).W, short.final.W, atol=1e-7)
    np.testing.assert_allclose(rf.flow(short, t_end=1e4).final.W, run.final.W, atol=1e-8)
    run.save(tmp_path / "run.rf")
    loaded = rf.load(tmp_path / "run.rf")
    check_records(loaded)
    assert same(loaded.at(7.0), run.at(7.0))


def test_few_records_and_a_caller_that_stops():
    data, net = problem(6, 3, 12, LOSSES[0], seed=4)
    run = rf.flow(data, net, loss="exponential", train="output", record=5)
    assert len(run.t) == 5
    asked = iter([False, False, True])
    part = rf.flow(data, net, loss="exponential", train="output", stop=lambda: next(asked))
    assert (part.status, len(part.t)) == ("interrupted", 4)
    none = rf.flow(data, net, loss="exponential", train="output", max_seconds=1e-9)
    assert none.status == "budget"
    assert "max_seconds" in none.reason
    still = rf.Network([1.0], [[-1.0, -1.0, -1.0]])
    data = rf.Dataset([[1.0, 0.0, 0.0]], [1.0])
    assert rf.flow(data, still, loss="logistic", train="linearised").status == "stationary"
