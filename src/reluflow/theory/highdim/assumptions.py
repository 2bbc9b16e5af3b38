"""Assumptions A1 to A3 of the paper, and the hypotheses on step and start."""

from __future__ import annotations

import numpy as np

from reluflow.theory.highdim.case import HOPELESS, SURE, Case
from reluflow.theory.highdim.hypotheses import LARGEST_C, SMALL_START
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Verdict,
    at_least,
    at_most,
    holds,
)

ASSUMPTIONS = Claims()


@ASSUMPTIONS("A1", "labels are bounded away from zero: smallest |y|")
def a1(case: Case) -> Outcome:
    """Non-zero labels; the ratio of the largest to the smallest enters A2."""
    least, most = float(case.size.min()), float(case.size.max())
    if least == 0.0:
        zero = int(np.flatnonzero(case.size == 0.0)[0])
        return Outcome(Verdict.FAIL, 0.0, 0.0, f"the label of point {zero} is zero")
    return Outcome(Verdict.PASS, least, 0.0, f"y_max/y_min = {most / least:.4g}")


@ASSUMPTIONS("A2", "dimension is high: |G - l1 I| sqrt(n) y_max/(l1 y_min)")
def a2(case: Case) -> Outcome:
    """The surrogate: below 1/4 it holds; where a ratio is below 1 it fails; between it is open."""
    note = {
        Verdict.PASS: "",
        Verdict.FAIL: "a ratio of A2 is below 1" if case.ratios else f"above {HOPELESS:g}",
    }.get(case.dimension, "open: the constant of A2 is not known")
    return Outcome(case.dimension, case.surrogate, SURE, note)


@ASSUMPTIONS("A2a", "d_2 is above n^2 (y_max/y_min)^2, up to a constant of at least 1")
def a2a(case: Case) -> Outcome:
    """First ratio of A2; below 1 it fails whatever the constant."""
    return _ratio(case, 0)


@ASSUMPTIONS("A2b", "d_inf is above n^(3/2) y_max/y_min, up to a constant of at least 1")
def a2b(case: Case) -> Outcome:
    """Second ratio of A2; below 1 it fails whatever the constant."""
    return _ratio(case, 1)


def _ratio(case: Case, which: int) -> Outcome:
    if case.ratios is None:
        raise NotApplicable("the covariance of these data is not known, or a label is zero")
    return at_least(case.ratios[which], 1.0, note="necessary; the paper's constant is not known")


@ASSUMPTIONS(
    "A3", "every point has a neuron of its own with the sign of its label (points without)"
)
def a3(case: Case) -> Outcome:
    """For more than two neurons: the start names an owner for each point."""
    if case.m <= 2:
        raise NotApplicable("asked of more than two neurons only")
    claimed = (case.own & (case.P0 > 0.0)).sum(axis=0)
    return holds(
        bool((claimed == 1).all()),
        measured=float((claimed != 1).sum()),
        note=f"{int((claimed == 0).sum())} points without, {int((claimed > 1).sum())} with several",
    )


@ASSUMPTIONS("step", "the step is 1/(C l1) with C of order one, and eta mu_max is at most 1")
def step(case: Case) -> Outcome:
    """Two-sided: the proofs need a first step that switches wrong points off."""
    top = case.eta * float(case.spectrum[-1])
    note = f"eta mu_max = {top:.4g}"
    if top > 1.0 + 1e-9:
        return Outcome(Verdict.FAIL, top, 1.0, "eta mu_max is above 1")
    return at_most(case.C, LARGEST_C, note=note)


@ASSUMPTIONS("start", "pre-activations at the start are positive and small beside the first kick")
def start(case: Case) -> Outcome:
    """For one and two neurons: in units of ``(eta l1) y_min``."""
    if case.m > 2:
        raise NotApplicable("more than two neurons start from an assignment (A3)")
    if not (case.P0 > 0.0).all():
        off = int((case.P0 <= 0.0).sum())
        return Outcome(Verdict.FAIL, float(case.P0.min()), 0.0, f"{off} pairs start inactive")
    if not (case.size > 0.0).all():
        raise NotApplicable("A1 fails: a label is zero")
    return at_most(float(case.P0.max()) * case.C / float(case.size.min()), SMALL_START)
