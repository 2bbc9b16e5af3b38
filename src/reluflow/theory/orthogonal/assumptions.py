"""Assumptions 1 to 4 of the paper, tested on data, start and runs."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.limits import hypotheses
from reluflow.theory.orthogonal.case import Case
from reluflow.theory.orthogonal.measure import NOISE
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Verdict, at_most, holds
from reluflow.trajectory import Trajectory

ASSUMPTIONS = Claims()


@ASSUMPTIONS("A1", "inputs are orthonormal: max |X X^T - I|")
def a1(case: Case) -> Outcome:
    """Orthonormal inputs, to 1e-10."""
    gap = float(np.abs(case.subject.data.gram - np.eye(case.data.n)).max())
    return at_most(gap, hypotheses.ORTHONORMAL_TOLERANCE, note="; ".join(case.not_orthonormal))


@ASSUMPTIONS("A2", "a coordinate w_j.x_i that is not positive never moves again (part of |w_j|)")
def a2(case: Case) -> Outcome:
    """Largest drift of an inactive coordinate between records, in units of the neuron's norm."""
    drift = max(largest_drift(run) for run in case.flows)
    return at_most(drift, 1e-9, note="rounding of a coordinate is 1e-16 of the norm")


@ASSUMPTIONS("A3", "the start is balanced, |a_j| = |w_j|: largest |log|a_j| - log|w_j||")
def a3(case: Case) -> Outcome:
    """Balanced start; a fixed factor of its own for each neuron changes nothing in the limit."""
    norms, outputs = case.start.log_norms, case.start.log_outputs
    if not np.isfinite(norms).all() or not np.isfinite(outputs).all():
        return Outcome(Verdict.FAIL, float("inf"), hypotheses.BALANCE_TOLERANCE, "a zero neuron")
    with np.errstate(divide="ignore"):
        gap = float(np.abs(np.log(np.abs(case.start.a))).max())
    spread = float(norms.max() - norms.min())
    factors = "" if spread <= 1e-9 else f"norms differ by factors up to e^{spread:.3g}"
    return at_most(gap, hypotheses.BALANCE_TOLERANCE, note=factors)


@ASSUMPTIONS(
    "A4(i)", "mask matrix: no zero row, no zero column, distinct columns (defects counted)"
)
def a4i(case: Case) -> Outcome:
    """Defects of the matrix ``M_ij = 1[w_j.x_i > 0 and s_j y_i > 0]``."""
    masks = case.masks
    rows, columns = int((~masks.any(axis=0)).sum()), int((~masks.any(axis=1)).sum())
    alive = masks[masks.any(axis=1)]
    equal = len(alive) - len(np.unique(alive, axis=0)) if len(alive) else 0
    note = (
        ""
        if rows + columns + equal == 0
        else f"{rows} points without a neuron, {columns} neurons without a point, {equal} repeated "
        "masks"
    )
    return holds(rows + columns + equal == 0, measured=rows + columns + equal, note=note)


@ASSUMPTIONS("A4(ii)", "labels are non-zero and every next jump is unique (relative margin)")
def a4ii(case: Case) -> Outcome:
    """The smallest margin of the race over its waiting time; a tie below 1e-9."""
    zero = np.flatnonzero(case.data.y == 0.0)
    if len(zero):
        return Outcome(Verdict.FAIL, 0.0, None, f"label y[{zero[0]}] is zero")
    process = case.process
    if not len(process.times):
        raise NotApplicable("no neuron is active on a label of its own sign: there is no jump")
    waits = np.diff(process.times, prepend=0.0)
    margins = np.divide(process.margins, waits, out=np.zeros_like(waits), where=waits > 0.0)
    if process.ties:
        kind = "share points" if process.is_degenerate else "are disjoint, so order is irrelevant"
        note = f"{len(process.ties)} ties between groups that {kind}"
    else:
        note = ""
    return holds(not process.ties, measured=float(margins.min()), note=note)


def largest_drift(run: Trajectory) -> float:
    """Largest change between records of a coordinate that is inactive, over the norm then."""
    c, log_norms = recorded_coordinates(run)
    closed = closing_times(run)
    worst = 0.0
    for k in range(1, len(c)):
        frozen = (closed <= run.t[k - 1]) | (c[k - 1] < -NOISE)
        # in units of the present norm the old value has shrunk by the growth since
        old = c[k - 1] * np.exp(np.minimum(log_norms[k - 1] - log_norms[k], 700.0))[:, None]
        worst = max(worst, float(np.abs(c[k] - old)[frozen].max(initial=0.0)))
    return worst


def closing_times(run: Trajectory) -> Array:
    """When each pair (neuron, point) was first inactive: 0 at the start, inf for never."""
    closed = np.where(run.active(t=0.0), np.inf, 0.0)
    for event in run.events[run.events["kind"] == "deactivate"]:
        j, i = int(event["neuron"]), int(event["point"])
        closed[j, i] = min(closed[j, i], float(event["t"]))
    return np.asarray(closed)


def recorded_coordinates(run: Trajectory) -> tuple[Array, Array]:
    """Coordinates over norms (k, m, n) and log norms (k, m) at the records."""
    W = np.asarray(run.states["W"])
    norms = np.linalg.norm(W, axis=2)
    safe = np.where(norms > 0.0, norms, 1.0)
    return (W / safe[:, :, None]) @ run.data.X.T, np.log(safe) + run.states["log_scale"]
