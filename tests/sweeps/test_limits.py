"""Limits: a point that exceeds one is stopped and named, and the rest of its group goes on."""

import os
import signal
import threading
import time

import psutil
import pytest

from reluflow.errors import InputError
from reluflow.sweeps import Interrupted, Limits, Plan, Store, execute
from reluflow.sweeps.limits import shown
from sweeps.helpers import LOG, SWEEP, computed, contents, hear_interrupts, plan

EVERYWHERE = pytest.mark.parametrize("workers", [0, 1])


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setenv(LOG, str(path))
    return path


def set_aside(store):
    return [
        (row["parameters"]["x"], row["error"])
        for row in Store(store).rows()
        if row["status"] == "set_aside"
    ]


def cells():
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "reluflow.sweeps.cell" in " ".join(child.cmdline())]


@EVERYWHERE
def test_a_point_that_hangs_is_stopped_and_the_others_go_on(tmp_path, log, workers):
    work = plan("hangs", 8, limits=Limits(seconds=1.0), bad=3)
    summary = execute(work, tmp_path / "s", workers=workers)
    assert (summary.computed, summary.set_aside, summary.failed) == (7, 1, 0)
    ((x, error),) = set_aside(tmp_path / "s")
    assert x == 3
    assert error.startswith("it ran for more than 1 s, the limit of this sweep. It was stopped")
    assert sorted(computed(log)) == list(range(8))  # each once: the others of its group too
    assert execute(work, tmp_path / "s", workers=workers).tried == 0
    assert cells() == []


@EVERYWHERE
def test_a_point_that_needs_too_much_memory_is_stopped(tmp_path, workers):
    work = plan("grows", 5, limits=Limits(memory="700MB"), bad=2)
    summary = execute(work, tmp_path / "s", workers=workers)
    assert (summary.computed, summary.set_aside) == (4, 1)
    ((x, error),) = set_aside(tmp_path / "s")
    assert x == 2
    assert error.startswith("it needed more than 700 MB of memory, the limit of this sweep.")


def test_a_point_that_kills_its_process_is_set_aside_inline(tmp_path, log):
    work = plan("deadly", 6, limits=Limits(seconds=60.0), bad=4)
    summary = execute(work, tmp_path / "s", workers=0)
    assert (summary.computed, summary.set_aside) == (5, 1)
    ((x, error),) = set_aside(tmp_path / "s")
    assert x == 4
    assert "died 3 times (SIGKILL)" in error
    assert computed(log).count(4) == 3


def test_limits_change_no_bytes_and_no_ids(tmp_path):
    text = SWEEP.replace("[sweep]\n", '[sweep]\nlimits = { seconds = 60, memory = "2GB" }\n')
    free, bound = Plan.parse(SWEEP), Plan.parse(text)
    assert bound.limits == Limits(seconds=60.0, memory=2_000_000_000)
    assert free.limits is None
    execute(free, tmp_path / "free", workers=0)
    execute(bound, tmp_path / "bound", workers=0)
    assert contents(tmp_path / "free") == contents(tmp_path / "bound")
    assert len(contents(tmp_path / "free")) == 8


def test_the_time_of_compilation_does_not_count(tmp_path):
    work = plan("compiles", 1, limits=Limits(seconds=1.0), compile_s=3.0)
    assert execute(work, tmp_path, workers=0).computed == 1


def test_a_signal_ends_a_point_with_limits_at_once(tmp_path, log):
    hear_interrupts()
    work, sent = plan("hangs", 3, limits=Limits(seconds=600.0), bad=1), []

    def stop():
        while 1 not in computed(log):
            time.sleep(0.02)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Interrupted, match="stopped after 1 points"):
        execute(work, tmp_path / "s", workers=0)
    took = time.monotonic() - sent[0]
    thread.join()
    assert took < 5.0
    assert Store(tmp_path / "s").summary() == {"done": 1}
    assert cells() == []


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("limits = 5", r"`\$\.sweep\.limits` is 5\. Write limits = \{ seconds = 60"),
        ("limits = {}", r"`\$\.sweep\.limits` is \{\}"),
        ("limits = { second = 5 }", r"unknown field `second`.*Did you mean 'seconds'\?"),
        ("limits = { seconds = 0 }", r"`limits\.seconds` is 0; it must be above 0"),
        ('limits = { memory = "much" }', r"`limits\.memory` is 'much', not a size"),
        ("limits = { memory = -1 }", r"`limits\.memory` is -1; it must be above 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(written, message):
    with pytest.raises(InputError, match=message):
        Plan.parse(SWEEP.replace("[sweep]\n", f"[sweep]\n{written}\n"))


def test_sizes_are_read_and_shown():
    assert Limits(memory="1.5 gb").memory == 1_500_000_000
    assert Limits(memory=2**30).memory == 2**30
    assert shown(0) == "0 B"
