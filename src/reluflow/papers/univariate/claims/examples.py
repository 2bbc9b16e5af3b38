"""Claims about worked examples and constructions: U13, U14, U19, U21."""

from __future__ import annotations

import numpy as np

from reluflow.datasets.univariate import teacher_1d
from reluflow.geometry import linear_regions, sign_changes
from reluflow.network import Network
from reluflow.papers.univariate.case import Univariate
from reluflow.papers.univariate.constants import (
    example_1_log_time,
    example_1_optimum,
)
from reluflow.papers.univariate.paper import paper
from reluflow.theory.verdicts import Finding, at_most, equals, holds
from reluflow.trajectory import Trajectory


@paper.claim(
    "U13",
    "Example 1: largest error of norm, direction, regions, optimum and log t",
    needs=["example 1", "A7", "A8"],
)
def closed_form(case: Univariate) -> Finding:
    """The subject's own run of Example 1 against its closed form."""
    errors = {"the optimum 4/sqrt(17)": abs(case.optimum.value - example_1_optimum())}
    for run in case.runs:
        name = run.loss_function.name
        errors |= {f"{part}, {name} loss": error for part, error in _example(run).items()}
    worst = max(errors, key=lambda name: errors[name])
    return at_most(errors[worst], max(1e-6, 10 * case.error), note=f"worst: {worst}")


def _example(run: Trajectory) -> dict[str, float]:
    """Errors of the norm (2 when margins are 1), the direction, the regions and the times."""
    flat = run.final.flat()
    q = float((flat.predict(run.data.X) * run.data.y).min())
    logistic = run.loss_function.name == "logistic"
    squares = [float(run.network(k).flat().a[0] ** 2) for k in range(1, len(run.t))]
    times = [example_1_log_time(square, logistic=logistic) for square in squares]
    moved = np.abs(flat.W[:, 0]).max() + np.abs(flat.W[1]).max() + abs(flat.a[1])
    # slopes that are rounding would put a kink beyond 1e12
    small = np.abs(flat.W) <= 1e-12 * np.abs(flat.W).max()
    rounded = Network(flat.a, np.where(small, 0.0, flat.W))
    return {
        "norm": abs(flat.squared_norm / q - 2.0),
        "direction": float(moved),
        "regions": abs(linear_regions(rounded) - 1.0),
        "log t": float(np.abs(run.log_t[1:] - times).max()),
    }


@paper.claim(
    "U14",
    "Logistic loss below 1/n does not separate: limit of the loss, against log(2)/2",
    needs=["counterexample", "A8"],
)
def logistic_threshold(case: Univariate) -> Finding:
    """The subject's own run of the counterexample."""
    start = float(np.exp(case.run.log_loss[0]))
    note = f"L(0) = {start:.4f}, 1/n = {1 / case.data.n:g}, status `{case.run.status}`"
    if not start < 1.0 / case.data.n:
        return holds(False, start, 1.0 / case.data.n, note)
    end = float(case.run.loss[-1])
    return equals(end, 0.5 * float(np.log(2.0)), 1e-6 + 10 * case.error, note=note)


@paper.claim(
    "U19", "Identity: width m changes sign at most m + 1 times (sign changes - width)", needs=["A1"]
)
def capacity(case: Univariate) -> Finding:
    """A piecewise linear function with m kinks has m + 1 pieces; m + 1 is attained at m = 4."""
    nets = [case.net, *(run.final for run in case.subject.runs)]
    return at_most(max(len(sign_changes(net)) - net.width for net in nets), 1)


@paper.claim(
    "U21",
    "identity: Teacher with chosen zeros: sign changes where they were asked for, and no others",
    needs=["A1"],
)
def teacher_of_zeros(case: Univariate) -> Finding:
    """The construction, for the sign changes of the subject's teacher or labels."""
    zeros, source = _zeros(case)
    worst = 0.0
    for label in (-1, 1):
        for strict in (False, True):
            found = sign_changes(teacher_1d(zeros, first_label=label, strict=strict))
            if len(found) != len(zeros):
                note = f"{len(zeros)} zeros asked for ({source}), {len(found)} found"
                return holds(False, len(found), len(zeros), note)
            worst = max(worst, float(np.abs(found - zeros).max(initial=0.0)))
    size = max(1.0, float(np.abs(zeros).max(initial=0.0)))
    gaps = np.diff(zeros)
    note = f"{len(zeros)} zeros, {source}"
    note += f", at least {gaps.min():.4g} apart" if len(gaps) else ""
    return at_most(worst, 1e-12 * size, note=note)


def _zeros(case: Univariate) -> tuple[np.ndarray, str]:
    """Sign changes of the teacher; without one, midpoints between unlike neighbours."""
    data = case.data
    if isinstance(data.teacher, Network):
        return sign_changes(data.teacher), "those of the teacher"
    order = np.argsort(data.X[:, 0], kind="stable")
    x, y = data.X[order, 0], data.y[order]
    switch = np.flatnonzero(y[1:] != y[:-1])
    return 0.5 * (x[switch] + x[switch + 1]), "between points of unlike labels"
