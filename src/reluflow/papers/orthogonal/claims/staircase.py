"""Sections 3 and 4: saddles, plateaus, order and times of the jumps (O5 to O9, O33 to O35)."""

from __future__ import annotations

import numpy as np

from reluflow.network import Network
from reluflow.papers.orthogonal.case import RTOL, SMALL, Orthogonal
from reluflow.papers.orthogonal.claims import LIMIT, ORDER, PROCESS
from reluflow.papers.orthogonal.measure import (
    coordinates,
    gradient_norm,
    half_time,
    network_at,
)
from reluflow.papers.orthogonal.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds

NEAR_TIE = 5.0  # nats: rivals closer than this may jump in the other order at a finite scale
ESCAPES, QUIET = (1e-2, 1e-4, 1e-8), 20.0  # shares of the norm; units of growth before
SHARP_GAP = 0.05  # gap of exponents at a jump above which sharp times are good at 1e-100


@paper.claim(
    "O5",
    "identity: plateaus are saddles: gradient zero, h = y on fitted points, h = 0 on the others",
    needs=PROCESS,
)
def o5(case: Orthogonal) -> Finding:
    """Largest of the three, over the size of the labels, over all plateaus."""
    process, X, y = case.process, case.data.X, case.data.y
    size = float(np.linalg.norm(y))
    worst = 0.0
    for k in range(len(process.times) + 1):
        net = process.saddle(k)
        c = coordinates(net, X) * np.exp(net.log_norms)[:, None]
        target = np.zeros_like(y)
        for points in process.fitted[:k]:
            target[points] = y[points]
        gap = np.abs(net.a @ np.maximum(c, 0.0) - target).max() / size
        slope = gradient_norm(net, X, y, case.kappa) / (case.kappa * size**1.5)
        worst = max(worst, float(gap), slope)
    return at_most(worst, 1e-12)


@paper.claim(
    "O6",
    "plateau loss is kappa/2 times the unfitted squares (error over the loss at 0)",
    needs=LIMIT,
)
def o6(case: Orthogonal) -> Finding:
    """The process exactly; the flow in the middle of each plateau to 100 lambda^delta."""
    process = case.limit
    unfitted = np.ones(case.data.n, dtype=bool)
    exact = []
    for points in [np.empty(0, dtype=np.intp), *process.fitted]:
        unfitted[points] = False
        exact.append(0.5 * case.kappa * float((case.data.y[unfitted] ** 2).sum()))
    start = exact[0]
    if np.abs(process.losses - exact).max() > 1e-13 * start:
        gap = float(np.abs(process.losses - exact).max())
        return at_most(gap / start, 1e-13, note="the limit process itself")
    run, L = case.deep_run, case.deep
    worst, bound, counted = 0.0, 1.0, 0
    for k, t in enumerate(case.middles(case.deep_half_times)):
        allowed = 1e-8 + 100.0 * np.exp(-L * process.rate(float(t) / L))
        if allowed > 0.01:
            continue  # two jumps close in time: there is no plateau between them
        h = network_at(run, float(t)).predict(case.data.X)
        error = abs(case.loss.value(h, case.data.y) - exact[k]) / start
        counted += 1
        if counted == 1 or error / allowed > worst / bound:
            worst, bound = error, allowed
    note = f"flow at log(1/lambda) = {L:.4g}, {counted} of {len(exact)} plateaus are long enough"
    return at_most(worst, bound, note=note)


@paper.claim(
    "O7",
    "the groups reach half their norm in the order of the limit process (inversions)",
    needs=[*ORDER, "small"],
)
def o7(case: Orthogonal) -> Finding:
    """On the deepest run of the flow; a rival that shares points may win at a finite scale, and
    then a run deep enough is started where points are orthonormal to rounding.

    Groups without a common point do not disturb each other, so the order of two of them is asked
    for only where their sharp times are further apart than a near tie.
    """
    process, run = case.limit, case.flows[0]
    L = -float(run.net.log_norms.max())
    closest = float((case.gaps * L).min())
    if closest <= NEAR_TIE and case.exact and case.subject.engines is not None:
        run, L = case.deep_run, case.deep
    elif closest <= NEAR_TIE:
        k = int(np.argmin(case.gaps))
        raise Unresolved(
            f"near tie at jump {k}: a rival on its points is {closest:.3g} nats behind at this "
            f"scale, {NEAR_TIE:g} are needed for a firm order; log(1/lambda) above "
            f"{NEAR_TIE / float(case.gaps[k]):.3g} would decide"
        )
    times = case.measured_half_times(run)
    apart = NEAR_TIE / (process.kappa * float(process.norms.min()))
    firm = np.diff(process.sharp_times(-L)) > apart
    inversions = int(((np.diff(times) <= 0.0) & firm).sum())
    note = f"{len(times)} jumps at log(1/lambda) = {L:.4g}, {int(firm.sum())} steps of firm order"
    return holds(inversions == 0, inversions, 0.0, note)


@paper.claim(
    "O8",
    "jump times: slope of T_k in log(1/lambda) is t_k (relative gap); T_k/L - t_k = C_k/L",
    needs=LIMIT,
)
def o8(case: Orthogonal) -> Finding:
    """The slow rate: the offset C_k is constant, so T_k/L errs by 1/log(1/lambda)."""
    process = case.limit
    first, second = case.deep_half_times, case.deeper_half_times
    quotient = (second - first) / case.deep
    offsets = first - case.deep * process.times
    largest = float(offsets[np.argmax(np.abs(offsets))])
    note = (
        f"log(1/lambda) = {case.deep:.4g} and twice that; largest offset C_k = {largest:.4g}, "
        f"so T_k/L misses t_k by {abs(largest) / case.deep:.2g}"
    )
    return at_most(float(np.abs(quotient / process.times - 1.0).max()), 1e-6, note=note)


@paper.claim(
    "O9",
    "half times equal the sharp prediction (largest difference, in units of time)",
    needs=LIMIT,
)
def o9(case: Orthogonal) -> Finding:
    """At scale 1e-100 if exponents are 5 % apart at every jump, otherwise at a deeper one."""
    process = case.limit
    L = max(SMALL, case.L) if (case.gaps >= SHARP_GAP).all() else case.deep
    times = case.measured_half_times(case.run_at(L))
    # large times are known to the accuracy of the run
    bound = max(1e-6, RTOL * float(times.max()))
    worst = float(np.abs(times - process.sharp_times(-L)).max())
    closest = float(case.gaps.min()) * L
    apart = f", closest rival {closest:.3g} nats behind" if np.isfinite(closest) else ""
    return at_most(worst, bound, note=f"{len(times)} jumps at log(1/lambda) = {L:.4g}{apart}")


@paper.claim(
    "O35",
    "derived, for escapes (B.2): squared norm eps Y_k at T_k - log(1/eps - 1)/(2 g) (time)",
    needs=LIMIT,
)
def o35(case: Orthogonal) -> Finding:
    """When a group leaves the saddle, at shares of its norm down to 1e-8.

    Asked where it has turned to its points by then: no jump for 20 units of its growth before.
    """
    process, run, times = case.limit, case.deep_run, case.deep_half_times
    worst, counted = 0.0, 0
    for k, (group, Y) in enumerate(zip(process.groups, process.norms, strict=True)):
        g = process.kappa * float(Y)
        quiet = times[k] - max(times[times < times[k]].max(initial=0.0), 0.0)
        for share in ESCAPES:
            ahead = float(np.log(1.0 / share - 1.0)) / (2.0 * g)
            if (quiet - ahead) * g > QUIET:
                found = half_time(run, group, float(Y), share)
                worst = max(worst, abs(found - (times[k] - ahead)))
                counted += 1
    if not counted:
        raise Unresolved("no jump is far enough behind the others; a deeper run decides")
    bound = max(1e-6, RTOL * float(times.max()))
    return at_most(worst, bound, note=f"{counted} escapes at log(1/lambda) = {case.deep:.4g}")


@paper.claim(
    "O33",
    "identity: every plateau but the last is a saddle: growth rate of the next group (least)",
    needs=LIMIT,
)
def o33(case: Orthogonal) -> Finding:
    """The loss falls along the next jumper: its second derivative there, measured on the loss."""
    process, X, y = case.limit, case.data.X, case.data.y
    least = np.inf
    for k, points in enumerate(process.fitted):
        net, j = process.saddle(k).flat(), int(process.groups[k][0])
        along = np.zeros(case.data.d)
        along += np.abs(y[points]) @ X[points]
        step = 1e-3 * np.sqrt(process.norms[k])
        a, W = net.a.copy(), net.W.copy()
        a[j], W[j] = process.signs[j] * step, step * along / np.linalg.norm(along)
        now = case.loss.value(net.predict(X), y)
        then = case.loss.value(Network(a, W).predict(X), y)
        least = min(least, (now - then) / (step**2 * process.kappa * float(process.norms[k])))
    return at_least(least, 0.5, note="in units of kappa Y; 1 for an infinitesimal step")


@paper.claim(
    "O34",
    "during a jump residuals on its points follow 1/(1 + exp(2 g (T - T_k))) (largest gap)",
    needs=LIMIT,
)
def o34(case: Orthogonal) -> Finding:
    """At times around each half time, where no rival is near and neighbours are far."""
    for L in case.depths():
        worst, counted = _during(case, L)
        if counted:
            return at_most(worst, 1e-4, 100.0 * case.error, note=f"{counted} jumps at L = {L:.4g}")
    raise Unresolved("no jump is far enough from the others; a deeper run decides")


def _during(case: Orthogonal, L: float) -> tuple[float, int]:
    """Largest gap of residuals during jumps, and how many jumps are apart from the others."""
    process, run = case.limit, case.run_at(L)
    times, worst, counted = case.measured_half_times(run), 0.0, 0
    for k, (T, points) in enumerate(zip(times, process.fitted, strict=True)):
        g = process.kappa * float(process.norms[k])
        others = np.delete(times, k)
        if len(others) and float(np.abs(others - T).min()) * g < 20.0:
            continue
        for shift in (-2.0, -1.0, 0.0, 1.0, 2.0):
            h = network_at(run, T + shift / g).predict(case.data.X)[points]
            expected = 1.0 / (1.0 + np.exp(2.0 * shift))
            worst = max(worst, float(np.abs(1.0 - h / case.data.y[points] - expected).max()))
        counted += 1
    return worst, counted
