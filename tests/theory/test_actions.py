"""rf.theory.study, reproduce and sweep take a paper, a name or a file, as the commands do."""

import pytest

import reluflow as rf
from reluflow.theory import Expectation, registry

FILE = """
import reluflow as rf

paper = rf.Paper("tiny", title="One point")
DOCUMENT = {
    "data": {"generator": "orthonormal", "n": 2, "labels": "positive"},
    "network": {"init": "balanced", "width": 2, "log_scale": -3.0},
    "engine": {"name": "flow", "t_end": 1.0},
}
paper.preset = {"seed": 1, **DOCUMENT, "study": {"title": "Tiny"}}

@paper.claim("T1", "the loss falls")
def falls(case):
    return rf.theory.at_most(case.run.log_loss[-1], case.run.log_loss[0])

@paper.figure("fig", quick={**DOCUMENT, "sweep": {"repeats": 2}})
def fig(results):
    y = [result.run.log_loss[-1] for result in results]
    line = rf.figures.Line([0.0, 1.0], y, "log-loss")
    panel = rf.figures.Panel("", rf.figures.Axis("k"), rf.figures.Axis("log-loss"), (line,))
    found = rf.theory.Expectation("log-loss", max(y), -10.0, 10.0, "here")
    return rf.figures.Figure("fig", "log-losses", (panel,)), found
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    monkeypatch.setenv(registry.FILES, "")  # restored: other tests must not know this paper
    file = tmp_path / "tiny.py"
    file.write_text(FILE, encoding="utf-8")
    yield registry.from_file(f"{file}:paper")
    registry.forget("tiny")


def test_a_paper_is_studied_swept_and_its_figure_reproduced(paper, tmp_path):
    page = rf.theory.study(paper, tmp_path)
    assert page.claims is not None
    assert [row.verdict.value for row in page.claims.checks] == ["PASS"]
    assert (tmp_path / "tiny" / "report.html").is_file()
    results = rf.theory.sweep(paper, "fig", out=tmp_path, workers=0)
    assert len(results) == 2
    outcome = rf.theory.reproduce(paper, "fig", out=tmp_path, workers=0)
    assert outcome.summary.done_before == 2
    assert isinstance(outcome.reproduction.expectations[0], Expectation)


def test_an_unknown_figure_and_a_paper_without_a_preset_are_refused():
    with pytest.raises(rf.InputError, match="separable has no figure 'fig9'"):
        rf.theory.reproduce("separable", "fig9")
    with pytest.raises(rf.InputError, match="has no preset"):
        rf.theory.study(rf.Paper("without", title="Nothing"))
    registry.forget("without")
