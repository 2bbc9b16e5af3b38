"""Claims about the paper's experiments: descent against flow (GD), slope of Figure 1 (F1)."""

from __future__ import annotations

import math

import numpy as np

from reluflow.geometry import max_angle
from reluflow.limits.hypotheses import common_scale
from reluflow.theory.correlated.case import Case
from reluflow.theory.correlated.hypotheses import require
from reluflow.theory.correlated.limits import distance, slope
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Unresolved, at_least, at_most
from reluflow.trajectory import Trajectory

CLAIMS = Claims()
STOP = math.log(5e-10)  # a mean squared error of 1e-9
HALVINGS = 4


@CLAIMS("GD", "descent follows the flow with an error O(lr): log-log slope")
def descent_follows(case: Case) -> Outcome:
    """Distance of descent to the flow when half of the loss is learned, for halved steps.

    Crossings fall on the grid of steps, so the error is not exactly proportional to the step.
    """
    scale = max(case.log_scale, math.log(1e-3))
    flow = case.started(scale)
    log_half = float(flow.log_loss[0]) - math.log(2.0)
    if flow.log_loss[-1] > log_half:
        raise NotApplicable("the flow does not learn half of the loss")
    k = int(np.flatnonzero(flow.log_loss <= log_half)[0])
    t, there = float(flow.t[k]), flow.network(k)
    first = math.ceil(t * 10.0 * float(np.linalg.eigvalsh(case.data.gram)[-1]) / case.data.n)
    steps = [first * 2**power for power in range(HALVINGS)]
    if steps[-1] * case.data.n * case.net.width > 2e9:
        raise NotApplicable(f"{steps[-1]} steps of descent are too many for a check")
    errors = []
    for count in steps:
        run = case.subject.descend(
            case.data, case.at_scale(scale), lr=t / count, steps=count, record=2
        )
        errors.append(math.log(distance(run.final, there)))
    found = slope([-math.log(count) for count in steps], errors)
    note = f"error {math.exp(errors[-1]):.2g} at lr = {t / steps[-1]:.3g}, ln(scale) = {scale:.3g}"
    return at_least(found, 0.7, note=note)


@CLAIMS("F1", "largest angles below one degree are proportional to the scale: |slope - 1|")
def tail_slope(case: Case) -> Outcome:
    """The tail of Figure 1: training stops at a mean squared error of 1e-9."""
    require(case, "1(i)", "1(ii)", "1(iv)")
    if len(case.positive) < 2:
        raise NotApplicable("J+ has one neuron only")
    runs = [run for run in case.subject.runs if _final_log_angle(case, run) < _DEGREE]
    if len(runs) < 3:
        top = _DEGREE - case.bundle.log_angle_slope - math.log(4.0)
        scales = [top - power * math.log(4.0) for power in range(4)]
        runs = [case.started(scale, rtol=1e-8, stop=STOP) for scale in scales]
    angles = [_final_log_angle(case, run) for run in runs]
    if max(angles) > _DEGREE:
        raise Unresolved(f"an angle is {math.degrees(math.exp(max(angles))):.3g} degrees")
    x = [common_scale(run.net)[0] for run in runs]
    found = slope(x, angles)
    return at_most(abs(found - 1.0), 0.02, note=f"slope {found:.6g} over {len(runs)} scales")


_DEGREE = math.log(math.radians(1.0))


def _final_log_angle(case: Case, run: Trajectory) -> float:
    if run.engine == "flow":
        return run.log_max_angle(float(run.t[-1]), case.positive)
    angle = max_angle(run.final, case.positive)
    return math.log(angle) if angle > 0 else -math.inf
