"""Subjects of the tests: one problem for each theorem, and the claims of the paper on them."""

import numpy as np

import reluflow as rf
from reluflow.engines import descend, flow
from reluflow.papers import named
from reluflow.papers.highdim.draws import Problem, assigned_start, positive_start
from reluflow.theory import Verdict
from reluflow.theory.subject import subject_of

PAPER = named("highdim")

HALF = rf.losses.Square("1/2")
ENGINES = {"flow": flow, "descent": descend}
MANY = (1, 1, -1, -1)


def one(seed=0, n=10, d=10**6, **options):
    return positive_start(n, d, seed=seed, **options)


def two(seed=0, n=10, d=10**6, **options):
    return positive_start(n, d, signs=(1, -1), seed=seed, **options)


def many(seed=0, n=10, d=10**6, **options):
    return assigned_start(n, d, MANY, seed=seed, **options)


def train(problem: Problem, **options):
    options = {"steps": np.inf, "loss": HALF, "train": "hidden"} | options
    return rf.descend(problem.data, problem.net, lr=problem.lr, **options)


def case_of(subject, *, start_runs=True, generator=None, **options):
    if isinstance(subject, Problem):
        subject = train(subject)
    engines = ENGINES if start_runs else None
    return PAPER.prepare(subject_of(subject, engines, generator), **options)


def row(case, id):
    claims = PAPER.claims if id.startswith("HD") else PAPER.assumptions
    return claims[id].check(case)


def verdicts(case, *ids):
    return {id: row(case, id).verdict for id in ids}


def all_pass(case, *ids):
    rows = [row(case, id) for id in ids]
    bad = [found for found in rows if found.verdict is not Verdict.PASS]
    assert not bad, "\n".join(map(str, bad))
