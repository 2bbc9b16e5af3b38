"""Verdicts, subjects and reports, on a made-up paper of two claims."""

import json
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow import theory
from reluflow.errors import InputError
from reluflow.theory.paper import Paper
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Unresolved,
    Verdict,
    at_least,
    at_most,
    holds,
)


@pytest.fixture
def toy(monkeypatch):
    assumptions, claims = Claims(), Claims()

    @assumptions("A1", "points are few")
    def a1(case):
        return at_most(case.data.n, 5)

    @claims("C1", "the loss falls")
    def c1(case):
        return holds(case.run.log_loss[-1] <= case.run.log_loss[0])

    @claims("C2", "another run agrees")
    def c2(case):
        again = case.flow(case.data, case.net, t_end=0.5)
        return at_most(again.log_loss[-1], 10.0)

    @claims("C3", "needs <luck> & more")
    def c3(case):
        raise Unresolved("a tie")

    paper = Paper("toy", "A <toy>", "Nobody, 2026", assumptions, claims, prepare, lambda case: "x")
    monkeypatch.setattr(theory, "paper_named", lambda name: paper)
    return paper


def prepare(subject, level=1.0):
    return subject


def small_run():
    data = rf.Dataset([[1.0, 0.2], [0.3, 1.0]], [1.0, 0.5])
    net = rf.Network([0.1, 0.2], [[0.1, 0.0], [0.1, 0.2]])
    return rf.flow(data, net, t_end=1.0)


def test_verdicts_respect_the_error():
    assert at_most(1.0, 1.0).verdict == Verdict.PASS
    assert at_most(1.0, 1.0, error=1e-9).verdict == Verdict.UNRESOLVED
    assert at_most(float("nan"), 1.0).verdict == Verdict.UNRESOLVED
    assert at_most(-np.inf, -1e9).verdict == Verdict.PASS
    assert at_least(2.0, 1.0, error=0.5).verdict == Verdict.PASS
    assert at_least(0.0, 1.0, error=0.5).verdict == Verdict.FAIL
    assert at_least(1.2, 1.0, error=0.5).measured == 1.2


def test_a_claim_defined_twice_is_a_mistake():
    claims = Claims()
    claims("X", "x")(lambda case: holds(True))
    with pytest.raises(ValueError, match="X is defined twice"):
        claims("X", "x")(lambda case: holds(False))


def test_a_report_has_every_row(toy):
    report = theory.check("toy", small_run())
    assert [check.id for check in report.checks] == ["C1", "C2", "C3"]
    assert report["A1"].verdict == Verdict.PASS
    assert report["C1"].verdict == Verdict.PASS
    assert report["C2"].verdict == Verdict.PASS
    assert report["C3"].verdict == Verdict.UNRESOLVED
    assert report.counts()["PASS"] == 3
    assert "a tie" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["checks"][2]["verdict"] == "UNRESOLVED"
    with pytest.raises(KeyError):
        report["C9"]


def test_starting_runs_can_be_forbidden(toy):
    report = theory.check("toy", small_run(), start_runs=False)
    assert report["C2"].verdict == Verdict.NOT_APPLICABLE
    assert "start_runs=False" in report["C2"].note


def test_a_pair_has_no_run(toy):
    run = small_run()
    report = theory.check("toy", (run.data, run.net))
    assert report["C1"].verdict == Verdict.NOT_APPLICABLE


def test_the_page_is_inert(toy, tmp_path):
    theory.check("toy", small_run()).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "needs &lt;luck&gt; &amp; more" in page
    assert "<luck>" not in page
    assert "http" not in page


def test_an_unfinished_run_is_announced(toy):
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=20, log_scale=-3.0, seed=0)
    run = rf.flow(data, net, max_events=1)
    assert run.status == "budget"
    assert "budget" in theory.check("toy", run).warnings[0]


@pytest.mark.parametrize("status", [s for s in rf.Status if not s.is_asked_for])
def test_a_run_that_did_not_end_as_asked_is_announced_with_its_reason(toy, status):
    run = replace(small_run(), status=status, reason="the plane of point 3")
    (warning,) = theory.check("toy", run).warnings
    assert warning == f"run 0 ended as `{status}`: {status.text} (the plane of point 3)"


def test_a_run_that_is_one_of_several_solutions_is_announced(toy):
    run = small_run()
    rows = [(0.25, np.log(0.25), 3, -1, "branch"), (0.5, np.log(0.5), 1, 0, "branch")]
    run = replace(run, events=np.array(rows, run.events.dtype))
    (warning,) = theory.check("toy", run).warnings
    assert warning == (
        "run 0 is one of several solutions: it branches 2 times, first at t = 0.25 (neuron 3), and "
        "another solution may end elsewhere"
    )


@pytest.mark.parametrize("status", [rf.Status.FAILED, rf.Status.INTERRUPTED])
def test_a_run_that_a_claim_starts_and_that_fails_decides_nothing(status):
    run = small_run()
    broken = replace(run, status=status, reason="no step")
    subject = subject_of(run, {"flow": lambda *_, **__: broken})
    with pytest.raises(Unresolved, match=f"ended as `{status}`: .*no step"):
        subject.flow(run.data, run.net)


@pytest.mark.parametrize("bad", [None, 3, [], "run", [1, 2]])
def test_a_foreign_subject_is_refused(toy, bad):
    with pytest.raises(InputError, match="Pass a Trajectory"):
        theory.check("toy", bad)


def test_mismatched_pair_is_refused(toy):
    pair = (rf.Dataset([[1.0]], [1.0]), rf.Network([1.0], [[1.0, 2.0]]))
    with pytest.raises(InputError, match="2 inputs but the points have 1"):
        theory.check("toy", pair)


def test_an_unknown_option_names_the_nearest(toy):
    with pytest.raises(InputError, match=r"Did you mean .*level"):
        theory.check("toy", small_run(), levle=2)


def test_an_unknown_paper_is_refused():
    with pytest.raises(InputError, match="correlated"):
        theory.paper_named("correlatd")


def test_not_applicable_is_an_answer():
    claims = Claims()

    @claims("X", "x")
    def x(case):
        raise NotApplicable("no data")

    assert claims["X"].check(None).note == "no data"
    assert len(claims) == 1
