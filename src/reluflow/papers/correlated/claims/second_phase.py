"""Second phase: the set S, departure, convergence (S1 to R1)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims import ALL, FIRST_PHASE
from reluflow.papers.correlated.moments import (
    Moment,
    after_departure,
    departure,
    second_phase,
    squared_gradient,
)
from reluflow.papers.correlated.paper import paper
from reluflow.papers.correlated.regions import Place, face_rates, place
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds, together
from reluflow.trajectory import Status

SMALLEST_ERROR = 1e-7  # v* - v below this is below the accuracy of a run


@paper.claim(
    "S1",
    "the bundle vector stays in S (no padding), parts in order: smallest margin",
    needs=ALL,
    regime=["2"],
)
def inside(case: Correlated) -> Finding:
    """Membership with pad 0, and indices that never decrease."""
    places = _places(case)
    indices = [found.index for found in places]
    for before, after in pairwise(places):
        if after.index < before.index:
            note = f"S_{before.index} is followed by S_{after.index} at t = {after.t:.4g}"
            return holds(False, note=note)
    margins = [(found.slack, found.error, found.name, found.t) for found in places]
    margins += [(found.cosine, 10.0 * case.tolerance, "Xi", found.t) for found in places]
    margin, error, decides, t = min(margins, key=lambda one: one[0] - one[1])
    note = (
        f"S_{indices[0]} to S_{indices[-1]} over {len(places)} moments; decided by {decides} at "
        f"t = {t:.4g}"
    )
    return at_least(margin, 0.0, error, note=note)


@paper.claim(
    "S2",
    "the bundle vector stays in S with the padding of Xi: smallest cosine",
    needs=ALL,
    regime=["2"],
)
def padded(case: Correlated) -> Finding:
    """The cosine with its padding, which is large at practical scales."""
    worst = min(_places(case), key=lambda found: found.cosine)
    pad = math.exp(case.eps / 3.0 * case.log_scale)
    return at_least(worst.cosine, pad, 10.0 * case.tolerance, note=f"at t = {worst.t:.4g}")


@paper.claim(
    "S3",
    "the bundle vector is positively correlated with every point: smallest cosine",
    needs=ALL,
    regime=["2"],
)
def positive(case: Correlated) -> Finding:
    """S lies in the cone of vectors with v.x_i > 0, so no neuron of the bundle loses a point."""
    norms = np.linalg.norm(case.data.X, axis=1)
    cosines = [
        float((case.data.X @ found.vector / norms).min() / np.linalg.norm(found.vector))
        for found in second_phase(case)
    ]
    return at_least(min(cosines), 0.0, case.tolerance, note=f"{len(cosines)} moments")


@paper.claim(
    "S4",
    "identity: faces of S repel: least growth of a tight constraint, in units of eta_d |v|",
    needs=ALL,
)
def faces_repel(case: Correlated) -> Finding:
    """Every moment of the run moved onto every face between two coordinates, Xi kept."""
    rates = [rate for found in second_phase(case) for rate in face_rates(case, found)]
    if not rates:
        raise Unresolved(
            "no moment of the run has two coordinates below the teacher's; continue it"
        )
    return at_least(min(rates), 0.0, note=f"{len(rates)} points of faces")


def _places(case: Correlated) -> list[Place]:
    floor = max(SMALLEST_ERROR, 1e4 * case.rtol)
    if "places" not in case.kept:
        moments = [m for m in second_phase(case) if np.linalg.norm(m.error) > floor]
        case.kept["places"] = [place(case, found) for found in moments]
    places: list[Place] = case.kept["places"]
    if not places:
        raise Unresolved(
            f"no moment of the second phase is further than {floor:.1g}, 1e4 rtol, from the "
            "teacher; a smaller rtol or a longer run decides"
        )
    return places


@paper.claim(
    "T6a",
    "the saddle is left early enough: ln T2 against the bound of Theorem 6",
    needs=ALL,
    regime=["2", "late"],
)
def departure_time(case: Correlated) -> Finding:
    r""":math:`T_2 < \ln(1/\lambda) (4 + \varepsilon) d \Delta^2 / \delta^6`."""
    T2, sticks = departure(case), case.sticks
    log_bound = (
        math.log(max(-case.log_scale, 1e-300) * (4.0 + case.eps) * case.data.d)
        + 2.0 * math.log(sticks.Delta)
        - 6.0 * math.log(sticks.delta)
    )
    if math.isinf(T2):
        return at_most(T2, log_bound, note="the bundle never grows: T2 does not come")
    # which moments are after T2 is told by their order: one ulp of t may be longer than a step
    after = after_departure(case)
    moments = second_phase(case)
    before = [found.size for found in moments[: len(moments) - len(after)]]
    late = [found.size for found in after[1:]]
    parts = [at_most(math.log(T2), log_bound, note=f"T2 = {T2:.6g}")]
    if before:
        parts.append(at_most(max(before), 0.5, 1e-6, note="|v| before T2"))
    if late:
        least = case.k / (4 * case.eta[0])
        parts.append(at_least(min(late), least, 10 * case.tolerance, note="|v| after T2"))
    return together(*parts)


@paper.claim(
    "T6c",
    "at the scale of Assumption 2, T2 < 459 (ln m + n ln n) d Delta^4 / delta^9 (ln T2)",
    needs=[*FIRST_PHASE, "1(iii)"],
)
def departure_at_the_bound(case: Correlated) -> Finding:
    """The subject's start at the largest scale that Assumption 2 with eps = 1/4 allows."""
    sticks, m, n = case.sticks, case.net.width, case.data.n
    scale = sticks.log_scale_bound(0.25)
    at_bound = abs(case.log_scale - scale) <= 1e-9 * abs(scale)
    there = case if at_bound else case.on(case.started(scale, rtol=1e-8))
    factor = 459.0 * (math.log(m) + n * math.log(n)) * case.data.d
    log_bound = math.log(factor) + 4.0 * math.log(sticks.Delta) - 9.0 * math.log(sticks.delta)
    return at_most(math.log(departure(there)), log_bound, note=f"at ln(scale) = {scale:.6g}")


@paper.claim(
    "T6b",
    "after T2 the loss decays exponentially: largest ln(L / bound)",
    needs=ALL,
    regime=["2", "late"],
)
def exponential_decay(case: Correlated) -> Finding:
    r""":math:`L(T_2 + t) < \frac{\Delta^2}{2} e^{-0.4 t \delta^4/\Delta^2}`."""
    if stuck := _stuck(case):
        return stuck
    T2, sticks = departure(case), case.sticks
    late = after_departure(case)
    # one ulp of a late t may exceed the time since T2
    ulp = 2.0 * float(np.spacing(max(found.t for found in late)))
    elapsed = np.array([max(found.t - T2 - ulp, 0.0) for found in late])
    logs = np.array([found.log_loss for found in late])
    bound = math.log(sticks.Delta**2 / 2) - 0.4 * elapsed * sticks.delta**4 / sticks.Delta**2
    eta, k = case.eta, case.k
    sharper = math.log(k / 2) - elapsed * 2 * eta[-1] * k / (5 * eta[0])
    note = f"against the sharper bound of the proof {float((logs - sharper).max()):.4g}"
    return at_most(float((logs - bound).max()), 0.0, 100 * case.tolerance, note=note)


@paper.claim(
    "PL",
    "after T2 a Polyak-Lojasiewicz inequality: smallest |grad L|^2 / L",
    needs=ALL,
    regime=["2", "late"],
)
def polyak_lojasiewicz(case: Correlated) -> Finding:
    r""":math:`|\nabla L|^2 > \frac{2 \eta_d k}{5 \eta_1} L`, down to losses of 1e-20.

    Which records are after T2 is told by their order, not by t.
    """
    if stuck := _stuck(case):
        return stuck
    late = after_departure(case)
    rates = [squared_gradient(case, found) / math.exp(found.log_loss) for found in late]
    bound = 2 * case.eta[-1] * case.k / (5 * case.eta[0])
    return at_least(min(rates), bound, 100 * case.tolerance * min(rates))


def _stuck(case: Correlated) -> Finding | None:
    """A run that ends for good at a positive loss contradicts every statement about its end."""
    if case.run.status is Status.STATIONARY:
        end = float(case.run.log_loss[-1])
        return holds(False, end, None, f"the flow ends for good at the log-loss {end:.4g}")
    if not after_departure(case):
        raise Unresolved("the run ends before T2; continue it")
    return None


@paper.claim(
    "R1",
    "derived: the loss ends with the rate 2 mu of the slowest mode (relative difference)",
    needs=["data", "1(i)", "balanced", "1(ii)", "flow"],
    regime=["late"],
)
def final_rate(case: Correlated) -> Finding:
    r""":math:`\mu` is the smallest eigenvalue of :math:`(I + v^* v^{*T}) H`.

    The rate is :math:`|\nabla L|^2 / L = -\dot L / L` at the moment where it is known best: before
    it faster modes and terms of order :math:`|v^* - v|` have not died out, after it the difference
    is the error of the run.
    """
    mu, measured, error = slowest_mode(case)
    gap = abs(measured / (2 * mu) - 1.0)
    # the limit network differs from a rank-1 one by O(scale), and so does its kernel
    spread = math.exp(min(case.bundle.log_max_angle(case.log_scale), 0.0))
    if spread > 0.1:
        raise Unresolved(
            f"the scale is too large: the bundle would end {spread:.2g} wide; a smaller decides"
        )
    note = f"mu = {mu:.6g}, between eta_d = {case.eta[-1]:.4g} and eta_1 = {case.eta[0]:.4g}"
    return at_most(gap, 1e-3 + spread, error, note=note)


def slowest_mode(case: Correlated) -> tuple[float, float, float]:
    """The slowest rate mu, the rate of the loss where it is known best, and its error there."""
    size = float(np.linalg.norm(case.teacher))
    unit = case.teacher / size
    rates, modes = np.linalg.eig(size * (np.eye(case.data.d) + np.outer(unit, unit)) @ case.H)
    order = np.argsort(rates.real)
    rates, modes = rates.real[order], modes.real[:, order]
    # modes are orthogonal in the inner product of H, so losses and decay rates add up
    weights = np.einsum("dk,de,ek->k", modes, case.H, modes)
    best: tuple[float, Moment] | None = None
    for found in second_phase(case):
        left = float(np.linalg.norm(found.error)) / size
        losses = np.linalg.solve(modes, found.error) ** 2 * weights
        impure = float((losses[1:] @ rates[1:]) / max(losses[0] * rates[0], 1e-300))
        error = impure + left + case.rtol / max(left, 1e-300)
        if best is None or error < best[0]:
            best = error, found
    if best is None:
        raise Unresolved("the run ends before the second phase; continue it")
    measured = squared_gradient(case, best[1]) / math.exp(best[1].log_loss)
    return float(rates[0]), measured, best[0]
