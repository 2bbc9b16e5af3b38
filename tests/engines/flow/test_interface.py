"""The public face of rf.flow: statuses, stops, records, dense output, continuation, bad input."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import reluflow as rf
from numerics.problems import weights
from reluflow.engines.flow import driver, plateau
from reluflow.errors import InputError
from reluflow.losses import Exponential, Logistic, Square


def regression(seed=0, n=5, d=3, width=8, log_scale=-1.0):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(n, d)), rng.normal(size=n))
    return data, rf.Network(rng.normal(size=width), rng.normal(size=(width, d)), log_scale)


def classification(seed=0, n=5, d=3, width=12, log_scale=-1.0):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n))
    return data, rf.Network(rng.normal(size=width), rng.normal(size=(width, d)), log_scale)


LOSSES = [Square(), Square("1/2"), Exponential(), Logistic()]
IDS = ["square", "square half", "exponential", "logistic"]


def start(loss, seed=0):
    return regression(seed) if isinstance(loss, Square) else classification(seed)


# ---------------------------------------------------------------------- stops


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("t_end", [1e-7, 0.3, 7.3, 1e6])
def test_end_time_is_reached_exactly(loss, t_end):
    data, net = start(loss)
    run = rf.flow(data, net, loss=loss, t_end=t_end)
    assert run.status == "t_end"
    assert run.t[-1] == t_end
    assert run.log_t[-1] == np.log(t_end)
    assert run.t[0] == 0.0
    assert run.log_t[0] == -np.inf
    assert np.isnan(run.limit_error)


def test_end_time_far_beyond_convergence_is_reached():
    data, net = regression()
    run = rf.flow(data, net, t_end=1e12)
    assert run.status == "t_end"
    assert run.t[-1] == 1e12
    limit = rf.flow(data, net)
    np.testing.assert_allclose(weights(run.final), weights(limit.final), atol=1e-7)


def test_a_limit_waits_for_its_end_time_whatever_the_last_digit_of_a_logarithm(monkeypatch):
    """NumPy's logarithm and that of `math` differ in the last digit on some processors."""
    below = SimpleNamespace(log=lambda t: math.nextafter(math.log(t), -math.inf))
    monkeypatch.setattr(driver, "math", below)
    data, net = regression()
    run = rf.flow(data, net, t_end=1e12, max_seconds=20.0)
    assert (run.status, run.t[-1]) == ("t_end", 1e12)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("log_loss", [-4.0, -8.0, -18.0])
def test_loss_asked_for_is_reached_to_nine_digits(loss, log_loss):
    seed = 3 if isinstance(loss, Square) else 2
    data, net = start(loss, seed)
    run = rf.flow(data, net, loss=loss, stop_loss=float(np.exp(log_loss)))
    assert run.status == "stop_loss"
    assert run.log_loss[-1] == pytest.approx(log_loss, abs=1e-9)
    value = loss.value(run.final.predict(data.X), data.y)
    assert np.log(value) == pytest.approx(log_loss, abs=1e-9)
    same = rf.flow(data, net, loss=loss, stop_log_loss=log_loss)
    assert same.t[-1] == pytest.approx(run.t[-1], rel=1e-9)


def test_loss_already_below_the_stop_ends_at_once():
    data, net = regression()
    run = rf.flow(data, net, stop_loss=1e6)
    assert run.status == "stop_loss"
    assert run.t[-1] == 0.0
    np.testing.assert_array_equal(run.final.flat().W, net.flat().W)


def test_end_time_and_loss_together_end_at_the_first():
    data, net = regression(3)
    early = rf.flow(data, net, stop_loss=1e-3)
    assert rf.flow(data, net, stop_loss=1e-3, t_end=0.5 * early.t[-1]).status == "t_end"
    assert rf.flow(data, net, stop_loss=1e-3, t_end=2.0 * early.t[-1]).status == "stop_loss"


def test_stop_above_a_local_minimum_is_never_reached():
    data = rf.datasets.from_points([-0.75, -0.5, 0.125], [1.1, 0.1, 0.8])
    net = rf.networks.balanced(2, 20, log_scale=-3.0, signs="positive", seed=0)
    run = rf.flow(data, net, stop_loss=1e-3)
    assert run.status == "stationary"
    assert run.loss[-1] > 1e-3


def test_classification_without_a_stop_ends_at_a_stated_loss():
    data, net = classification(2)
    run = rf.flow(data, net, loss=Exponential())
    assert run.status == "stop_loss"
    assert run.log_loss[-1] == pytest.approx(-1000.0, rel=1e-9)


def test_event_budget_ends_with_everything_so_far():
    data, net = regression(1, n=8, width=30)
    full = rf.flow(data, net, t_end=10.0)
    assert len(full.events) > 20
    run = rf.flow(data, net, t_end=10.0, max_events=10)
    assert run.status == "budget"
    assert 10 <= len(run.events) < len(full.events)
    # the events of a cut run are those of the full one
    assert run.events["kind"].tolist() == full.events["kind"][: len(run.events)].tolist()
    np.testing.assert_allclose(weights(full.at(run.t[-1])), weights(run.final), rtol=0, atol=1e-7)


def test_time_budget_ends_with_everything_so_far():
    data, net = regression(1, n=8, width=30)
    run = rf.flow(data, net, max_seconds=1e-9)
    assert run.status == "budget"
    assert len(run.t) >= 1
    assert run.t[-1] < rf.flow(data, net).t[-1]


@pytest.mark.parametrize("log_scale", [-1.0, -1000.0])
def test_limit_bound_holds(log_scale):
    data, net = regression(3, log_scale=log_scale)
    run = rf.flow(data, net)
    assert run.status in ("converged", "stationary")
    assert run.limit_error < 1e-6
    tight = rf.flow(data, net, rtol=1e-12)
    # the bound is on the distance to the limit of the path followed, itself right to the tolerance
    gap = np.linalg.norm(weights(run.final) - weights(tight.final))
    assert gap <= run.limit_error + 100 * 1e-8 * np.sqrt(run.final.squared_norm)


# ---------------------------------------------------------------------- records and dense output


@pytest.mark.parametrize("count", [2, 3, 17, 200])
def test_record_count_is_kept(count):
    data, net = regression(1, n=8, width=20)
    run = rf.flow(data, net, record=count)
    assert 2 <= len(run.t) <= count
    assert run.t[0] == 0.0
    full = rf.flow(data, net, record=1000)
    assert run.t[-1] == full.t[-1]
    assert run.status == full.status
    np.testing.assert_array_equal(weights(run.final), weights(full.final))
    for values in (run.t, run.log_t, -run.log_loss):
        assert (np.diff(values) >= -1e-9).all()


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_recorded_times_are_those_asked_for(loss):
    data, net = start(loss, 2)
    times = np.array([0.0, 0.1, 0.7, 2.5, 2.5, 5.0])
    run = rf.flow(data, net, loss=loss, t_end=5.0, record=times)
    np.testing.assert_allclose(run.t, np.unique(times), rtol=1e-15)
    for k, t in enumerate(run.t):
        net_k = run.network(k)
        np.testing.assert_allclose(weights(net_k), weights(run.at(t)), atol=1e-9)
        value = loss.value(net_k.predict(data.X), data.y)
        assert run.log_loss[k] == pytest.approx(np.log(value), abs=1e-9)


def test_recorded_times_beyond_the_end_of_the_run_are_left_out():
    data, net = regression(3)
    run = rf.flow(data, net, stop_loss=1e-2, record=[0.0, 0.01, 1e5])
    assert run.t.tolist() == [0.0, 0.01]
    assert run.status == "stop_loss"
    assert np.log(Square().value(run.final.predict(data.X), data.y)) == pytest.approx(
        np.log(1e-2), abs=1e-8
    )


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_dense_output_is_as_accurate_as_the_run(loss):
    data, net = start(loss, 2)
    run = rf.flow(data, net, loss=loss, t_end=6.0, record=8)
    for t in (1e-3, 0.11, 1.7, 3.3, 5.9):
        direct = rf.flow(data, net, loss=loss, t_end=t, rtol=1e-11).final
        np.testing.assert_allclose(weights(run.at(t)), weights(direct), atol=2e-7)
        np.testing.assert_allclose(weights(run.at(log_t=np.log(t))), weights(direct), atol=2e-7)
    np.testing.assert_array_equal(weights(run.at(6.0)), weights(run.final))
    np.testing.assert_allclose(weights(run.at(0.0)), weights(net), rtol=1e-15)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_network_at_a_loss_has_that_loss(loss):
    data, net = start(loss, 2 if not isinstance(loss, Square) else 3)
    run = rf.flow(data, net, loss=loss, stop_log_loss=-12.0, record=20)
    for share in (0.02, 0.4, 0.9, 1.0):
        target = run.log_loss[0] + share * (run.log_loss[-1] - run.log_loss[0])
        there = run.at(log_loss=target)
        value = loss.value(there.predict(data.X), data.y)
        assert np.log(value) == pytest.approx(target, abs=2e-9)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"t": -1.0}, "outside the span"),
        ({"t": 1e9}, "outside the span"),
        ({"log_t": 50.0}, "outside the span"),
        ({"log_loss": 50.0}, "outside the span"),
        ({"log_loss": -500.0}, "outside the span"),
        ({}, "Give exactly one"),
        ({"t": 1.0, "log_t": 0.0}, "Give exactly one"),
        ({"t": float("nan")}, "`t` is nan"),
    ],
)
def test_state_outside_the_span_is_refused(target, words):
    data, net = regression(3)
    run = rf.flow(data, net, t_end=2.0)
    with pytest.raises(InputError, match=words):
        run.at(**target)


def test_any_time_after_a_certified_limit_gives_the_limit():
    data, net = regression(3)
    run = rf.flow(data, net)
    assert run.status == "converged"
    np.testing.assert_array_equal(weights(run.at(1e300)), weights(run.final))
    np.testing.assert_array_equal(weights(run.at(np.inf)), weights(run.final))


# ---------------------------------------------------------------------- continuation and files


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("split", [0.2, 2.9])
def test_continued_run_equals_one_long_run(loss, split):
    data, net = start(loss, 4)
    whole = rf.flow(data, net, loss=loss, t_end=6.0)
    part = rf.flow(data, net, loss=loss, t_end=split)
    run = rf.flow(part, t_end=6.0)
    np.testing.assert_allclose(weights(run.final), weights(whole.final), atol=1e-7)
    assert run.status == "t_end"
    assert run.events["kind"].tolist() == whole.events["kind"].tolist()
    np.testing.assert_allclose(run.events["t"], whole.events["t"], rtol=1e-5)
    assert (np.diff(run.t) > 0).all()
    assert run.loss_function == loss
    np.testing.assert_allclose(weights(run.at(0.1)), weights(whole.at(0.1)), atol=1e-7)


def test_a_run_whose_time_is_beyond_floats_is_continued():
    data = rf.datasets.from_points([-1.0, 0.5], [1, -1])
    net = rf.networks.gaussian(2, 8, sigma_hidden=0.5, sigma_output=0.5, seed=3)
    run = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-800.0)
    assert np.isinf(run.t[-1])
    longer = rf.flow(run, stop_log_loss=-900.0)
    assert longer.status == "stop_loss"
    assert longer.log_t[-1] > run.log_t[-1]


def test_continuation_of_a_finished_run_ends_at_once():
    data, net = regression(3)
    run = rf.flow(data, net)
    again = rf.flow(run)
    assert again.status == run.status
    np.testing.assert_allclose(weights(again.final), weights(run.final), atol=1e-9)


def test_continuation_backwards_is_refused():
    data, net = regression(3)
    run = rf.flow(data, net, t_end=2.0)
    with pytest.raises(InputError, match="has reached 2"):
        rf.flow(run, t_end=1.0)


@pytest.mark.parametrize("train", ["both", "hidden"])
def test_saved_run_is_the_same_run(tmp_path, train):
    data, net = regression(3)
    run = rf.flow(data, net, t_end=3.0, train=train)
    run.save(tmp_path / "run.zip")
    back = rf.load(tmp_path / "run.zip")
    assert back.status == run.status
    np.testing.assert_array_equal(back.events, run.events)
    np.testing.assert_array_equal(weights(back.at(1.234)), weights(run.at(1.234)))
    longer, other = (rf.flow(one, t_end=4.0) for one in (back, run))
    np.testing.assert_array_equal(weights(longer.final), weights(other.final))


# ---------------------------------------------------------------------- hidden layer only


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize(("n", "d"), [(5, 3), (3, 6)], ids=["d<n", "d>n"])
def test_hidden_training_leaves_output_weights_alone(loss, n, d):
    make = regression if isinstance(loss, Square) else classification
    data, net = make(5, n=n, d=d, width=10, log_scale=-0.5)
    run = rf.flow(data, net, loss=loss, train="hidden", t_end=4.0)
    np.testing.assert_array_equal(run.final.flat().a, net.flat().a)
    assert "flip" not in run.events["kind"]
    # small steps of descent on the hidden layer
    a, W = net.flat().a, net.flat().W.copy()
    for _ in range(8000):
        z = W @ data.X.T
        c = loss.forces(a @ np.maximum(z, 0.0), data.y)
        W += 5e-4 * a[:, None] * (((z > 0) * c) @ data.X)
    np.testing.assert_allclose(run.final.flat().W, W, atol=5e-3)


def test_hidden_training_converges():
    data, net = regression(5, n=3, d=6, width=12, log_scale=0.0)
    run = rf.flow(data, net, train="hidden")
    assert run.status == "converged"
    np.testing.assert_allclose(run.final.predict(data.X), data.y, atol=1e-7)
    assert run.limit_error < 1e-6


# ---------------------------------------------------------------------- what a run tells


def test_statistics_count_the_work():
    data, net = regression(1, n=8, width=20, log_scale=-30.0)
    run = rf.flow(data, net)
    assert run.stats["steps"] > 0
    assert run.stats["evaluations"] >= run.stats["steps"]
    assert run.stats["plateaus"] >= 1
    assert sum(run.stats["events"].values()) == len(run.events)
    assert set(run.stats["seconds"]) >= {"plateau", "coupled"}
    assert run.options["rtol"] == 1e-8


@pytest.mark.parametrize("loss", [Square(), Exponential()])
def test_equal_runs_are_saved_as_equal_bytes(tmp_path, loss):
    data, net = regression(1, n=8, width=20, log_scale=-30.0)
    if loss != Square():
        data = rf.Dataset(data.X, np.sign(data.y))
    stop = -5.0 if loss != Square() else None
    for name in ("one", "two"):
        run = rf.flow(data, net, loss=loss, stop_log_loss=stop, max_events=500)
        assert sum(run.stats["seconds"].values()) > 0.0
        run.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert "seconds" not in rf.load(tmp_path / "one").stats


def test_unknown_statistic_is_a_key_error():
    data, net = regression()
    with pytest.raises(KeyError, match="second"):
        rf.flow(data, net, t_end=1.0).stats["second"]


def test_net_of_the_run_is_the_start_as_given():
    data, net = regression()
    run = rf.flow(data, net, t_end=1.0)
    assert run.net == net
    assert run.data is data


def test_layers_of_different_scale():
    data, net = regression(3, log_scale=0.0)
    split = rf.Network(net.a, net.W, -2.0, log_scale_out=1.5)
    flat = split.flat()
    left, right = (rf.flow(data, one, t_end=3.0) for one in (split, flat))
    np.testing.assert_allclose(weights(left.final), weights(right.final), atol=1e-7)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"t_end": 0.0}, "`t_end`.*above 0"),
        ({"t_end": -1.0}, "`t_end`.*above 0"),
        ({"t_end": float("nan")}, "`t_end`"),
        ({"rtol": 0.0}, "`rtol`"),
        ({"rtol": -1e-8}, "`rtol`"),
        ({"rtol": 9e-14}, "`rtol`"),
        ({"rtol": 0.5}, "`rtol`"),
        ({"stop_loss": 0.0}, "`stop_loss`"),
        ({"stop_loss": -1.0}, "`stop_loss`"),
        ({"stop_loss": 1e-3, "stop_log_loss": -3.0}, "both `stop_loss`.*Give one of them"),
        ({"stop_log_loss": float("nan")}, "`stop_log_loss`"),
        ({"record": 1}, "`record`"),
        ({"record": [-1.0, 2.0]}, "`record`"),
        ({"record": []}, "`record`"),
        ({"record": [0.0, float("inf")]}, "`record`"),
        ({"record": [0.0, 5.0], "t_end": 2.0}, "`record`.*outside"),
        ({"train": "outer"}, "`train`"),
        ({"max_seconds": 0.0}, "`max_seconds`"),
        ({"max_events": -1}, "`max_events`"),
        ({"max_events": 1.5}, "`max_events`"),
    ],
)
def test_contradictory_or_senseless_options_are_refused(options, words):
    data, net = regression()
    with pytest.raises(InputError, match=words):
        rf.flow(data, net, **options)


@pytest.mark.parametrize("loss", [Exponential(), Logistic()], ids=lambda loss: loss.name)
def test_labels_of_a_classifier_must_be_signs(loss):
    data, net = regression()
    with pytest.raises(InputError, match=r"labels|\+-1"):
        rf.flow(data, net, loss=loss)


def test_network_of_another_dimension_is_refused():
    data, _ = regression()
    with pytest.raises(InputError, match="takes 2 inputs but the points have 3"):
        rf.flow(data, rf.Network([1.0], [[1.0, 2.0]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_data_are_refused(bad):
    with pytest.raises(InputError, match="non-finite"):
        rf.Dataset([[bad, 1.0]], [1.0])
    with pytest.raises(InputError, match="non-finite"):
        rf.Network([1.0], [[bad, 1.0]])


def test_swapped_arguments_are_refused():
    data, net = regression()
    with pytest.raises(InputError, match="Pass a Dataset and a Network"):
        rf.flow(net, data)
    with pytest.raises(InputError, match="Pass a Dataset and a Network"):
        rf.flow(data)


def test_layers_too_far_apart_are_refused():
    data, _ = regression()
    with pytest.raises(InputError, match="differ by"):
        rf.flow(data, rf.Network([1.0], [[1.0, 2.0, 3.0]], 0.0, log_scale_out=-700.0))


def test_hidden_training_at_extreme_scales_is_refused():
    data, net = regression()
    for log_scale in (800.0, -800.0):
        with pytest.raises(InputError, match="ordinary scales"):
            rf.flow(data, net.with_scale(log_scale), train="hidden")


@pytest.mark.parametrize("loss", ["square", "exponential", "logistic"])
@pytest.mark.parametrize("log_scale", [300.0, 1000.0])
def test_a_start_whose_outputs_leave_the_range_of_floats_fails(loss, log_scale):
    net = rf.Network([1.0, -1.0], [[0.6, 0.8], [1.0, 0.0]], log_scale)
    run = rf.flow(rf.Dataset(np.eye(2), [1.0, -1.0]), net, loss=loss)
    assert run.status == "failed"
    assert run.reason == "squares of outputs leave the range of floats"
    np.testing.assert_array_equal(run.final.log_norms, net.log_norms)


def test_descent_runs_cannot_be_continued_by_the_flow():
    data, net = regression()
    run = rf.descend(data, net, lr=0.01, steps=5)
    with pytest.raises(InputError):
        rf.flow(run, t_end=10.0)


# ---------------------------------------------------------------------- long plateaus


def deep_problem():
    """A start that crosses planes and slides while it is far too small to be seen."""
    rng = np.random.default_rng(3)
    data = rf.Dataset(rng.normal(size=(12, 3)), rng.normal(size=12))
    return data, rf.networks.balanced(3, 20, log_scale=-40.0, seed=4)


def test_a_plateau_in_many_calls_is_that_of_one(monkeypatch):
    data, net = deep_problem()
    whole = rf.flow(data, net, t_end=30.0)
    monkeypatch.setattr(plateau, "WORK", 1.0)  # a pause after every event
    pauses, pause = [], driver.Flow._pause
    monkeypatch.setattr(driver.Flow, "_pause", lambda flow: (pauses.append(1), pause(flow)))
    parts = rf.flow(data, net, t_end=30.0)
    assert len(pauses) > 50
    for name in ("neuron", "point", "kind"):
        np.testing.assert_array_equal(parts.events[name], whole.events[name])
    np.testing.assert_allclose(parts.events["t"], whole.events["t"], rtol=1e-9)
    np.testing.assert_allclose(parts.final.W, whole.final.W, rtol=1e-8, atol=1e-30)


def test_a_limit_of_time_ends_a_plateau_in_the_middle(monkeypatch):
    data, net = deep_problem()
    seconds = iter([0.0] * 3)  # then an hour has passed

    class Watch:
        def seconds(self):
            return next(seconds, 3600.0)

    monkeypatch.setattr(plateau, "WORK", 1.0)
    monkeypatch.setattr(driver, "Stopwatch", Watch)
    run = rf.flow(data, net, max_seconds=60.0)
    assert run.status == "budget"
    assert run.reason == "max_seconds=60 is reached"
    assert run.stats["plateaus"] == 0
    assert len(run.events) == 0
    np.testing.assert_allclose(run.final.W, net.W, rtol=1e-13)


@pytest.mark.parametrize("log_scale", [14.0, 40.0, 150.0])
def test_outputs_far_above_the_labels_end_soon(log_scale):
    """They react before weights move by what a tolerance allows: steps followed every reaction."""
    rng = np.random.default_rng(1)
    data = rf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    net = rf.networks.balanced(3, 5, log_scale=log_scale, seed=1)
    run = rf.flow(data, net, max_seconds=60.0)
    assert run.stats["steps"] + run.stats["rejected"] < 1000
    if log_scale > 20.0:  # no digit of the labels is left in sums of that size
        assert run.status == "failed"
        assert run.reason == "the outputs of huge weights cancel: their rounding hides the labels"
        return
    assert run.status == "stationary"
    # what each neuron feels at the end, from the outputs, beside what it felt at the start
    end = run.final
    residual = data.y - end.predict(data.X)
    felt = [(data.X @ w > 0.0) * residual @ data.X for w in end.W]
    assert np.abs(felt).max() < 1e-3 * np.abs(data.y).max()
