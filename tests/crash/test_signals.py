"""Ctrl-C and SIGTERM at random moments: prompt, never stored as a failure, resumed to the end.

Inline the signal hits compiled code, or what comes before it; with workers it comes once they have
begun.
"""

import random
import re
import signal
import time

import psutil
import pytest

from crash.cpu import ENDS_S, End, used, work
from crash.test_killed_driver import finish, start
from reluflow.sweeps import Store, execute
from sweeps.helpers import computed, contents, plan, training

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONG = pytest.mark.long
WITHIN_S = 1.5  # of the CPU: to load the kernels takes half of it


def interrupt(process, number):
    """Send a signal; how long the driver took to end, and how many points it had computed.

    Both are None if it had ended by itself. Before the sweep begins, and when it is over, a signal
    does to Python what it always does: then the points are 0.
    """
    if process.poll() is not None:
        return None, None
    children = psutil.Process(process.pid).children(recursive=True)
    sent, before = time.monotonic(), used() + used(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)  # two seconds on an idle machine
    took = End(time.monotonic() - sent, used() - before)
    points = re.match(rb"stopped after (\d+) points of this call", errors)
    if process.returncode not in (0, -number):
        assert b"Run the same again to continue" in errors, errors.decode()
        assert process.returncode == 1
    psutil.wait_procs(children, timeout=20)
    assert not any(child.is_running() for child in children), "workers outlived their driver"
    return took, int(points[1]) if points else 0


def survive(folder, plan, *, signals, workers, seed):
    """Interrupt at work and resume, so many times; how long each end took.

    A signal that came before the first point or after the last one does not count as one at work,
    but what it leaves is looked at.
    """
    generator, store, log = random.Random(seed), folder / "store", folder / "log"
    task, points, at_work, took = "square" if workers else "train", len(plan), 0, []
    while at_work < signals:
        stored, before = contents(store), len(computed(log))
        process = start(task, store, points, workers, log)
        process.stdout.readline()
        if workers:
            while len(computed(log)) == before and process.poll() is None:
                time.sleep(0.01)
            time.sleep(generator.uniform(0.0, 0.5))
        else:
            work(process, generator.uniform(0.0, WITHIN_S))
        end, reached = interrupt(process, SIGNALS[len(took) % 2])
        assert process.returncode != 0, "the plan is too short for so many signals"
        took.append(end)
        at_work += reached > 0
        if process.returncode < 0:
            assert len(contents(store)) in (len(stored), points), "it ended without a word"
        assert Store(store).summary().keys() <= {"steps", "done"}, "a failure was stored"
        assert stored.items() <= contents(store).items(), "a stored result was lost"
        assert len(contents(store)) >= len(stored) + reached, "it said more than it had stored"
    finish(start(task, store, points, workers, log))
    execute(plan, folder / "calm", workers=0)
    assert contents(store) == contents(folder / "calm")
    assert list(Store(store).rows()) == list(Store(folder / "calm").rows())
    wall, cpu = (max(seconds) for seconds in zip(*took, strict=True))
    print(f"{at_work} signals at work, {len(took) - at_work} before it")
    print(f"the slowest end after {wall:.2f} s, and {cpu:.2f} s of the CPU")
    assert workers or cpu < ENDS_S
    return {
        "signals": at_work,
        "before_work": len(took) - at_work,
        "slowest_s": wall,
        "slowest_cpu_s": cpu,
    }


@pytest.mark.parametrize(
    ("workers", "signals", "points"),
    [
        (0, 6, 600),
        (2, 2, 600),
        pytest.param(0, 400, 36_000, marks=LONG),
        pytest.param(2, 40, 8000, marks=LONG),
    ],
)
def test_a_sweep_stopped_by_signals_is_resumed(tmp_path, workers, signals, points):
    points = plan("square", points, pause=0.003) if workers else training(points)
    found = survive(tmp_path, points, signals=signals, workers=workers, seed=0)
    assert found["signals"] == signals
