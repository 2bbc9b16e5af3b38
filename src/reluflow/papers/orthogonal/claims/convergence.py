"""Theorem 2: the accelerated flow tends to the jump process (O10 to O13)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reluflow.checks import Array
from reluflow.limits import SaddleToSaddle
from reluflow.papers.orthogonal.case import LARGEST, RESOLVED, Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT
from reluflow.papers.orthogonal.measure import cosines_with_force, network_at, parameter_error
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds
from reluflow.trajectory import Trajectory

NATS = (10.0, 15.0)  # where the power law is read: errors of about e^-10 and e^-15


@paper.claim(
    "O10",
    "exponents: max |log|w_j|/L - r_j| is C/L (its ratio at 2L and L, minus 1/2)",
    needs=LIMIT,
)
def o10(case: Orthogonal) -> Finding:
    """On the whole compact, jump times included; the rate is 1/log(1/lambda)."""
    process = case.limit
    end = 1.3 * float(process.times[-1])
    taus = np.unique(np.concatenate([np.linspace(0.0, end, 27), process.times]))
    one = _exponent_error(case.deep_run, process, case.deep, taus)
    two = _exponent_error(case.deeper_run, process, 2.0 * case.deep, taus)
    note = f"errors {one:.3g} at L = {case.deep:.4g} and {two:.3g} at 2L: C = {one * case.deep:.3g}"
    if one * case.deep < 1e-6:
        return at_most(one, 1e-6 / case.deep, note=f"below resolution; {note}")
    return at_most(abs(two / one - 0.5), 0.1, note=note)


@paper.claim(
    "O11",
    "log norms are affine on plateaus, with slope kappa|y_(A & U)| (relative error)",
    needs=LIMIT,
)
def o11(case: Orthogonal) -> Finding:
    """Regression on the middle half of long plateaus; jumped and frozen neurons have slope 0."""
    process, run = case.limit, case.deep_run
    edges = np.append(0.0, case.deep_half_times)
    fastest = float(process.race.slopes[0].max())
    worst, counted = 0.0, 0
    for k in range(len(edges) - 1):
        width = edges[k + 1] - edges[k]
        at = edges[k] + width * np.linspace(0.25, 0.75, 9)
        logs = np.array([network_at(run, float(t)).log_norms for t in at])
        fit = np.polyfit(at - at.mean(), logs, 1)[0]
        for g, neurons in enumerate(process.members):
            slope = process.race.slopes[k, g]
            # a neuron turns at its own rate; a frozen one settles at that of the jump before
            settling = slope if slope > 0.0 else process.kappa * float(process.norms.min())
            if 0.25 * width * settling < 10.0:
                continue
            gap = np.abs(fit[neurons] - slope).max() / (slope if slope > 0.0 else fastest)
            worst, counted = max(worst, float(gap)), counted + 1
    if not counted:
        raise Unresolved(
            "no plateau is long enough for its neurons to settle; a deeper run decides"
        )
    return at_most(worst, 1e-3, note=f"{counted} slopes at log(1/lambda) = {case.deep:.4g}")


@paper.claim(
    "O12",
    "parameters converge on compacts off the jumps as lambda^delta (exponent over delta)",
    needs=LIMIT,
)
def o12(case: Orthogonal) -> Finding:
    """The fast rate of Theorem 2: sup-error at two scales, on the compact where delta >= d0."""
    process = case.limit
    taus, least = compact(process, case.deep)
    own = case.own_limit_error()
    if own is not None and own[0] > own[1]:
        return at_most(*own, note="a run of the subject, at the end")
    scales = [nats / least for nats in NATS]
    if scales[-1] > LARGEST:
        raise Unresolved(
            f"the exponent is {least:.2g}: the power law shows only beyond log(1/lambda) = "
            f"{LARGEST:.3g}; jumps further apart would decide"
        )
    errors = [_worst_parameter_error(case, process, L, taus) for L in scales]
    with np.errstate(divide="ignore"):
        exponent = (np.log(errors[0]) - np.log(errors[1])) / (scales[1] - scales[0])
    outside = "" if len(process.members) == case.unit_start.width else "; beyond A4(i), by groups"
    note = (
        f"errors {errors[0]:.2g} and {errors[1]:.2g} at log(1/lambda) = {scales[0]:.4g} and "
        f"{scales[1]:.4g}; delta = {least:.4g}{outside}"
    )
    good = errors[1] < errors[0] and abs(exponent / least - 1.0) <= 0.1
    return holds(good, float(exponent / least), 1.0, f"within 10 %; {note}")


@paper.claim(
    "O13",
    "dormant neurons point along their force in the middle of a plateau (least cosine)",
    needs=LIMIT,
)
def o13(case: Orthogonal) -> Finding:
    """On plateaus long enough for the neuron to turn."""
    process, run = case.limit, case.deep_run
    times = case.deep_half_times
    edges = np.append(0.0, times)
    least = 1.0
    counted = 0
    for k, t in enumerate(case.middles(times)[:-1]):
        slopes = process.race.slopes[k]
        long = slopes * (t - edges[k]) >= RESOLVED / 2
        chosen = [j for g in np.flatnonzero(long) for j in process.members[g]]
        if chosen:
            found = cosines_with_force(run, float(t), chosen)
            least, counted = min(least, float(found.min())), counted + len(chosen)
    if not counted:
        raise Unresolved("no plateau lets its dormant neurons turn; a deeper run decides")
    return at_least(least, 0.999, note=f"{counted} neurons on {len(times)} plateaus")


def compact(process: SaddleToSaddle, L: float) -> tuple[Array, float]:
    """Points of a compact set off the jumps on which delta is at least ``d0``, and ``d0``.

    On a plateau delta is a minimum of affine functions, hence concave, so the set where it is at
    least ``d0`` is an interval: its ends and its middle are returned. ``d0`` is chosen such that
    errors are of order e^-10 at ``log(1/lambda) = L``, or up to ten times lower where memory or a
    short plateau makes the convergence slower; still shorter plateaus are left out of the set.
    """
    last = float(process.times[-1])
    edges = np.concatenate([[0.0], process.times, [2.0 * last]])
    peaks = []
    for a, b in pairwise(edges):
        grid = np.linspace(a, b, 201)[1:-1]
        peaks.append(float(grid[int(np.argmax([process.rate(float(x)) for x in grid]))]))
    rates = np.array([process.rate(peak) for peak in peaks])
    kept = np.flatnonzero(0.9 * rates >= 0.1 * NATS[0] / L)
    if not len(kept):
        raise Unresolved(
            f"jumps follow each other so closely that delta is at most {rates.max():.2g}; a deeper "
            "run decides"
        )
    least = min(NATS[0] / L, 0.9 * float(rates[kept].min()))
    taus = []
    for k in kept:
        peak = peaks[k]
        taus += [_end(process, peak, edges[k], least), peak]
        taus.append(_end(process, peak, edges[k + 1], least))
    return np.unique(taus), least


def _end(process: SaddleToSaddle, inside: float, edge: float, least: float) -> float:
    """Where delta falls to ``least`` between a point inside and the edge of a plateau."""
    good, bad = float(inside), float(edge) + (1e-12 * (inside - edge))
    if process.rate(bad) >= least:
        return bad
    for _ in range(60):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if process.rate(middle) >= least else (good, middle)
    return good


def _exponent_error(run: Trajectory, process: SaddleToSaddle, L: float, taus: Array) -> float:
    logs = np.array([network_at(run, float(tau) * L).log_norms for tau in taus])
    moving = np.zeros(logs.shape[1], bool)  # those without a point of their own only shrink
    moving[np.concatenate(process.members)] = True
    return float(np.abs(logs / L - process.exponents(taus))[:, moving].max())


def _worst_parameter_error(
    case: Orthogonal, process: SaddleToSaddle, L: float, taus: Array
) -> float:
    run = case.run_at(L)
    worst = 0.0
    for tau in taus:
        k = int(np.searchsorted(process.times, tau, side="right"))
        worst = max(worst, parameter_error(network_at(run, float(tau) * L), process.saddle(k)))
    return worst
