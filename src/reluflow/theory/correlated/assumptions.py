"""The assumptions: correlation of the data, 1(i) to 1(v), 2 and 3."""

from __future__ import annotations

import math

import numpy as np

from reluflow.theory.correlated.case import Case
from reluflow.theory.correlated.hypotheses import is_met
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    Verdict,
    at_least,
    at_most,
)
from reluflow.trajectory import Mode

ASSUMPTIONS = Claims()
UNIT_TOLERANCE = 1e-12
GAP_TOLERANCE = 1e-10
EXACT_DIMENSION = 12


@ASSUMPTIONS("data", "every point is within pi/4 of the teacher, every label positive (angle)")
def correlated(case: Case) -> Outcome:
    """Angles to the teacher."""
    low = int(np.argmin(case.data.y))
    if case.data.y[low] <= 0:
        return Outcome(
            Verdict.FAIL, None, math.pi / 4, f"label {low} is {case.data.y[low]:g}, not positive"
        )
    try:
        angle = case.angle
    except NotApplicable as reason:
        return Outcome(Verdict.FAIL, None, math.pi / 4, str(reason))
    beyond = "" if angle < math.pi / 2 else "; beyond pi/2 not even Theorem 8 speaks about them"
    note = "" if angle < math.pi / 4 else f"the largest angle is {angle:.6g}{beyond}"
    return at_most(angle, math.pi / 4, error=1e-14, note=note)


@ASSUMPTIONS("1(i)", "d > 1, the points span the space, the teacher has norm 1")
def spanning(case: Case) -> Outcome:
    """Rank and norm."""
    data = case.data
    if data.d < 2:
        return Outcome(Verdict.FAIL, float(data.d), 2.0, "there is one dimension only")
    rank = int(np.linalg.matrix_rank(data.X))
    if rank < data.d:
        return Outcome(
            Verdict.FAIL, float(rank), float(data.d), f"the points span {rank} dimensions only"
        )
    gap = abs(float(np.linalg.norm(case.teacher)) - 1.0)
    note = "" if gap <= UNIT_TOLERANCE else f"the teacher's norm is off by {gap:.3g}"
    return at_most(gap, UNIT_TOLERANCE, note=note)


@ASSUMPTIONS("1(ii)", "J+ is not empty, no neuron starts on a boundary, none of J- along gamma")
def start(case: Case) -> Outcome:
    """The start."""
    sticks = case.sticks
    if not len(sticks.positive):
        return Outcome(
            Verdict.FAIL, 0.0, 1.0, "J+ is empty: nothing can grow, and the loss stays as it is"
        )
    products = np.abs(case.net.directions @ case.data.X.T)
    products = products / np.linalg.norm(case.data.X, axis=1)
    j, i = divmod(int(np.argmin(products)), case.data.n)
    if products[j, i] <= 1e-15:
        return Outcome(
            Verdict.FAIL, float(products[j, i]), 0.0, f"neuron {j} starts on the boundary of {i}"
        )
    along = sticks.gamma / np.linalg.norm(sticks.gamma)
    directions = case.net.directions[sticks.negative]
    across = np.linalg.norm(directions - (directions @ along)[:, None] * along, axis=1)
    aligned = (across <= 1e-14) & (directions @ along > 0)
    if aligned.any():
        j = int(sticks.negative[np.argmax(aligned)])
        return Outcome(
            Verdict.FAIL, 0.0, 0.0, f"neuron {j} of J- is parallel to gamma: it shrinks forever"
        )
    return at_least(float(len(sticks.positive)), 1.0, note=f"{len(sticks.positive)} neurons in J+")


@ASSUMPTIONS("1(iii)", "different directions of points, different eigenvalues, teacher along all")
def generic(case: Case) -> Outcome:
    """Spectral non-degeneracy: the smallest of three relative gaps."""
    if case.data.d < 2:
        raise NotApplicable("there is one dimension only")
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


@ASSUMPTIONS("1(iv)", "no yardstick meets two boundaries at once (shortest time between crossings)")
def no_ties(case: Case) -> Outcome:
    """Ties of crossing times."""
    sticks = case.sticks
    if not sticks.valid:
        return Outcome(Verdict.FAIL, None, None, f"crossings are not monotone: {sticks.reason}")
    if sticks.ties:
        j, first, second = sticks.ties[0]
        return Outcome(
            Verdict.FAIL,
            0.0,
            None,
            f"neuron {j} meets points {first} and {second} at the same time: order undefined",
        )
    shortest = sticks.terms["11 time between crossings"]
    return Outcome(Verdict.PASS, float(shortest) if np.isfinite(shortest) else None)


@ASSUMPTIONS("1(v)", "a neuron without active points stays as it is (largest motion of dead ones)")
def frozen(case: Case) -> Outcome:
    """True of every solution that `reluflow.flow` computes; measured on neurons dead at the start.

    Compared with the logs of norms and the directions at the end of the run.
    """
    dead = ~(case.net.W @ case.data.X.T > 0).any(axis=1)
    if dead.any():  # a neuron that starts on a plane may slide: the run knows
        dead &= (case.run.modes(t=0.0) == Mode.INACTIVE).all(axis=1)
    if not dead.any():
        return Outcome(Verdict.PASS, 0.0, 0.0, "no neuron is dead at the start")
    final = case.run.final
    moved = np.abs(final.directions[dead] - case.net.directions[dead]).max(initial=0.0)
    grown = np.abs(final.log_norms[dead] - case.net.log_norms[dead]).max(initial=0.0)
    error = 1e-15 * (1.0 + abs(case.log_scale))
    return at_most(max(float(moved), float(grown)), error, note=f"{int(dead.sum())} neurons")


@ASSUMPTIONS("2", "the scale is small enough for the analysis (natural logarithms)")
def small_scale(case: Case) -> Outcome:
    """The logarithm of the scale against the bound of Assumption 2; nan where delta is unknown."""
    bound = case.sticks.log_scale_bound(case.eps)
    if math.isnan(bound):
        raise NotApplicable("delta is unknown without a teacher")
    decides = f"delta = {case.sticks.delta:.4g} ({case.sticks.smallest_term})"
    if not is_met(case, "1(iii)"):
        bound, decides = -math.inf, "delta = 0, since assumption 1(iii) is not met"
    if case.log_scale > bound:
        decides += "; larger scales give observations, not tests of the theorems"
    return at_most(case.log_scale, bound, note=decides)


@ASSUMPTIONS("3", "as many points as dimensions, more than one neuron, M is not 0 (V against 1)")
def threshold(case: Case) -> Outcome:
    """Assumption 3 of Theorem 8."""
    data, width = case.data, case.net.width
    if data.n != data.d or width < 2:
        note = f"n = {data.n}, d = {data.d}, m = {width}"
        return Outcome(Verdict.FAIL, None, None, note)
    return _decided(case)


def _decided(case: Case) -> Outcome:
    if case.angle >= math.pi / 2 or case.data.d < 2 or case.eta[-1] <= 1e-24 * case.eta[0]:
        raise NotApplicable("V is defined for d > 1 independent points within pi/2 of the teacher")
    if case.data.d > EXACT_DIMENSION:
        raise Unresolved(f"V is computed exactly up to d = {EXACT_DIMENSION} only")
    answer = case.rank
    decided = answer.min_rank_is_min_norm is not None
    return Outcome(Verdict.PASS if decided else Verdict.UNRESOLVED, answer.V, 1.0, answer.reason)
