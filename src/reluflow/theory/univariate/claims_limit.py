r"""Claims about the limit direction (Theorems 4.1, 4.2 and section 6): U7 - U12, U23, U24.

They are statements about :math:`t \to \infty`; here they are judged by their trend over decades of
:math:`F = -\log L`.
"""

from __future__ import annotations

import numpy as np

from reluflow.geometry import KKT, margin
from reluflow.theory.univariate.case import LATE, Case
from reluflow.theory.univariate.constants import region_bound
from reluflow.theory.univariate.field import misalignment
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    Verdict,
    at_most,
)
from reluflow.trajectory import Status

claims = Claims()

# below this, 1 - cos and relative residuals are rounding
_ROUNDING = 1e-13
# a relative residual above this is no approximate KKT point
_FAR = 0.1


@claims("U7", "Theorem 4.1: 1 - cos(theta, field) falls like a power of F: the power")
def _alignment(case: Case) -> Outcome:
    run = case.separated_run()
    if run.status in (Status.STATIONARY, Status.CONVERGED):
        return Outcome(
            Verdict.FAIL, case.level, None, "the loss fell below loss(0)/n but tends to a limit > 0"
        )
    case.late_run()
    levels = np.geomspace(case.decades[-1], case.level, 4 * len(case.decades) - 3)
    nets = [case.at_level(float(F)) for F in levels]
    gaps = np.array([misalignment(case.data, net, case.loss) for net in nets])
    growth = nets[-1].log_squared_norm - nets[0].log_squared_norm
    note = f"1 - cos = {gaps[-1]:.3g} at F = {case.level:.4g}; |theta|^2 grew by e^{growth:.3g}"
    if gaps[-1] <= _ROUNDING:
        return Outcome(Verdict.PASS, None, None, f"{note}: the direction is reached to rounding")
    if growth <= 0.0:
        return Outcome(Verdict.FAIL, growth, 0.0, f"{note}: the weights do not grow")
    power = -float(np.polyfit(np.log(levels), np.log(np.maximum(gaps, _ROUNDING)), 1)[0])
    return _trend(power, gaps[-1], gaps[0], note)


def _trend(power: float, late: float, early: float, note: str) -> Outcome:
    """A decreasing trend passes; a flat one fails only if it is far from the limit."""
    if power > 0.0 and late < early:
        return Outcome(Verdict.PASS, power, 0.0, note)
    verdict = Verdict.FAIL if late > _FAR else Verdict.UNRESOLVED
    return Outcome(verdict, power, 0.0, f"{note}; no decrease over the decades of this run")


@claims(
    "U8", "KKT residual of the margin problem tends to 0: eps relative, against a decade before"
)
def _kkt_residual(case: Case) -> Outcome:
    case.late_run()
    found = case.late_kkt
    if len(case.decades) < 2:
        raise Unresolved("the run has no decade of F below loss(0)/n to compare with")
    before = case.kkt_at(case.decades[-1])
    slack = 10.0 / case.level * float(found.multipliers.max())
    note = (
        f"delta = {found.delta:.3g} (10/F max lambda = {slack:.3g}); "
        f"eps = {before.eps_rel:.3g} at F = {case.decades[-1]:.4g}"
    )
    if found.delta > slack and found.delta > 1e-9:
        return Outcome(Verdict.FAIL, found.delta, slack, f"slackness: {note}")
    if found.eps_rel <= max(_ROUNDING, 1e-9) or found.eps_rel < before.eps_rel:
        return Outcome(Verdict.PASS, found.eps_rel, before.eps_rel, note)
    verdict = Verdict.FAIL if found.eps_rel > _FAR else Verdict.UNRESOLVED
    return Outcome(verdict, found.eps_rel, before.eps_rel, note)


@claims("U9", "At a KKT point |theta|^2 = 2 sum lambda (smallest margin 1): relative defect")
def _kkt_identity(case: Case) -> Outcome:
    case.late_run()
    found = case.late_kkt
    squared = 1.0 / margin(case.data, case.at_level(case.level))
    defect = identity_defect(found, squared)
    bound = 1e-3 * max(1.0, 2e4 / case.level)
    if bound < defect <= found.eps_rel:
        raise Unresolved(f"the KKT residual {found.eps_rel:.3g} still allows a defect {defect:.3g}")
    return at_most(defect, bound)


def identity_defect(found: KKT, squared_norm: float, factor: float = 2.0) -> float:
    """``|factor sum lambda / |theta|^2 - 1|``."""
    return abs(factor * float(found.multipliers.sum()) / squared_norm - 1.0)


@claims(
    "U10", "Theorem 4.2: linear regions of the limit, at most 32 r + 67 and 32 s + 67, at least s"
)
def _regions(case: Case) -> Outcome:
    case.late_run()
    if not np.all(np.diff(case.x) > 0.0):
        raise NotApplicable("inputs repeat (A2 fails)")
    found, s = case.regions, case.switches
    bound, text = region_bound(s), f"32 s + 67 = {region_bound(s)} with s = {s}"
    try:
        r = case.labelled_by_teacher().width
        bound, text = min(bound, region_bound(r)), f"{text}, 32 r + 67 = {region_bound(r)}"
    except NotApplicable as reason:
        text = f"{text}; no bound in r: {reason}"
    span = f"{found.table.min()} to {found.table.max()}"
    if not found.resolved:
        raise Unresolved(f"the count is not settled: {span} over tolerances and a decade; {text}")
    if found.count < s:
        return Outcome(Verdict.FAIL, found.count, s, f"fewer regions than label switches; {text}")
    return at_most(found.count, bound, note=text)


@claims("U11", "No network has a larger normalised margin than the certified optimum")
def _optimum(case: Case) -> Outcome:
    nets = [case.subject.net, *(run.final for run in case.subject.runs)]
    if case.subject.runs:
        nets += case.records
    best = max(margin(case.data, net) for net in nets if net.squared_norm > 0.0)
    bound = 1.0 / case.optimum.lower_bound
    note = f"optimum {case.optimum.margin:.8g}, reached up to {1 - best / bound:.3g}"
    return at_most(best, bound * (1.0 + 1e-8), note=note)


@claims("U12", "Zero duality gap of the margin problem: relative gap")
def _duality(case: Case) -> Outcome:
    found = case.optimum
    note = f"|theta|^2 = {found.value:.9g}, solver: {found.solver_status}"
    return at_most(found.gap / found.value, 1e-6, note=note)


@claims("U23", "Balance of the limit: F max |v^2 - w^2 - b^2| / |theta|^2 stays bounded")
def _limit_balance(case: Case) -> Outcome:
    case.late_run()
    net = case.at_level(case.level)
    F, n = case.level, case.data.n
    measured = F * float(np.abs(net.balance).max()) / net.squared_norm
    start = float(np.abs(case.subject.net.balance).max())
    # |theta|^2 >= q_min/gamma_max and q_min >= F - log(n), for both losses
    bound = start * F / (F - float(np.log(n))) / case.optimum.lower_bound
    note = f"max |B_j| at the start {start:.4g}, times the largest margin"
    return at_most(measured, bound * (1.0 + 1e-6) + 1e-8, note=note)


@claims("U24", "Time: log t - (F - log(4 gamma F)) tends to 0")
def _late_time(case: Case) -> Outcome:
    run = case.separated_run()
    F = case.level
    if F < LATE:
        raise Unresolved(f"the run ends at F = {F:.4g}; the formula is for F above {LATE:g}")
    gamma = margin(case.data, case.at_level(F))
    apart = float(run.log_t[-1]) - (F - float(np.log(4.0 * gamma * F)))
    return at_most(abs(apart), 0.05, note=f"log t = {run.log_t[-1]:.8g}")
