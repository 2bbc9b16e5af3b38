"""Work that takes long says so before it begins, and short work does not."""

import itertools
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines import request
from reluflow.engines.descent import run as descent_run
from reluflow.errors import ReluflowWarning


def flow_of(n, d, m, **options):
    shape = {"is_square": True, "explicit": False, "to_the_end": True, "limit_s": np.inf}
    request.announce_flow(n, d, m, **{**shape, **options})


@pytest.mark.parametrize("shape", [(6, 2, 100_000), (300, 20, 200), (64, 64, 2000), (1, 1, 1)])
def test_ordinary_flows_say_nothing(monkeypatch, shape):
    monkeypatch.setattr(request, "memory", lambda: 2.0**33)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flow_of(*shape, explicit=shape[0] >= 200)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((3000, 3000, 100), {}),
        ((3000, 20, 100), {"explicit": True}),
        ((1000, 5, 50), {"is_square": False}),
        ((5, 10, 10_000_000), {}),
    ],
)
def test_long_flows_say_how_long_and_what_would_be_shorter(monkeypatch, shape, options):
    monkeypatch.setattr(request, "memory", lambda: np.inf)
    with pytest.warns(ReluflowWarning, match=r"will take about \d+ (minutes|hours|days)") as told:
        flow_of(*shape, **options)
    assert f"{shape[0]} points" in str(told[0].message)
    assert "`t_end`" in str(told[0].message)


def test_a_flow_to_a_given_time_is_not_one_to_the_end():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flow_of(3000, 20, 100, explicit=True, to_the_end=False)
        flow_of(3000, 20, 100, explicit=True, limit_s=60.0)


def test_what_does_not_fit_into_memory_is_told(monkeypatch):
    monkeypatch.setattr(request, "memory", lambda: 2.0**32)
    with pytest.warns(ReluflowWarning, match=r"about 10 GB, and this machine has 4"):
        flow_of(10_000, 2, 10, limit_s=1.0)


def test_the_memory_of_this_machine_is_known():
    assert 2**28 < request.memory() < 2**60


def test_the_flow_asks_before_it_begins(monkeypatch):
    """The first sentence comes before the first step."""
    monkeypatch.setattr(request, "LONG_S", 1e-3)
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([0.5], [[0.5]])
    with pytest.warns(ReluflowWarning, match="1 points, 1 inputs and 1 neurons"):
        rf.flow(data, net)


def test_a_descent_is_measured_and_told_once(monkeypatch):
    monkeypatch.setattr(request, "LONG_S", 0.1)
    monkeypatch.setattr(descent_run, "MEASURE_S", 0.005)
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([1e-3], [[1e-3]])
    with pytest.warns(ReluflowWarning, match=r"A descent of 1e\+15 steps will take") as told:
        run = rf.descend(data, net, lr=1e-12, steps=10**15, max_seconds=0.8)
    assert run.status == "budget"
    assert len(told) == 1


def test_a_descent_with_a_stop_ends_when_it_ends(monkeypatch):
    monkeypatch.setattr(request, "LONG_S", 0.1)
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([1e-3], [[1e-3]])
    run = rf.descend(data, net, lr=1e-12, steps=10**15, max_seconds=0.8, stop_loss=1e-9)
    assert run.status == "budget"


def test_a_busy_machine_does_not_make_a_descent_long(monkeypatch):
    """The clock runs on while others have the processor, in the first steps above all."""
    clock = itertools.count(step=100.0)
    monkeypatch.setattr(
        descent_run,
        "time",
        SimpleNamespace(monotonic=lambda: next(clock), thread_time=time.thread_time),
    )
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([1e-3], [[1e-3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rf.descend(data, net, lr=1e-3, steps=50, record=3).status == "steps"
