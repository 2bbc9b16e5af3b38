r"""Claims about the limit direction (Theorems 4.1, 4.2 and section 6): U7 - U12, U23, U24.

They are statements about :math:`t \to \infty`, judged by their trend over decades of
:math:`F = -\log L` on the subject's run, continued where it stopped early.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from reluflow.geometry import KKT, kkt, linear_regions, margin
from reluflow.network import Network, row_norms
from reluflow.papers.univariate.case import Univariate
from reluflow.papers.univariate.constants import region_bound
from reluflow.papers.univariate.field import misalignment, unit_vector
from reluflow.papers.univariate.paper import paper
from reluflow.theory.verdicts import (
    Finding,
    Unresolved,
    Verdict,
    at_most,
    falls,
    holds,
    together,
    undecided,
    verdict_of,
)
from reluflow.trajectory import Status, Trajectory

LIMIT = ("A1", "A7", "A8", "A6")
STILL = 1e-4  # a direction that moves less in a decade of F has arrived
CLEARLY, HARDLY = 0.85, 0.97  # less than in the decade before: moves like F^-0.07, F^-0.013
SLOW = 0.05  # one that moves less may arrive later, even if it moved less before


@paper.claim(
    "U7",
    "Theorem 4.1: loss to 0, norm to infinity, direction and field align: power of F",
    needs=LIMIT,
    regime=["late", "outgrown"],
)
def alignment(case: Univariate) -> Finding:
    """A certified positive loss contradicts it; so does a direction that keeps moving."""
    return _decided_later(case, _aligned)


def _decided_later(case: Univariate, judge: Callable[[Univariate], Finding]) -> Finding:
    """The finding on the run, or, as long as it is open, on the run continued."""
    found, later = judge(case), case.later_runs()
    while verdict_of(found) is Verdict.UNRESOLVED and (run := next(later, None)) is not None:
        found = judge(case.on(run))
    return found


def _aligned(case: Univariate) -> Finding:
    run = case.late_run
    if run.status in (Status.STATIONARY, Status.CONVERGED):
        end = float(run.log_loss[-1])
        return holds(False, end, None, "the loss fell below loss(0)/n but tends to a limit > 0")
    first, last = case.at_level(-float(case.decades[0])), run.final
    growth = last.log_squared_norm - first.log_squared_norm
    if growth <= 0.0:
        return holds(False, growth, 0.0, "the weights do not grow")
    aligned = falls(
        case,
        lambda net: misalignment(case.data, net, case.loss),
        note=f"|theta|^2 grew by e^{growth:.3g}",
    )
    return together(_settles(case), aligned)


def _settles(case: Univariate) -> Finding:
    """The direction moves less in the last decade of F than in the one before it."""
    levels = case.decades
    units = [unit_vector(case.at_level(-float(F))) for F in levels]
    moves = np.array([float(np.linalg.norm(b - a)) for a, b in pairwise(units)])
    if len(moves) < 4:
        raise Unresolved("the run has no two decades of F below loss(0)/n to compare; continue it")
    half = len(moves) // 2
    fading = _fading(case, case.at_level(-float(levels[half])))
    return _less(float(moves[:half].sum()), float(moves[half:].sum()), fading)


def _fading(case: Univariate, net: Network) -> float:
    r"""How far weights still turn because their start fades, even if what they gain has a limit.

    By the law of sines :math:`\theta = \theta_0 + g` makes an angle with g whose sine is at most
    :math:`|\theta_0| / |\theta|`: at first the start holds the direction, then it lets go.
    """
    log_share = 0.5 * (case.net.log_squared_norm - net.log_squared_norm)
    return float(np.arcsin(np.exp(min(log_share, 0.0))))


def _less(before: float, after: float, fading: float = 0.0) -> Finding:
    """Clearly less is convergence; as much, and not little, is none; between them nobody knows."""
    note = f"the direction moved {before:.3g}, then {after:.3g}"
    if after <= STILL:
        return holds(True, after, before, note)
    if CLEARLY * before < after <= max(HARDLY * before, SLOW) + fading:
        note = f"{note}, up to {fading:.3g} as the start fades"
        return undecided(after, CLEARLY * before, f"{note}; a later run decides")
    return at_most(after, CLEARLY * before, note=note)


@paper.claim(
    "U8",
    "KKT residual of the margin problem tends to 0: power of F",
    needs=LIMIT,
    regime=["late", "outgrown"],
)
def kkt_residual(case: Univariate) -> Finding:
    """The larger of stationarity and slackness, both relative, by the trend over decades."""
    return _decided_later(case, _kkt_falls)


def _kkt_falls(case: Univariate) -> Finding:
    return falls(case, lambda net: _residual(kkt(case.data, net)), error=1e-9)


def _residual(found: KKT) -> float:
    return max(found.eps_rel, found.delta / float(found.multipliers.max()))


@paper.claim(
    "U9",
    "identity: At a KKT point |theta|^2 = 2 sum lambda (smallest margin 1): relative defect",
    needs=LIMIT,
)
def kkt_identity(case: Univariate) -> Finding:
    """Away from a KKT point the defect is at most its residuals: stationarity and slackness."""
    found = case.late_kkt
    squared = 1.0 / margin(case.data, case.late_run.final)
    slack = 2.0 * float(found.multipliers @ (found.margins - 1.0)) / squared
    return at_most(identity_defect(found, squared), found.eps_rel + slack + 1e-9)


def identity_defect(found: KKT, squared_norm: float, factor: float = 2.0) -> float:
    """``|factor sum lambda / |theta|^2 - 1|``."""
    return abs(factor * float(found.multipliers.sum()) / squared_norm - 1.0)


@paper.claim(
    "U10",
    "Theorem 4.2: linear regions of the limit, at most 32 r + 67 and 32 s + 67, at least s",
    needs=[*LIMIT, "A2", "wide"],
    regime=["late", "outgrown"],
)
def regions(case: Univariate) -> Finding:
    """Decided by the whole range of counts over tolerances and a decade, settled or not."""
    s = case.switches
    bound, text = region_bound(s), f"32 s + 67 = {region_bound(s)} with s = {s}"
    if case.met("A3"):
        r = case.teacher.width
        bound, text = min(bound, region_bound(r)), f"{text}, 32 r + 67 = {region_bound(r)}"
    (low, high), later = limit_regions(case.late_run, bound), case.later_runs()
    # kinks that vanish do so like powers of F
    while low <= bound < high and (run := next(later, None)) is not None:
        low, high = limit_regions(run, bound)
    span = f"{low} to {high} over tolerances and a decade; {text}"
    if low <= bound < high:
        return undecided(0.5 * (low + high), bound, f"{span}; a later run, settled, decides")
    if high < s:
        return holds(False, high, s, f"fewer regions than label switches; {span}")
    middle = 0.5 * (low + high)
    return at_most(middle, bound, 0.5 * (high - low), note=span)


def limit_regions(run: Trajectory, bound: int) -> tuple[int, int]:
    """Least and largest count of regions over a decade of jump tolerances and of F.

    A jump is compared with the size of the function, not with the other jumps: kinks that leave for
    infinity, where the limit is constant, are none of the limit. Tolerances are so far below
    1/bound that more kinks than the bound allows would be seen.
    """
    counts = []
    for net in (run.final, _a_decade_earlier(run)):
        slopes, sizes = np.abs(net.mantissa.W[:, 0]), row_norms(net.mantissa.W)
        logs = net.log_scale + net.log_scale_out
        weights = np.abs(net.mantissa.a) * np.exp(logs - logs.max())
        steep = float(weights @ slopes)
        larger = float(weights @ sizes) / steep if steep > 0.0 else np.inf
        for tol in (0.02 / bound, 0.2 / bound):  # counts fall with the tolerance
            counts.append(linear_regions(net, 1e-3, tol * larger) if tol * larger < 1.0 else 1)
    return min(counts), max(counts)


def _a_decade_earlier(run: Trajectory) -> Network:
    """The network where F was a tenth or less: a record if there is one near, else replayed."""
    levels = -np.asarray(run.log_loss)
    near = np.flatnonzero((levels <= 0.1 * levels[-1]) & (levels >= 0.03 * levels[-1]))
    if len(near):
        return run.network(int(near[-1]))
    return run.at(log_loss=min(-0.1 * levels[-1], -levels[0]))


@paper.claim(
    "U11",
    "Identity: no network has a larger margin than the certified optimum",
    needs=["A1"],
)
def optimum(case: Univariate) -> Finding:
    """Every network of the subject against the dual bound of the margin problem."""
    nets = [case.net, *(run.final for run in case.subject.runs)]
    if case.subject.runs:
        nets += case.records
    best = max(margin(case.data, net) for net in nets if net.squared_norm > 0.0)
    bound = 1.0 / case.optimum.lower_bound
    note = f"optimum {case.optimum.margin:.8g}, reached up to {1 - best / bound:.3g}"
    return at_most(best, bound * (1.0 + 1e-8), note=note)


@paper.claim("U12", "Identity: zero duality gap of the margin problem (relative)", needs=["A1"])
def duality(case: Univariate) -> Finding:
    """Strong duality, as far as the solver attains it."""
    found = case.optimum
    note = f"|theta|^2 = {found.value:.9g}, solver: {found.solver_status}"
    return at_most(found.gap / found.value, 1e-6, note=note)


@paper.claim(
    "U23",
    "Balance of the limit: F max |v^2 - w^2 - b^2| / |theta|^2 stays bounded",
    needs=LIMIT,
    regime=["late"],
)
def limit_balance(case: Univariate) -> Finding:
    """By the conserved balance and the largest margin."""
    net, F = case.late_run.final, case.level
    measured = F * float(np.abs(net.balance).max()) / net.squared_norm
    start = float(np.abs(case.net.balance).max())
    # |theta|^2 >= q_min/gamma_max and q_min >= F - log(n), for both losses
    bound = start * F / (F - float(np.log(case.data.n))) / case.optimum.lower_bound
    note = f"max |B_j| at the start {start:.4g}, times the largest margin"
    return at_most(measured, bound * (1.0 + 10 * case.error) + case.error, note=note)


@paper.claim(
    "U24",
    "Time: log t - (F - log(4 gamma F)) is 2 log cos(theta, g), which tends to 0 (gap)",
    needs=LIMIT,
    regime=["late"],
)
def late_time(case: Univariate) -> Finding:
    r"""Of order log(n)/F: :math:`dF/dt = e^{-F} |g|^2` with :math:`g = \nabla F`.

    :math:`\theta \cdot g = 2 \sum_i p_i q_i` lies within 2 log n of 2 F, so
    :math:`|g|^2 = 4 \gamma F / \cos^2(\theta, g)` up to that; the last unit of F takes the time.
    """
    run, F = case.late_run, case.level
    gamma = margin(case.data, run.final)
    apart = float(run.log_t[-1]) - (F - float(np.log(4.0 * gamma * F)))
    missed = misalignment(case.data, run.final, case.loss, run.modes(-1))
    turned = 2.0 * float(np.log1p(-missed))
    bound = (2.0 + 4.0 * float(np.log(case.data.n))) / F
    # margins of size F are known to F * rtol, and so are the logs of the weights in g
    known = 0.1 * F * case.tolerance
    error = 4.0 * float(np.spacing(F)) + known * (known + 2.0 * float(np.sqrt(2.0 * missed)))
    note = f"log t = {run.log_t[-1]:.8g}; apart by {apart:.3g}, of which the angle has {turned:.3g}"
    return at_most(abs(apart - turned), bound, error, note=note)
