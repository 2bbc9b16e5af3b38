"""Claims about the paper's experiments: descent against flow (GD), slope of Figure 1 (F1)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from reluflow.dataset import Dataset
from reluflow.geometry import max_angle
from reluflow.limits.hypotheses import common_scale
from reluflow.network import Network
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims.limits import distance
from reluflow.papers.correlated.paper import paper
from reluflow.theory.fits import line, share_at_least
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import (
    Finding,
    Unresolved,
    Verdict,
    at_least,
    at_most,
    holds,
    verdict_of,
)
from reluflow.trajectory import Status, Trajectory

STOP = math.log(5e-10)  # a mean squared error of 1e-9
HALVINGS = 4
DRAWS = 100
NEURONS = 20_000  # that are drawn where starts alone do not decide


@paper.claim(
    "GD",
    "descent follows the flow with an error O(lr): log-log slope",
    needs=["balanced", "1(ii)"],
)
def descent_follows(case: Correlated) -> Finding:
    """Distance of descent to the flow when half of the loss is learned, for halved steps.

    Crossings fall on the grid of steps, so the error is not exactly proportional to the step.
    """
    scale = max(case.log_scale, math.log(1e-3))
    flow = case.started(scale)
    log_half = float(flow.log_loss[0]) - math.log(2.0)
    if flow.log_loss[-1] > log_half:
        raise Unresolved("the flow does not learn half of the loss; continue it")
    k = int(np.flatnonzero(flow.log_loss <= log_half)[0])
    t, there = float(flow.t[k]), flow.network(k)
    curvature = float(np.linalg.eigvalsh(case.data.gram)[-1]) / case.data.n
    first = math.ceil(10.0 * t * max(curvature * max(1.0, there.squared_norm), case.k))
    steps = [first * 2**power for power in range(HALVINGS)]
    if steps[-1] * case.data.n * case.net.width > 2e9:
        raise Unresolved(
            f"{steps[-1]} steps of descent are too many for a check; fewer neurons decide"
        )
    errors = []
    for count in steps:
        run = case.subject.descend(
            case.data, case.at_scale(scale), lr=t / count, steps=count, record=2
        )
        errors.append(math.log(distance(run.final, there)))
    found = line([-math.log(count) for count in steps], errors).slope
    note = f"error {math.exp(errors[-1]):.2g} at lr = {t / steps[-1]:.3g}, ln(scale) = {scale:.3g}"
    return at_least(found, 0.7, note=note)


@paper.claim(
    "F1",
    "largest angles below one degree are proportional to the scale: |slope - 1|",
    needs=["1(i)", "balanced", "1(ii)", "1(iv)", "correlated", "pair"],
    regime=["late"],
)
def tail_slope(case: Correlated) -> Finding:
    """The tail of Figure 1: training stops at a mean squared error of 1e-9.

    Larger scales, on the plateau of the figure, may end anywhere.
    """
    for run in case.subject.runs:
        tail = case.bundle.log_max_angle(common_scale(run.net)[0]) < _DEGREE
        if tail and run.status is Status.STATIONARY:
            end = float(run.log_loss[-1])
            return holds(False, end, None, f"a run ends for good at the log-loss {end:.4g}")
    runs = [run for run in case.subject.runs if _final_log_angle(case, run) < _DEGREE]
    if len(runs) < 3:
        top = _DEGREE - case.bundle.log_angle_slope - math.log(4.0)
        scales = [top - power * math.log(4.0) for power in range(4)]
        runs = [case.started(scale, rtol=1e-8, stop=STOP) for scale in scales]
    angles = [_final_log_angle(case, run) for run in runs]
    if max(angles) > _DEGREE:
        raise Unresolved(
            f"an angle is {math.degrees(math.exp(max(angles))):.3g} degrees; smaller scales decide"
        )
    x = [common_scale(run.net)[0] for run in runs]
    found = line(x, angles).slope
    return at_most(abs(found - 1.0), 0.02, note=f"slope {found:.6g} over {len(runs)} scales")


_DEGREE = math.log(math.radians(1.0))


def _final_log_angle(case: Correlated, run: Trajectory) -> float:
    if run.engine == "flow":
        return run.log_max_angle(float(run.t[-1]), case.positive)
    angle = max_angle(run.final, case.positive)
    return math.log(angle) if angle > 0 else -math.inf


@paper.claim(
    "T9",
    "a random start satisfies 1(ii) with probability at least 1 - (3/4)^m: share of draws",
    needs=["data", "1(i)"],
)
def random_start(case: Correlated) -> Finding:
    """Over draws of the subject's own generator, by starts and by neurons.

    Neurons are independent, and one of J+ suffices: where each is in J+ with probability at least
    1/4 the bound holds. Starts alone decide nothing where the bound is nearly 1.
    """
    cases = [Correlated(paper, subject_of(pair, None)) for pair in case.draw(DRAWS)]
    starts = share_at_least(
        sum(drawn.met("1(ii)") for drawn in cases), len(cases), 1.0 - 0.75**case.net.width
    )
    if verdict_of(starts) is not Verdict.UNRESOLVED:
        return starts
    drawn = case.draw(min(2000, 1 + NEURONS // case.net.width))
    inside = sum(_in_bundle(*pair) for pair in drawn)
    total = sum(net.width for _, net in drawn)
    neurons = share_at_least(inside, total, 0.25, "neurons in J+, at least 1/4 of them")
    return replace(neurons, note=f"{starts.note}; {neurons.note}")


def _in_bundle(data: Dataset, net: Network) -> int:
    """How many neurons are in J+."""
    active = (net.mantissa.W @ data.X.T > 0.0).any(axis=1)
    return int((active & (net.signs > 0.0)).sum())
