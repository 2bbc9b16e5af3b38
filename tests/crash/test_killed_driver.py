"""The driver is killed with SIGKILL at random moments and started again until it is done.

Nothing that was stored is lost or computed again, and the end is that of an undisturbed run.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from reluflow.sweeps import Store, execute
from sweeps.helpers import LOG, computed, contents, paths, plan, unfinished

HERE = Path(__file__).parent


def start(task, store, points, workers, log):
    environment = {**os.environ, "PYTHONPATH": paths(), LOG: str(log)}
    command = [sys.executable, HERE / "driver.py", task, store, str(points), str(workers)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process):
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def kill_while_it_works(process, log, delay):
    """Kill at a random moment after the first computation of this life; returns its children."""
    before = len(computed(log))
    while len(computed(log)) == before and process.poll() is None:
        time.sleep(0.002)
    time.sleep(delay)
    children = (
        psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    )
    process.kill()
    process.communicate()
    return children


def survive(folder, *, kills, points, workers, seed):
    """Kill and resume; returns how many of the kills hit a sweep at work."""
    generator, store, log, hits = random.Random(seed), folder / "store", folder / "log", 0
    xs = {point.id: point.parameters["x"] for point in plan("square", points, pause=0.003).points}
    for _ in range(kills):
        stored, logged = contents(store), len(computed(log))
        process = start("square", store, points, workers, log)
        children = kill_while_it_works(process, log, generator.uniform(0.0, 0.25))
        hits += process.returncode == -signal.SIGKILL
        psutil.wait_procs(children, timeout=20)
        assert not any(child.is_running() for child in children), "workers outlived their driver"
        assert stored.items() <= contents(store).items(), "a stored result was lost"
        again = {xs[name] for name in stored} & set(computed(log)[logged:])
        assert not again, "a stored result was computed again"
    finish(start("square", store, points, workers, log))
    execute(plan("square", points, pause=0.003), folder / "calm", workers=0)
    assert contents(store) == contents(folder / "calm")
    assert unfinished(store) == []
    ended, calm = Store(store), Store(folder / "calm")
    assert list(ended.rows()) == list(calm.rows())
    assert ended.refresh() == []
    return hits


@pytest.mark.parametrize(("workers", "kills"), [(0, 3), (2, 1)])
def test_a_killed_driver_is_resumed(tmp_path, workers, kills):
    assert survive(tmp_path, kills=kills, points=120, workers=workers, seed=workers) >= 1


@pytest.mark.long
@pytest.mark.parametrize(("workers", "kills", "points"), [(0, 400, 24_000), (2, 100, 12_000)])
def test_a_driver_killed_many_times_is_resumed(tmp_path, workers, kills, points):
    hits = survive(tmp_path, kills=kills, points=points, workers=workers, seed=workers)
    assert hits == kills


def test_a_second_driver_is_refused_while_the_first_lives(tmp_path):
    log = tmp_path / "log"
    first = start("square", tmp_path / "store", 400, 0, log)
    while not computed(log):
        assert first.poll() is None
        time.sleep(0.002)
    second = start("square", tmp_path / "store", 400, 0, tmp_path / "other")
    _, errors = second.communicate()
    first.kill()
    first.communicate()
    assert second.returncode != 0
    assert f"in use by process {first.pid} on" in errors.decode()
    assert computed(tmp_path / "other") == []
