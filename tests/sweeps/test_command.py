"""``reluflow sweep`` as a user runs it: table, exit codes, resumption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reluflow.cli.app import app
from reluflow.cli.sweep import doubts
from reluflow.sweeps import Plan, Store
from reluflow.sweeps.summary import Line, summarise
from sweeps.helpers import SWEEP, contents, hear_interrupts

ROOT = Path(__file__).parents[2]
SLOW = SWEEP.replace("steps = 30", "steps = 20_000_000").replace("lr = 0.05", "lr = 1e-9")


def sweep(*arguments):
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(SWEEP)
    return path


def test_a_sweep_is_computed_once_and_shown(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = sweep(toy, "--workers", 0)
    assert first.exit_code == 0, first.output
    assert "toy: 4 combinations, 2 trials each" in first.output
    for word in ("network.log_scale", "data.d", "2 steps", "8 steps", "median", "8 of 8 points"):
        assert word in first.output
    assert f"results are in {Path('results') / 'toy'}" in first.output
    assert len(contents("results/toy")) == 8
    second = sweep(toy, "--workers", 0)
    assert "nothing to do: all 8 points have been computed before" in second.output
    more = toy.with_name("more.toml")
    more.write_text(SWEEP.replace("[2, 3]", "[2, 3, 4]"))
    third = sweep(more, "--workers", 0)
    assert "4 of 12 points computed in" in third.output
    assert "8 were there before" in third.output


def test_the_seed_option_replaces_the_seed(toy, tmp_path):
    assert sweep(toy, "--workers", 0, "--out", tmp_path / "a").exit_code == 0
    assert sweep(toy, "--workers", 0, "--out", tmp_path / "b", "--seed", 8).exit_code == 0
    assert not contents(tmp_path / "a").keys() & contents(tmp_path / "b").keys()


def test_failures_and_damage_are_said(toy, tmp_path):
    store = Store(tmp_path / "s")
    point = next(Plan.load(toy).points)
    store.fail(point, "it broke")
    result = sweep(toy, "--workers", 0, "--out", store.path)
    assert "1 points failed; errors are in" in result.output
    assert "--retry-failed computes them again" in result.output
    assert "1 failed, 1 steps" in result.output
    again = sweep(toy, "--workers", 0, "--out", store.path, "--retry-failed")
    assert "1 of 8 points computed" in again.output
    (pack,) = (store.path / "packs").iterdir()
    body = bytearray(pack.read_bytes())
    body[len(body) // 2] ^= 1
    pack.write_bytes(bytes(body))
    last = sweep(toy, "--workers", 0, "--out", store.path)
    assert "1 damaged files were moved to" in last.output


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("[2, 3]", "[2, 0]"), [], '`$.sweep.grid."data.d"[1]`'),
        (("data.d", "data.dd"), [], "Did you mean 'data.d'?"),
        (("repeats = 2", "repeats = 1_000_000_000"), [], "the plan has 4000000000 points"),
        (("", ""), ["--cluster", "nowhere"], "not the address of a Dask scheduler"),
        (("", ""), ["--out", "/dev/null/store"], "cannot use the folder"),
        (("", ""), ["--workers", "0", "--cluster", "tcp://x:1"], "Give one of the two"),
    ],
)
def test_bad_input_ends_with_one_sentence(tmp_path, change, options, message):
    path = tmp_path / "bad.toml"
    path.write_text(SWEEP.replace(*change) if change[0] else SWEEP)
    result = sweep(path, "--out", tmp_path / "s", *options)
    assert result.exit_code == 2
    assert result.output.startswith("error: ")
    assert message in result.output
    assert "Traceback" not in result.output
    assert not contents(tmp_path / "s")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_sweep_says_how_to_go_on(tmp_path, number):
    """Ctrl-C reaches the whole group of processes, as in a terminal."""
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    command = [sys.executable, "-m", "reluflow.cli", "sweep", path, "--out", tmp_path / "s"]
    process = subprocess.Popen(
        [*command, "--workers", "0" if number == signal.SIGTERM else "1"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    lock = tmp_path / "s" / "index.sqlite"
    while not lock.exists():
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(2.0)
    os.killpg(process.pid, number)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.strip().startswith("stopped after 0 points of this call")
    assert errors.strip().endswith("Run the same again to continue.")
    assert len(errors.strip().splitlines()) == 1, errors


def test_runs_that_did_not_end_as_asked_are_warned_of():
    statuses = {"converged": 3, "budget": 2, "failed_run": 1, "failed": 4, "missing": 5}
    told = doubts(Line({}, statuses, 0.0, 0.0, 0.0))
    assert told == [
        "warning: 2 runs ended as budget (a limit set by the caller is reached before the end); "
        "their numbers are those of where they stopped",
        "warning: 1 runs ended as failed (the engine could not go on; .final is the last good "
        "state); their numbers are those of where they stopped",
    ]


def test_a_sweep_with_unfinished_runs_says_so(toy, tmp_path):
    toy.write_text(SWEEP.replace("lr = 0.05", "lr = 1e5"))
    said = sweep(toy, "--workers", 0, "--out", tmp_path / "s").output
    assert "runs ended as diverged (the loss blew up" in said


def test_the_table_is_limited(tmp_path):
    path = tmp_path / "many.toml"
    path.write_text(SWEEP.replace("[2, 3]", str(list(range(2, 32)))))
    plan = Plan.load(path)
    lines, total = summarise(plan, Store(tmp_path / "none"))
    assert len(lines) == 20
    assert lines[1].values == {"network.log_scale": -1, "data.d": 3}
    assert total.statuses == {"missing": 120}
    assert total.median != total.median


def test_the_example_is_a_plan():
    plan = Plan.load(ROOT / "examples" / "sweep.toml")
    assert (plan.name, len(plan)) == ("scales", 18)
