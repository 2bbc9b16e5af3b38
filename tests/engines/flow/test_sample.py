"""Many times of a run in one sweep, and a run that its caller stops."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf

DATA = rf.datasets.from_points([-1.5, -0.4, 0.6, 1.7], [1.0, -0.5, 0.8, 0.2])


@pytest.mark.parametrize("log_scale", [0.0, -10.0, -1000.0])
def test_a_sweep_finds_the_networks_that_single_questions_find(log_scale):
    run = rf.flow(DATA, rf.networks.balanced(2, 8, log_scale=log_scale, seed=3), rtol=1e-10)
    times = np.linspace(run.log_t[1], run.log_t[-1], 23)
    swept = run.sample(times)
    assert swept.log_t == pytest.approx(times, rel=1e-12, abs=1e-12)
    for k, log_t in enumerate(times):
        alone = run.at(log_t=log_t)
        assert swept.network(k).log_norms == pytest.approx(alone.log_norms, rel=1e-7, abs=1e-6)
        assert swept.network(k).predict(DATA.X) == pytest.approx(alone.predict(DATA.X), abs=1e-7)


def test_a_time_is_reached_though_the_clock_is_late():
    """Classes from exp(-1e6): the clock is at 6e6 by the end, and ticks in steps of 1e-9."""
    data = rf.datasets.from_points([-2.2, -1.4, -0.5, 0.4, 1.2, 2.0], [-1, -1, 1, 1, -1, -1])
    net = rf.networks.balanced(2, 30, log_scale=-1e6, seed=4)
    run = rf.flow(data, net, loss="exponential", stop_log_loss=-50.0)
    assert run.kept["clock"][-1] > 1e6
    times = 0.5 * (run.log_t[-12:-1] + run.log_t[-11:])
    swept = run.sample(times)
    assert swept.log_t == pytest.approx(times, rel=1e-9)
    assert (np.diff(swept.log_loss) < 0.0).all()


def test_times_beyond_the_range_of_floats_are_reached():
    """One neuron and one point: h' = 2 h exp(-h), so t = (Ei(h) - Ei(1)) / 2, a series here."""
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([1.0], [[1.0]])
    run = rf.flow(data, net, loss="exponential", stop_log_loss=-2000.0)
    assert run.t[-1] == np.inf
    times = [400.0, 900.0, 1500.0]
    swept = run.sample(times)
    for k, log_t in enumerate(times):
        h = float(swept.network(k).predict([[1.0]])[0])
        series = 1.0 + 1.0 / h + 2.0 / h**2 + 6.0 / h**3 + 24.0 / h**4
        assert h - np.log(2.0 * h) + np.log(series) == pytest.approx(log_t, abs=1e-6)
        assert run.at(log_t=log_t).predict([[1.0]])[0] == pytest.approx(h, rel=1e-7)


def test_a_time_before_the_first_record_is_reached():
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([1.0], [[1.0]])
    run = rf.flow(data, net, loss="exponential", stop_log_loss=-30.0)
    late = replace(
        run,
        kept={name: kept[2:] for name, kept in run.kept.items()},
        t=run.t[2:], log_t=run.log_t[2:], log_loss=run.log_loss[2:],
    )  # fmt: skip
    for log_t in (-2.0, 0.5 * (run.log_t[1] + run.log_t[2])):
        expected = run.at(log_t=log_t).predict([[1.0]])
        assert late.at(log_t=log_t).predict([[1.0]]) == pytest.approx(expected, rel=1e-7)
        swept = late.sample([log_t]).network(0)
        assert swept.predict([[1.0]]) == pytest.approx(expected, rel=1e-7)


def test_a_thinned_run_is_swept_like_a_full_one():
    net = rf.networks.balanced(2, 8, log_scale=-5.0, seed=3)
    full, thin = (rf.flow(DATA, net, rtol=1e-10, record=count) for count in (400, 4))
    times = np.linspace(full.log_t[2], full.log_t[-2], 11)
    one, other = full.sample(times), thin.sample(times)
    assert len(thin.t) <= 4
    assert one.log_loss == pytest.approx(other.log_loss, abs=1e-5)
    for k in range(len(times)):
        expected = one.network(k).predict(DATA.X)
        assert other.network(k).predict(DATA.X) == pytest.approx(expected, abs=1e-7)


def test_times_are_sorted_the_start_is_minus_infinity_and_the_limit_stays():
    run = rf.flow(DATA, rf.networks.balanced(2, 8, seed=3))
    assert run.status in ("converged", "stationary")
    swept = run.sample([np.inf, 0.0, -np.inf, 0.0])
    assert swept.log_t.tolist() == [-np.inf, 0.0, run.log_t[-1]]
    for k, net in ((0, run.net), (2, run.final)):
        assert swept.network(k).log_norms == pytest.approx(net.log_norms, rel=1e-14, abs=1e-14)
        assert swept.network(k).directions == pytest.approx(net.directions, rel=1e-14, abs=1e-14)


def test_a_time_after_the_end_of_a_run_without_a_limit_is_refused():
    run = rf.flow(DATA, rf.networks.balanced(2, 8, seed=3), t_end=2.0)
    with pytest.raises(rf.InputError, match="after the end of the run"):
        run.sample([1.0])
    with pytest.raises(rf.InputError, match="list of numbers"):
        run.sample([np.nan])


def test_descent_is_told_what_to_use_instead():
    run = rf.descend(DATA, rf.networks.balanced(2, 8, seed=3), lr=0.01, steps=5)
    with pytest.raises(rf.InputError, match="record="):
        run.sample([0.0])


def test_a_caller_stops_a_run_between_steps_and_can_go_on():
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 7

    run = rf.flow(DATA, rf.networks.balanced(2, 8, seed=3), stop=stop)
    assert run.status == "interrupted"
    assert "stop" in run.reason
    assert len(asked) == 8
    assert len(run.t) == 8  # the start and one record a step
    whole = rf.flow(run)
    assert whole.status == rf.flow(DATA, run.net).status
    assert len(run.sample(run.log_t, stop=lambda: True).t) == 1
