"""Workers die at Poisson times by three signals, or stop and wake: every result is right."""

import os
import random
import signal
import threading
import time
from contextlib import suppress

import dask
import psutil
import pytest

from reluflow.sweeps import Store, execute, pack
from sweeps.helpers import LOG, computed, contents, plan, worker_processes

DEATHS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
LONG = pytest.mark.long


def disturb(stop, seed, mean_s, act, log):
    """Do ``act`` to a random worker at Poisson times, once there was progress since the last."""
    generator, seen = random.Random(seed), len(computed(log))
    while not stop.wait(generator.expovariate(1 / mean_s)):
        with suppress(psutil.NoSuchProcess):  # one may end by itself while it is looked at
            workers, now = worker_processes(), len(computed(log))
            if workers and now > seen:
                seen = now
                act(generator.choice(workers), generator)


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setenv(LOG, str(path))
    return path


def disturbed(work, store, act, mean_s, seed):
    """Execute while somebody disturbs the workers."""
    stop, log = threading.Event(), os.environ[LOG]
    thread = threading.Thread(target=disturb, args=(stop, seed, mean_s, act, log))
    thread.start()
    try:
        return execute(work, store, workers=2)
    finally:
        stop.set()
        thread.join()


def records(store):
    """How many results the store holds, each counted as often as it was written."""
    return sum(
        span.row is not None
        for path in (store / "packs").iterdir()
        for span in pack.scan(path.read_bytes())
    )


@pytest.mark.parametrize(
    ("wanted", "points", "mean_s"), [(2, 200, 0.5), pytest.param(1000, 1500, 2.0, marks=LONG)]
)
def test_workers_that_die_all_the_time(tmp_path, log, wanted, points, mean_s):
    deaths, work = [], plan("square", points, pause=0.05)
    execute(work, tmp_path / "calm", workers=0)

    def kill(worker, generator):
        if len(deaths) < wanted:
            worker.send_signal(generator.choice(DEATHS))
            deaths.append(worker.pid)

    for turn in range(1000):
        store = tmp_path / str(turn)
        first = disturbed(work, store, kill, mean_s, turn)
        assert first.failed == 0
        assert first.computed + first.set_aside == points
        last = execute(work, store, workers=0, retry_failed=True)
        assert last.computed == first.set_aside  # three deaths by chance: computed when it is calm
        assert contents(store) == contents(tmp_path / "calm")
        assert list(Store(store).rows()) == list(Store(tmp_path / "calm").rows())
        assert records(store) == points
        if len(deaths) >= wanted:
            break
    print(f"{len(deaths)} deaths, {turn + 1} sweeps of {points} points")


@pytest.mark.parametrize(("wanted", "points"), [(2, 150), pytest.param(50, 1500, marks=LONG)])
def test_a_worker_that_stops_and_wakes_answers_late_and_counts_once(tmp_path, log, wanted, points):
    """The scheduler gives it up after two seconds; it wakes after four."""
    stops, work = [], plan("square", points, pause=0.05)

    def pause(worker, generator):
        if len(stops) < wanted:
            worker.suspend()
            stops.append(worker.pid)
            time.sleep(4.0)
            worker.resume()

    with dask.config.set({"distributed.scheduler.worker-ttl": "2s"}):
        for turn in range(50):
            store = tmp_path / str(turn)
            first = disturbed(work, store, pause, 0.5, turn)
            assert (first.failed, first.computed + first.set_aside) == (0, points)
            execute(work, store, workers=0, retry_failed=True)
            assert records(store) == points
            assert Store(store).summary() == {"done": points}
            if len(stops) >= wanted:
                break
    execute(work, tmp_path / "calm", workers=0)
    assert contents(store) == contents(tmp_path / "calm")
    print(f"{len(stops)} stops, {turn + 1} sweeps of {points} points")
