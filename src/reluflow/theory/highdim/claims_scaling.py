"""HD-18 to HD-20: how the distance of Theorem 2 scales with dimension, size and step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from reluflow.checks import Array
from reluflow.networks import by_preactivations
from reluflow.theory.highdim.case import LIMITS, Case
from reluflow.theory.highdim.draws import Problem, positive_start
from reluflow.theory.highdim.hypotheses import need_labels
from reluflow.theory.highdim.minimum import distance_to_shortest
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, at_most
from reluflow.trajectory import Trajectory

CLAIMS = Claims()
SEEDS = 6


def slope(x: Sequence[float], values: Sequence[float]) -> float:
    """Least-squares slope of log(value) against log(x)."""
    return float(np.polyfit(np.log(x), np.log(values), 1)[0])


def _constant(case: Case) -> float:
    """The subject's C where the law holds, else 2."""
    return case.C if 1.0 < case.C <= 4.0 else 2.0


def _mean_gap(case: Case, n: int, d: int) -> float:
    """Geometric mean over draws of the distance in units of the negatives' root mean square."""
    logs = []
    for seed in range(SEEDS):
        problem = positive_start(n, d, constant=_constant(case), seed=seed)
        gap = distance_to_shortest(problem.data, case.run_of(problem).final.flat().W[0])
        logs.append(np.log(gap / _rms(problem.data.y[problem.data.y < 0.0])))
    return float(np.exp(np.mean(logs)))


def _rms(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))


def _given(case: Case, axis: str) -> dict[int, list[float]]:
    """Distances of the runs given, by n or by d, if they differ in that alone."""
    runs = [run for run in case.subject.runs if run.engine == "descent" and run.status in LIMITS]
    sizes = [(run.data.n, run.data.ambient_dim or run.data.d) for run in runs]
    keys = [size[0] if axis == "n" else size[1] for size in sizes]
    others = {size[1] if axis == "n" else size[0] for size in sizes}
    if len(set(keys)) < 3 or len(others) != 1:
        return {}
    found: dict[int, list[float]] = {}
    for key, run in zip(keys, runs, strict=True):
        found.setdefault(key, []).append(_gap_of(run))
    return found


def _gap_of(run: Trajectory) -> float:
    W, sign = run.final.flat().W[0], float(run.net.signs[0])
    labels = sign * run.data.y
    if not (labels > 0.0).any() or not (labels < 0.0).any():
        raise NotApplicable("a run has labels of one sign only")
    return distance_to_shortest(run.data, W, sign) / _rms(labels[labels < 0.0])


def _means(found: dict[int, list[float]]) -> tuple[list[int], list[float]]:
    keys = sorted(found)
    return keys, [float(np.exp(np.mean(np.log(found[key])))) for key in keys]


@CLAIMS("HD-18", "the distance falls with dimension: |slope against d + 1/2|")
def hd18(case: Case) -> Outcome:
    """Same n, step constant and start; d from 100 n to 6400 n, or the runs given."""
    given = _given(case, "d")
    n = min(max(case.n, 4), 16)
    sizes = [100 * n, 400 * n, 1600 * n, 6400 * n]
    d, gaps = _means(given) if given else (sizes, [_mean_gap(case, n, d) for d in sizes])
    found = slope(d, gaps)
    note = f"slope {found:.4f}, n = {case.n if given else n}, d from {d[0]} to {d[-1]}"
    return at_most(abs(found + 0.5), 0.05, note=note)


@CLAIMS("HD-19", "the distance grows with the number of points: |slope against n - 1/2|")
def hd19(case: Case) -> Outcome:
    """Dimension 10^6 for n from 8 to 64, or the runs given."""
    given = _given(case, "n")
    sizes = [8, 16, 32, 64]
    n, gaps = _means(given) if given else (sizes, [_mean_gap(case, n, 10**6) for n in sizes])
    found = slope(n, gaps)
    return at_most(abs(found - 0.5), 0.05, note=f"slope {found:.4f}, n from {n[0]} to {n[-1]}")


@CLAIMS("HD-20", "the distance is proportional to the step: spread of distance x C for C up to 8")
def hd20(case: Case) -> Outcome:
    """One neuron on the subject's data, C = 2, 4, 8 and, for the fall to zero, 32 and 128."""
    need_labels(case)
    if case.ambient < 100 * case.n:
        raise NotApplicable(f"d is {case.ambient / case.n:.3g} n; asked from 100 n on")
    sign = float(case.s[0])
    if (case.own[0]).all() or not case.own[0].any():
        raise NotApplicable("labels of both signs are needed")
    net = by_preactivations(case.data, 0.02 * float(case.size.min()) / 8.0, [sign])
    gaps = {}
    for C in (2.0, 4.0, 8.0, 32.0, 128.0):
        run = case.run_of(Problem(case.data, net, 1.0 / (C * case.l1)))
        gaps[C] = distance_to_shortest(case.data, run.final.flat().W[0], sign)
    scaled = [C * gaps[C] for C in (2.0, 4.0, 8.0)]
    values = list(gaps.values())
    falls = all(later < earlier for earlier, later in pairwise(values))
    spread = max(scaled) / min(scaled) - 1.0
    if not falls:
        spread = float("inf")
    note = "distances " + ", ".join(f"{gap:.3g} (C={C:g})" for C, gap in gaps.items())
    return at_most(spread, 0.25, note=note)
