"""Section 2 of the paper: what every run of the flow conserves (O1 to O4)."""

from __future__ import annotations

import numpy as np

from reluflow.theory.orthogonal.assumptions import closing_times, recorded_coordinates
from reluflow.theory.orthogonal.case import Case
from reluflow.theory.orthogonal.measure import NOISE, log_outputs
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, at_most, holds
from reluflow.trajectory import Trajectory

CLAIMS = Claims()


@CLAIMS("O1", "balance a_j^2 - |w_j|^2 is constant (change over a_j^2)")
def o1(case: Case) -> Outcome:
    """Proposition 1; holds for any data, also from an unbalanced start."""
    worst = max(_imbalance(run) for run in case.flows)
    return at_most(worst, 1e-8)


@CLAIMS("O2", "output signs are constant and no pair becomes active (violations)")
def o2(case: Case) -> Outcome:
    """Signs need a balanced start, frozen activity orthonormal points."""
    if case.failures:
        raise NotApplicable("; ".join(case.failures))
    count = sum(_reversals(run) for run in case.flows)
    return holds(count == 0, measured=count)


@CLAIMS("O3", "the loss never increases (largest relative increment between records)")
def o3(case: Case) -> Outcome:
    """Holds for any data."""
    worst = max(float(np.diff(run.log_loss).max(initial=-np.inf)) for run in case.flows)
    return at_most(max(worst, 0.0), 1e-12)


@CLAIMS("O4", "neurons lose all points of the other sign before half the first jump time (time)")
def o4(case: Case) -> Outcome:
    """At a scale of 1e-50 or below, small enough for the smallest label of a wrong-sign point."""
    first = case.limit.times[0]
    wrong = case.active & ~case.masks
    if not wrong.any():
        raise NotApplicable("no neuron is active on a point of the other sign")
    expected = _expected_loss_time(case, wrong)
    L = max(case.L, 50.0 * np.log(10.0), 4.0 * expected / first)
    run = case.run_at(L)
    left = np.isinf(closing_times(run)[wrong])
    last = float(closing_times(run)[wrong].max())
    note = f"at log(1/lambda) = {L:.4g}; about {expected:.3g} expected from the labels"
    if left.any():
        return holds(False, measured=int(left.sum()), note=f"{int(left.sum())} pairs stay; {note}")
    return at_most(last, 0.5 * L * first, note=note)


def _imbalance(run: Trajectory) -> float:
    norms = np.linalg.norm(run.states["W"], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        hidden = np.log(norms) + run.states["log_scale"]
        outputs = log_outputs(run)
        now = -np.expm1(2.0 * (hidden - outputs))
        before = now[0] * np.exp(2.0 * (outputs[0] - outputs))
    change = np.abs(now - before)
    return float(change[np.isfinite(change)].max(initial=0.0))


def _reversals(run: Trajectory) -> int:
    """Sign changes, events that activate, and recorded coordinates that came back to life."""
    flips = int((np.sign(run.states["a"]) != np.sign(run.states["a"][0])).any(axis=0).sum())
    events = int(np.isin(run.events["kind"], ("activate", "flip")).sum())
    c, _ = recorded_coordinates(run)
    closed = closing_times(run)
    inactive = (closed[None] <= run.t[:, None, None]) | (c < -NOISE)
    revived = np.logical_or.accumulate(inactive, axis=0) & (c > NOISE)
    return flips + events + int(revived.any(axis=0).sum())


def _expected_loss_time(case: Case, wrong: np.ndarray) -> float:
    """``log(1 + g_j/(kappa |y_i|))/g_j``, or ``1/(kappa |y_i|)`` for a neuron without growth."""
    y = np.abs(case.data.y)
    g = case.kappa * np.sqrt(case.masks @ y**2)
    j, i = np.nonzero(wrong)
    rate = case.kappa * y[i]
    growing = g[j] > 0.0
    safe = np.where(growing, g[j], 1.0)
    return float(np.where(growing, np.log1p(safe / rate) / safe, 1.0 / rate).max())
