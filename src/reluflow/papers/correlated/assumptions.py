"""The assumptions: correlation of the data, 1(i) to 1(v), 2 and 3, and what single rows ask."""

from __future__ import annotations

import math

import numpy as np

from reluflow.limits import hypotheses
from reluflow.limits.bundle import failures
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds, undecided
from reluflow.trajectory import Mode, Status

UNIT_TOLERANCE = 1e-12
GAP_TOLERANCE = 1e-10
EXACT_DIMENSION = 12
LARGEST_PROGRAM = 8  # points up to which the minimum norm is computed


@paper.assumption("data", "every point is within pi/4 of the teacher, every label positive (angle)")
def correlated(case: Correlated) -> Finding:
    """Angles to the teacher."""
    low = int(np.argmin(case.data.y))
    if case.data.y[low] <= 0:
        note = f"label {low} is {case.data.y[low]:g}, not positive"
        return holds(False, None, math.pi / 4, note)
    vector, reasons = hypotheses.teacher_vector(case.data)
    if vector is None:
        return holds(False, None, math.pi / 4, f"there is no teacher neuron: {'; '.join(reasons)}")
    angle = case.angle
    beyond = "" if angle < math.pi / 2 else "; beyond pi/2 not even Theorem 8 speaks about them"
    note = "" if angle < math.pi / 4 else f"the largest angle is {angle:.6g}{beyond}"
    return at_most(angle, math.pi / 4, 1e-14, note=note)


@paper.assumption("1(i)", "d > 1, the points span the space, the teacher has norm 1")
def spanning(case: Correlated) -> Finding:
    """Rank and norm."""
    data = case.data
    if data.d < 2:
        return holds(False, data.d, 2.0, "there is one dimension only")
    rank = int(np.linalg.matrix_rank(data.X))
    if rank < data.d:
        return holds(False, rank, float(data.d), f"the points span {rank} dimensions only")
    vector, reasons = hypotheses.teacher_vector(data)
    if vector is None:
        return holds(False, note="; ".join(reasons))
    gap = abs(float(np.linalg.norm(vector)) - 1.0)
    note = "" if gap <= UNIT_TOLERANCE else f"the teacher's norm is off by {gap:.3g}"
    return at_most(gap, UNIT_TOLERANCE, note=note)


@paper.condition("balanced", "the start is balanced, |a_j| = |w_j|")
def balanced(case: Correlated) -> Finding:
    """Part of the setting."""
    reasons = hypotheses.imbalance(case.net)
    return holds(not reasons, note="; ".join(reasons))


@paper.assumption(
    "1(ii)",
    "J+ is not empty, no neuron starts on a boundary, none of J- along gamma",
    needs=["balanced"],
)
def start(case: Correlated) -> Finding:
    """The start."""
    sticks = case.sticks
    if not np.any(sticks.gamma):
        return holds(False, 0.0, 0.0, "gamma is 0: nothing pulls at a small start")
    if not len(sticks.positive):
        return holds(False, 0.0, 1.0, "J+ is empty: nothing can grow, and the loss stays as it is")
    products = np.abs(case.net.directions @ case.data.X.T)
    products = products / np.linalg.norm(case.data.X, axis=1)
    j, i = divmod(int(np.argmin(products)), case.data.n)
    if products[j, i] <= 1e-15:
        return holds(False, products[j, i], 0.0, f"neuron {j} starts on the boundary of {i}")
    along = sticks.gamma / np.linalg.norm(sticks.gamma)
    directions = case.net.directions[sticks.negative]
    across = np.linalg.norm(directions - (directions @ along)[:, None] * along, axis=1)
    aligned = (across <= 1e-14) & (directions @ along > 0)
    if aligned.any():
        j = int(sticks.negative[np.argmax(aligned)])
        return holds(False, 0.0, 0.0, f"neuron {j} of J- is parallel to gamma: it shrinks forever")
    return at_least(len(sticks.positive), 1.0, note=f"{len(sticks.positive)} neurons in J+")


@paper.assumption(
    "1(iii)", "different directions of points, different eigenvalues, teacher along all"
)
def generic(case: Correlated) -> Finding:
    """Spectral non-degeneracy: the smallest of three relative gaps."""
    if case.data.d < 2:
        return holds(False, note="there is one dimension only")
    unit = case.data.X / np.linalg.norm(case.data.X, axis=1)[:, None]
    chords = np.linalg.norm(unit[:, None, :] - unit[None], axis=2) + 2.0 * np.eye(case.data.n)
    gaps = {
        "two points have the same direction": float(chords.min()),
        "two eigenvalues of H coincide": float((-np.diff(case.eta)).min() / case.eta[0]),
        "an eigenvalue of H vanishes": float(case.eta[-1] / case.eta[0]),
        "the teacher is orthogonal to an eigenvector of H": float(case.target.min()),
    }
    worst = min(gaps, key=lambda name: gaps[name])
    note = "" if gaps[worst] > GAP_TOLERANCE else f"{worst}: delta = 0 and all bounds are void"
    return at_least(gaps[worst], GAP_TOLERANCE, note=note)


@paper.assumption(
    "1(iv)",
    "no yardstick meets two boundaries at once (shortest time between crossings)",
    needs=["balanced"],
)
def no_ties(case: Correlated) -> Finding:
    """Ties of crossing times."""
    sticks = case.sticks
    if not sticks.valid:
        return holds(False, note=f"crossings are not monotone: {sticks.reason}")
    if sticks.ties:
        j, first, second = sticks.ties[0]
        note = f"neuron {j} meets points {first} and {second} at the same time: order undefined"
        return holds(False, 0.0, None, note)
    shortest = sticks.terms["11 time between crossings"]
    return holds(True, float(shortest) if np.isfinite(shortest) else None)


@paper.assumption(
    "1(v)", "a neuron without active points stays as it is (largest motion of dead ones)"
)
def frozen(case: Correlated) -> Finding:
    """True of every solution that `reluflow.flow` computes; measured on neurons dead at the start.

    Compared with the logs of norms and the directions at the end of the run.
    """
    dead = ~(case.net.mantissa.W @ case.data.X.T > 0).any(axis=1)
    if dead.any():  # a neuron that starts on a plane may slide: the run knows
        dead &= (case.run.modes(t=0.0) == Mode.INACTIVE).all(axis=1)
    if not dead.any():
        return holds(True, 0.0, 0.0, "no neuron is dead at the start")
    final = case.run.final
    moved = np.abs(final.directions[dead] - case.net.directions[dead]).max(initial=0.0)
    grown, error = case.growth(final, np.flatnonzero(dead))
    worst = max(float(moved), float(np.abs(grown).max()))
    return at_most(worst, 1e-15 + error, note=f"{int(dead.sum())} neurons")


@paper.assumption(
    "2",
    "the scale is small enough for the analysis (natural logarithms)",
    needs=["balanced"],
    approach=lambda case: case.at_twice_the_scale(),
)
def small_scale(case: Correlated) -> Finding:
    """The logarithm of the scale against the bound of Assumption 2; nan where delta is unknown."""
    bound = case.sticks.log_scale_bound(case.eps)
    if math.isnan(bound):
        return holds(False, case.log_scale, None, "delta is unknown without a teacher")
    decides = f"delta = {case.sticks.delta:.4g} ({case.sticks.smallest_term})"
    if not case.met("1(iii)"):
        bound, decides = -math.inf, "delta = 0, since assumption 1(iii) is not met"
    if case.log_scale > bound:
        decides += "; larger scales give observations, not tests of the theorems"
    return at_most(case.log_scale, bound, note=decides)


@paper.assumption("3", "as many points as dimensions, more than one neuron, M is not 0 (V)")
def threshold(case: Correlated) -> Finding:
    """Assumption 3 of Theorem 8; V is computed for independent points within pi/2."""
    data, width = case.data, case.net.width
    if data.n != data.d or width < 2 or data.d < 2:
        return holds(False, note=f"n = {data.n}, d = {data.d}, m = {width}")
    vector, reasons = hypotheses.teacher_vector(data)
    if vector is None:
        return holds(False, note="; ".join(reasons))
    if case.angle >= math.pi / 2 or case.eta[-1] <= 1e-24 * case.eta[0]:
        return holds(False, note="the points depend, or one is not within pi/2 of the teacher")
    if data.d > EXACT_DIMENSION:
        raise Unresolved(f"V is computed up to d = {EXACT_DIMENSION}; fewer dimensions decide")
    answer = case.rank
    if answer.min_rank_is_min_norm is None:
        return undecided(answer.V, 1.0, f"{answer.reason}; data with V further from 1 decide")
    return holds(True, answer.V, 1.0, answer.reason)


# ---------------------------------------------------------------------- what single rows ask


@paper.condition("flow", "the run is gradient flow; descent follows it only up to O(step)")
def gradient_flow(case: Correlated) -> Finding:
    """The paper is about the flow."""
    return holds(bool(case.flows) or not case.subject.runs)


@paper.condition("pair", "J+ has two neurons or more", needs=["balanced"])
def several(case: Correlated) -> Finding:
    """Angles need two neurons."""
    return at_least(len(case.positive), 2.0)


@paper.condition("J-", "J- is not empty", needs=["balanced"])
def negative(case: Correlated) -> Finding:
    """Lemma 4 is about J-."""
    return at_least(len(case.sticks.negative), 1.0)


@paper.condition("crossings", "some neuron crosses a point", needs=["balanced"])
def some_crossing(case: Correlated) -> Finding:
    """Lemma 3 is about crossings."""
    return at_least(sum(len(case.sticks.order[j]) for j in case.moving), 1.0)


@paper.condition(
    "first phase",
    "T1 is not before T0, so that the first phase ends (T1 - T0)",
    needs=["balanced", "1(ii)"],
)
def phase_ends(case: Correlated) -> Finding:
    """At practical scales T1 < T0 is common: statements about T1 are then not meaningful."""
    return at_least(case.T1, case.sticks.T0, note=f"T1 = {case.T1:.4g}, T0 = {case.sticks.T0:.4g}")


@paper.condition("late", "the run is past T2, or in a certified limit", needs=["balanced"])
def late(case: Correlated) -> Finding:
    """How long the run lasts."""
    if case.run.status in (Status.CONVERGED, Status.STATIONARY):
        return holds(True, note=f"the run ended as `{case.run.status}`")
    ended = float(case.run.t[-1]) * case.rate
    return holds(case.departed, ended, note=f"the run ends at t = {ended:.4g}")


@paper.condition("correlated", "all inner products positive, labels v.x, so that a bundle forms")
def bundle_exists(case: Correlated) -> Finding:
    """What the closed-form limit is computed from; weaker than "data"."""
    reasons = failures(case.data, case.net)
    return holds(not reasons, note="; ".join(reasons))


@paper.condition("M > 0", "V is above 1: rank 1 has not the least norm", needs=["3"])
def above(case: Correlated) -> Finding:
    """Where Theorem 8(ii) speaks."""
    return at_least(case.rank.V, 1.0, 1e-9)


@paper.condition("M < 0", "V is below 1: rank 1 has the least norm", needs=["3"])
def below(case: Correlated) -> Finding:
    """Where Theorem 8(i) speaks."""
    return at_most(case.rank.V, 1.0, 1e-9)


@paper.condition(
    "Z-matrix", "the inverse Gram matrix is a Z-matrix (largest off-diagonal)", needs=["3"]
)
def z_matrix(case: Correlated) -> Finding:
    """The sufficient test for M < 0."""
    inverse = np.asarray(np.linalg.inv(case.data.gram), dtype=np.float64)
    off = inverse[~np.eye(len(inverse), dtype=bool)]
    return at_most(float(off.max(initial=-np.inf)), 0.0)


@paper.condition("orthogonal", "the points are orthogonal (largest cosine)", needs=["3"])
def orthogonal(case: Correlated) -> Finding:
    """Of the remark that orthogonal points have M < 0."""
    norms = np.linalg.norm(case.data.X, axis=1)
    off = np.abs(case.data.gram / np.outer(norms, norms))[~np.eye(case.data.n, dtype=bool)]
    return at_most(float(off.max(initial=0.0)), 1e-12)


@paper.condition("small program", f"at most {LARGEST_PROGRAM} points, so the least norm is known")
def small_program(case: Correlated) -> Finding:
    """Cost of the convex program."""
    return at_most(case.data.n, LARGEST_PROGRAM)
