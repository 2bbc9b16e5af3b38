"""Limits of the campaigns: CPU seconds count, those on the wall do not."""

import multiprocessing
import time

import pytest

import reluflow as rf

from .many import Worker
from .own_time import answers, own_seconds


def busy_or_asleep(number):
    while number == 1:
        pass
    time.sleep(1.0)
    return {"verdict": "confirmed"}


@pytest.fixture
def worker():
    worker = Worker(busy_or_asleep)
    yield worker
    worker.close()


def test_a_process_that_waits_does_not_hang_and_one_that_computes_for_ever_does(worker):
    worker.pipe.send(0)
    assert answers(worker.pipe, worker.process, seconds=0.2)
    assert worker.pipe.recv()["verdict"] == "confirmed"
    worker.pipe.send(1)
    assert not answers(worker.pipe, worker.process, seconds=0.2)


def test_a_process_that_dies_answers_nothing():
    worker = Worker(multiprocessing.process.os._exit)
    assert worker.ask(3) == {"number": 3, "verdict": "crashed"}
    worker.close()


def test_max_seconds_counts_the_processor_for_a_while(monkeypatch):
    """A wall clock that runs away ends a flow, unless CPU seconds are counted."""
    data = rf.datasets.from_points([-1.0, 0.5, 2.0], [0.0, 1.0, 0.0])
    net = rf.networks.balanced(2, 5, log_scale=-1.0, seed=0)
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: 1000.0 * next(ticks))
    with own_seconds():
        assert rf.flow(data, net, max_seconds=100.0).status == "converged"
    assert rf.flow(data, net, max_seconds=100.0).status == "budget"
