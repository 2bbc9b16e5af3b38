"""HD-18 to HD-20: how the distance of Theorem 2 scales with dimension, size and step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.claims import THEOREM
from reluflow.papers.highdim.draws import Problem
from reluflow.papers.highdim.law import kick, kick_error
from reluflow.papers.highdim.minimum import distance_to_shortest
from reluflow.papers.highdim.paper import paper
from reluflow.theory.fits import Fit, line
from reluflow.theory.verdicts import Finding, at_most, undecided

STEPS = (2.0, 4.0, 8.0, 32.0, 128.0)


def slope_of(groups: dict[int, list[float]]) -> Fit:
    """Log-log line through the geometric means of each group, with its error."""
    keys = sorted(groups)
    means = [float(np.mean(np.log(groups[key]))) for key in keys]
    return line(np.log(np.array(keys, dtype=np.float64)), means)


@paper.claim(
    "HD-18",
    "the distance falls with dimension: |slope against d + 1/2|",
    needs=["several d", "each"],
    regime=["each high"],
)
def hd18(case: HighDim) -> Finding:
    """The runs given, which differ in d alone."""
    return _slope(case.gaps_by("d"), -0.5)


@paper.claim(
    "HD-19",
    "the distance grows with the number of points: |slope against n - 1/2|",
    needs=["several n", "each"],
    regime=["each high"],
)
def hd19(case: HighDim) -> Finding:
    """The runs given, which differ in n alone."""
    return _slope(case.gaps_by("n"), 0.5)


def _slope(groups: dict[int, list[float]], expected: float) -> Finding:
    """Within 0.05, by three standard errors."""
    found = slope_of(groups)
    note = f"slope {found.slope:.4f} +- {2 * found.error:.2g}"
    return at_most(abs(found.slope - expected), 0.05, 3.0 * found.error, note=note)


@paper.claim(
    "HD-20",
    "the distance is proportional to the step: spread of distance x C for C up to 8",
    needs=[*THEOREM, "one", "start", "start at 8", "both signs", "law"],
    regime=["A2"],
)
def hd20(case: HighDim) -> Finding:
    """The subject's data and start with C = 2, 4, 8 and, for the fall to zero, 32 and 128.

    Distances are divided by their leading order, which knows the start.
    """
    sign, gaps = float(case.s[0]), {}
    for C in STEPS:
        own = abs(C - case.C) <= 1e-9 * C
        other = Problem(case.data, case.net, 1.0 / (C * case.l1))
        run = case.limit if own else case.run_of(other)
        gaps[C] = distance_to_shortest(case.data, run.final.flat().W[0] - case.apart[0], sign)
    scaled = [gaps[C] / kick(case, 0, C) for C in STEPS[:3]]
    errors = [kick_error(case, 0, C) / kick(case, 0, C) for C in STEPS[:3]]
    falling = all(later < earlier for earlier, later in pairwise(gaps.values()))
    spread = max(scaled) / min(scaled) - 1.0 if falling else float("inf")
    note = "distances " + ", ".join(f"{gap:.3g} (C={C:g})" for C, gap in gaps.items())
    if 0.25 < spread < np.inf and (np.abs(np.array(scaled) - 1.0) <= errors).all():
        told = f"products of points may move them by {max(errors):.3g} of it"
        return undecided(spread, 0.25, f"{note}; {told}; a higher dimension would decide")
    return at_most(spread, 0.25, note=note)
