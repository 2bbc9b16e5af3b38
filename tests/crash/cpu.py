"""Time by the CPU: a process beside others gets as far in it as one that is alone."""

import resource
import time
from contextlib import suppress
from typing import NamedTuple

import psutil

ENDS_S = 2.0  # of the CPU: all of it on a machine that does nothing else


class End(NamedTuple):
    """Seconds from the signal to the end of a process: on the wall, and of the CPU it used."""

    wall_s: float
    cpu_s: float


def used(process=None):
    """CPU seconds of a process that is under way, or of all that are over."""
    if process is None:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime
    with suppress(psutil.NoSuchProcess):
        times = psutil.Process(process.pid).cpu_times()
        return times.user + times.system
    return 0.0


def work(process, seconds):
    """Wait until a process has used so many CPU seconds more, or is over."""
    end = used(process) + seconds
    while process.poll() is None and used(process) < end:
        time.sleep(0.005)
