"""First phase: balance, yardsticks, crossings, alignment and deactivation (P1 to L5c)."""

from __future__ import annotations

import math

import numpy as np

from reluflow.checks import Array
from reluflow.geometry import pairwise_angles
from reluflow.network import Network
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims import FIRST_PHASE
from reluflow.papers.correlated.crossings import flow_crossings, log_perturbation, stage_gaps
from reluflow.papers.correlated.moments import network_at
from reluflow.papers.correlated.paper import paper
from reluflow.theory.case import tolerance_of
from reluflow.theory.verdicts import Finding, Unresolved, at_most, holds
from reluflow.trajectory import Mode, Trajectory

FLOW = (*FIRST_PHASE, "flow")
AT_T1 = (*FLOW, "first phase")
DIRECT = 1e-6  # angles above this are read off the directions of the run


@paper.claim(
    "P1",
    "neurons stay balanced: largest |ln|a| - ln|w|| along the run",
    needs=["balanced", "flow"],
)
def balance(case: Correlated) -> Finding:
    """Conservation of balance, to the accuracy of the run; descent breaks it by O(step)."""
    run = case.run if case.met("flow") else case.subject.runs[0]
    return at_most(_imbalance(run), tolerance_of(run))


def _imbalance(run: Trajectory) -> float:
    """The largest difference of logs over records and neurons, signs of a included."""
    worst = 0.0
    for k in range(len(run.t)):
        net = run.network(k)
        alive = np.isfinite(run.net.log_norms)
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.abs(
                np.log(np.abs(net.mantissa.a)) - np.log(np.linalg.norm(net.mantissa.W, axis=1))
            ) + np.abs(net.log_scale_out - net.log_scale)
        worst = max(worst, float(gap[alive].max(initial=0.0)))
        if np.any(net.signs[alive] != run.net.signs[alive]):
            return math.inf
    return worst


@paper.claim(
    "P2",
    "identity: each yardstick crosses each point once, in order: closed form against an ODE",
    needs=FIRST_PHASE,
)
def crossings_once(case: Correlated) -> Finding:
    """Order and times of the yardsticks; the ODE is integrated for the busiest neurons.

    Yardsticks belong to the start alone: a neuron on the plane of a point starts inactive there,
    and 1(ii) forbids it.
    """
    sticks = case.sticks
    active = case.net.mantissa.W @ case.data.X.T > 0
    for j in (*sticks.positive, *sticks.negative):
        expected = np.flatnonzero(~active[j] if case.net.signs[j] > 0 else active[j])
        times = np.concatenate([[0.0], sticks.times[j]])
        if not np.array_equal(np.sort(sticks.order[j]), expected) or np.any(np.diff(times) <= 0):
            return holds(False, note=f"neuron {j} crosses {sticks.order[j].tolist()}")
    gap, count = stage_gaps(case)
    return at_most(gap, 1e-10, note=f"{count} stages integrated numerically")


@paper.claim(
    "L3a",
    "the flow crosses the points in the order of the yardsticks (different neurons)",
    needs=FLOW,
    regime=["2"],
)
def same_order(case: Correlated) -> Finding:
    """Lemma 3: order."""
    found = flow_crossings(case)
    late = [j for j in case.moving if len(found[j][0]) < len(case.sticks.order[j])]
    ended = float(case.run.t[-1]) * case.rate
    if late and ended < case.sticks.T0 and not case.is_certified:
        raise Unresolved(
            f"the run ends at t = {ended:.4g}, before T0 = {case.sticks.T0:.4g}; continue it"
        )
    wrong = [j for j in case.moving if found[j][0].tolist() != case.sticks.order[j].tolist()]
    return at_most(len(wrong), 0.0, note=f"first: neuron {wrong[0]}" if wrong else "")


@paper.claim(
    "L3b",
    "crossing times are near those of the yardsticks: worst ln(|t - tau| / bound)",
    needs=[*FLOW, "crossings"],
    regime=["2"],
)
def same_times(case: Correlated) -> Finding:
    r"""Lemma 3: :math:`|t - \tau| \le \lambda^{1 - (1 + (3l-1)/(3 n_j)) \varepsilon}`."""
    gaps, errors, log_bounds, same = _time_gaps(case)
    if not same:
        return holds(False, note="some neuron crosses points in another order (L3a)")
    with np.errstate(divide="ignore"):
        low, high = np.log(np.maximum(gaps - errors, 0.0)), np.log(gaps + errors)
    violated, seen = low > log_bounds, high <= log_bounds
    if violated.any():
        worst = float((low - log_bounds)[violated].max())
        return at_most(worst, 0.0, note=f"{int(violated.sum())} of them")
    estimate = log_perturbation(case, case.sticks.T0)
    known = seen | (estimate <= log_bounds)
    if not known.any():
        raise Unresolved(
            f"the bound, e^{log_bounds.max():.4g}, is below the error of the times, "
            f"{errors.min():.1e}; the largest difference is {gaps.max():.1e}; a smaller rtol helps"
        )
    highest = np.where(seen, high, estimate)
    note = _below(estimate, errors.max()) if not seen.all() else ""
    return at_most(float((highest - log_bounds)[known].max()), 0.0, note=note)


def _below(estimate: float, error: float) -> str:
    return f"no difference above the error, {error:.1e}; the equations allow e^{estimate:.4g}"


def _time_gaps(case: Correlated) -> tuple[Array, Array, Array, bool]:
    """Differences of crossing times, their errors, logs of the bounds, whether orders agree."""
    found, rows, same = flow_crossings(case), [], True
    for j in case.moving:
        order, times = found[j]
        if order.tolist() != case.sticks.order[j].tolist():
            same = False
            continue
        stage = np.arange(1, len(times) + 1)
        power = 1.0 - (1.0 + (3 * stage - 1) / (3 * max(len(times), 1))) * case.eps
        error = 10.0 * case.tolerance * (1.0 + times)
        rows.append(np.stack([abs(times - case.sticks.times[j]), error, power * case.log_scale]))
    gaps, errors, log_bounds = np.concatenate(rows, axis=1) if rows else np.empty((3, 0))
    return gaps, errors, log_bounds, same


@paper.claim(
    "L3c",
    "derived: the differences are proportional to the squared scale (relative change)",
    needs=[*FIRST_PHASE, "crossings"],
)
def quadratic_times(case: Correlated) -> Finding:
    """(t - tau) / scale^2 tends to a constant; the subject's start compared at two scales."""
    scales = _resolvable_scales(case)
    constants = []
    for scale in scales:
        run = case.subject.flow(
            case.data, case.at_scale(scale), rtol=1e-13, t_end=case.sticks.T0, record=2
        )
        found = flow_crossings(case, run)
        if any(found[j][0].tolist() != case.sticks.order[j].tolist() for j in case.moving):
            raise Unresolved(
                f"the order of crossings differs at ln(scale) = {scale:.4g}; fewer of them decide"
            )
        gaps = [found[j][1] - case.sticks.times[j] for j in case.moving]
        constants.append(np.concatenate(gaps) * np.exp(-2.0 * scale))
    first, second = constants
    late = np.concatenate([case.sticks.times[j] for j in case.moving])
    errors = 3e-12 * (1.0 + late) * np.exp(-2.0 * scales[1])
    resolved = np.abs(second) > 1e4 * errors
    if not resolved.any():
        raise Unresolved(
            f"differences are below the error of times, {errors.min():.1e}; a smaller one decides"
        )
    first, second, errors = first[resolved], second[resolved], errors[resolved]
    sizes = np.abs(second)
    worst = float((np.abs(first - second) / sizes).max())
    note = (
        f"constants from {sizes.min():.3g} to {sizes.max():.3g} at ln(scale) = "
        f"{scales[0]:.3g}, {scales[1]:.3g}"
    )
    return at_most(worst, 1e-3, float((errors / sizes).max()), note=note)


def _resolvable_scales(case: Correlated) -> tuple[float, float]:
    """Two scales at which outputs at the last crossing are near 1e-4 and a quarter of it."""
    last = case.sticks.T0 - 1.0
    logs = 2.0 * case.sticks.log_norms(last)[case.sticks.positive]
    growth = float(np.logaddexp.reduce(logs))
    first = min(0.5 * (math.log(1e-4) - growth), math.log(1e-2))
    return first, first - math.log(2.0)


@paper.claim(
    "L4",
    "neurons of J- never grow and are dead by T0: largest ln of growth",
    needs=[*FLOW, "J-"],
    regime=["2"],
)
def deactivation(case: Correlated) -> Finding:
    """Lemma 4; growth against the start, scales subtracted before logs are compared."""
    negative = np.asarray(case.sticks.negative)
    then = network_at(case, case.sticks.T0)
    modes = case.run.modes(t=case.sticks.T0 / case.rate)[negative]
    alive = (modes != Mode.INACTIVE).any(axis=1)
    if alive.any():
        return holds(False, note=f"neuron {int(negative[np.argmax(alive)])} is active at T0")
    final = case.run.final
    moved = float(np.abs(final.directions[negative] - then.directions[negative]).max())
    logs, errors = zip(
        *(case.growth(case.run.network(k), negative) for k in range(len(case.run.t))), strict=True
    )
    at_end, at_T0 = case.growth(final, negative)[0], case.growth(then, negative)[0]
    error = max(errors) + case.tolerance + case.neuron_rounding()
    late = max(moved, float(np.abs(at_end - at_T0).max()))
    if late > error:
        return holds(False, late, error, "a dead neuron moves after T0")
    steps = float(np.diff(np.array(logs), axis=0).max(initial=-np.inf))
    if steps > error:
        return holds(False, steps, error, "a norm grows between records (ln of the factor)")
    return at_most(float(at_T0.max()), error)


@paper.claim(
    "L5a",
    "at T1 the neurons of J+ are still small: largest ln(|w| / bound)",
    needs=AT_T1,
    regime=["2"],
)
def still_small(case: Correlated) -> Finding:
    r"""Lemma 5: :math:`|w_j| < 2 |z_j| \lambda^{1-\varepsilon}`."""
    grown, error = case.growth(network_at(case, case.T1), np.asarray(case.positive))
    bound = math.log(2.0) - case.eps * case.log_scale
    return at_most(float(grown.max()) - bound, 0.0, error + case.tolerance + case.neuron_rounding())


@paper.claim(
    "L5b",
    "at T1 the neurons of J+ are aligned with gamma: largest ln(1 - cos)",
    needs=AT_T1,
    regime=["2"],
)
def aligned(case: Correlated) -> Finding:
    r"""Lemma 5: :math:`\cos(w_j, \gamma) \ge 1 - \lambda^\varepsilon`.

    Angles of the run below 1e-6 are below its accuracy; there the closed form of the yardsticks is
    used, and the direction of the run confirms it to 1e-6.
    """
    then = network_at(case, case.T1)
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
    return at_most(float(logs.max()), case.eps * case.log_scale, 1e-6, note=note)


def _yardstick_log_cosine_gap(case: Correlated) -> Array:
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


@paper.claim(
    "L5c",
    "at T1 the norms are those of the yardsticks: largest ln of the difference of logs",
    needs=AT_T1,
    regime=["2"],
)
def same_norms(case: Correlated) -> Finding:
    r"""Lemma 5: :math:`|\ln|\alpha_j| - \ln|w_j/\lambda|| \le \lambda^{1 - 3\varepsilon}`."""
    chosen = np.asarray(case.positive)
    grown, error = case.growth(network_at(case, case.T1), chosen)
    started = case.at_scale(0.0).log_norms[chosen]
    sticks = case.sticks.log_norms(case.T1)[chosen]
    gap = float(np.abs(grown + started - sticks).max())
    error += case.tolerance + case.neuron_rounding() + 1e-15 * float(np.abs(sticks).max())
    log_bound = (1.0 - 3.0 * case.eps) * case.log_scale
    low, high = max(gap - error, 0.0), gap + error
    if low > 0.0 and math.log(low) > log_bound:
        return at_most(math.log(low), log_bound)
    if math.log(high) <= log_bound:
        return at_most(math.log(high), log_bound)
    estimate = log_perturbation(case, case.T1)
    if estimate > log_bound:
        raise Unresolved(
            f"the bound, e^{log_bound:.4g}, is below the error of the norms, {error:.1e}; the "
            f"difference is {gap:.1e}; a smaller rtol or scale helps"
        )
    return at_most(estimate, log_bound, note=_below(estimate, error))
