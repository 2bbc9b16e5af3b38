"""Every claim of every paper: a subject where it holds, one per hypothesis where it does not
apply, and a wrong run, hypotheses intact, on which it fails. Identities need no wrong run."""

from functools import cache

import pytest

import reluflow as rf
from reluflow import theory
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import Verdict

from .subjects import BROKEN

ENGINES = {"flow": rf.flow, "descent": rf.descend}
PAPERS = (
    "separable",
    "orthogonal",
    "highdim",
)  # the other papers name wrong runs too; they join as verified
CLAIMS = [(name, row.id) for name in PAPERS for row in rf.papers.named(name).claims]
HYPOTHESES = [
    (name, row.id, id)
    for name in ("separable",)
    for row in rf.papers.named(name).claims
    for id in row.needs
]


def is_identity(row):
    return row.title.lower().startswith("identity")


@cache
def _made(make):
    return make()


def good(paper, id):
    row = paper.statement(id)
    make = row.good or paper._example
    assert make is not None, f"{paper.name} {id} has no good subject"
    return _made(make)


def judged(paper, id, subject):
    """The row of one statement on a subject, or on a pair of subject and options."""
    options = {}
    if isinstance(subject, tuple) and isinstance(subject[1], dict):
        subject, options = subject
    generator = options.get("generator")
    rest = {name: value for name, value in options.items() if name != "generator"}
    given = subject_of(subject, ENGINES)
    drawer = generator or theory._drawer(given.runs)
    case = paper.prepare(subject_of(subject, ENGINES, drawer), **rest)
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


@cache
def _broken(name, need):
    paper = rf.papers.named(name)
    subject = good(paper, need)
    return BROKEN[name, need](subject)


@pytest.mark.parametrize(("name", "id", "need"), HYPOTHESES)
def test_a_claim_does_not_apply_where_a_hypothesis_fails(name, id, need):
    assert (name, need) in BROKEN, f"no subject on which {name} {need} fails"
    found, _ = judged(rf.papers.named(name), id, _broken(name, need))
    assert found.verdict is Verdict.NOT_APPLICABLE, found
    assert f"assumption {need} is not met" in found.note
