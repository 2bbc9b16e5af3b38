"""Verdicts, papers, subjects and reports, on a made-up paper."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow import theory
from reluflow.errors import InputError
from reluflow.theory.statement import Statement
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import (
    Unresolved,
    Verdict,
    at_least,
    at_most,
    equals,
    holds,
    together,
    undecided,
    verdict_of,
)


class Toy(theory.Case):
    def prepare(self, *, level=1.0, small=True, wide=True):
        self.level, self.small, self.wide = level, small, wide


@pytest.fixture
def toy():
    paper = rf.Paper("toy", title="A <toy>", case=Toy, reference="Nobody, 2026")

    @paper.assumption("A1", "points are few")
    def a1(case):
        return at_most(case.data.n, 5)

    @paper.assumption("open", "nobody knows")
    def open_(case):
        return undecided(note="the constant is missing")

    @paper.assumption("small", "the scale is small", approach=lambda case: case)
    def small(case):
        return holds(case.small, note="" if case.small else "scale 1")

    @paper.claim("C1", "the loss falls", needs=["A1"])
    def c1(case):
        return holds(case.run.log_loss[-1] <= case.run.log_loss[0])

    @paper.claim("C2", "another run agrees")
    def c2(case):
        again = case.subject.flow(case.data, case.net, t_end=0.5)
        return at_most(again.log_loss[-1], 10.0)

    @paper.claim("C3", "needs <luck> & more")
    def c3(case):
        raise Unresolved("a tie")

    @paper.claim("C4", "level at most 1", needs=["A1"], regime=["small"])
    def c4(case):
        return at_most(case.level, 1.0)

    @paper.claim("C5", "level at most 1", needs=["open"])
    def c5(case):
        return at_most(case.level, 1.0)

    return paper


def small_run(n=2):
    X = np.array([[1.0, 0.2], [0.3, 1.0], *([[0.5, 0.5]] * (n - 2))])
    data = rf.Dataset(X, [1.0, 0.5, *([0.7] * (n - 2))])
    net = rf.Network([0.1, 0.2], [[0.1, 0.0], [0.1, 0.2]])
    return rf.flow(data, net, t_end=1.0)


def test_verdicts_respect_the_error():
    assert verdict_of(at_most(1.0, 1.0)) is Verdict.PASS
    assert verdict_of(at_most(1.0, 1.0, 1e-9)) is Verdict.UNRESOLVED
    assert verdict_of(at_most(float("nan"), 1.0)) is Verdict.UNRESOLVED
    assert verdict_of(at_most(-np.inf, -1e9)) is Verdict.PASS
    assert verdict_of(at_most(np.inf, np.inf)) is Verdict.PASS
    assert verdict_of(at_least(2.0, 1.0, 0.5)) is Verdict.PASS
    assert verdict_of(at_least(0.0, 1.0, 0.5)) is Verdict.FAIL
    assert at_least(1.2, 1.0, 0.5).measured == 1.2
    assert verdict_of(equals(1.2, 1.0, 0.1)) is Verdict.FAIL
    assert verdict_of(together(holds(True), undecided())) is Verdict.UNRESOLVED
    assert verdict_of(together(undecided(), holds(False))) is Verdict.FAIL


@pytest.mark.parametrize(
    ("size", "power", "verdict"),
    [
        (0.5, 0.5, "PASS"),
        (0.5, 0.05, "UNRESOLVED"),  # it falls, but so slowly that nobody sees where to
        (0.5, 0.0, "FAIL"),
        (0.01, 0.0, "UNRESOLVED"),
        (1e-15, 0.0, "PASS"),
    ],
)
def test_a_measure_falls_by_its_power(size, power, verdict):
    levels = np.geomspace(1e2, 1e4, 9)

    class Late(theory.Case):
        def __init__(self):
            pass

        def late_measures(self, measure):
            return levels, size * (levels / 1e4) ** -power

    assert verdict_of(theory.falls(Late(), lambda net: 0.0)) == verdict


def test_an_error_may_come_from_the_run(toy):
    case = toy.prepare(subject_of(small_run(), None))
    assert at_most(1.0, 2.0, case=case).error == pytest.approx(2.0 * case.error)
    assert case.error >= 1e-8


def test_an_id_defined_twice_and_an_unknown_hypothesis_are_mistakes(toy):
    with pytest.raises(ValueError, match="C1 is defined twice"):
        toy.claim("C1", "x")(lambda case: holds(True))
    with pytest.raises(ValueError, match="A1 is defined twice"):
        toy.claim("A1", "x")(lambda case: holds(True))
    with pytest.raises(InputError, match=r"needs 'A2', which is no assumption"):
        toy.claim("C9", "x", needs=["A2"])


def test_a_report_has_every_row(toy):
    report = theory.check(toy, small_run())
    assert [check.id for check in report.checks] == ["C1", "C2", "C3", "C4", "C5"]
    assert report["A1"].verdict is Verdict.PASS
    assert report["C1"].verdict is Verdict.PASS
    assert report["C2"].verdict is Verdict.PASS
    assert report["C3"].verdict is Verdict.UNRESOLVED
    assert report.counts()["PASS"] == 5
    assert "a tie" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["checks"][2]["verdict"] == "UNRESOLVED"
    with pytest.raises(KeyError):
        report["C9"]


@pytest.mark.parametrize(("level", "observed"), [(0.5, True), (2.0, False)])
def test_a_failed_hypothesis_leaves_an_observation(toy, level, observed):
    found = theory.check(toy, small_run(7), level=level)["C4"]
    assert found.verdict is Verdict.NOT_APPLICABLE
    assert found.observed is observed
    assert found.measured == level
    assert "assumption A1 is not met" in found.note
    assert found.observation == ("would hold" if observed else "would not hold")


def test_an_observation_that_cannot_be_made_is_none(toy):
    @toy.claim("C6", "undefined outside", needs=["A1"])
    def c6(case):
        raise ZeroDivisionError

    found = theory.check(toy, small_run(7))["C6"]
    assert (found.verdict, found.observed) == (Verdict.NOT_APPLICABLE, None)
    with pytest.raises(ZeroDivisionError):  # inside its hypotheses it is a defect
        theory.check(toy, small_run())


def test_an_undecided_hypothesis_leaves_the_claim_undecided(toy):
    found = theory.check(toy, small_run())["C5"]
    assert found.verdict is Verdict.UNRESOLVED
    assert "assumption open is undecided: the constant is missing" in found.note


def test_outside_the_regime_a_pass_stays_and_a_violation_is_unresolved_with_its_trend(toy):
    passed = theory.check(toy, small_run(), small=False)["C4"]
    assert passed.verdict is Verdict.PASS
    assert "outside the regime small" in passed.note
    failed = theory.check(toy, small_run(), small=False, level=2.0)["C4"]
    assert failed.verdict is Verdict.UNRESOLVED
    assert "the violation does not shrink" in failed.note
    assert theory.check(toy, small_run(), level=2.0)["C4"].verdict is Verdict.FAIL


def test_starting_runs_can_be_forbidden(toy):
    report = theory.check(toy, small_run(), start_runs=False)
    assert report["C2"].verdict is Verdict.NOT_APPLICABLE
    assert "start_runs=False" in report["C2"].note


def test_the_run_of_a_pair_is_started_unless_forbidden(toy):
    pair = (small_run().data, small_run().net)
    assert theory.check(toy, pair)["C1"].verdict is Verdict.PASS
    assert theory.check(toy, pair, start_runs=False)["C1"].verdict is Verdict.NOT_APPLICABLE


def test_the_page_is_inert(toy, tmp_path):
    theory.check(toy, small_run()).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "needs &lt;luck&gt; &amp; more" in page
    assert "<luck>" not in page
    assert "http" not in page


def test_an_unfinished_run_is_announced(toy):
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=20, log_scale=-3.0, seed=0)
    run = rf.flow(data, net, max_events=1)
    assert run.status == "budget"
    assert "budget" in theory.check(toy, run).warnings[0]


@pytest.mark.parametrize("status", [s for s in rf.Status if not s.is_asked_for])
def test_a_run_that_did_not_end_as_asked_is_announced_with_its_reason(toy, status):
    run = replace(small_run(), status=status, reason="the plane of point 3")
    (warning,) = theory.check(toy, run).warnings
    assert warning == f"run 0 ended as `{status}`: {status.text} (the plane of point 3)"


def test_a_run_that_is_one_of_several_solutions_is_announced(toy):
    run = small_run()
    rows = [(0.25, np.log(0.25), 3, -1, "branch"), (0.5, np.log(0.5), 1, 0, "branch")]
    run = replace(run, events=np.array(rows, run.events.dtype))
    (warning,) = theory.check(toy, run).warnings
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


def _waits():
    time.sleep(0.02)


def _works():
    began = time.process_time()
    while time.process_time() - began < 0.02:
        pass


@pytest.mark.parametrize(
    ("spend", "asked"), [(_waits, [0.01, 0.04, 0.16]), (_works, [0.01])], ids=["waits", "works"]
)
def test_seconds_of_a_claim_are_those_of_the_processor(spend, asked):
    """A run that a busy machine kept from ending gets its time; one that used it does not."""
    data, net = rf.datasets.orthonormal(2, seed=0), rf.networks.balanced(2, 2, seed=0)
    ended, seen = rf.flow(data, net, t_end=0.1), []

    def flow(*problem, max_seconds):
        seen.append(max_seconds)
        spend()
        return ended if max_seconds > 0.1 else replace(ended, status=rf.Status.BUDGET)

    started = subject_of((data, net), {"flow": flow}).flow(data, net, max_seconds=0.01)
    assert seen == asked
    assert str(started.status) == ("t_end" if spend is _waits else "budget")


def test_a_run_that_a_claim_starts_does_not_go_on_for_ever(monkeypatch):
    run = small_run()
    endless = replace(run, status=rf.Status.BUDGET)
    monkeypatch.setattr("reluflow.theory.subject.LONGEST", 0.0)
    subject = subject_of(run, {"flow": lambda *_, **options: endless})
    with pytest.raises(Unresolved, match="a run of the flow did not end within 0 s"):
        subject.flow(run.data, run.net)
    assert subject.flow(run.data, run.net, max_seconds=None) is endless


@pytest.mark.parametrize("bad", [None, 3, [], "run", [1, 2]])
def test_a_foreign_subject_is_refused(toy, bad):
    with pytest.raises(InputError, match="Pass a Trajectory"):
        theory.check(toy, bad)


def test_mismatched_pair_is_refused(toy):
    pair = (rf.Dataset([[1.0]], [1.0]), rf.Network([1.0], [[1.0, 2.0]]))
    with pytest.raises(InputError, match="2 inputs but the points have 1"):
        theory.check(toy, pair)


def test_an_unknown_option_names_the_nearest(toy):
    with pytest.raises(InputError, match=r"Did you mean .*level"):
        theory.check(toy, small_run(), levle=2)


def test_a_paper_is_made_of_a_name_and_a_case():
    with pytest.raises(InputError, match="letters, digits"):
        rf.Paper("no name", title="x")
    with pytest.raises(InputError, match="Derive it from"):
        rf.Paper("x", title="x", case=dict)


def test_draws_come_from_the_generator_of_the_subject(toy):
    @toy.claim("C6", "points of draws differ from the subject's")
    def c6(case):
        return holds(all(not np.array_equal(data.X, case.data.X) for data, _ in case.draw(3)))

    run = small_run()
    assert theory.check(toy, run)["C6"].verdict is Verdict.NOT_APPLICABLE
    assert "generator of the subject is not known" in theory.check(toy, run)["C6"].note

    def generator(seed):
        rng = np.random.default_rng(seed)
        return rf.Dataset(rng.normal(size=(2, 2)), [1.0, 1.0]), run.net

    assert theory.check(toy, run, generator=generator)["C6"].verdict is Verdict.PASS


def test_a_run_of_a_document_knows_its_generator(toy):
    from reluflow import spec

    document = {
        "seed": 3,
        "data": {"generator": "centred", "d": 3},
        "network": {"init": "balanced", "width": 4, "log_scale": -2.0},
        "engine": {"name": "flow", "t_end": 1.0},
    }
    run = spec.build(document).start()
    drawn = theory._drawer((run,))(0)
    assert drawn[0].X.shape == run.data.X.shape
    assert not np.array_equal(drawn[0].X, run.data.X)
    assert theory._drawer((small_run(),)) is None


def test_a_statement_can_be_called_and_named():
    row = Statement("X", "x", lambda case: holds(case > 0))
    assert verdict_of(row(1)) is Verdict.PASS
    assert "'X'" in repr(row)
