"""From a plan to its page: runs are kept, reused when equal, replaced when damaged or different."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.studies import document
from reluflow.studies.make import make, run_path
from reluflow.studies.which import fitting_paper

DOCUMENT = {
    "study": {"log_scales": [-3.0, -6.0], "title": "Two scales"},
    "data": {"generator": "uncentred", "d": 3},
    "network": {"init": "balanced", "width": 30},
    "engine": {"name": "flow", "stop_loss": 1e-3},
}


def build(**study):
    return document.build({**DOCUMENT, "study": {**DOCUMENT["study"], **study}}, name="demo")


def test_a_page_has_runs_sections_and_downloads(tmp_path):
    page = make(build(), tmp_path)
    assert [item.label for item in page.runs] == ["scale exp(-3)", "scale exp(-6)"]
    assert [section.title for section in page.sections][-4:] == [
        "Loss",
        "Norms",
        "Directions",
        "Activations",
    ]
    rows = list(csv.reader(io.StringIO(page.downloads["losses.csv"].decode())))
    assert rows[0] == ["run", "t", "log_t", "log_loss"]
    assert float(rows[1][3]) == page.runs[0].run.log_loss[0]
    assert len(rows) == 1 + sum(len(item.run.t) for item in page.runs)
    assert [section.title for section in page.sections][:3] == [
        *("The rank", "What was found", "Prediction"),
    ]
    assert [c.predicted > 0 for c in page.comparisons] == [True, True]
    assert all(c.discrepancy < 0.05 for c in page.comparisons)  # stopped a little early
    assert page.claims is None


def test_a_second_call_trains_nothing(tmp_path):
    said = []
    make(build(), tmp_path)
    make(build(), tmp_path, say=said.append)
    assert sum("taken from" in text for text in said) == 2


def test_an_interrupted_run_is_gone_on_with_and_a_failed_one_is_not(tmp_path):
    first, second = (item.run for item in make(build(), tmp_path).runs)
    half = {name: array[:10] for name, array in first.kept.items()}
    cut = replace(first, t=first.t[:10], log_t=first.log_t[:10], log_loss=first.log_loss[:10])
    events = first.events[first.events["t"] <= first.t[9]]
    cut = replace(cut, kept=half, events=events, status=rf.Status.INTERRUPTED)
    cut.save(run_path(tmp_path, "scale exp(-3)"))
    replace(second, status=rf.Status.FAILED).save(run_path(tmp_path, "scale exp(-6)"))
    said = []
    page = make(build(), tmp_path, say=said.append)
    assert [item.run.status for item in page.runs] == ["stop_loss", "failed"]
    assert any("was interrupted at" in text and "gone on with" in text for text in said)
    np.testing.assert_allclose(page.runs[0].run.final.W, first.final.W, rtol=1e-6, atol=1e-9)
    assert page.runs[0].run.t[:10].tolist() == first.t[:10].tolist()


def test_a_changed_study_is_trained_again(tmp_path):
    make(build(), tmp_path)
    said = []
    changed = document.build(
        {**DOCUMENT, "engine": {"name": "flow", "stop_loss": 1e-4}}, name="demo"
    )
    page = make(changed, tmp_path, say=said.append)
    assert sum("training" in text for text in said) == 2
    assert page.runs[0].run.log_loss[-1] == pytest.approx(np.log(1e-4), abs=1e-6)


def test_a_damaged_run_is_set_aside(tmp_path):
    make(build(), tmp_path)
    path = run_path(tmp_path, "scale exp(-3)")
    path.write_bytes(path.read_bytes()[:-10])
    said = []
    make(build(), tmp_path, say=said.append)
    assert any("set aside" in text for text in said)
    assert path.with_suffix(".damaged").exists()
    assert rf.load(path).status == "stop_loss"


def test_the_paper_of_a_run_is_found(tmp_path):
    data = rf.datasets.centred(d=3, seed=0)
    net = rf.networks.balanced(3, width=4, log_scale=-2.0, seed=0)
    assert fitting_paper(rf.flow(data, net, t_end=1.0))[0] == "correlated"
    hidden = rf.flow(data, rf.Network([1.0], [[0.1, 0.1, 0.1]]), train="hidden", t_end=1.0)
    assert fitting_paper(hidden)[0] == "highdim"
    line = rf.datasets.from_points([-1.0, 1.0], [-1, 1])
    flat = rf.flow(line, rf.Network([0.1], [[0.1, 0.1]]), loss=rf.losses.Logistic(), t_end=1.0)
    assert fitting_paper(flat)[0] == "univariate"
    square = rf.datasets.orthonormal(3, seed=0)
    assert fitting_paper(rf.flow(square, net, t_end=1.0))[0] == "orthogonal"
    own = rf.Dataset([[1.0, 0.2, 0.0], [0.1, 1.0, 0.0]], [1.0, 2.0])
    paper, why = fitting_paper(rf.flow(own, net, t_end=1.0))
    assert paper is None
    assert why
