"""Workers die at Poisson times by three signals, or stop and wake: every result is right."""

import random
import signal
import threading
import time

import dask
import psutil
import pytest

from reluflow.sweeps import Store, execute, pack
from sweeps.helpers import contents, plan, worker_processes

DEATHS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
LONG = pytest.mark.long


def disturb(stop, seed, mean_s, act):
    """Do ``act`` to a random worker at Poisson times until told to stop."""
    generator = random.Random(seed)
    while not stop.wait(generator.expovariate(1 / mean_s)):
        workers = worker_processes()
        if workers:
            try:
                act(generator.choice(workers), generator)
            except psutil.NoSuchProcess:
                continue


def disturbed(work, store, act, mean_s, seed):
    """Execute while somebody disturbs the workers."""
    stop = threading.Event()
    thread = threading.Thread(target=disturb, args=(stop, seed, mean_s, act))
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
    ("wanted", "points", "mean_s"), [(2, 300, 4.0), pytest.param(1000, 1500, 2.0, marks=LONG)]
)
def test_workers_that_die_all_the_time(tmp_path, wanted, points, mean_s):
    deaths, work = [], plan("square", points, pause=0.05)
    execute(work, tmp_path / "calm", workers=0)

    def kill(worker, generator):
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
def test_a_worker_that_stops_and_wakes_answers_late_and_counts_once(tmp_path, wanted, points):
    """The scheduler gives it up after two seconds; it wakes after four."""
    stops, work = [], plan("square", points, pause=0.05)

    def pause(worker, generator):
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
