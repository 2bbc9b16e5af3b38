"""Second phase: the bundle, the set S, departure, convergence (B1 to R1)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from reluflow.checks import Array
from reluflow.network import Network
from reluflow.theory.correlated.case import Case
from reluflow.theory.correlated.hypotheses import ALL, FIRST_PHASE, require, under_assumption_2
from reluflow.theory.correlated.moments import (
    Moment,
    departure,
    network_at,
    second_phase,
    squared_gradient,
)
from reluflow.theory.correlated.regions import Place, place
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    at_least,
    at_most,
    holds,
)

CLAIMS = Claims()
SMALLEST_ERROR = 1e-7  # v* - v below this is below the accuracy of a run


@CLAIMS("B1", "from T1 on J+ is a tight bundle: largest ln(1 - cos) of two neurons")
def tight_bundle(case: Case) -> Outcome:
    r""":math:`1 - \cos(w_j, w_k) < 4 \lambda^\varepsilon` at T1, at T2 and at the end."""
    require(case, *ALL)
    if case.late_note:
        raise NotApplicable(f"T1 = {case.T1:.4g} is before T0 = {case.sticks.T0:.4g}")
    if len(case.positive) < 2:
        raise NotApplicable("J+ has one neuron only")
    end = float(case.run.t[-1]) * case.rate
    times = [case.T1, min(departure(case), end), end]
    logs = [_log_cosine_gap(case.run.log_max_angle(t / case.rate, case.positive)) for t in times]
    bound = math.log(4.0) + case.eps * case.log_scale
    return under_assumption_2(case, at_most(max(logs), bound, error=10.0 * case.rtol))


def _log_cosine_gap(log_angle: float) -> float:
    """``ln(1 - cos)`` of an angle given by its logarithm."""
    if log_angle < -10.0:
        return 2.0 * log_angle - math.log(2.0)
    return math.log(2.0 * math.sin(math.exp(log_angle) / 2) ** 2)


@CLAIMS("B2", "|w_j||w_k|(1 - cos) of neurons that share all points is conserved (rel. change)")
def conserved_products(case: Case) -> Outcome:
    """Derived: the force is common, so Minkowski products are constants of motion.

    Measured from the last crossing on, as long as an angle is large enough for its product to
    have ten digits.
    """
    require(case, *FIRST_PHASE)
    if len(case.positive) < 2:
        raise NotApplicable("J+ has one neuron only")
    end = float(case.run.t[-1]) * case.rate
    start = case.sticks.T0 - 1.0 + min(1.0, 0.1 / case.k)
    if start >= end:
        raise NotApplicable(f"the run ends at t = {end:.4g}, before all points are active")
    first, worst, compared = network_at(case, start), 0.0, 0
    chosen = _sharing(case, start)
    base, base_error = _products(case, first, chosen)
    for share in np.linspace(0.0, 1.0, 9)[1:]:
        t = start + share * min(8.0 / case.k, end - start)
        logs, error = _products(case, network_at(case, t), chosen)
        resolved = (error < 1e-10) & (base_error < 1e-10)
        worst = max(worst, float(np.abs(np.expm1(logs - base))[resolved].max(initial=0.0)))
        compared += int(resolved.sum())
    if not compared:
        raise Unresolved("the neurons are parallel to ten digits once they share all points")
    return at_most(worst, 1e-8 + 1e-14 * abs(case.log_scale), note=f"{compared} products compared")


def _sharing(case: Case, start: float) -> list[int]:
    """Neurons of J+ that are active on every point at ``start`` and stay so."""
    events = case.run.events
    later = set(events["neuron"][events["t"] * case.rate > start].tolist())
    pattern = case.run.active(t=start / case.rate)
    active = set(np.flatnonzero(pattern.all(axis=1)).tolist())
    chosen = [j for j in case.positive if j in active and j not in later]
    if len(chosen) < 2:
        raise NotApplicable("fewer than two neurons are active on all points to the end")
    return chosen


def _products(case: Case, net: Network, chosen: list[int]) -> tuple[Array, Array]:
    """Logs of the Minkowski products of all pairs (scale taken out), relative errors."""
    a, W, scale = net.a[chosen], net.W[chosen], net.log_scale[chosen] - case.log_scale
    j, k = np.triu_indices(len(chosen), 1)
    plain = a[j] * a[k]
    products = plain - np.einsum("pd,pd->p", W[j], W[k])
    with np.errstate(divide="ignore", invalid="ignore"):
        error = 4e-16 * np.abs(plain) / np.abs(products)
        return np.log(np.abs(products)) + scale[j] + scale[k], error


@CLAIMS("S1", "the bundle vector stays in S (no padding), parts in order: smallest margin")
def inside(case: Case) -> Outcome:
    """Membership with pad 0, and indices that never decrease."""
    places = _places(case)
    indices = [found.index for found in places]
    for before, after in pairwise(places):
        if after.index < before.index:
            note = f"S_{before.index} is followed by S_{after.index} at t = {after.t:.4g}"
            return under_assumption_2(case, holds(False, note=note), case.late_note)
    margins = [(min(found.slack, found.cosine), found.error) for found in places]
    worst = min(range(len(places)), key=lambda k: margins[k][0] - margins[k][1])
    at = places[worst]
    decides = at.name if at.slack <= at.cosine else "Xi"
    note = (
        f"S_{indices[0]} to S_{indices[-1]} over {len(places)} moments; decided by {decides} at "
        f"t = {at.t:.4g}"
    )
    outcome = at_least(margins[worst][0], 0.0, error=margins[worst][1], note=note)
    return under_assumption_2(case, outcome, case.late_note)


@CLAIMS("S2", "the bundle vector stays in S with the padding of Xi: smallest cosine")
def padded(case: Case) -> Outcome:
    """The cosine with its padding; fails at practical scales, where the padding is large."""
    worst = min(_places(case), key=lambda found: found.cosine)
    pad = math.exp(case.eps / 3.0 * case.log_scale)
    outcome = at_least(worst.cosine, pad, error=100.0 * case.rtol, note=f"at t = {worst.t:.4g}")
    return under_assumption_2(case, outcome, case.late_note)


def _places(case: Case) -> list[Place]:
    require(case, *ALL)
    if "places" not in case.kept:
        floor = max(SMALLEST_ERROR, 1e4 * case.rtol)
        moments = [m for m in second_phase(case) if np.linalg.norm(m.error) > floor]
        case.kept["places"] = [place(case, found) for found in moments]
    places: list[Place] = case.kept["places"]
    if not places:
        raise NotApplicable("no moment of the run lies in the second phase")
    return places


@CLAIMS("T6a", "the saddle is left early enough: ln T2 against the bound of Theorem 6")
def departure_time(case: Case) -> Outcome:
    r""":math:`T_2 < \ln(1/\lambda) (4 + \varepsilon) d \Delta^2 / \delta^6`."""
    require(case, *ALL)
    T2, sticks = departure(case), case.sticks
    if case.log_scale >= 0:
        raise NotApplicable(f"the scale is not below 1 (ln = {case.log_scale:.4g})")
    log_bound = (
        math.log(-case.log_scale * (4.0 + case.eps) * case.data.d)
        + 2.0 * math.log(sticks.Delta)
        - 6.0 * math.log(sticks.delta)
    )
    sizes = [found.size for found in second_phase(case) if found.t <= T2]
    late = [found.size for found in second_phase(case) if found.t > T2]
    note = f"T2 = {T2:.6g}"
    if sizes and late:
        note += (
            f"; |v| is at most {max(sizes):.3g} before it (theory: below 1/2) and at least "
            f"{min(late):.3g} after it (theory: above {case.k / (4 * case.eta[0]):.3g})"
        )
    return under_assumption_2(case, at_most(math.log(T2), log_bound, note=note), case.late_note)


@CLAIMS("T6b", "after T2 the loss decays exponentially: largest ln(L / bound)")
def exponential_decay(case: Case) -> Outcome:
    r""":math:`L(T_2 + t) < \frac{\Delta^2}{2} e^{-0.4 t \delta^4/\Delta^2}`."""
    require(case, *ALL)
    T2, sticks = departure(case), case.sticks
    late = [found for found in second_phase(case) if found.t >= T2]
    if not late:
        raise NotApplicable("the run has no record after T2")
    elapsed = np.array([found.t - T2 for found in late])
    logs = np.array([found.log_loss for found in late])
    bound = math.log(sticks.Delta**2 / 2) - 0.4 * elapsed * sticks.delta**4 / sticks.Delta**2
    eta, k = case.eta, case.k
    sharper = math.log(k / 2) - elapsed * 2 * eta[-1] * k / (5 * eta[0])
    note = f"against the sharper bound of the proof {float((logs - sharper).max()):.4g}"
    return under_assumption_2(
        case, at_most(float((logs - bound).max()), 0.0, error=1e-6, note=note), case.late_note
    )


@CLAIMS("PL", "after T2 a Polyak-Lojasiewicz inequality: smallest |grad L|^2 / L")
def polyak_lojasiewicz(case: Case) -> Outcome:
    r""":math:`|\nabla L|^2 > \frac{2 \eta_d k}{5 \eta_1} L`, down to losses of 1e-20."""
    require(case, *ALL)
    T2 = departure(case)
    late = [found for found in second_phase(case) if found.t >= T2]
    if not late:
        raise NotApplicable("the run has no record after T2")
    rates = [squared_gradient(case, found) / math.exp(found.log_loss) for found in late]
    bound = 2 * case.eta[-1] * case.k / (5 * case.eta[0])
    error = 1e-6 * min(rates)
    return under_assumption_2(case, at_least(min(rates), bound, error=error), case.late_note)


@CLAIMS("R1", "the loss ends with the rate 2 mu of the slowest mode (relative difference)")
def final_rate(case: Case) -> Outcome:
    r"""Derived: :math:`\mu` is the smallest eigenvalue of :math:`(I + v^* v^{*T}) H`.

    The rate is :math:`|\nabla L|^2 / L = -\dot L / L` at the moment at which faster modes weigh
    least: before it they have not died out, after it they are rounding.
    """
    require(case, "data", "1(i)", "1(ii)")
    mu, measured, impure = slowest_mode(case)
    if impure > 1e-4:
        raise Unresolved(f"faster modes never weigh less than {impure:.1g} of the slowest one")
    gap = abs(measured / (2 * mu) - 1.0)
    # the limit network differs from a rank-1 one by O(scale), and so does its kernel
    spread = math.exp(min(case.bundle.log_max_angle(case.log_scale), 0.0))
    if spread > 0.1:
        raise NotApplicable(f"the scale is too large: the bundle would end {spread:.2g} wide")
    note = f"mu = {mu:.6g}, between eta_d = {case.eta[-1]:.4g} and eta_1 = {case.eta[0]:.4g}"
    return at_most(gap, 1e-3 + spread, error=1e-6 + impure, note=note)


def slowest_mode(case: Case) -> tuple[float, float, float]:
    """The slowest rate mu, the rate of the loss where it is purest, and the share of the others."""
    size = float(np.linalg.norm(case.teacher))
    unit = case.teacher / size
    rates, modes = np.linalg.eig(size * (np.eye(case.data.d) + np.outer(unit, unit)) @ case.H)
    order = np.argsort(rates.real)
    rates, modes = rates.real[order], modes.real[:, order]
    # modes are orthogonal in the inner product of H, so losses and decay rates add up
    weights = np.einsum("dk,de,ek->k", modes, case.H, modes)
    best: tuple[float, Moment] | None = None
    for found in second_phase(case):
        if np.linalg.norm(found.error) > 1e4 * case.rtol:
            losses = np.linalg.solve(modes, found.error) ** 2 * weights
            impure = float((losses[1:] @ rates[1:]) / max(losses[0] * rates[0], 1e-300))
            if best is None or impure < best[0]:
                best = impure, found
    if best is None:
        raise NotApplicable("the run has not reached the second phase")
    measured = squared_gradient(case, best[1]) / math.exp(best[1].log_loss)
    return float(rates[0]), measured, best[0]
