"""The bundle J+ from T1 on: it is tight, its angles fall, products are conserved (B1 to B3)."""

from __future__ import annotations

import math

import numpy as np

from reluflow.checks import Array
from reluflow.network import Network
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims import ALL, FIRST_PHASE
from reluflow.papers.correlated.moments import network_at
from reluflow.papers.correlated.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_most


@paper.claim(
    "B1",
    "from T1 on J+ is a tight bundle: largest ln(1 - cos) of two neurons",
    needs=[*ALL, "pair", "first phase"],
    regime=["2"],
)
def tight_bundle(case: Correlated) -> Finding:
    r""":math:`1 - \cos(w_j, w_k) < 4 \lambda^\varepsilon` at T1 and at every record after it."""
    logs = [_log_cosine_gap(log_angle) for _, log_angle in _bundle_angles(case)]
    bound = math.log(4.0) + case.eps * case.log_scale
    return at_most(max(logs), bound, case.tolerance, note=f"{len(logs)} moments")


@paper.claim(
    "B3",
    "from T1 on the angles of the bundle never grow: largest rise of ln(angle)",
    needs=[*ALL, "pair", "first phase"],
    regime=["2"],
)
def angles_fall(case: Correlated) -> Finding:
    """The largest angle between two neurons of J+ at successive records."""
    logs = np.array([log_angle for _, log_angle in _bundle_angles(case)])
    if len(logs) < 2:
        raise Unresolved("the run has no two records after T1; record more of them")
    return at_most(float(np.diff(logs).max()), 10.0 * case.tolerance + case.neuron_rounding())


def _bundle_angles(case: Correlated) -> list[tuple[float, float]]:
    """Times from T1 on, and logs of the largest angle of J+ there; at most 60, fewer if wide."""
    if "angles" not in case.kept:
        later = np.flatnonzero(case.run.t * case.rate > case.T1)
        count = int(np.clip(1000 // len(case.positive), 8, 60))
        chosen = later[np.unique(np.linspace(0, len(later) - 1, count).astype(int))[: len(later)]]
        times = [case.T1 / case.rate, *case.run.t[chosen].tolist()]
        if times[0] > case.run.t[-1]:
            raise Unresolved("the run ends before T1; continue it")
        case.kept["angles"] = [(t, case.run.log_max_angle(t, case.positive)) for t in times]
    found: list[tuple[float, float]] = case.kept["angles"]
    return found


def _log_cosine_gap(log_angle: float) -> float:
    """``ln(1 - cos)`` of an angle given by its logarithm."""
    if log_angle < -10.0:
        return 2.0 * log_angle - math.log(2.0)
    return math.log(2.0 * math.sin(math.exp(log_angle) / 2) ** 2)


@paper.claim(
    "B2",
    "derived: |w_j||w_k|(1 - cos) of neurons that share all points is conserved (rel. change)",
    needs=[*FIRST_PHASE, "flow", "pair"],
)
def conserved_products(case: Correlated) -> Finding:
    """The force is common, so Minkowski products are constants of motion.

    Measured from the last crossing on, as long as an angle is large enough for its product to
    have ten digits. Where that is too late for all, the first pairs that share all points decide.
    """
    end = float(case.run.t[-1]) * case.rate
    last = case.sticks.T0 - 1.0 + min(1.0, 0.1 / case.k)
    if last >= end:
        raise Unresolved(
            f"the run ends at t = {end:.4g}, before all points are active; continue it"
        )
    for start in (last, *_own_starts(case)):
        worst, compared = _changes(case, start, end)
        if compared:
            allowed = 10.0 * case.tolerance + case.neuron_rounding()
            return at_most(worst, allowed, note=f"{compared} products compared")
    raise Unresolved(
        "neurons are parallel to ten digits once they share all points; a narrower cone or fewer "
        "points, crossed sooner, would show their products"
    )


def _own_starts(case: Correlated) -> list[float]:
    """When the second, third, ... neuron of J+ has crossed its last point, up to ten of them."""
    events = case.run.events
    times = dict.fromkeys(case.positive, 0.0)
    for event in events[np.isin(events["neuron"], case.positive)]:
        times[int(event["neuron"])] = float(event["t"]) * case.rate
    return [t + 0.01 / case.k for t in np.unique(sorted(times.values())[1:])[:10].tolist()]


def _changes(case: Correlated, start: float, end: float) -> tuple[float, int]:
    """Largest change of a resolved log product after ``start``, and how many were compared."""
    worst, compared, chosen = 0.0, 0, _sharing(case, start)
    base, base_error = _products(case, network_at(case, start), chosen)
    for share in np.linspace(0.0, 1.0, 9)[1:]:
        t = start + share * min(8.0 / case.k, end - start)
        logs, error = _products(case, network_at(case, t), chosen)
        # products of neurons that are parallel to the last bit are 0, and their logs -inf
        resolved = (error < 1e-10) & (base_error < 1e-10)
        worst = max(worst, float(np.abs(logs[resolved] - base[resolved]).max(initial=0.0)))
        compared += int(resolved.sum())
    return worst, compared


def _sharing(case: Correlated, start: float) -> list[int]:
    """Neurons of J+ that are active on every point at ``start`` and stay so."""
    events = case.run.events
    later = set(events["neuron"][events["t"] * case.rate > start].tolist())
    pattern = case.run.active(t=start / case.rate)
    active = set(np.flatnonzero(pattern.all(axis=1)).tolist())
    chosen = [j for j in case.positive if j in active and j not in later]
    if len(chosen) < 2:
        raise Unresolved(
            "fewer than two neurons are active on all points to the end; more neurons would show it"
        )
    return chosen


def _products(case: Correlated, net: Network, chosen: list[int]) -> tuple[Array, Array]:
    """Logs of the Minkowski products of all pairs (scale taken out), relative errors."""
    a, W, scale = (
        net.mantissa.a[chosen],
        net.mantissa.W[chosen],
        net.log_scale[chosen] - case.log_scale,
    )
    j, k = np.triu_indices(len(chosen), 1)
    plain = a[j] * a[k]
    products = plain - np.einsum("pd,pd->p", W[j], W[k])
    with np.errstate(divide="ignore", invalid="ignore"):
        error = 4e-16 * np.abs(plain) / np.abs(products)
        return np.log(np.abs(products)) + scale[j] + scale[k], error
