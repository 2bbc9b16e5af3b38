"""`study`, `reproduce`, `check`, `cite` and `list` as a user runs them."""

import json

import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow import files, theory
from reluflow.cli.app import app

STUDY = """
[study]
log_scales = [-3.0, -6.0]
title = "Two <scales>"
[data]
generator = "centred"
d = 3
[network]
init = "balanced"
width = 6
[engine]
name = "flow"
stop_loss = 1e-3
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def saved(tmp_path):
    data = rf.datasets.centred(d=3, seed=0)
    net = rf.networks.balanced(3, width=6, log_scale=-6.0, seed=0)
    rf.flow(data, net).save(tmp_path / "run.rf")
    return tmp_path / "run.rf"


def test_study_of_a_file_writes_one_page(file, tmp_path):
    result = invoke("study", file, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    page = tmp_path / "out" / "mine" / "report.html"
    assert page.is_file()
    assert "Two &lt;scales&gt;" in page.read_text()
    assert "scale exp(-3)" in result.output
    assert "stop_loss" in result.output
    again = invoke("study", file, "--out", tmp_path / "out")
    assert again.exit_code == 0
    assert "taken from" in again.stderr
    assert f"numerics {files.NUMERICS_VERSION}" in " ".join(again.stderr.split())
    fresh = invoke("study", file, "--out", tmp_path / "out", "--fresh")
    assert fresh.exit_code == 0
    assert "taken from" not in fresh.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STUDY.replace("log_scales", "log_scale"), "log_scales"),
        (STUDY.replace('"centred"', '"centered"'), "centred"),
        (STUDY.replace("stop_loss", "stop_lss"), "stop_loss"),
        ("[study\n", "not TOML"),
    ],
)
def test_a_typo_ends_with_code_2_and_the_nearest_name(tmp_path, text, message):
    path = tmp_path / "typo.toml"
    path.write_text(text)
    result = invoke("study", path, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_an_unknown_preset_is_refused(tmp_path):
    result = invoke("study", "correlted", "--out", tmp_path)
    assert result.exit_code == 2
    assert "correlated" in result.stderr


@pytest.mark.parametrize("name", ["correlated/fig99", "nothing/fig1", "correlated"])
def test_an_unknown_figure_is_refused(name, tmp_path):
    result = invoke("reproduce", name, "--out", tmp_path)
    assert result.exit_code == 2
    assert "correlated" in result.stderr


def test_sizes_exclude_each_other(tmp_path):
    result = invoke("reproduce", "correlated/fig1", "--quick", "--full", "--out", tmp_path)
    assert result.exit_code == 2
    assert "Drop one" in result.stderr


def test_check_picks_the_paper_and_prints_every_row(saved, tmp_path):
    result = invoke("check", saved, "--html", tmp_path / "claims.html")
    assert result.exit_code == 0, result.output
    assert "correlated" in result.output
    for claim in theory.paper_named("correlated").claims:
        assert claim.id in result.output
    assert (tmp_path / "claims.html").is_file()


def test_check_of_a_foreign_paper_is_refused(saved):
    result = invoke("check", saved, "--paper", "univariat")
    assert result.exit_code == 2
    assert "univariate" in result.stderr


def test_cite_names_version_and_paper(saved):
    result = invoke("cite", saved)
    assert result.exit_code == 0
    assert rf.__version__ in result.output
    assert theory.paper_named("correlated").citation in result.output


def test_check_and_cite_refuse_what_is_no_run(tmp_path):
    (tmp_path / "x.rf").write_text("no")
    for command in ("check", "cite"):
        result = invoke(command, tmp_path / "x.rf")
        assert result.exit_code == 2
        assert "not a reluflow file" in result.stderr


def test_every_figure_and_claim_has_one_line():
    for paper in theory.names():
        for recipe in theory.paper_named(paper).figures.values():
            assert recipe.id.startswith(f"{paper}/")
            assert recipe.title
            assert "\n" not in recipe.title
        for claim in (*theory.paper_named(paper).assumptions, *theory.paper_named(paper).claims):
            assert claim.title
            assert "\n" not in claim.title


def test_presets_are_plain_data():
    for paper in theory.papers():
        assert json.loads(json.dumps(paper.preset))
