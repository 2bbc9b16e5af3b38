"""Executing inline: only what is missing, failures kept, interruptions survived."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import reluflow.engines.progress
from reluflow.errors import FileError, InputError, ReluflowWarning
from reluflow.sweeps import Interrupted, Plan, Point, Store, execute
from reluflow.sweeps.compute import ONE_THREAD, pinned
from sweeps.helpers import LOG, SWEEP, computed, contents, hear_interrupts, plan


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setenv(LOG, str(path))
    return path


def test_every_point_is_computed_once(tmp_path, log):
    first = execute(plan("square", 5), tmp_path / "s", workers=0)
    second = execute(plan("square", 8), Store(tmp_path / "s"), workers=0)
    third = execute(plan("square", 8), tmp_path / "s", workers=0)
    assert (first.planned, first.computed, first.done_before, first.tried) == (5, 5, 0, 5)
    assert (second.planned, second.computed, second.done_before) == (8, 3, 5)
    assert (third.computed, third.tried, third.done_before) == (0, 0, 8)
    assert computed(log) == list(range(8))
    results = list(Store(tmp_path / "s").results(plan("square", 8).points))
    assert [result.values["square"] for result in results] == [x * x for x in range(8)]


def test_the_order_of_points_changes_nothing(tmp_path):
    points = [*Plan.parse(SWEEP).points, *plan("square", 4).points]
    execute(Plan.of("forth", points), tmp_path / "a", workers=0)
    execute(Plan.of("back", points[::-1]), tmp_path / "b", workers=0)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
    assert list(a.rows()) == list(b.rows())


def test_a_point_listed_twice_is_computed_once(tmp_path, log):
    points = [*plan("square", 3).points, *plan("square", 3).points]
    summary = execute(Plan.of("twice", points), tmp_path / "s", workers=0)
    assert (summary.planned, summary.computed, summary.done_before) == (6, 3, 3)
    assert computed(log) == [0, 1, 2]


def test_failures_are_kept_and_repeated_only_when_asked(tmp_path):
    mended = tmp_path / "mended"
    work, store = plan("odd_ones_fail", 6, mended=str(mended)), Store(tmp_path / "s")
    first = execute(work, store, workers=0)
    assert (first.computed, first.failed, first.tried) == (3, 3, 6)
    errors = [row["error"] for row in store.rows() if row["status"] == "failed"]
    assert sorted(error.splitlines()[-1] for error in errors) == [
        f"ValueError: {x} is odd" for x in (1, 3, 5)
    ]
    again = execute(work, store, workers=0)
    assert (again.tried, again.failed, again.done_before) == (0, 3, 3)
    repeated = execute(work, store, workers=0, retry_failed=True)
    assert (repeated.tried, repeated.failed) == (3, 3)
    mended.touch()
    last = execute(work, store, workers=0, retry_failed=True)
    assert (last.computed, last.failed, last.done_before) == (3, 0, 3)
    assert store.summary() == {"done": 6}
    assert not list((store.path / "failures").iterdir())


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ("leaves", "SystemExit: 3"),
        ("returns_a_list", "returned list. Return a Trajectory or a mapping"),
        ("returns_an_object", "as 'x', which no file can hold"),
    ],
)
def test_whatever_a_task_does_the_others_go_on(tmp_path, task, error):
    points = [*plan(task, 1).points, *plan("square", 2).points]
    store = Store(tmp_path)
    summary = execute(Plan.of("mixed", points), store, workers=0)
    assert (summary.failed, summary.computed) == (1, 2)
    assert error in next(row["error"] for row in store.rows() if row["status"] == "failed")


def test_a_bad_parameter_fails_with_its_sentence_alone(tmp_path):
    store = Store(tmp_path)
    point = Point("train", {"data": {"generator": "centred"}}, 0)
    assert execute(Plan.of("bad", [point]), store, workers=0).failed == 1
    assert next(store.rows())["error"] == "`$.network` is missing. Add it."


def test_trained_points_are_found_by_their_numbers(tmp_path):
    sweep = Plan.parse(SWEEP)
    summary = execute(sweep, tmp_path, workers=0)
    assert summary.computed == len(sweep) == 8
    store = Store(tmp_path)
    for row, result in zip(store.rows_of(sweep.points), store.results(sweep.points), strict=True):
        assert row["status"] == "steps"
        assert row["scalars"]["log_loss"] == result.run.log_loss[-1] < result.run.log_loss[0]


def test_a_failed_run_is_a_result_and_told_from_a_failed_point(tmp_path, log):
    mended = tmp_path / "mended"
    work, store = plan("stops", 2, **{"as": "failed", "mended": str(mended)}), Store(tmp_path / "s")
    summary = execute(work, store, workers=0)
    assert (summary.computed, summary.failed) == (2, 0)
    assert store.summary() == {"failed_run": 2}
    row = next(store.rows())
    assert row["scalars"]["status"] == "failed"
    assert row["scalars"]["reason"] == "no step was small enough"
    again = execute(work, store, workers=0)  # refreshes the index from the files
    assert (again.tried, again.done_before, again.failed) == (0, 2, 0)
    (store.path / "index.sqlite").unlink()
    assert execute(work, store, workers=0).done_before == 2
    mended.touch()
    assert execute(work, store, workers=0, retry_failed=True).computed == 2
    assert store.summary() == {"steps": 2}


def test_an_interrupted_run_is_no_result(tmp_path, log):
    work, store = plan("stops", 2, **{"as": "interrupted"}), Store(tmp_path)
    with pytest.raises(Interrupted, match="stopped after 0 points"):
        execute(work, store, workers=0)
    assert store.summary() == {}


def test_a_damaged_file_is_computed_again(tmp_path, log):
    work, store = plan("square", 4), Store(tmp_path / "s", pack_up_to=0)
    execute(work, store, workers=0)
    before = contents(store.path)
    path = store.run_path(list(work.points)[2])
    path.write_bytes(path.read_bytes()[:-7])
    summary = execute(work, store, workers=0)
    assert (summary.damaged, summary.computed, summary.done_before) == (1, 1, 3)
    assert contents(store.path) == before
    assert computed(log) == [0, 1, 2, 3, 2]
    assert [path.name for path in (store.path / "damaged").iterdir()] == [path.name]


def test_a_lost_index_costs_no_computation(tmp_path, log):
    execute(plan("square", 4), tmp_path / "s", workers=0)
    (tmp_path / "s" / "index.sqlite").unlink()
    assert execute(plan("square", 4), tmp_path / "s", workers=0).tried == 0
    assert computed(log) == [0, 1, 2, 3]


def test_two_drivers_on_one_store_are_refused(tmp_path):
    store = Store(tmp_path)
    with store.writer(), pytest.raises(FileError, match="is in use by process"):
        execute(plan("square", 1), tmp_path, workers=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "`workers` is -1; it must be at least 0"),
        ({"workers": 1.5}, "`workers` is 1.5, not a whole number"),
        ({"workers": 2, "cluster": "tcp://x:1"}, "Give one of the two"),
        ({"cluster": "nowhere"}, "'nowhere', not the address of a Dask scheduler"),
        ({"cluster": "tcp://127.0.0.1"}, "not the address of a Dask scheduler"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        execute(plan("square", 1), tmp_path, **options)


def test_a_task_that_does_not_exist_stops_before_any_work(tmp_path):
    work = Plan.of("none", [Point("reluflow.sweeps.tasks:ekko", {}, 0)])
    with pytest.raises(InputError, match="no function 'ekko'"):
        execute(work, tmp_path, workers=0)
    assert Store(tmp_path).summary() == {}


def test_workers_without_dask_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'reluflow\[sweep\]', or compute"):
        execute(plan("square", 1), tmp_path, workers=1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_and_the_rest_is_done_later(tmp_path, log, number):
    hear_interrupts()
    before = signal.getsignal(signal.SIGTERM)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
    timer.start()
    work = plan("square", 60, pause=0.05)
    with pytest.raises(Interrupted, match=r"stopped after \d+ points.*Run the same again"):
        execute(work, tmp_path / "s", workers=0)
    timer.join()
    assert signal.getsignal(signal.SIGTERM) is before
    done = Store(tmp_path / "s").summary()["done"]
    assert 0 < done < 60
    quick = Plan.of("rest", list(work.points)[: done + 2])
    assert execute(quick, tmp_path / "s", workers=0).done_before >= done
    assert len(set(computed(log)[:done])) == done


def test_outside_the_main_thread_signals_are_left_alone(tmp_path):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(execute(plan("square", 2), tmp_path, workers=0))
    )
    thread.start()
    thread.join()
    assert found[0].computed == 2


def test_a_full_disk_stops_with_a_message_and_is_resumed(tmp_path, monkeypatch):
    work, store, real = plan("square", 5), Store(tmp_path, pack_up_to=0), os.fsync
    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) >= 4:  # full from here on, whichever thread comes next
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        execute(work, store, workers=0)
    monkeypatch.undo()
    summary = execute(work, store, workers=0)
    # a file gets its name only after its own flush, and three flushes succeeded
    assert summary.done_before <= 3
    assert summary.computed == 5 - summary.done_before
    assert store.summary() == {"done": 5}


def test_the_bar_shows_rate_failures_and_time_left(tmp_path, monkeypatch):
    notes = []

    class Drawn:
        def start(self): ...
        def stop(self): ...
        def add_task(self, title, total, note):
            notes.append(f"{title} of {total}")

        def update(self, task, completed, note):
            notes.append(f"{completed}: {note}")

    monkeypatch.setattr(reluflow.engines.progress, "DELAY_S", -1.0)
    monkeypatch.setattr(reluflow.engines.progress, "_draw", Drawn)
    execute(plan("odd_ones_fail", 4), tmp_path, workers=0, progress=True)
    assert notes[0] == "odd_ones_fail of 4"
    assert notes[-1].startswith("4: ")
    assert notes[-1].endswith("/s, 2 failed, 0:00 left")


def test_threads_are_pinned_inside_and_restored(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with pinned():
        assert {name: os.environ[name] for name in ONE_THREAD} == ONE_THREAD
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ


def test_threads_that_cannot_be_pinned_are_warned_about(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with pytest.warns(ReluflowWarning, match="several threads"), pinned():
        pass
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with pinned():  # warnings are errors here
        pass


UNPINNED = """
import sys
from reluflow.sweeps import Plan, execute
execute(Plan.load(sys.argv[1]), sys.argv[2], workers=0)
"""


def test_bytes_do_not_depend_on_the_environment_of_the_caller(tmp_path):
    (tmp_path / "toy.toml").write_text(SWEEP)
    execute(Plan.load(tmp_path / "toy.toml"), tmp_path / "here", workers=0)
    free = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    subprocess.run(
        [sys.executable, "-c", UNPINNED, tmp_path / "toy.toml", tmp_path / "there"],
        check=True,
        env={**free, "OMP_NUM_THREADS": "2"},
    )
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert len(contents(tmp_path / "here")) == 8


def test_points_are_read_only_as_far_as_needed(tmp_path):
    """A plan of ten million points starts at once and is stopped by its third."""
    seen = []

    def points():
        for x in range(10**7):
            seen.append(x)
            yield Point("sweeps.helpers:square", {"x": x}, 0)
            if x == 2:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="stopped after 3 points"):
        execute(Plan("long", 10**7, points), tmp_path, workers=0)
    assert seen == [0, 1, 2]
    assert Store(tmp_path).summary() == {"done": 3}
