"""First phase: balance, yardsticks, crossings, alignment and deactivation (P1 to L5c)."""

from __future__ import annotations

import math

import numpy as np

from reluflow.checks import Array
from reluflow.geometry import pairwise_angles
from reluflow.network import Network
from reluflow.theory.correlated.case import Case
from reluflow.theory.correlated.crossings import flow_crossings, stage_gaps
from reluflow.theory.correlated.hypotheses import FIRST_PHASE, require, under_assumption_2
from reluflow.theory.correlated.moments import network_at
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    at_most,
    holds,
)
from reluflow.trajectory import Mode, Trajectory

CLAIMS = Claims()
DIRECT = 1e-6  # angles above this are read off the directions of the run


@CLAIMS("P1", "neurons stay balanced: largest |ln|a| - ln|w|| along the run")
def balance(case: Case) -> Outcome:
    """Conservation of balance; descent breaks it at the order of its step."""
    run = next((run for run in case.subject.runs if run.engine == "descent"), None)
    if case.flows or run is None:
        case.sticks  # noqa: B018 - not applicable if the start itself is not balanced
        return at_most(_imbalance(case.run), 1e-9)
    lr = run.options.get("lr")
    bound = float(lr) if isinstance(lr, float) else math.nan
    return at_most(_imbalance(run), bound, note="a run of descent: balance drifts by O(lr)")


def _imbalance(run: Trajectory) -> float:
    """The largest difference of logs over records and neurons, signs of a included."""
    worst = 0.0
    for k in range(len(run.t)):
        net = run.network(k)
        alive = np.isfinite(run.net.log_norms)
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.abs(np.log(np.abs(net.a)) - np.log(np.linalg.norm(net.W, axis=1))) + np.abs(
                net.log_scale_out - net.log_scale
            )
        worst = max(worst, float(gap[alive].max(initial=0.0)))
        if np.any(net.signs[alive] != run.net.signs[alive]):
            return math.inf
    return worst


@CLAIMS("P2", "each yardstick crosses each point once, in order: closed form against an ODE")
def crossings_once(case: Case) -> Outcome:
    """Order and times of the yardsticks; the ODE is integrated for the busiest neurons.

    Yardsticks belong to the start alone: a neuron on the plane of a point starts inactive there,
    and 1(ii) forbids it.
    """
    require(case, *FIRST_PHASE)
    sticks = case.sticks
    active = case.net.W @ case.data.X.T > 0
    for j in (*sticks.positive, *sticks.negative):
        expected = np.flatnonzero(~active[j] if case.net.signs[j] > 0 else active[j])
        times = np.concatenate([[0.0], sticks.times[j]])
        if not np.array_equal(np.sort(sticks.order[j]), expected) or np.any(np.diff(times) <= 0):
            return holds(False, note=f"neuron {j} crosses {sticks.order[j].tolist()}")
    gap, count = stage_gaps(case)
    return at_most(gap, 1e-10, note=f"{count} stages integrated numerically")


@CLAIMS("L3a", "the flow crosses the points in the order of the yardsticks (different neurons)")
def same_order(case: Case) -> Outcome:
    """Lemma 3: order."""
    require(case, *FIRST_PHASE)
    found = flow_crossings(case)
    late = [j for j in _moving(case) if len(found[j][0]) < len(case.sticks.order[j])]
    ended = float(case.run.t[-1]) * case.rate
    if late and ended < case.sticks.T0:
        raise NotApplicable(f"the run ends at t = {ended:.4g}, before T0 = {case.sticks.T0:.4g}")
    wrong = [j for j in _moving(case) if found[j][0].tolist() != case.sticks.order[j].tolist()]
    note = f"first: neuron {wrong[0]}" if wrong else ""
    return under_assumption_2(case, at_most(float(len(wrong)), 0.0, note=note))


@CLAIMS("L3b", "crossing times are near those of the yardsticks: worst ln(|t - tau| / bound)")
def same_times(case: Case) -> Outcome:
    r"""Lemma 3: :math:`|t - \tau| \le \lambda^{1 - (1 + (3l-1)/(3 n_j)) \varepsilon}`."""
    require(case, *FIRST_PHASE)
    gaps, errors, log_bounds = _time_gaps(case)
    if not len(gaps):
        raise NotApplicable("no neuron crosses a point")
    with np.errstate(divide="ignore"):
        low, high = np.log(np.maximum(gaps - errors, 0.0)), np.log(gaps + errors)
    violated, kept = low > log_bounds, high <= log_bounds
    if violated.any():
        worst = float((low - log_bounds)[violated].max())
        return under_assumption_2(case, at_most(worst, 0.0, note=f"{int(violated.sum())} of them"))
    if not kept.any():
        raise Unresolved(
            f"the bound, e^{log_bounds.max():.4g}, is below the error of the times, "
            f"{errors.min():.1e}; the largest difference is {gaps.max():.1e}"
        )
    note = "" if kept.all() else f"{int((~kept).sum())} crossings are below resolution"
    worst = float((high - log_bounds)[kept].max())
    return under_assumption_2(case, at_most(worst, 0.0, note=note))


def _time_gaps(case: Case) -> tuple[Array, Array, Array]:
    """Differences of crossing times, their errors, and logs of the bounds of Lemma 3."""
    found = flow_crossings(case)
    rows = []
    for j in _moving(case):
        order, times = found[j]
        if order.tolist() != case.sticks.order[j].tolist():
            raise NotApplicable(f"neuron {j} crosses points in another order than its yardstick")
        stage = np.arange(1, len(times) + 1)
        power = 1.0 - (1.0 + (3 * stage - 1) / (3 * max(len(times), 1))) * case.eps
        error = 10.0 * case.rtol * (1.0 + times)
        rows.append(np.stack([abs(times - case.sticks.times[j]), error, power * case.log_scale]))
    gaps, errors, log_bounds = np.concatenate(rows, axis=1) if rows else np.empty((3, 0))
    return gaps, errors, log_bounds


@CLAIMS("L3c", "the differences are proportional to the squared scale (relative change)")
def quadratic_times(case: Case) -> Outcome:
    """Derived: (t - tau) / scale^2 tends to a constant; compared at two scales."""
    require(case, *FIRST_PHASE)
    if not any(len(case.sticks.order[j]) for j in _moving(case)):
        raise NotApplicable("no neuron crosses a point")
    scales = _resolvable_scales(case)
    constants = []
    for scale in scales:
        run = case.subject.flow(
            case.data, case.at_scale(scale), rtol=1e-13, t_end=case.sticks.T0, record=2
        )
        found = flow_crossings(case, run)
        same = all(found[j][0].tolist() == case.sticks.order[j].tolist() for j in _moving(case))
        if not same:
            raise NotApplicable(f"the order of crossings differs at ln(scale) = {scale:.4g}")
        gaps = [found[j][1] - case.sticks.times[j] for j in _moving(case)]
        constants.append(np.concatenate(gaps) * np.exp(-2.0 * scale))
    first, second = constants
    late = np.concatenate([case.sticks.times[j] for j in _moving(case)])
    errors = 2e-13 * (1.0 + late) * np.exp(-2.0 * scales[1])
    resolved = np.abs(second) > 1e4 * errors
    if not resolved.any():
        raise Unresolved(f"the differences are below the error of the times, {errors.min():.1e}")
    worst = float((np.abs(first - second) / np.abs(second))[resolved].max())
    sizes = np.abs(second[resolved])
    note = (
        f"constants from {sizes.min():.3g} to {sizes.max():.3g} at ln(scale) = "
        f"{scales[0]:.3g}, {scales[1]:.3g}"
    )
    return at_most(worst, 1e-3, error=float((errors / np.abs(second))[resolved].max()), note=note)


def _resolvable_scales(case: Case) -> tuple[float, float]:
    """Two scales at which outputs at the last crossing are near 1e-4 and a quarter of it."""
    last = case.sticks.T0 - 1.0
    logs = 2.0 * case.sticks.log_norms(last)[case.sticks.positive]
    growth = float(np.logaddexp.reduce(logs))
    first = min(0.5 * (math.log(1e-4) - growth), math.log(1e-2))
    return first, first - math.log(2.0)


@CLAIMS("L4", "neurons of J- never grow and are dead by T0: largest ln of growth until T0")
def deactivation(case: Case) -> Outcome:
    """Lemma 4."""
    require(case, *FIRST_PHASE)
    negative = case.sticks.negative
    if not len(negative):
        raise NotApplicable("J- is empty")
    then = network_at(case, case.sticks.T0)
    modes = case.run.modes(t=case.sticks.T0 / case.rate)[negative]
    alive = (modes != Mode.INACTIVE).any(axis=1)
    if alive.any():
        j = int(negative[np.argmax(alive)])
        return under_assumption_2(case, holds(False, note=f"neuron {j} is active at T0"))
    moved = np.abs(case.run.final.directions[negative] - then.directions[negative]).max()
    grown = np.abs(case.run.final.log_norms[negative] - then.log_norms[negative]).max()
    error = 1e-10 + 1e-14 * abs(case.log_scale)
    if max(moved, grown) > error:
        return under_assumption_2(case, holds(False, note="a dead neuron moves after T0"))
    logs = np.array([case.run.network(k).log_norms[negative] for k in range(len(case.run.t))])
    steps = float(np.diff(logs, axis=0).max(initial=-np.inf))
    if steps > error:
        note = f"a norm grows between records, by a factor e^{steps:.3g}"
        return under_assumption_2(case, holds(False, measured=steps, note=note))
    grown = float((then.log_norms - case.net.log_norms)[negative].max())
    return under_assumption_2(case, at_most(grown, error))


@CLAIMS("L5a", "at T1 the neurons of J+ are still small: largest ln(|w| / bound)")
def still_small(case: Case) -> Outcome:
    r"""Lemma 5: :math:`|w_j| < 2 |z_j| \lambda^{1-\varepsilon}`."""
    then = _at_T1(case)
    bound = math.log(2.0) + case.net.log_norms - case.eps * case.log_scale
    worst = float((then.log_norms - bound)[case.positive].max())
    return under_assumption_2(case, at_most(worst, 0.0, error=_log_error(case)))


@CLAIMS("L5b", "at T1 the neurons of J+ are aligned with gamma: largest ln(1 - cos)")
def aligned(case: Case) -> Outcome:
    r"""Lemma 5: :math:`\cos(w_j, \gamma) \ge 1 - \lambda^\varepsilon`.

    Angles of the run below 1e-6 are below its accuracy; there the closed form of the yardsticks is
    used, and the direction of the run confirms it to 1e-6.
    """
    then = _at_T1(case)
    stacked = Network(
        np.ones(len(case.positive) + 1),
        np.vstack([case.sticks.gamma / case.k, then.directions[case.positive]]),
    )
    direct = pairwise_angles(stacked)[0, 1:]
    small = direct < DIRECT
    with np.errstate(divide="ignore"):
        logs = np.where(
            small, _yardstick_log_cosine_gap(case), np.log(2.0 * np.sin(direct / 2) ** 2)
        )
    note = f"angles of the run are below {DIRECT:g}: closed form" if small.any() else ""
    outcome = at_most(float(logs.max()), case.eps * case.log_scale, error=1e-6, note=note)
    return under_assumption_2(case, outcome)


def _yardstick_log_cosine_gap(case: Case) -> Array:
    r"""``ln(1 - cos(alpha_j, gamma))`` at T1: the part across gamma is constant, the norm grows."""
    sticks, chosen = case.sticks, case.positive
    directions, logs = sticks.paths.state(sticks.paths.last_times())
    unit = directions[chosen]
    along = sticks.gamma / case.k
    across = unit - (unit @ along)[:, None] * along
    then = sticks.log_norms(case.T1)[chosen]
    with np.errstate(divide="ignore"):
        log_sine = np.log(np.linalg.norm(across, axis=1)) + logs[chosen] - then
    # sines near 1 do not occur here: this is used for angles below 1e-6 only
    return np.asarray(2.0 * log_sine - math.log(2.0))


@CLAIMS("L5c", "at T1 the norms are those of the yardsticks: largest ln of the difference of logs")
def same_norms(case: Case) -> Outcome:
    r"""Lemma 5: :math:`|\ln|\alpha_j| - \ln|w_j/\lambda|| \le \lambda^{1 - 3\varepsilon}`."""
    then = _at_T1(case)
    sticks = case.sticks.log_norms(case.T1)[case.positive]
    gap = float(np.abs(then.log_norms[case.positive] - case.log_scale - sticks).max())
    log_bound = (1.0 - 3.0 * case.eps) * case.log_scale
    error = _log_error(case)
    low, high = max(gap - error, 0.0), gap + error
    if low > 0.0 and math.log(low) > log_bound:
        return under_assumption_2(case, at_most(math.log(low), log_bound))
    if math.log(high) > log_bound:
        raise Unresolved(
            f"the bound, e^{log_bound:.4g}, is below the error of the norms, {error:.1e}; the "
            f"difference is {gap:.1e}"
        )
    return under_assumption_2(case, at_most(math.log(high), log_bound))


def _log_error(case: Case) -> float:
    """Error of log-norms: the run's accuracy and the rounding of large logs."""
    return 10.0 * case.rtol + 1e-15 * abs(case.log_scale) + 1e-13


def _at_T1(case: Case) -> Network:
    require(case, *FIRST_PHASE)
    if case.late_note:
        raise NotApplicable(
            f"T1 = {case.T1:.4g} is before T0 = {case.sticks.T0:.4g} at this scale, so the first "
            "phase has not ended"
        )
    return network_at(case, case.T1)


def _moving(case: Case) -> list[int]:
    return sorted(int(j) for j in (*case.sticks.positive, *case.sticks.negative))
