"""Assumptions 1 to 4 of the paper, tested on data, start and runs, and what single rows ask."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.limits import hypotheses
from reluflow.papers.orthogonal import probability
from reluflow.papers.orthogonal.case import Orthogonal
from reluflow.papers.orthogonal.measure import NOISE
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, at_least, at_most, holds
from reluflow.trajectory import Trajectory


@paper.assumption("A1", "inputs are orthonormal, compared with the scale: max |X X^T - I|")
def a1(case: Orthogonal) -> Finding:
    """A deviation far above the initial scale revives points on which a grown neuron is off."""
    data = case.subject.data
    gap = float(np.abs(data.gram - np.eye(data.n)).max())
    reasons = hypotheses.not_orthonormal(data, case.net)
    bound = hypotheses.orthonormal_tolerance(data, case.net)
    return at_most(gap, bound, note="; ".join(reasons))


@paper.condition("exact", "inputs are orthonormal to rounding, so that deeper scales make sense")
def exact(case: Orthogonal) -> Finding:
    """Rows that start runs at smaller scales than the subject's ask for it."""
    gap = float(np.abs(case.subject.data.gram - np.eye(case.data.n)).max())
    return at_most(gap, hypotheses.rounding_of_products(case.subject.data))


@paper.condition("flow", "the runs are gradient flow of both layers")
def is_flow(case: Orthogonal) -> Finding:
    """A pair starts its own flow."""
    return holds(not case.subject.runs or any(case.is_flow(run) for run in case.subject.runs))


@paper.assumption(
    "A2",
    "a coordinate w_j.x_i that is not positive never moves again (part of |w_j|)",
    needs=["flow"],
)
def a2(case: Orthogonal) -> Finding:
    """Largest drift of an inactive coordinate between records, in units of the neuron's norm."""
    drift = max(largest_drift(run) for run in case.flows)
    return at_most(drift, 1e-9, note="rounding of a coordinate is 1e-16 of the norm")


@paper.assumption("A3", "the start is balanced, |a_j| = |w_j|: largest |log|a_j| - log|w_j||")
def a3(case: Orthogonal) -> Finding:
    """Balanced start; a fixed factor of its own for each neuron changes nothing in the limit."""
    norms, outputs = case.unit_start.log_norms, case.unit_start.log_outputs
    if not np.isfinite(norms).all() or not np.isfinite(outputs).all():
        return holds(False, np.inf, hypotheses.BALANCE_TOLERANCE, "a zero neuron")
    with np.errstate(divide="ignore"):
        gap = float(np.abs(np.log(np.abs(case.unit_start.mantissa.a))).max())
    spread = float(norms.max() - norms.min())
    factors = "" if spread <= 1e-9 else f"norms differ by factors up to e^{spread:.3g}"
    return at_most(gap, hypotheses.BALANCE_TOLERANCE, note=factors)


@paper.assumption(
    "A4(i)", "mask matrix: no zero row, no zero column, distinct columns (defects counted)"
)
def a4i(case: Orthogonal) -> Finding:
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
    return holds(rows + columns + equal == 0, rows + columns + equal, 0.0, note)


@paper.condition("labels", "no label is zero (part of A4(ii))")
def labels(case: Orthogonal) -> Finding:
    """The smallest label."""
    zero = np.flatnonzero(case.data.y == 0.0)
    note = f"label y[{zero[0]}] is zero" if len(zero) else ""
    return holds(not len(zero), float(np.abs(case.data.y).min()), 0.0, note)


PROCESS = ("A1", "A3", "labels")


@paper.condition("jumps", "some neuron is active on a label of its own sign", needs=PROCESS)
def jumps(case: Orthogonal) -> Finding:
    """Otherwise nothing ever jumps."""
    return at_least(len(case.process.times), 1.0)


@paper.assumption(
    "A4(ii)",
    "labels are non-zero and every next jump is unique (relative margin)",
    needs=[*PROCESS, "jumps"],
)
def a4ii(case: Orthogonal) -> Finding:
    """The smallest margin of the race over its waiting time; a tie below 1e-9."""
    process = case.process
    waits = np.diff(process.times, prepend=0.0)
    margins = np.divide(process.margins, waits, out=np.zeros_like(waits), where=waits > 0.0)
    note = ""
    if process.ties:
        kind = "share points" if process.is_degenerate else "are disjoint, so order is irrelevant"
        note = f"{len(process.ties)} ties between groups that {kind}"
    return holds(not process.ties, float(margins.min()), 0.0, note)


@paper.condition("untied", "no tie between groups that share points", needs=[*PROCESS, "jumps"])
def untied(case: Orthogonal) -> Finding:
    """What the limit really needs of A4(ii): ties of disjoint groups leave it determined."""
    process = case.process
    if not process.is_degenerate:
        return holds(True)
    tie = next(tie for tie in process.ties if tie.overlap)
    names = " and ".join(str(process.members[g][0]) for g in tie.groups)
    return holds(False, note=f"neurons {names} tie at jump {tie.jump} on points they share")


# ---------------------------------------------------------------------- what single rows ask


@paper.condition("small", "the start is small: log(1/lambda) is positive")
def small(case: Orthogonal) -> Finding:
    """A large start has no staircase."""
    return holds(case.L > 0.0, case.L, 0.0)


@paper.condition("mixed", "some neuron is active on a label of the other sign at the start")
def mixed(case: Orthogonal) -> Finding:
    """What O4 is about."""
    return at_least(int(case.on_wrong_points.sum()), 1.0)


@paper.condition("shared", "two jumping neurons have the same mask", needs=[*PROCESS, "jumps"])
def shared(case: Orthogonal) -> Finding:
    """What O18 is about."""
    return at_least(max(len(group) for group in case.process.groups), 2.0)


@paper.condition("two signs", "labels of both signs")
def two_signs(case: Orthogonal) -> Finding:
    """Two systems need two signs."""
    y = case.data.y
    return holds(bool((y > 0.0).any() and (y < 0.0).any()))


@paper.condition("cover", "one neuron covers each sign of label")
def cover(case: Orthogonal) -> Finding:
    """What O16 is about."""
    for s in (1.0, -1.0):
        points = np.flatnonzero(case.data.y * s > 0.0)
        if len(points) and not case.masks[:, points].all(axis=1).any():
            sign = "positive" if s > 0.0 else "negative"
            return holds(False, note=f"no neuron is active on all {len(points)} {sign} labels")
    return holds(True)


@paper.condition("interpolates", "every point has a matching neuron (points without)")
def interpolates(case: Orthogonal) -> Finding:
    """Then the limit fits every label."""
    return at_most(int((~case.masks.any(axis=0)).sum()), 0.0)


@paper.condition(
    "halving",
    "Theorem 3: |U_k| <= 2 n 2^-k for k <= K, for each sign (largest ratio)",
    needs=[*PROCESS, "jumps"],
)
def halving(case: Orthogonal) -> Finding:
    """The event of the proof, on this start; its probability is O32."""
    return at_most(probability.worst_halving(case.process), 1.0)


@paper.condition("promised", "Theorem 3 promises something: p_fail, summed over signs, below 1")
def promised(case: Orthogonal) -> Finding:
    """The union bound over sets of neurons is empty for few points."""
    return at_most(probability.failure_of_signs(case.data.y, case.net.width), 1.0, 1e-9)


@paper.condition("random", "the start is random as in Assumption 3, drawn by a known generator")
def random_start(case: Orthogonal) -> Finding:
    """Claims about probabilities draw from it."""
    return holds(case.subject.drawer is not None, note="pass generator=, or a run of a document")


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
    W = np.asarray(run.kept["W"])
    norms = np.linalg.norm(W, axis=2)
    safe = np.where(norms > 0.0, norms, 1.0)
    return (W / safe[:, :, None]) @ run.data.X.T, np.log(safe) + run.kept["log_scale"]
