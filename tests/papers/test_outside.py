"""A paper outside the repository: a pyproject and one module, installed beside reluflow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reluflow

SOURCE = Path(reluflow.__file__).parent / "papers" / "separable.py"
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["build"]

[project]
name = "two-classes"
version = "1.0"

[project.entry-points."reluflow.papers"]
two-classes = "two_classes:paper"
"""
# what a build tool does, without one: no network, no further package
BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = "two_classes-1.0-py3-none-any.whl", "two_classes-1.0.dist-info"
    parts = {
        "two_classes.py": open("two_classes.py").read(),
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: two-classes\\nVersion: 1.0\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{info}/entry_points.txt": "[reluflow.papers]\\ntwo-classes = two_classes:paper\\n",
    }
    parts[f"{info}/RECORD"] = "".join(f"{key},,\\n" for key in [*parts, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for key, text in parts.items():
            wheel.writestr(key, text)
    return name
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The paper `separable` under another name, installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("two-classes")
    (folder / "build").mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "build" / "backend.py").write_text(BACKEND)
    text = SOURCE.read_text().replace('"separable"', '"two-classes"')
    text = text.replace("separable/orthant", "two-classes/orthant")
    assert "reluflow.papers" not in text  # public names only
    (folder / "two_classes.py").write_text(text)
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, str(folder)], check=True, cwd=folder, capture_output=True)
    return target


def reluflow_command(site, folder, *arguments):
    path = os.pathsep.join([str(Path(reluflow.__file__).parents[1]), str(site)])
    return subprocess.run(
        [sys.executable, "-m", "reluflow.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_commands_know_it(site, tmp_path):
    listed = reluflow_command(site, tmp_path, "list", "two-classes")
    assert listed.returncode == 0, listed.stderr
    assert "two-classes S4" in listed.stdout
    assert "two-classes/fig-angle" in listed.stdout
    assert "two-classes" in reluflow_command(site, tmp_path, "list").stdout

    made = reluflow_command(site, tmp_path, "study", "two-classes")
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "results" / "two-classes" / "report.html").read_text()
    assert "Largest angle of a live neuron" in page
    (run,) = (tmp_path / "results" / "two-classes" / "runs").glob("*.rf")

    checked = reluflow_command(site, tmp_path, "check", run)
    assert checked.returncode == 0, checked.stderr
    assert "paper: two-classes" in checked.stdout
    assert "fail" not in checked.stdout.split("S1")[1].split("\n")[0]

    cited = reluflow_command(site, tmp_path, "cite", run)
    assert "Phuong" in cited.stdout


def test_its_figure_is_reproduced_on_workers(site, tmp_path):
    made = reluflow_command(
        site, tmp_path, "reproduce", "two-classes/fig-angle", "--workers", "1", "--seed", "3"
    )
    assert made.returncode == 0, made.stderr
    shape = json.loads((tmp_path / "results" / "two-classes-fig-angle" / "shape.json").read_text())
    assert [row["verdict"] for row in shape["expectations"]] == ["PASS"]
    assert list((tmp_path / "results" / "two-classes-fig-angle").glob("*.pdf"))


def test_one_file_without_installing_it(tmp_path):
    text = SOURCE.read_text().replace('"separable"', '"loose"')
    (tmp_path / "loose.py").write_text(text.replace("separable/orthant", "loose/orthant"))
    listed = reluflow_command("", tmp_path, "list", "loose.py:paper")
    assert "loose S4" in listed.stdout, listed.stderr
    made = reluflow_command("", tmp_path, "study", "loose.py:paper")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "results" / "loose" / "report.html").exists()
    drawn = reluflow_command(
        "", tmp_path, "reproduce", "loose.py:paper/fig-angle", "--workers", "0"
    )
    assert drawn.returncode == 0, drawn.stderr
