"""The corpus of bad input: each file ends the command with code 2 and one clear message."""

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli.app import app

FOLDER = Path(__file__).parent / "data" / "bad"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
ENGINE = '[engine]\nname = "descent"\nlr = 0.1\nsteps = 3\n'
INIT = '[network]\ninit = "balanced"\nwidth = 3\n'
DATA = "[data]\nX = [[1.0, 0.0], [0.0, 1.0]]\ny = [1.0, -1.0]\n"


def command_for(name: str, tmp_path: Path) -> list[str]:
    """Specifications are run, tables and networks by a specification, saved runs are shown."""
    file = FOLDER / name
    if name.startswith(("sweep_", "study_")):
        return [name.partition("_")[0], str(file), "--out", str(tmp_path / "runs")]
    if file.suffix == ".rf" and name.startswith("run_"):
        return ["show", str(file)]
    if file.suffix != ".toml":
        path = file.as_posix()
        text = f"{DATA}[network]\nfile = '{path}'\n{ENGINE}"
        if file.suffix == ".csv":
            label = EXPECTED[name]["label"]
            text = f"[data]\nfile = '{path}'\nlabel = {label!r}\n{INIT}{ENGINE}"
        file = tmp_path / "spec.toml"
        file.write_text(text, encoding="utf-8")
    return ["run", str(file), "--out", str(tmp_path / "runs")]


def test_every_file_of_the_corpus_has_its_message_and_the_reverse():
    assert {path.name for path in FOLDER.iterdir()} == {*EXPECTED, "expected.toml"}
    assert len(EXPECTED) >= 300


@pytest.mark.parametrize("name", EXPECTED)
def test_bad_input_ends_with_code_2_and_one_message(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, command_for(name, tmp_path))
    lines = result.output.strip().splitlines()
    assert EXPECTED[name]["message"] in result.output
    assert result.exit_code == 2
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert "Traceback" not in result.output
    assert not list(tmp_path.rglob("*.rf"))
    assert not (tmp_path / "canary-ran").exists()


@pytest.mark.parametrize("name", ["data_nan.toml", "csv_text_cell.csv", "run_object_array.rf"])
def test_the_installed_command_does_the_same(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "reluflow.cli", *command_for(name, tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert EXPECTED[name]["message"] in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("loss", [rf.losses.Exponential(), rf.losses.Logistic()])
def test_equal_points_with_opposite_labels_have_a_flow_that_ends_at_the_odds(loss):
    # two labels of one point against one: h tends to half the log-odds, or the log-odds
    data = rf.Dataset([[1.0, 2.0]] * 3, [1.0, -1.0, 1.0])
    run = rf.flow(data, rf.Network([1.0], [[1.0, 0.0]]), loss=loss)
    assert run.status == "stationary"
    odds = np.log(2.0) * (0.5 if loss.name == "exponential" else 1.0)
    np.testing.assert_allclose(run.final.predict(data.X), odds, rtol=1e-8)


def test_equal_points_are_welcome():
    net = rf.Network([1.0], [[1.0, 0.0]])
    for y, loss in (([1.0, -1.0], rf.losses.Logistic()), ([1.0, -1.0], rf.losses.Square())):
        data = rf.Dataset([[1.0, 2.0], [1.0, 2.0]], y)
        assert rf.descend(data, net, lr=0.1, steps=1, loss=loss).status == "steps"
