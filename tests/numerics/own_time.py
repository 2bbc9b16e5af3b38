"""Limits in CPU seconds: beside other work the time on the wall says nothing about a problem."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace

import psutil

from reluflow.kernels import compiling

ASLEEP_S = 1800.0  # on the wall without any CPU: a process that waits for ever


@contextmanager
def own_seconds():
    """Inside, ``max_seconds`` of a flow counts CPU seconds of this process."""
    before, compiling.time = compiling.time, SimpleNamespace(perf_counter=time.process_time)
    try:
        yield
    finally:
        compiling.time = before


def answers(pipe, process, seconds):
    """Whether a process answers, or ends, before it has used so many more CPU seconds."""
    began = used = _used(process)
    late = time.monotonic() + ASLEEP_S
    while not pipe.poll(0.5):
        before, used = used, _used(process)
        if used > before:
            late = time.monotonic() + ASLEEP_S
        if used - began > seconds or time.monotonic() > late:
            return False
    return True


def _used(process):
    """CPU seconds of a process; infinite once it is over, which its pipe tells first."""
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess:
        return float("inf")
    return times.user + times.system
