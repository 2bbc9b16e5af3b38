"""The examples run as they are: scripts, and the cells of the notebooks in order."""

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
    "best_networks.py": ("largest possible", "descent can stay there"),
    "label_noise.py": ("without noise", "with noise"),
    "lazy_and_rich.py": ("functions differ by", "linearised flow: converged"),
    "decay.py": ("no decay: squared norm", "0.00 % above the optimum, which has width 1", "0.87 %"),
    "leaky.py": ("slope  0.1: loss", "certified: True", "nearly linear"),
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


NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


def executed(name, monkeypatch):
    """The names of a notebook after its cells have run from top to bottom."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    space: dict[str, object] = {}
    for number, source in enumerate(cells):
        exec(compile(source, f"{name}, cell {number}", "exec"), space)
    return space


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_hold_what_they_show(name):
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    kinds = {
        kind
        for cell in code
        for output in cell["outputs"]
        for kind in output.get("data", {"stdout": ""})
    }
    assert kinds & {"image/png", "text/html"}
    assert "/home" not in json.dumps(notebook)
    assert "/tmp" not in json.dumps(notebook)


def test_first_steps_end_with_passes_only(monkeypatch):
    space = executed("first_steps.ipynb", monkeypatch)
    counts = space["report"].counts()
    assert counts["PASS"] == sum(counts.values()) == 12


def test_own_data_says_what_it_found(monkeypatch):
    space = executed("own_data.ipynb", monkeypatch)
    assert space["point"].kind == "minimum"
    assert space["least"].value > space["run"].final.squared_norm


def test_the_conjecture_is_decided_on_every_draw(monkeypatch):
    space = executed("conjecture.ipynb", monkeypatch)
    assert {verdict for _, verdict in space["ratios"]} == {"PASS"}


def test_the_loop_of_pytorch_is_descent(monkeypatch):
    pytest.importorskip("torch")
    space = executed("from_pytorch.ipynb", monkeypatch)
    assert abs(space["run"].final.W - space["trained"].W).max() < 1e-9
