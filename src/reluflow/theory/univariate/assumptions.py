"""The hypotheses of the univariate paper, one row each."""

from __future__ import annotations

import numpy as np

from reluflow.losses import Square
from reluflow.theory.univariate.case import LEVEL, Case, is_flow
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    at_least,
    at_most,
    holds,
)

assumptions = Claims()

_FEWEST = 16


@assumptions("A1", "Points on the line with a bias, (x, 1), and labels -1 or 1")
def _on_the_line(case: Case) -> Outcome:
    note = "" if case.is_line else f"points have {case.subject.data.d} coordinates, or no bias"
    return holds(case.is_line and case.is_classification, note=note)


@assumptions("A2", "All inputs differ (Theorem 4.2): smallest gap above 0")
def _distinct(case: Case) -> Outcome:
    gap = float(np.diff(case.x).min()) if case.data.n > 1 else np.inf
    return holds(gap > 0.0, measured=gap)


@assumptions("A3", "Labels are signs of the teacher (Assumption 2.2): labels that differ")
def _teacher_labels(case: Case) -> Outcome:
    zeros = int(np.count_nonzero(case.teacher_values == 0.0))
    note = f"teacher of width {case.teacher.width}, {case.switches} label switches in the sample"
    if zeros:
        note += f"; the teacher is exactly 0 (label -1) at {zeros} points"
    return at_most(case.wrong_labels, 0, note=note)


@assumptions("A4", "Normal independent start (Assumption 2.1): p-value of a test")
def _normal_start(case: Case) -> Outcome:
    start = case.start
    if start.width < _FEWEST:
        raise Unresolved(f"{start.width} neurons are too few for a test of their law")
    note = "Kolmogorov-Smirnov; a pass says that nothing speaks against it"
    return at_least(case.start_p_value, LEVEL, note=note)


@assumptions("A5a", "Theorem 3.1: width k >= 6144 R^4 log(24 r/delta)/rho")
def _wide_enough(case: Case) -> Outcome:
    return at_least(case.start.width, case.required.width, note=_numbers(case))


@assumptions("A5b", "Theorem 3.1: sigma_h >= 4200 n^2 C R^3.5 sqrt(r k)/(delta rho)")
def _hidden_scale(case: Case) -> Outcome:
    error, estimated = _sampling(case, 0, case.sigma_hidden, case.start.W.size)
    found = at_least(case.sigma_hidden, case.required.sigma_hidden, error=error, note=estimated)
    if case.density is None and found.verdict == "PASS":
        raise Unresolved("the density is not given; the bound used C = 1/(2R), the least possible")
    return found


@assumptions("A5c", "Theorem 3.1: sigma_o <= 1/(4 k R sigma_h log(6 k/delta))")
def _output_scale(case: Case) -> Outcome:
    error, estimated = _sampling(case, 1, case.sigma_output, case.start.width)
    return at_most(case.sigma_output, case.required.sigma_output, error=error, note=estimated)


def _sampling(case: Case, layer: int, sigma: float, count: int) -> tuple[float, str]:
    """Two standard errors of an estimated deviation, none of a given one."""
    if case.sigmas[layer] is not None:
        return 0.0, ""
    return 2.0 * sigma / float(np.sqrt(2 * count)), "estimated from the weights"


def _numbers(case: Case) -> str:
    return (
        f"r={case.teacher.width}, R={case.radius:.4g}, rho={case.shortest_stretch:.4g}, "
        f"C={case.density_bound:.4g}, n={case.data.n}, delta={case.delta:g}"
    )


@assumptions("A6", "Theorem 4.1: the loss falls below loss(0)/n (log of the smallest loss)")
def _threshold(case: Case) -> Outcome:
    run = case.run
    if isinstance(run.loss_function, Square):
        raise NotApplicable("needs the exponential or logistic loss (A7 fails)")
    bound = case.log_threshold
    note = (
        "printed as 1/n, which does not separate points for the logistic loss; loss(0)/n does"
        if run.loss_function.name == "logistic"
        else "for the exponential loss loss(0)/n is the printed 1/n"
    )
    return at_most(float(run.log_loss.min()), float(np.nextafter(bound, -np.inf)), note=note)


@assumptions("A7", "Exponential or logistic loss")
def _classification_loss(case: Case) -> Outcome:
    wrong = [run.loss_function.name for run in case.runs if isinstance(run.loss_function, Square)]
    return holds(not wrong, note="the square loss has no margin" if wrong else "")


@assumptions("A8", "Gradient flow, both layers trained")
def _gradient_flow(case: Case) -> Outcome:
    other = [run.engine for run in case.runs if not is_flow(run)]
    return holds(not other, note="descent, or one layer fixed: an experiment" if other else "")
