"""Names and paths from outside on the terminal: no escape is printed raw, no markup is read."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli.app import app
from reluflow.cli.guard import echo
from reluflow.cli.safe import line, safe
from reluflow.cli.tables import angle_text, summary

HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b[2J",
    "[bold",
    "[/]",
    "[red]x[/red]",
    "a\\",
    "\u202ename",
    "\udcff",
    "[link=http://x]",
]
SPEC = """
[data]
file = "points.csv"
label = 0
[network]
init = "balanced"
width = 3
[engine]
name = "descent"
lr = 0.05
steps = 5
"""
EVERY = pytest.mark.parametrize("name", HOSTILE, ids=ascii)


def assert_harmless(text: str) -> None:
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def invoke(*arguments):
    return CliRunner().invoke(app, [os.fspath(argument) for argument in arguments])


@EVERY
def test_commands_survive_hostile_folders_and_names(name, tmp_path):
    folder, base = tmp_path / name, name.replace("/", "")
    folder.mkdir(parents=True)
    (folder / f"{base}.toml").write_text(SPEC)
    (folder / "points.csv").write_text("1,2\n3,4\n")
    result = invoke("run", folder / f"{base}.toml", "--out", folder / "out")
    assert (result.exit_code, result.exception) == (0, None)
    assert_harmless(result.output)
    (made,) = (folder / "out").glob("*.rf")
    hostile = made.rename(folder / f"{base}.rf")
    for command in ("show", "cite", "verify"):
        result = invoke(command, hostile)
        assert (result.exit_code, result.exception) == (0, None)
        assert_harmless(result.output)


@EVERY
@pytest.mark.parametrize("command", ["run", "show", "study", "sweep", "verify", "check"])
def test_messages_about_hostile_paths_are_harmless(name, command, tmp_path):
    result = invoke(command, tmp_path / f"{name}.toml")
    assert result.exit_code == 2
    assert_harmless(result.output)
    assert len(result.output.splitlines()) == 1


@EVERY
def test_a_report_is_written_into_a_hostile_folder(name, tmp_path):
    run = rf.descend(
        rf.datasets.centred(d=3, seed=0),
        rf.networks.balanced(3, 4, log_scale=-2.0, seed=0),
        lr=0.1,
        steps=3,
    )
    run.save(tmp_path / "run.rf")
    page = tmp_path / name / "page.html"
    result = invoke(
        "check", tmp_path / "run.rf", "--paper", "correlated", "--no-start-runs", "--html", page
    )
    assert (result.exit_code, result.exception) == (0, None)
    assert_harmless(result.output)
    assert page.is_file()


@EVERY
def test_tables_show_a_hostile_name_as_it_is(name):
    from rich.console import Console

    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    data = rf.Dataset([[1.0, 2.0]], [1.0], name=name)
    run = rf.descend(data, rf.Network([1.0], [[1.0, 0.0]]), lr=0.1, steps=1)
    console.print(summary(run, title=name))
    console.print(line("x", (name, "bold")))
    text = console.export_text()
    console.file.close()
    assert_harmless(text)
    if name.isprintable():
        assert text.count(name) == 3
    assert safe(name).replace("\\[", "[").isprintable()


def test_a_long_message_is_cut(capsys):
    echo("x" * 15_000_000)
    assert len(capsys.readouterr().out) < 3000


def test_the_installed_command_prints_no_escape(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "reluflow.cli", "show", str(tmp_path / "\x1b[31mred")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr + done.stdout


def test_the_table_of_a_wide_network_takes_time_proportional_to_its_width():
    def seconds(width):
        rng = np.random.default_rng(0)
        net = rf.Network(np.ones(width), rng.normal(size=(width, 3)))
        began = time.process_time()
        text = angle_text(net)
        return time.process_time() - began, text

    took, text = seconds(200_000)
    assert took < 2.0
    assert "between the largest neuron of a sign and others" in text
    assert 3.0 < float(text.split()[0]) <= np.pi


def test_the_angle_with_the_largest_neuron_is_right():
    angles = np.linspace(0.0, 1.0, 1500)
    outputs = np.where(angles == 0.0, 2.0, 1.0)
    net = rf.Network(outputs, np.column_stack([np.cos(angles), np.sin(angles)]))
    assert float(angle_text(net).split()[0]) == pytest.approx(1.0, abs=1e-6)
