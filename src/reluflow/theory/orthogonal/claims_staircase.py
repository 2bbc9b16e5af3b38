"""Sections 3 and 4: saddles, plateaus, order and times of the jumps (O5 to O9)."""

from __future__ import annotations

import numpy as np

from reluflow.theory.orthogonal.case import RTOL, SMALL, Case
from reluflow.theory.orthogonal.measure import coordinates, gradient_norm, network_at
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Unresolved, at_most, holds

CLAIMS = Claims()
NEAR_TIE = 5.0  # nats: rivals closer than this may jump in the other order at a finite scale
SHARP_GAP = 0.05  # gap of exponents at a jump above which sharp times are good at 1e-100


@CLAIMS("O5", "plateaus are saddles: gradient zero, h = y on fitted points, h = 0 on the others")
def o5(case: Case) -> Outcome:
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


@CLAIMS("O6", "plateau loss is kappa/2 times the unfitted squares (error over the loss at 0)")
def o6(case: Case) -> Outcome:
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


@CLAIMS("O7", "the groups reach half their norm in the order of the limit process (inversions)")
def o7(case: Case) -> Outcome:
    """On the deepest run of the flow; near ties leave the order open at a finite scale."""
    process, run = case.limit, case.flows[0]
    L = -float(run.net.log_norms.max())
    if L <= 0.0:
        raise NotApplicable("the start is not small: there is no staircase to put in order")
    gaps = process.margins * process.norms * process.kappa * L
    if (gaps <= NEAR_TIE).any():
        k = int(np.argmin(gaps))
        raise Unresolved(
            f"near tie at jump {k}: its rival is {gaps[k]:.3g} nats behind at this scale, "
            f"{NEAR_TIE:g} are needed for a firm order"
        )
    times = case.measured_half_times(run)
    inversions = int((np.diff(times) <= 0.0).sum())
    note = f"{len(times)} jumps at log(1/lambda) = {L:.4g}"
    return holds(inversions == 0, measured=inversions, note=note)


@CLAIMS(
    "O8", "jump times: slope of T_k in log(1/lambda) is t_k (relative gap); T_k/L - t_k = C_k/L"
)
def o8(case: Case) -> Outcome:
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


@CLAIMS("O9", "half times equal the sharp prediction (largest difference, in units of time)")
def o9(case: Case) -> Outcome:
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
