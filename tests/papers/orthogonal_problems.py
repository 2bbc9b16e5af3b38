"""Problems on orthonormal points for the tests of the orthogonal checks."""

from functools import cache

import numpy as np

import reluflow as rf
from reluflow.theory import paper_named
from reluflow.theory.subject import subject_of

ENGINES = {"flow": rf.flow, "descent": rf.descend}
PAPER = paper_named("orthogonal")
ROWS = {claim.id: claim for claim in (*PAPER.assumptions, *PAPER.claims)}


def network(W, signs, log_scale=-120.0):
    W = np.asarray(W, dtype=float)
    W = W / np.linalg.norm(W, axis=1)[:, None]
    return rf.Network(np.asarray(signs) * np.linalg.norm(W, axis=1), W, log_scale)


def proper(log_scale=-120.0):
    """Four labels of both signs, four neurons: A4 holds, two jumps of the positive sign."""
    data = rf.Dataset(np.eye(4), [1.0, 1.4, 0.6, -0.8])
    W = [
        [0.7, 0.6, -0.4, 0.3],
        [-0.5, 0.5, 0.6, -0.3],
        [0.4, -0.3, 0.5, 0.6],
        [-0.6, 0.3, -0.2, 0.7],
    ]
    return data, network(W, [1.0, 1.0, 1.0, -1.0], log_scale)


@cache
def proper_run():
    return rf.flow(*proper(), rtol=1e-9)


def prepared(subject, *, start_runs=True, **options):
    """The case of a subject, for tests that change a part of it."""
    engines = ENGINES if start_runs else None
    return PAPER.prepare(subject_of(subject, engines), **options)


def row(id, case):
    return ROWS[id].check(case)
