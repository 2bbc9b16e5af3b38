"""Ctrl-C and SIGTERM at random moments: prompt, never stored as a failure, resumed to the end.

Inline the signal hits compiled code; with workers it comes once they have begun.
"""

import random
import signal
import time

import psutil
import pytest

from crash.test_killed_driver import finish, start
from reluflow.sweeps import Store, execute
from sweeps.helpers import computed, contents, plan, training

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONG = pytest.mark.long


def interrupt(process, delay, number):
    """Send a signal; how long the driver then took to end, None if it had ended by itself.

    Before the sweep begins, and when it is over, a signal does to Python what it always does.
    """
    time.sleep(delay)
    if process.poll() is not None:
        return None
    children = psutil.Process(process.pid).children(recursive=True)
    sent = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)  # two seconds on an idle machine
    took = time.monotonic() - sent
    if process.returncode not in (0, -number):
        assert "Run the same again to continue" in errors.decode(), errors.decode()
        assert process.returncode == 1
    psutil.wait_procs(children, timeout=20)
    assert not any(child.is_running() for child in children), "workers outlived their driver"
    return took


def survive(folder, work, *, signals, workers, seed):
    """Interrupt and resume; how long each end took."""
    generator, store, log, took = random.Random(seed), folder / "store", folder / "log", []
    task, points = ("square", len(work)) if workers else ("train", len(work))
    for k in range(signals):
        stored, before = contents(store), len(computed(log))
        process = start(task, store, points, workers, log)
        process.stdout.readline()
        while workers and len(computed(log)) == before and process.poll() is None:
            time.sleep(0.01)
        took.append(interrupt(process, generator.uniform(0.0, 0.5), SIGNALS[k % 2]))
        if process.returncode < 0:
            assert len(contents(store)) in (len(stored), points), "it ended without a word"
        assert Store(store).summary().keys() <= {"steps", "done"}, "a failure was stored"
        assert stored.items() <= contents(store).items(), "a stored result was lost"
    finish(start(task, store, points, workers, log))
    execute(work, folder / "calm", workers=0)
    assert contents(store) == contents(folder / "calm")
    assert list(Store(store).rows()) == list(Store(folder / "calm").rows())
    return [seconds for seconds in took if seconds is not None]


@pytest.mark.parametrize(
    ("workers", "signals", "points"),
    [
        (0, 6, 60),
        (2, 2, 600),
        pytest.param(0, 400, 4000, marks=LONG),
        pytest.param(2, 40, 8000, marks=LONG),
    ],
)
def test_a_sweep_stopped_by_signals_is_resumed(tmp_path, workers, signals, points):
    work = plan("square", points, pause=0.003) if workers else training(points)
    took = survive(tmp_path, work, signals=signals, workers=workers, seed=0)
    print(f"{len(took)} signals, the slowest end after {max(took):.2f} s (aim: 2)")
    assert len(took) >= signals // 2
