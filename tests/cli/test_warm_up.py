"""`reluflow warm-up`: in which order, that a failure is not called success, and its end."""

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import psutil
import pytest
from typer.testing import CliRunner

from reluflow.cli import warm_up as command
from reluflow.cli.app import app
from reluflow.engines import progress, warm_up


@pytest.fixture
def kinds(monkeypatch):
    """Stand-ins for the problems, in threads; what was run, in order."""
    ran, free = [], threading.Event()

    def square():
        ran.append("square loss")
        free.set()

    def descent():
        free.wait(5.0)  # both begin before either ends
        ran.append("descent")

    monkeypatch.setattr(warm_up, "FIRST", {"square loss": square, "descent": descent})
    later = {name: lambda name=name: ran.append(name) for name in warm_up.THEN}
    monkeypatch.setattr(warm_up, "THEN", later)
    monkeypatch.setattr(command, "processes", ThreadPoolExecutor)
    monkeypatch.setattr(progress, "_draw", Mock)
    return ran


def test_kinds_that_share_kernels_wait_for_those_that_bring_them(kinds):
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2"])
    assert result.exit_code == 0, result.output
    assert "kernels are compiled" in result.output
    assert kinds[0] == "square loss"
    assert set(kinds) == {"square loss", "descent", "tiny starts", "classification losses"}


def test_a_kind_that_cannot_be_compiled_is_an_error(kinds, monkeypatch):
    def fails():
        raise RuntimeError("no compiler")

    monkeypatch.setitem(warm_up.THEN, "tiny starts", fails)
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2"])
    assert result.exit_code != 0
    assert "kernels are compiled" not in result.output


ENDLESS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from reluflow.cli import main
from reluflow.engines import warm_up
warm_up.FIRST, warm_up.THEN, warm_up.warm_up = {600.0: None, 601.0: None}, {}, time.sleep
sys.argv = ["reluflow", "warm-up", "--workers", "2"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_workers(number):
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stderr=subprocess.PIPE, text=True)
    try:
        while len(workers := psutil.Process(process.pid).children()) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)  # two seconds on an idle machine
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in errors
    assert psutil.wait_procs(workers, timeout=20)[1] == []


def test_it_answers_with_plain_data(kinds):
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["compiled"]) == set(kinds)
    assert found["workers"] == 2
    assert found["seconds"] >= 0.0
