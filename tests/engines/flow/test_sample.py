"""Many times of a run in one sweep, and a run that its caller stops."""

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
