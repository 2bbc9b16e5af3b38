"""Ctrl-C and SIGTERM at random moments: prompt, never stored as a failure, resumed to the end."""

import random
import signal
import time

import psutil
import pytest

from crash.test_killed_driver import finish, start
from reluflow.sweeps import Store, execute
from sweeps.helpers import contents, training

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def interrupt(process, delay, number):
    """Send a signal; how long the driver then took to end, None if it had ended by itself."""
    assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
    time.sleep(delay)
    if process.poll() is not None:
        return None
    children = psutil.Process(process.pid).children(recursive=True)
    sent = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    took = time.monotonic() - sent
    if process.returncode != 0:
        assert "Run the same again to continue" in errors.decode(), errors.decode()
        assert process.returncode == 1
    psutil.wait_procs(children, timeout=20)
    assert not any(child.is_running() for child in children), "workers outlived their driver"
    return took


def survive(folder, *, signals, points, workers, longest):
    """Interrupt and resume; how long each end took."""
    generator, store, took = random.Random(signals), folder / "store", []
    for k in range(signals):
        stored = contents(store)
        process = start("train", store, points, workers, folder / "log")
        took.append(interrupt(process, generator.uniform(0.0, longest), SIGNALS[k % 2]))
        assert Store(store).summary().keys() <= {"steps"}, "a signal was stored as a failure"
        assert stored.items() <= contents(store).items(), "a stored result was lost"
    finish(start("train", store, points, workers, folder / "log"))
    execute(training(points), folder / "calm", workers=0)
    assert contents(store) == contents(folder / "calm")
    assert list(Store(store).rows()) == list(Store(folder / "calm").rows())
    return [seconds for seconds in took if seconds is not None]


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("workers", "signals", "points", "longest"),
    [
        (0, 6, 40, 0.5),
        (2, 2, 60, 4.0),
        pytest.param(0, 400, 4000, 0.5, marks=LONG),
        pytest.param(2, 40, 1000, 4.0, marks=LONG),
    ],
)
def test_a_sweep_stopped_by_signals_is_resumed(tmp_path, workers, signals, points, longest):
    took = survive(tmp_path, signals=signals, points=points, workers=workers, longest=longest)
    print(f"{len(took)} signals, the slowest end after {max(took):.2f} s (aim: 2)")
    assert len(took) >= signals // 2
    assert max(took) < 5.0
