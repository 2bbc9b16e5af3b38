"""Every claim of every paper: a subject where it holds, one per hypothesis where it does not
apply, and a wrong run, hypotheses intact, on which it fails. Identities need no wrong run."""

from functools import cache

import pytest

import reluflow as rf
from reluflow import theory
from reluflow.theory import registry
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import Verdict

from .subjects import BROKEN

ENGINES = {"flow": rf.flow, "descent": rf.descend}
PAPERS = ("separable", "correlated", "orthogonal", "highdim", "univariate")
CLAIMS = [(name, row.id) for name in PAPERS for row in rf.papers.named(name).claims]
HYPOTHESES = sorted({(name, id) for name, row in CLAIMS for id in rf.papers.named(name)[row].needs})


def is_identity(row):
    return row.title.lower().startswith("identity")


@cache
def _made(make):
    return make()


def good(paper, id):
    make = paper.statement(id).good or paper._example
    assert make is not None, f"{paper.name} {id} has no good subject"
    return _made(make)


def judged(paper, id, subject, engines=ENGINES):
    """The row of one statement on a subject, or on a pair of subject and options."""
    options = {}
    if isinstance(subject, tuple) and isinstance(subject[1], dict):
        subject, options = subject
    options = dict(options)
    engines = engines and engines | options.pop("engines", {})
    generator = options.pop("generator", None)
    given = subject_of(subject, engines)
    drawer = generator or theory._drawer(given.runs)
    case = paper.prepare(subject_of(subject, engines, drawer), **options)
    return paper.statement(id).check(case), case


@pytest.mark.parametrize(("name", "id"), CLAIMS)
def test_a_claim_holds_on_its_good_subject(name, id):
    paper = rf.papers.named(name)
    found, _ = judged(paper, id, good(paper, id))
    assert found.verdict is Verdict.PASS, found


@pytest.mark.parametrize(("name", "id"), CLAIMS)
def test_a_claim_fails_on_its_wrong_run_with_all_hypotheses_intact(name, id):
    paper = rf.papers.named(name)
    row = paper.claims[id]
    if is_identity(row):
        assert row.wrong is None
        return
    assert row.wrong is not None, f"{name} {id} names no wrong run"
    found, case = judged(paper, id, row.wrong(good(paper, id)))
    assert found.verdict is Verdict.FAIL, found
    for need in row.needs:
        assert case.met(need), need


@pytest.mark.parametrize(("name", "need"), HYPOTHESES)
def test_claims_do_not_apply_where_a_hypothesis_fails(name, need):
    paper = rf.papers.named(name)
    assert (name, need) in BROKEN, f"no subject on which {name} {need} fails"
    subject = BROKEN[name, need](_made(paper._example) if name == "separable" else None)
    for row in paper.claims:
        if need in row.needs:
            found, case = judged(paper, row.id, subject, engines=None)
            assert found.verdict is Verdict.NOT_APPLICABLE, found
            assert f"assumption {need} is not met" in found.note
    assert case.found[need].verdict in (Verdict.FAIL, Verdict.NOT_APPLICABLE)


def test_every_paper_of_the_package_is_here():
    assert set(PAPERS) == set(registry._own())  # other tests register papers of their own
