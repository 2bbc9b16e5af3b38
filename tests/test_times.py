"""Axes of time: paced by events where these crowd, and long first steps are looked into."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures.places import placed
from reluflow.plot import of_runs, times


@pytest.fixture(scope="module")
def deep():
    """A plateau is the first step: the first record after the start is late."""
    data = rf.datasets.orthonormal(4, seed=0)
    net = rf.networks.balanced(4, width=8, log_scale=-100.0, directions="sphere", seed=0)
    return rf.flow(data, net)


def test_a_long_first_step_is_drawn_from_its_beginning(deep):
    x, norms = times.series(deep, lambda run, k: run.network(k).log_norms)
    assert np.isnan(x[0])
    assert (np.diff(x[1:]) > 0.0).all()
    assert x[1] <= deep.log_t[1] / times.LN10 - times.BEFORE + 1e-12
    np.testing.assert_allclose(norms[1], deep.net.log_norms, atol=0.05 * 100.0)
    exact = deep.at(log_t=x[5] * times.LN10).log_norms
    np.testing.assert_allclose(norms[5], exact, atol=1e-6)
    panel = of_runs.norms(deep)
    first = min(layer.x[1] for layer in panel.layers)
    assert first == pytest.approx(times.span([deep])[0], rel=1e-14)  # exp, then log


def test_events_that_crowd_pace_the_axis(deep):
    crowd = np.repeat(deep.events[:1], 40)
    crowd["log_t"] = np.linspace(0.0, 0.1, 40)
    crowd["t"] = np.exp(crowd["log_t"])
    far = rf.flow(deep.data, deep.net.with_scale(-1000.0))
    axis = times.axis([replace(far, events=crowd)])
    assert "paced by events" in axis.label
    first, last = placed([0.0, 0.1 / times.LN10], axis)
    assert last - first > 0.3  # a third of the axis for what is a hundredth of its length
    shown = placed([value for value, _ in axis.ticks], axis)
    assert len(shown) >= 4
    assert (np.diff(shown) > 0.05).all()


def test_few_events_leave_the_axis_straight():
    data = rf.datasets.centred(d=3, seed=0)
    run = rf.flow(data, rf.networks.balanced(3, width=2, log_scale=-2.0, seed=0), t_end=5.0)
    assert times.axis([run]).pace == ()


def test_descent_shows_its_start_as_iteration_0():
    data = rf.datasets.centred(d=3, seed=0)
    net = rf.networks.balanced(3, width=5, log_scale=-2.0, seed=0)
    run = rf.descend(data, net, lr=0.1, steps=200)
    axis = times.axis([run])
    assert axis.ticks[:2] == ((times.START, "0"), (0.0, "1"))
    panel = of_runs.raster(run)
    raster = panel.layers[0]
    assert raster.x[0] == pytest.approx(times.START)
    pairs = of_runs.busiest_pairs(run)
    start = run.modes(t=0.0)
    assert raster.z[:, 0].tolist() == [start[j, i] for j, i in pairs]
