"""Subjects of the univariate checks: small problems whose runs take about a second."""

from dataclasses import replace
from functools import cache

import numpy as np

import reluflow as rf
from reluflow.papers import named
from reluflow.theory.subject import Subject

PAPER = named("univariate")

DENSITY = rf.densities.uniform(-1, 1)
TEACHER = rf.datasets.teacher_1d([-1 / 3, 1 / 3])


@cache
def sample(n=20, seed=0):
    return rf.datasets.sample_1d(TEACHER, n, density=DENSITY, seed=seed)


@cache
def start(width=16, seed=100):
    return rf.networks.gaussian(2, width, sigma_hidden=1.0, sigma_output=0.1, seed=seed)


@cache
def late_run(loss="exponential"):
    function = rf.losses.Exponential() if loss == "exponential" else rf.losses.Logistic()
    return rf.flow(sample(), start(), loss=function, stop_log_loss=-2e4)


def short_run(data, net, *, stop_log_loss=-30.0, loss=None, **options):
    return rf.flow(
        data, net, loss=loss or rf.losses.Exponential(), stop_log_loss=stop_log_loss, **options
    )


def evaluate(subject, *ids, **options):
    """The checks of some rows only, without the cost of the others."""
    runs = subject if isinstance(subject, (list, tuple)) else [subject]
    first = runs[0]
    case = PAPER.prepare(Subject(first.data, first.net, tuple(runs), ENGINES), **options)
    return rows(case, *ids)


def rows(case, *ids):
    found = [_claim(id).check(case) for id in ids]
    return found[0] if len(found) == 1 else found


def case_of(run, **options):
    return PAPER.prepare(Subject(run.data, run.net, (run,), ENGINES), **options)


def _claim(id):
    return (PAPER.assumptions if id.startswith("A") else PAPER.claims)[id]


def with_states(run, **changes):
    """The run with some of its recorded arrays changed."""
    states = {name: np.array(values) for name, values in run.kept.items()}
    for name, change in changes.items():
        states[name] = change(states[name])
    return replace(run, kept=states)


ENGINES = {"flow": rf.flow, "descent": rf.descend}
