"""HD-25 to HD-28: more than two neurons; Theorem 5 with Lemma 12, Theorem 6, problem (45)."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.interpolators import multi_relu, single_relu
from reluflow.theory.highdim import hypotheses
from reluflow.theory.highdim.case import Case
from reluflow.theory.highdim.claims_two import some_points
from reluflow.theory.highdim.draws import assigned_start
from reluflow.theory.highdim.gram import limit_by_owner, residual
from reluflow.theory.highdim.lemmas import invariant
from reluflow.theory.highdim.minimum import nearest_copy
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Verdict, at_most
from reluflow.trajectory import Status

CLAIMS = Claims()
DRAWS = 8
TINY = 1e-6  # the start that loses its assignment, in units of y_min
LARGEST = 60  # points for which the problem of several neurons is solved


def _many(case: Case) -> None:
    if case.m <= 2:
        raise NotApplicable("a statement about more than two neurons")
    if not (case.s > 0.0).any() or not (case.s < 0.0).any():
        raise NotApplicable("neurons of both signs are needed")


@CLAIMS("HD-25", "Theorem 5, Lemma 12: the assignment is the pattern from step 1 on (relative)")
def hd25(case: Case) -> Outcome:
    """Each neuron ends with the closed form on its own points; interpolation."""
    _many(case)
    hypotheses.theorem(case)
    hypotheses.need_assigned_start(case)
    owner = case.owner
    B = limit_by_owner(case.G, case.y, case.s, case.P0, case.B0, case.eta, owner)
    closed = case.apart + B @ case.data.X
    gap = float(np.linalg.norm(case.W_inf - closed) / np.linalg.norm(closed))
    left = float(np.abs(residual(case.s, case.P_inf, case.y)).max())
    found = invariant(case.y, case.s, case.l1, owner, case.loop)
    facts = {
        "all changes come with the first step": case.limit.stats["last_change"] <= 1,
        "the pattern is certified to stay": case.limit.stats["frozen_from"] is not None,
        "the pattern is the assignment": bool((case.active_inf == owner).all()),
        "every label is fitted": left <= 1e-9 * float(case.size.max()),
    } | found.facts
    return hypotheses.conclude(case, facts, gap, 1e-9)


@CLAIMS(
    "HD-26", "a start too small loses the assignment but still interpolates (share of draws lost)"
)
def hd26(case: Case) -> Outcome:
    """Isotropic draws of the subject's sizes and signs, start 1e-6 y_min."""
    _many(case)
    n, lost, fitted = min(case.n, 40), 0, 0
    for seed in range(DRAWS):
        problem = assigned_start(n, case.ambient, case.s, eps=TINY, constant=2.0, seed=seed)
        run = case.run_of(problem)
        begin, end = run.active(t=0.0), run.active(-1)
        own = case.s[:, None] * problem.data.y > 0.0
        lost += bool((end != (begin & own)).any())
        fitted += run.status == Status.CONVERGED
    verdict = Verdict.PASS if lost > 0 and fitted == DRAWS else Verdict.FAIL
    return Outcome(verdict, lost / DRAWS, 0.0, f"{fitted} of {DRAWS} draws interpolate")


@CLAIMS("HD-27", "Theorem 6: |Theta - Theta*| <= 2 |Theta| and |Theta*| <= |Theta| (larger ratio)")
def hd27(case: Case) -> Outcome:
    """Against the shortest weights of these signs; copies of a sign are matched."""
    _many(case)
    if case.limit.status != Status.CONVERGED:
        raise NotApplicable("the limit does not interpolate")
    if case.n > LARGEST:
        raise NotApplicable(f"the minimum over {case.n} points is not computed; up to {LARGEST}")
    star = multi_relu(case.data, case.s)
    W = case.W_inf - case.apart
    size = float(np.linalg.norm(W))
    shorter = float(np.sqrt(star.lower_bound)) / size
    if not star.certified:
        return at_most(shorter, 1.0 + 1e-9, note="only a lower bound of |Theta*| is proved")
    gap = nearest_copy(W, star.W, case.s)
    scale = float(case.size.max()) * np.sqrt(case.m * case.n / case.l1)
    note = f"distance {gap / scale:.3g} y_max sqrt(m n/l1)"
    return at_most(max(gap / (2.0 * size), shorter), 1.0 + 1e-9, note=note)


@CLAIMS("HD-28", "problem (45): the even split is never shorter than the minimum, equal in high d")
def hd28(case: Case) -> Outcome:
    """All patterns of as many points as n m <= 12 allows."""
    _many(case)
    if 12 // case.m < 2:
        raise NotApplicable("two points of these neurons have too many patterns")
    data = some_points(case.data, 12 // case.m)
    least = multi_relu(data, case.s)
    up, down = single_relu(data), single_relu(Dataset(data.X, -data.y))
    split = up.value / (case.s > 0.0).sum() + down.value / (case.s < 0.0).sum()
    excess = float(split / least.value - 1.0)
    note = f"{data.n} points; split over minimum - 1 = {excess:.3g}"
    if excess < -1e-6 or not least.certified:
        verdict = Verdict.FAIL if excess < -1e-6 else Verdict.UNRESOLVED
        return Outcome(verdict, -excess, 1e-6, note)
    if case.dimension is Verdict.FAIL:
        return at_most(-excess, 1e-6, note=f"{note}; A2 fails, so equality is not asked")
    return hypotheses.conclude(case, {}, abs(excess), 1e-6, note)
