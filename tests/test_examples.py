"""The examples run as they are: three scripts and the cells of the notebook, in order."""

import json
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = {
    "own_points.py": ("status: converged", "squared norm"),
    "points_on_a_line.py": ("status: stop_loss", "(resolved)"),
    "flow_and_descent.py": ("gap / step", "groups that jump"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_what_it_promises(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for text in SCRIPTS[name]:
        assert text in printed


def test_descent_approaches_the_flow_in_the_example(capsys):
    runpy.run_path(str(EXAMPLES / "flow_and_descent.py"))
    lines = [line for line in capsys.readouterr().out.splitlines() if "gap / step" in line]
    ratios = [float(line.rpartition("=")[2]) for line in lines]
    assert max(ratios) / min(ratios) < 1.2


def test_the_notebook_runs_from_top_to_bottom(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((EXAMPLES / "first_steps.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    space: dict[str, object] = {}
    for number, source in enumerate(cells):
        exec(compile(source, f"cell {number}", "exec"), space)
    run, report = space["run"], space["report"]
    assert run.status == "converged"
    assert abs(space["prediction"].network.squared_norm - run.final.squared_norm) < 1e-6
    assert not [check.id for check in report.checks if check.verdict.value == "FAIL"]
