"""Answers as plain data, hints across kinds of files, what to cite."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow import theory
from reluflow.cli.app import app

RUN = """
name = "toy"
[data]
generator = "centred"
d = 3
[network]
init = "balanced"
width = 5
log_scale = -2
[engine]
name = "descent"
lr = 0.05
steps = 30
"""
SWEEP = RUN + '[sweep]\nrepeats = 2\n[sweep.grid]\n"data.d" = [2, 3]\n[measure]\nn = "alive"\n'
STUDY = RUN + '[study]\ntitle = "mine"\n'


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    """The only thing on the output is one JSON document."""
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("answers")
    for name, text in (("run", RUN), ("sweep", SWEEP), ("study", STUDY)):
        (place / f"{name}.toml").write_text(text)
    return place


@pytest.fixture(scope="module")
def saved(folder):
    found = answer("run", folder / "run.toml", "--out", folder)
    assert found["status"] == "steps"
    return folder / "toy.rf"


def test_run_and_show_answer_the_same(saved):
    run = rf.load(saved)
    found = answer("show", saved)
    assert found["file"] == str(saved)
    assert found["log_loss"] == run.log_loss[-1]
    assert found["squared_norm"] == run.final.squared_norm
    assert found["limit_error"] is None  # nan is no JSON


def test_check_answers_with_every_row(saved):
    found = answer("check", saved, "--paper", "correlated", "--no-start-runs")
    ids = {row["id"] for row in (*found["assumptions"], *found["checks"])}
    assert {claim.id for claim in theory.paper_named("correlated").claims} <= ids
    assert sum(found["counts"].values()) == len(found["assumptions"]) + len(found["checks"])


def test_study_answers_with_runs_and_page(folder):
    found = answer("study", folder / "study.toml", "--out", folder)
    assert found["title"] == "mine"
    assert found["runs"]["the run"]["neurons"] == 5
    assert (folder / "toy" / "report.html").is_file()


def test_a_sweep_answers_with_its_table_and_writes_it(folder):
    out = ("--out", folder / "store", "--workers", 0)
    found = answer("sweep", folder / "sweep.toml", *out, "--csv", folder / "table.csv")
    assert found["computed"] == 4
    assert found["table"]["data.d"] == [2, 2, 3, 3]
    assert len(found["table"]["n"]) == 4
    assert (folder / "table.csv").read_text().splitlines()[0].endswith(",n")
    drawn = invoke("sweep", folder / "sweep.toml", *out, "--plot", "x=d", "y=n")
    assert drawn.exit_code == 0, drawn.output
    assert (folder / "store" / "n_against_d.png").is_file()
    standing = answer("sweep", folder / "sweep.toml", *out, "--status")
    assert standing["counts"]["steps"] == 4
    assert all(isinstance(line, str) for line in standing["status"])


def test_a_picture_of_what_is_not_there_is_refused_before_any_work(folder):
    result = invoke("sweep", folder / "sweep.toml", "--out", folder / "new", "--plot", "x=d")
    assert result.exit_code == 2
    assert "--plot needs x=COLUMN and y=COLUMN" in result.stderr
    assert not (folder / "new").exists()


def test_list_answers_by_section():
    found = answer("list")
    assert set(found) == {
        *("papers", "figures", "claims", "studies"),
        *("generators", "initialisations", "losses", "engines"),
    }
    assert set(answer("list", "--section", "papers")["papers"]) == set(theory.names())
    result = invoke("list", "--section", "clams")
    assert result.exit_code == 2
    assert "Did you mean 'claims'" in result.stderr


@pytest.mark.parametrize("paper", theory.names())
def test_citations_have_bibtex(paper):
    found = answer("cite", paper)
    assert len(found["bibtex"]) == 2
    for entry in found["bibtex"]:
        assert re.match(r"@(misc|software)\{[a-z]+\d*[a-z]*,\n", entry)
        assert entry.count("{") == entry.count("}")
        assert re.search(r"  author = \{.+\},\n  title = \{\{.+\}\}", entry)
    assert rf.__version__ in found["bibtex"][0]


def test_the_software_alone_can_be_cited(saved):
    assert rf.__version__ in invoke("cite").output
    assert "@software{" in invoke("cite", saved).output


@pytest.mark.parametrize(
    ("command", "file", "message"),
    [
        ("run", "sweep.toml", "describes a sweep: it has a table [sweep]. Use `reluflow sweep`"),
        ("run", "study.toml", "Use `reluflow study`"),
        ("study", "sweep.toml", "Use `reluflow sweep`"),
        ("sweep", "study.toml", "Use `reluflow study`"),
        ("sweep", "run.toml", "train this file once with `reluflow run`"),
        ("run", "toy.rf", "is a saved run, not a TOML file"),
        ("show", "run.toml", "is a TOML file, not a saved run. Make the run with `reluflow run"),
        ("check", "study.toml", "Make the run with `reluflow study"),
        ("cite", "run.toml", "is a TOML file"),
    ],
)
def test_a_file_of_another_command_is_sent_there(saved, folder, command, file, message):
    result = invoke(command, folder / file)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_package_is_a_command_and_completes_itself():
    done = subprocess.run(
        [sys.executable, "-m", "reluflow", "--help"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    assert "--install-completion" in done.stdout


def test_nothing_refers_to_documents_a_user_does_not_have():
    from pathlib import Path

    root = Path(rf.__file__).parent
    for path in root.rglob("*.py"):
        assert "spec section" not in path.read_text(encoding="utf-8"), path


def test_every_command_answers_with_plain_data():
    import typer

    commands = typer.main.get_command(app).commands
    assert len(commands) >= 12
    for name, command in commands.items():
        assert "--json" in {option for one in command.params for option in one.opts}, name


def test_an_exported_page_is_an_answer_too(tmp_path, monkeypatch):
    from reluflow.explore import export

    monkeypatch.setattr(export, "write", lambda state, path: path.write_text("page"))
    page = tmp_path / "page.html"
    assert answer("explore", "--export", page) == {"page": str(page)}
