"""Ctrl-C during a flow: promptly, and what was computed can be had."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import reluflow as rf


@pytest.fixture
def long_problem():
    """A flow of minutes: sliding neurons and a tight tolerance."""
    data = rf.datasets.centred(d=16, seed=0)
    net = rf.networks.balanced(16, width=3000, log_scale=-2.0 * np.log(4.0), seed=1)
    rf.flow(data, rf.networks.balanced(16, width=5, seed=0), t_end=0.1)  # compiles
    return data, net


@pytest.fixture
def ctrl_c():
    """Send SIGINT to this process after a while, whatever handler was inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield timer
    timer.cancel()
    timer.join()
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_a_flow_as_keyboard_interrupt(long_problem, ctrl_c):
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rf.flow(*long_problem, rtol=1e-12)
    assert time.monotonic() - began < 30.0  # not to the end; two seconds on an idle machine


def test_an_interrupted_flow_returns_what_it_has_and_can_be_continued(long_problem, ctrl_c):
    run = rf.flow(*long_problem, rtol=1e-12, on_interrupt="return")
    assert run.status == "interrupted"
    assert "signal" in run.reason
    assert np.isnan(run.limit_error)
    further = rf.flow(run, t_end=run.t[-1] + 1e-3)
    assert further.status == "t_end"


def test_an_unknown_wish_at_an_interrupt_is_refused():
    data = rf.Dataset([[1.0, 0.0]], [1.0])
    with pytest.raises(rf.InputError, match="on_interrupt"):
        rf.flow(data, rf.Network([1.0], [[1.0, 0.0]]), on_interrupt="ignore")
