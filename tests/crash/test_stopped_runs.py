"""``reluflow run`` stopped at random moments and started again: it goes on, and ends as it would.

The moments lie anywhere: while modules load, in compiled code, while a checkpoint is written.
"""

import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from crash.cpu import ENDS_S, End, used, work
from sweeps.helpers import paths

COMMAND = Path(__file__).parent / "command.py"
HANGS_S = 300.0  # of the CPU, too
SIGNALS = (signal.SIGINT, signal.SIGTERM)
LONG = pytest.mark.long
HEAD = """
seed = 3
[data]
generator = "centred"
d = 16
[network]
init = "balanced"
width = {width}
log_scale = -3.0
[engine]
"""
ENGINES = {
    "descent": 'name = "descent"\nlr = 1e-3\nsteps = {size}\nrecord = 5\n',
    "flow": 'name = "flow"\nrtol = 1e-10\nt_end = 200.0\nrecord = 50\n',
}


def document(folder, engine, width, size):
    path = folder / f"{engine}.toml"
    path.write_text(HEAD.format(width=width) + ENGINES[engine].format(size=size))
    return path


def start(file, out):
    environment = {**os.environ, "PYTHONPATH": paths()}
    process = subprocess.Popen(
        [sys.executable, COMMAND, "run", file, "--out", out, "--checkpoint", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def ended(process, number=None):
    """Send a signal, if there is one, and wait; how long the end took, None if it was over.

    Before the command begins, and in the last moments of its process, signals are Python's or the
    command line's: then one ends it at once, without a word.
    """
    over, before = process.poll() is not None, used()
    if number is not None and not over:
        before += used(process)
        process.send_signal(number)
    sent = time.monotonic()
    _, errors = outputs(process)
    took = End(time.monotonic() - sent, used() - before)
    assert process.returncode in (0, 130, *(() if number is None else (-number,))), errors
    assert "Traceback" not in errors
    assert "defect" not in errors
    if process.returncode == 130 and errors.strip():
        assert errors.strip().splitlines()[-1].startswith("interrupted"), errors
    return None if over else took


def outputs(process):
    """What a process has written when it is over; raises if it hangs, computing or asleep."""
    end, late = used(process) + HANGS_S, time.monotonic() + 10 * HANGS_S
    while True:
        try:
            return process.communicate(timeout=5.0)
        except subprocess.TimeoutExpired:
            if used(process) > end or time.monotonic() > late:
                raise


def progress(path):
    """How far the saved run is, infinite if it was finished; it is whole."""
    if not path.exists():
        return -1.0
    run = rf.load(path)
    return float(run.t[-1]) if run.status == "interrupted" else math.inf


def disturbed(file, out, wanted, generator, begin):
    """Stop a run by signals until it ends or enough were sent; how long each end took."""
    took, reached = [], []
    while len(took) < wanted:
        process = begin(file, out)
        work(process, generator.uniform(0.05, 2.0 if begin is start else 0.8))
        end = ended(process, SIGNALS[len(took) % 2])
        far = progress(out / file.with_suffix(".rf").name)
        if end is None or process.returncode == 0 or far == math.inf:
            break
        took.append(end)
        reached.append(far)
    assert reached == sorted(reached), "what was saved got lost"
    ended(begin(file, out))
    assert len(list(out.iterdir())) == 1, "something was left behind"
    return took, reached


def same(engine, found, calm):
    """A descent ends in the same bytes, a flow within its tolerance."""
    if engine == "descent":
        return found.read_bytes() == calm.read_bytes()
    ends, wanted = rf.load(found), rf.load(calm)
    np.testing.assert_allclose(ends.final.W, wanted.final.W, rtol=1e-6, atol=1e-8)
    return ends.status == wanted.status


def forked(file, out):
    """The same in a fork of this process."""
    from crash.forked import Forked

    return Forked(["run", file, "--out", out, "--checkpoint", "1"], f"{out}.errors")


def survive(folder, *, engine, width, size, signals, seed, begin=start):
    """Stop a run by signals, and another when it has ended; each ends like a calm one."""
    file, name = document(folder, engine, width, size), f"{engine}.rf"
    ended(begin(file, folder / "calm"))
    generator, took, saved, rounds = random.Random(seed), [], 0, 0
    while len(took) < signals:
        out = folder / str(rounds)
        more, reached = disturbed(file, out, signals - len(took), generator, begin)
        assert same(engine, out / name, folder / "calm" / name)
        took, saved, rounds = [*took, *more], saved + sum(t >= 0 for t in reached), rounds + 1
    print(f"{signals} signals in {rounds} runs, {saved} after something could be saved")
    wall, cpu = (max(seconds) for seconds in zip(*took, strict=True))
    print(f"the slowest end after {wall:.2f} s, and {cpu:.2f} s of the CPU")
    assert cpu < ENDS_S
    return {"signals": signals, "saved": saved, "slowest_s": wall, "slowest_cpu_s": cpu}


@pytest.mark.parametrize(
    ("engine", "width", "size", "signals"),
    [
        ("descent", 40, 800_000, 4),
        ("flow", 800, 0, 4),
        pytest.param("descent", 40, 20_000_000, 200, marks=LONG),
        pytest.param("flow", 4000, 0, 200, marks=LONG),
    ],
)
def test_a_run_stopped_by_signals_goes_on(tmp_path, engine, width, size, signals):
    survive(tmp_path, engine=engine, width=width, size=size, signals=signals, seed=0)


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path):
    file, out = document(tmp_path, "descent", 40, 2_000_000), tmp_path / "out"
    process = start(file, out)
    limit = time.monotonic() + 300
    while not (out / "descent.rf").exists() and time.monotonic() < limit:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    saved = rf.load(out / "descent.rf")
    assert (saved.status, saved.reason) == ("interrupted", "it is saved while it goes on")
    process = start(file, out)
    _, errors = process.communicate()
    assert f"was interrupted at iteration {saved.t[-1]:.0f}; it goes on from there" in errors
    assert rf.load(out / "descent.rf").status == "steps"
    ended(start(file, tmp_path / "calm"))
    assert (out / "descent.rf").read_bytes() == (tmp_path / "calm" / "descent.rf").read_bytes()
