"""Workers die at Poisson times by three signals, or stop and wake: every result is right."""

import os
import random
import signal
import threading
import time
from contextlib import suppress

import dask
import distributed  # noqa: F401  its settings must be there before one of them is changed for a time
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


def disturbed(work, store, act, mean_s, seed):
    """Execute while somebody disturbs the workers."""
    stop, log = threading.Event(), store.with_suffix(".log")
    before, os.environ[LOG] = os.environ.get(LOG), str(log)
    thread = threading.Thread(target=disturb, args=(stop, seed, mean_s, act, log))
    thread.start()
    try:
        return execute(work, store, workers=2)
    finally:
        stop.set()
        thread.join()
        del os.environ[LOG]
        os.environ.update({} if before is None else {LOG: before})


def records(store):
    """How many results the store holds, each counted as often as it was written."""
    return sum(
        span.row is not None
        for path in (store / "packs").iterdir()
        for span in pack.scan(path.read_bytes())
    )


def die(folder, *, wanted, points, mean_s, seed):
    """Kill so many workers; every sweep ends with the results of a calm one."""
    deaths, work, turn = [], plan("square", points, pause=0.05), 0
    execute(work, folder / "calm", workers=0)

    def kill(worker, generator):
        if len(deaths) < wanted:
            worker.send_signal(generator.choice(DEATHS))
            deaths.append(worker.pid)

    while len(deaths) < wanted:
        store, turn = folder / str(turn), turn + 1
        first = disturbed(work, store, kill, mean_s, seed + turn)
        assert first.failed == 0
        assert first.computed + first.set_aside == points
        last = execute(work, store, workers=0, retry_failed=True)
        assert last.computed == first.set_aside  # three deaths by chance: computed when it is calm
        assert contents(store) == contents(folder / "calm")
        assert list(Store(store).rows()) == list(Store(folder / "calm").rows())
        assert records(store) == points
    print(f"{len(deaths)} deaths, {turn} sweeps of {points} points")
    return len(deaths)


def stop_and_wake(folder, *, wanted, points, seed):
    """Stop so many workers; the scheduler gives each up after two seconds, it wakes after four."""
    stops, work, turn = [], plan("square", points, pause=0.05), 0
    execute(work, folder / "calm", workers=0)

    def pause(worker, generator):
        if len(stops) < wanted:
            worker.suspend()
            stops.append(worker.pid)
            time.sleep(4.0)
            worker.resume()

    with dask.config.set({"distributed.scheduler.worker-ttl": "2s"}):
        while len(stops) < wanted:
            store, turn = folder / str(turn), turn + 1
            first = disturbed(work, store, pause, 0.5, seed + turn)
            assert (first.failed, first.computed + first.set_aside) == (0, points)
            execute(work, store, workers=0, retry_failed=True)
            assert records(store) == points
            assert Store(store).summary() == {"done": points}
            assert contents(store) == contents(folder / "calm")
    print(f"{len(stops)} stops, {turn} sweeps of {points} points")
    return len(stops)


@pytest.mark.parametrize(
    ("wanted", "points", "mean_s"), [(2, 200, 0.5), pytest.param(1000, 1500, 2.0, marks=LONG)]
)
def test_workers_that_die_all_the_time(tmp_path, wanted, points, mean_s):
    assert die(tmp_path, wanted=wanted, points=points, mean_s=mean_s, seed=0) == wanted


@pytest.mark.parametrize(("wanted", "points"), [(2, 150), pytest.param(50, 1500, marks=LONG)])
def test_a_worker_that_stops_and_wakes_answers_late_and_counts_once(tmp_path, wanted, points):
    assert stop_and_wake(tmp_path, wanted=wanted, points=points, seed=0) == wanted
