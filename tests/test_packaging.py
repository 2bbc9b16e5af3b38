"""The source distribution holds the whole repository: its own tests run from it."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INCLUDED = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "sdist"
    ]["include"]
)


def test_what_is_included_is_there():
    assert all((ROOT / name).exists() for name in INCLUDED)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone of the repository")
def test_everything_tracked_is_included():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    tracked = {line.partition("/")[0] for line in listed.splitlines()}
    assert tracked - {"pyproject.toml"} <= INCLUDED


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_fast_tests_are_all_there():
    """A file that was moved would silently no longer be tested."""
    command = ["make", "--dry-run", "test-fast", "ENVIRONMENT=", "BIN=bin"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = [word for word in shown.split() if word.startswith("tests/")]
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).exists()] == []
