"""Signs of life, and ``reluflow sweep --status``: how a sweep stands, seen from outside."""

import os
import re
import socket
import subprocess
import sys
import time

import psutil
import pytest
from typer.testing import CliRunner

from reluflow.cli.app import app
from reluflow.errors import FileError
from reluflow.sweeps import Interrupted, Plan, Store, execute
from reluflow.sweeps.heartbeat import Heart, Pulse, UnderWay
from reluflow.sweeps.status import status, words
from sweeps.helpers import LOG, SWEEP, computed, contents, paths, plan


def told(work, store):
    return "\n".join(words(work, Store(store)))


def test_a_pulse_survives_the_index(tmp_path):
    pulse = Pulse(1, "host", 2.0, 3.0, 4, (UnderWay("ab", 5, 6.0),))
    store = Store(tmp_path)
    with store.writer() as index:
        index.beat(pulse)
    assert store.pulse() == pulse
    with store.writer() as index:
        index.beat(None)
    assert store.pulse() is None


def test_what_is_under_way_is_written_now_and_then(monkeypatch):
    written = []
    points = list(plan("square", 3).points)
    with Heart(written.append) as heart:
        heart.begin(points)
        heart.beat(0)
        heart.end(points)
        heart.beat(3)  # a moment later: not written
        monkeypatch.setattr("reluflow.sweeps.heartbeat.BEAT_S", -1.0)
        heart.beat(3)
    assert [pulse and pulse.tried for pulse in written] == [0, 3, None]
    assert [(group.id, group.count) for group in written[0].under_way] == [(points[0].id, 3)]
    assert written[1].under_way == ()
    assert (written[0].pid, written[0].host) == (os.getpid(), socket.gethostname())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sweep_that_ended_leaves_no_pulse(tmp_path, workers):
    work = plan("square", 3)
    execute(work, tmp_path / "s", workers=workers)
    assert Store(tmp_path / "s").pulse() is None
    assert "nobody computes it now" in told(work, tmp_path / "s")

    def interrupted():
        yield from plan("square", 4, pause=0.01).points
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        execute(Plan("stopped", 5, interrupted), tmp_path / "s", workers=workers)
    assert Store(tmp_path / "s").pulse() is None


HANGING = """
from reluflow.sweeps import execute
from sweeps.helpers import plan
import sys
if __name__ == "__main__":
    execute(plan("hangs", 4, bad=2), sys.argv[1], workers=int(sys.argv[2]))
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_the_point_under_way_is_named_while_the_sweep_runs_and_after_a_kill(tmp_path, workers):
    store, log, work = tmp_path / "s", tmp_path / "log", plan("hangs", 4, bad=2)
    guilty = list(work.points)[2].id
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, store, str(workers)],
        env={**os.environ, "PYTHONPATH": paths(), LOG: str(log)},
    )
    try:
        while 2 not in computed(log):
            assert process.poll() is None
            time.sleep(0.05)
        limit = time.monotonic() + 60
        while f"s: {guilty}" not in told(work, store) and time.monotonic() < limit:
            time.sleep(0.1)
        text = told(work, store)
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.wait()
    psutil.wait_procs(children, timeout=30)
    assert not any(child.is_running() for child in children), "a worker that hangs lives on"
    assert text.startswith("hangs: ")
    assert " of 4 points done, 0 failed, 0 set aside, " in text
    assert f"process {process.pid} on {socket.gethostname()} computes it" in text
    assert "under way for" in text
    assert "was killed; the same command without --status continues" in told(work, store)


def test_the_command_names_who_was_set_aside(tmp_path):
    path, store = tmp_path / "toy.toml", Store(tmp_path / "s")
    path.write_text(SWEEP)
    first, second, *_ = Plan.load(path).points
    store.fail(first, "it ran for more than 5 s", set_aside=True)
    store.fail(second, "it broke")
    result = CliRunner().invoke(app, ["sweep", "--status", str(path), "--out", str(store.path)])
    assert result.exit_code == 0, result.output
    assert "toy: 0 of 8 points done, 1 failed, 1 set aside, 6 left" in result.output
    named = f"set aside {first.id} (network.log_scale = -1, data.d = 2): it ran for more than 5 s"
    assert named in result.output
    assert store.summary() == {"failed": 1, "set_aside": 1}


def test_a_sweep_that_never_began(tmp_path):
    found = status(plan("square", 3), Store(tmp_path / "none"))
    assert (found.done, found.counts, found.pulse) == (0, {"missing": 3}, None)


def test_limits_name_the_culprit_at_the_end_of_the_command(tmp_path):
    path = tmp_path / "toy.toml"
    slow = SWEEP.replace("steps = 30", "steps = 2_000_000_000").replace("lr = 0.05", "lr = 1e-9")
    path.write_text(slow.replace("repeats = 2", "repeats = 1\nlimits = { seconds = 0.5 }"))
    options = ["--out", str(tmp_path / "s"), "--workers", "0"]
    result = CliRunner().invoke(app, ["sweep", str(path), *options])
    assert result.exit_code == 0, result.output
    assert "4 points were set aside; errors are in" in result.output
    assert result.output.count("it ran for more than 0.5 s, the limit of this sweep.") == 4


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off_lets_no_second_driver_in(tmp_path, monkeypatch, hours):
    """Two machines with one store: who may write is told by a lock, not by the time."""
    work, store = plan("square", 4), Store(tmp_path / "s")
    real = time.time
    with store.writer() as index, Heart(index.beat) as heart:
        heart.beat(1)
        monkeypatch.setattr(time, "time", lambda: real() + 3600.0 * hours)
        with pytest.raises(FileError, match=f"in use by process {os.getpid()}"):
            execute(work, tmp_path / "s", workers=0)
        text = told(work, tmp_path / "s")
    age = float(re.search(r"sign of life is ([\d.]+) s old", text)[1])
    assert age == (0.0 if hours < 0 else pytest.approx(3600.0, abs=60.0))
    assert execute(work, tmp_path / "s", workers=0).computed == 4
    monkeypatch.setattr(time, "time", real)
    assert execute(work, tmp_path / "s", workers=0).computed == 0
    execute(work, tmp_path / "calm", workers=0)
    assert contents(tmp_path / "s") == contents(tmp_path / "calm")
