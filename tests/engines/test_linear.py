"""Models with fixed features: closed forms beside matrix exponentials and least squares."""

import numpy as np
import pytest
from scipy.linalg import expm

import reluflow as rf
from engines.descent.reference import problem, same
from reluflow.statuses import Status
from reluflow.verify import check_records

SQUARES = [rf.losses.Square(factor) for factor in ("1/2n", "1/2", "1/n")]
KINDS = ("output", "linearised")


def jacobian(data, net, kind):
    """Derivatives of the outputs by the weights, a neuron and a weight at a time."""
    flat = net.flat()
    rows = []
    for x in data.X:
        outer = [max(w @ x, 0.0) for w in flat.W]
        inner = [a * x if w @ x > 0 else 0.0 * x for a, w in zip(flat.a, flat.W, strict=True)]
        rows.append(outer if kind == "output" else np.concatenate([outer, *inner]))
    return np.array(rows)


def weights(net):
    return np.concatenate([net.a, net.W.ravel()])


def reference(data, net, kind, kappa, t, rates=(1.0, 1.0)):
    """Weights and outputs at time t by a matrix exponential of the augmented linear system."""
    J = jacobian(data, net, kind)
    m, p = net.width, J.shape[1]
    speed = np.where(np.arange(p) < m, rates[1], rates[0])
    h0 = net.predict(data.X)
    # theta' = speed J^T kappa (y - h0 - J theta), theta(0) = 0
    system = np.zeros((p + 1, p + 1))
    system[:p, :p] = -kappa * speed[:, None] * (J.T @ J)
    system[:p, p] = kappa * speed * (J.T @ (data.y - h0))
    moved = expm(t * system)[:p, p]
    theta = weights(net)
    theta[:p] += moved
    return theta, h0 + J @ moved


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", SQUARES, ids=lambda loss: loss.factor)
@pytest.mark.parametrize("shape", [(5, 3, 4), (9, 2, 3), (1, 1, 1), (4, 6, 2)])
def test_any_time_is_the_exponential(kind, loss, shape):
    data, net = problem(*shape, loss, seed=sum(shape))
    kappa = loss.kappa(data.n)
    run = rf.flow(data, net, loss=loss, train=kind, t_end=30.0, record=[0.0, 0.3, 4.0, 30.0])
    assert run.status == "t_end"
    for k, t in enumerate(run.t):
        theta, h = reference(data, net, kind, kappa, t)
        np.testing.assert_allclose(weights(run.network(k)), theta, atol=1e-12)
        np.testing.assert_allclose(run.states["outputs"][k], h, atol=1e-12)
        assert run.log_loss[k] == pytest.approx(loss.log_value(h, data.y), abs=1e-10)
    theta, _ = reference(data, net, kind, kappa, 1.7)
    np.testing.assert_allclose(weights(run.at(1.7)), theta, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_those_of_the_layers(kind):
    loss = SQUARES[0]
    data, net = problem(5, 3, 4, loss, seed=2)
    rates = (1.0, 3.0) if kind == "output" else (0.2, 3.0)
    run = rf.flow(data, net, train=kind, rates=rates, t_end=5.0)
    theta, _ = reference(data, net, kind, loss.kappa(5), 5.0, rates)
    np.testing.assert_allclose(weights(run.final), theta, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_with_enough_features_the_limit_is_the_nearest_fit(kind):
    data, net = problem(4, 3, 12, SQUARES[0], seed=5)
    run = rf.flow(data, net, train=kind)
    J = jacobian(data, net, kind)
    moved = np.linalg.lstsq(J, data.y - net.predict(data.X), rcond=None)[0]
    theta = weights(net)
    theta[: len(moved)] += moved
    assert run.status == "converged"
    assert run.limit_error < 1e-10
    np.testing.assert_allclose(weights(run.final), theta, atol=1e-10)
    np.testing.assert_allclose(weights(run.network(len(run.t) - 1)), theta, atol=1e-10)
    assert same(run.at(np.inf), run.final)


def test_output_weights_alone_are_a_network():
    data, net = problem(6, 3, 30, SQUARES[0], seed=5)
    run = rf.flow(data, net, train="output")
    assert run.status == "converged"
    np.testing.assert_allclose(run.final.predict(data.X), data.y, atol=1e-10)
    np.testing.assert_array_equal(run.final.W, net.W)
    descent = rf.descend(data, net, lr=1e-3, steps=2000, train="output")
    np.testing.assert_allclose(descent.final.a, run.at(2.0).a, atol=1e-3)


def test_too_few_features_end_in_a_least_squares_fit():
    data, net = problem(9, 2, 2, SQUARES[0], seed=1)
    run = rf.flow(data, net, train="linearised")
    J, r = jacobian(data, net, "linearised"), data.y - net.predict(data.X)
    left = r - J @ np.linalg.lstsq(J, r, rcond=None)[0]
    assert run.status == "stationary"
    assert run.log_loss[-1] == pytest.approx(np.log(left @ left / 18), abs=1e-12)


def test_repeated_points_with_equal_labels_can_be_fitted():
    """The kernel is singular, and the labels lie in its range."""
    X = np.array([[1.0, 0.2], [1.0, 0.2], [0.3, 1.0]])
    data = rf.Dataset(X, [1.0, 1.0, -2.0])
    _, net = problem(3, 2, 9, SQUARES[0], seed=1)
    assert rf.flow(data, net, train="linearised").status == "converged"
    torn = rf.flow(rf.Dataset(X, [1.0, 2.0, -2.0]), net, train="linearised")
    assert torn.status == "stationary"
    assert torn.loss[-1] == pytest.approx(0.5 / 6, abs=1e-12)


def test_a_network_that_feels_nothing_stays():
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    net = rf.Network([1.0], [[-1.0, 0.0]])
    run = rf.flow(data, net, train="linearised")
    assert (run.status, run.t.tolist()) == ("stationary", [0.0])
    assert same(run.final, net)


def test_losses_can_be_asked_for():
    data, net = problem(4, 3, 12, SQUARES[0], seed=5)
    run = rf.flow(data, net, train="linearised", stop_log_loss=-1e5)
    assert run.status == "stop_loss"
    assert run.log_loss[-1] == pytest.approx(-1e5, rel=1e-12)
    full = rf.flow(data, net, train="linearised")
    h = full.sample([-np.inf, 0.0, 1.0]).states["outputs"]
    level = SQUARES[0].log_value(h[1], data.y)
    np.testing.assert_allclose(full.at(log_loss=level).a, full.at(1.0).a, atol=1e-12)
    with pytest.raises(rf.InputError, match="outside the span"):
        full.at(log_loss=full.log_loss[0] + 1.0)
    with pytest.raises(rf.InputError, match="outside the span"):
        rf.flow(data, net, train="output", t_end=1.0).at(2.0)


def test_a_run_goes_on_and_comes_back_from_its_file(tmp_path):
    data, net = problem(4, 3, 12, SQUARES[0], seed=5)
    for kind in KINDS:
        part = rf.flow(data, net, train=kind, t_end=1.0, rates=(1.0, 2.0))
        part.save(tmp_path / "part.rf")
        loaded = rf.load(tmp_path / "part.rf")
        check_records(loaded)
        assert same(loaded.at(0.4), part.at(0.4))
        whole = rf.flow(loaded, t_end=3.0)
        assert same(whole.final, rf.flow(data, net, train=kind, t_end=3.0, rates=(1.0, 2.0)).final)
        assert whole.options["train"] == kind


def test_patterns_are_those_of_the_start():
    data, net = problem(6, 3, 30, SQUARES[0], seed=5)
    run = rf.flow(data, net, train="linearised")
    np.testing.assert_array_equal(run.active(-1), (net.W @ data.X.T) > 0.0)
    assert len(run.events) == 0


def test_a_large_network_trains_lazily():
    """Weights multiplied by s, and the model by 1 / s^2, move less and less: the lazy limit."""
    data, net = problem(4, 3, 8, SQUARES[0], seed=5)
    gaps = []
    for s in (4.0, 16.0):
        # a copy with opposite outputs makes the start zero, whatever its size
        twin = rf.Network(s * np.append(net.a, -net.a), s * np.vstack([net.W, net.W]))
        rich = rf.flow(data, twin, stop_loss=1e-12).final.predict(data.X)
        probe = np.array([[0.3, -0.2, 0.5]])
        lazy = rf.limits.kernel(data, twin)
        rich_net = rf.flow(data, twin, stop_loss=1e-16).final
        gaps.append(abs(rich_net.predict(probe)[0] - lazy.predict(probe)[0]))
        np.testing.assert_allclose(rich, data.y, atol=1e-4)
    assert gaps[1] < 0.1 * gaps[0] + 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": "linearised", "on_interrupt": "sleep"}, "`on_interrupt` is 'sleep'"),
        ({"train": "outputs"}, "Did you mean 'output'"),
        ({"rates": 2.0}, "Give a pair"),
        ({"rates": (1.0, 0.0)}, "must be above 0"),
        ({"train": "hidden", "rates": (1.0, 2.0)}, "gives 2 to the output weights"),
        ({"train": "output", "rates": (2.0, 1.0)}, "gives 2 to the hidden weights"),
        ({"train": "output", "t_end": -1.0}, "`t_end` is -1"),
        ({"train": "output", "stop_loss": 1.0, "stop_log_loss": 1.0}, "Give one of them"),
        ({"train": "output", "record": [-1.0]}, "a list of finite times"),
    ],
)
def test_what_cannot_be_done_is_refused(options, message):
    data, net = problem(4, 3, 8, rf.losses.Logistic(), seed=5)
    with pytest.raises(rf.InputError, match=message):
        rf.flow(data, net, **options)


def test_measures_of_plain_runs_say_so():
    data, net = problem(4, 3, 8, SQUARES[0], seed=5)
    run = rf.flow(data, net, train="linearised")
    with pytest.raises(rf.InputError, match="log_max_angle is for networks that train"):
        run.log_max_angle(1.0)
    with pytest.raises(rf.InputError, match="the network linearised"):
        rf.theory.check("correlated", run)
    assert run.status is Status.CONVERGED
