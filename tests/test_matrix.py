"""The matrix of interpreters and packages: what it finds, and what it would install."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def matrix():
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "tools" / "matrix.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["matrix"]


def test_this_python_is_found_and_the_others_are_what_they_say(matrix):
    found = matrix.interpreters()
    assert f"3.{sys.version_info.minor}" in found
    assert list(found) == sorted(found, key=lambda name: int(name[2:]))
    for name, path in found.items():
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        assert answer.stdout.startswith(f"Python {name}.")


def test_a_selection_of_interpreters(matrix):
    found = {name: Path(name) for name in ("3.11", "3.12", "3.13")}
    assert list(matrix.chosen(found, None, None)) == ["3.11", "3.12", "3.13"]
    assert list(matrix.chosen(found, "3.12", None)) == ["3.12"]
    assert list(matrix.chosen(found, "newest", "3.13")) == ["3.12"]
    assert list(matrix.chosen(found, "newest", "3.11")) == ["3.13"]
    assert not matrix.chosen({"3.11": Path()}, "newest", "3.11")


def test_every_dependency_has_one_lower_bound(matrix):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.match(r"[\w-]+", text)[0] for listed in lists for text in listed}
    bounded = [line.partition("==")[0] for line in matrix.bounds()]
    assert len(bounded) == len(set(bounded))
    assert names - set(bounded) == {"reluflow", "torch"}


def test_the_quickstart_is_the_one_of_the_readme(matrix):
    assert matrix.quickstart().startswith("import numpy as np\nimport reluflow as rf\n")
    compile(matrix.quickstart(), "README.md", "exec")


def test_a_failed_cell_is_seen(matrix):
    good = matrix.Cell("3.11.7", "newest", {"numpy": "2.4.6"}, "passed, 3 s", "passed, 60 s")
    bad = matrix.Cell("3.12.1", "lowest", {}, "not installed", "not run")
    assert good.is_good
    assert not bad.is_good
    assert "| 3.11.7 | newest | passed, 3 s | passed, 60 s | 2.4.6 |" in matrix.table([good, bad])
    assert matrix._timed([sys.executable, "-c", "raise SystemExit(3)"], {}).startswith("FAILED")


@pytest.fixture
def built(matrix, monkeypatch, tmp_path):
    """Stand-ins: environments that are said to be built, and a quickstart that ends as told."""
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "interpreters", lambda: {"3.11": Path("a"), "3.13": Path("b")})
    monkeypatch.setattr(matrix, "THIS", "3.11")

    def call(failure, answer):
        made = []
        monkeypatch.setattr(matrix, "_build", lambda *a, **more: made.append((a, more)) or failure)
        monkeypatch.setattr(matrix, "_quickstart", lambda folder: answer)
        return matrix.main(["--quick"]), made

    return call


def test_the_second_python_is_the_newest_but_the_running_one(built, tmp_path):
    code, made = built("", "passed, 3 s")
    assert code == 0
    assert made == [((tmp_path / "3.13-quick", Path("b"), "newest"), {"extras": ""})]


def test_a_quickstart_that_fails_is_seen_and_a_missing_index_is_no_failure(built, matrix, capsys):
    assert built("", "FAILED, 3 s")[0] == 1
    assert built("not installed", "")[0] == 1
    capsys.readouterr()
    assert built(matrix.UNREACHED, "")[0] == 0
    assert "nothing was tested" in capsys.readouterr().out


def test_a_machine_with_one_python_has_nothing_to_test(matrix, capsys):
    assert matrix.quick({}) == 0
    assert capsys.readouterr().out == matrix.NOTHING + "\n"


def test_an_environment_that_cannot_be_made_is_told_apart(matrix, tmp_path, monkeypatch):
    for code in (0, 1):
        made = tmp_path / f"python{code}"
        made.write_text(f"#!/bin/sh\nexit {code}\n")
        made.chmod(0o755)
    assert matrix._build(tmp_path / "x", tmp_path / "python1", "newest") == matrix.UNREACHED
    inside = tmp_path / "y" / "bin"
    monkeypatch.setattr(matrix.shutil, "rmtree", lambda *a, **more: None)
    inside.mkdir(parents=True)
    (tmp_path / "python1").rename(inside / "python")
    assert matrix._build(tmp_path / "y", tmp_path / "python0", "newest") == matrix.UNREACHED
