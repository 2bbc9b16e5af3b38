"""`reluflow warm-up`: in which order, and that a failure is not called success."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

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


def test_it_answers_with_plain_data(kinds):
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["compiled"]) == set(kinds)
    assert found["workers"] == 2
    assert found["seconds"] >= 0.0
