"""Limits of training as the scale vanishes (T7, T7b) and interpolators of least norm (T8a to Z)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators import MinNorm, min_norm
from reluflow.limits.hypotheses import common_scale
from reluflow.network import Network
from reluflow.theory.correlated.case import Case
from reluflow.theory.correlated.hypotheses import require
from reluflow.theory.verdicts import (
    Claims,
    NotApplicable,
    Outcome,
    Unresolved,
    Verdict,
    at_least,
    at_most,
)
from reluflow.trajectory import Status, Trajectory

CLAIMS = Claims()
SCALES = 4  # runs of a fit
LARGEST_ANGLE = 1e-2  # predicted largest angle of the first run of a fit
RESOLUTION = 1e-11  # distances below this are rounding of the weights and of the limit
LARGEST_PROGRAM = 8  # points up to which the minimum norm is computed


@CLAIMS("T7", "distance to rank 1 and largest angle are proportional to the scale: worst deviation")
def proportional(case: Case) -> Outcome:
    """Log-log slopes of the distance to the rank-1 interpolators and of the largest angle.

    Both are held to 1, and so is the last angle over its closed form.
    """
    runs = limit_runs(case)
    x = scales_of(runs)
    distances = [rank_one_distance(case, run.final) for run in runs]
    slopes: dict[str, float] = {}
    if min(distances) > RESOLUTION:
        slopes["slope of the distance"] = slope(x, [math.log(value) for value in distances])
    if len(case.positive) > 1:
        angles = [run.log_max_angle(float(run.t[-1]), case.positive) for run in runs]
        slopes["of the largest angle"] = slope(x, angles)
        tail = math.exp(angles[-1] - case.bundle.log_max_angle(x[-1]))
        slopes["largest angle over its closed form"] = tail
    if not slopes:
        raise Unresolved(f"distances down to {min(distances):.1e} are below rounding")
    worst = max(abs(value - 1.0) for value in slopes.values())
    note = ", ".join(f"{name} {value:.5g}" for name, value in slopes.items())
    return at_most(worst, 0.02, note=f"{note}; ln(scale) from {x[0]:.3g} to {x[-1]:.3g}")


@CLAIMS("T7b", "distance to the predicted limit network is O(scale): log-log slope")
def predicted_limit(case: Case) -> Outcome:
    """Distance to the closed-form limit network."""
    runs = limit_runs(case)
    x = scales_of(runs)
    distances = [distance(run.final, case.bundle.network) for run in runs]
    if min(distances) < RESOLUTION:
        raise Unresolved(f"distances down to {min(distances):.1e} are below rounding")
    found = slope(x, [math.log(value) for value in distances])
    note = f"distance {distances[-1]:.3g} at ln(scale) = {x[-1]:.3g}"
    return at_least(found, 0.98, note=note)


def limit_runs(case: Case) -> list[Trajectory]:
    """Runs to the limit at scales whose predicted largest angle is small but far from rounding."""
    require(case, "1(i)", "1(ii)", "1(iv)")
    log_slope = case.bundle.log_angle_slope if len(case.positive) > 1 else 0.0
    top = math.log(LARGEST_ANGLE) - log_slope
    floor = math.log(1e-9)
    given = [
        run
        for run in case.flows
        if run.status is Status.CONVERGED and floor <= common_scale(run.net)[0] <= top
    ]
    if len(given) >= SCALES:
        return given
    first = top - math.log(4.0)
    return case.converged([first - k * math.log(4.0) for k in range(SCALES)])


def scales_of(runs: Sequence[Trajectory]) -> list[float]:
    """Log scales of runs."""
    return [common_scale(run.net)[0] for run in runs]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of the least-squares line."""
    return float(np.polyfit(x, y, 1)[0])


def rank_one_distance(case: Case, net: Network) -> float:
    r"""Distance to the nearest network of :math:`\Theta_{v^*}`.

    With :math:`c_j = a_j + w_j \cdot \bar v` the nearest one has output weights
    :math:`b = \sqrt{|v|} c_+ / |c_+|`; the distance is taken to it explicitly, since the expanded
    square cancels.
    """
    flat = net.flat()
    size = float(np.linalg.norm(case.teacher))
    unit = case.teacher / size
    kept = np.maximum(flat.a + flat.W @ unit, 0.0)
    b = math.sqrt(size) * kept / np.linalg.norm(kept)
    return distance(net, Network(b, np.outer(b, unit)))


def distance(net: Network, other: Network) -> float:
    """Euclidean distance of the parameters, neuron by neuron."""
    first, second = net.flat(), other.flat()
    return math.hypot(
        float(np.linalg.norm(first.a - second.a)), float(np.linalg.norm(first.W - second.W))
    )


@CLAIMS("T8a", "rank 1 has least norm exactly when V < 1: least squared norm against 2|v*|")
def least_norm(case: Case) -> Outcome:
    """Signs of V - 1 and M, and the value of the convex program."""
    require(case, "3")
    answer, best = case.rank, 2.0 * float(np.linalg.norm(case.teacher))
    if (answer.V > 1.0) != (answer.M > 0.0):
        note = f"V = {answer.V:.9g} but M = {answer.M:.9g}"
        return Outcome(Verdict.FAIL, answer.V, 1.0, note)
    note = f"V = {answer.V:.6g}, M = {answer.M:.4g}"
    if case.data.n > LARGEST_PROGRAM:
        note += f"; least norm not computed beyond {LARGEST_PROGRAM} points"
        return Outcome(Verdict.PASS, answer.V, 1.0, note)
    program = _program(case)
    if not program.certified:
        raise Unresolved(f"the least norm is only known to be in {_interval(program)}")
    if answer.min_rank_is_min_norm:
        gap = abs(program.value - best)
        verdict = at_most(gap, 1e-6 * best).verdict
    else:
        verdict = at_most(program.value, best, error=1e-9 * best).verdict
        below = program.value < best / max(answer.V, 1.0) * (1 - 1e-6)
        verdict = Verdict.FAIL if below else verdict
    return Outcome(verdict, program.value, best, note)


@CLAIMS("T8b", "where M > 0 a rank-2 network fits with smaller norm: squared norm")
def counterexample(case: Case) -> Outcome:
    r"""The network of the proof interpolates, and its squared norm is at most :math:`2 - \xi^2`."""
    net = _where_positive(case)
    size = float(np.linalg.norm(case.teacher))
    misfit = float(np.abs(net.predict(case.data.X) - case.data.y).max())
    if misfit > 1e-10 * float(case.data.y.max()):
        return Outcome(Verdict.FAIL, misfit, 0.0, "the network does not fit the labels")
    flat = net.flat()
    amount = float(np.linalg.norm(case.teacher - flat.a[0] * flat.W[0])) / size
    rank = int(np.linalg.matrix_rank(flat.W))
    bound = size * (2.0 - amount**2)
    note = f"xi = {amount:.4g}, rank {rank}, misfit {misfit:.1e}"
    return at_most(net.squared_norm, bound, error=1e-12, note=note)


@CLAIMS("T8c", "where M > 0 the flow still ends at rank 1, above the least norm: squared norm")
def flow_misses_least_norm(case: Case) -> Outcome:
    """End norms over scales tend to 2|v*|, and stay above the minimum."""
    _where_positive(case)
    if case.data.n > LARGEST_PROGRAM:
        raise NotApplicable(f"the least norm is not computed beyond {LARGEST_PROGRAM} points")
    program, runs = _program(case), limit_runs(case)
    best = 2.0 * float(np.linalg.norm(case.teacher))
    gaps = [abs(run.final.squared_norm - best) for run in runs]
    order = slope(scales_of(runs), [math.log(max(gap, 1e-15)) for gap in gaps])
    end = runs[-1].final.squared_norm
    if order < 0.98 and gaps[-1] > 1e-9:
        note = f"|theta|^2 - 2 shrinks like scale^{order:.3g} only"
        return Outcome(Verdict.FAIL, end, best, note)
    note = f"2|v*| is {best:.6g}; |theta|^2 - 2|v*| shrinks like scale^{order:.3g}"
    return at_least(end, program.value, error=1e-9, note=note)


@CLAIMS("Z", "if the inverse Gram matrix is a Z-matrix then V < 1: V")
def z_matrix(case: Case) -> Outcome:
    """The sufficient test for M < 0."""
    require(case, "3")
    inverse: Array = np.asarray(np.linalg.inv(case.data.gram), dtype=np.float64)
    positive = _off_diagonal(inverse).max(initial=-np.inf)
    if positive > 0:
        raise NotApplicable(f"not a Z-matrix: an off-diagonal entry is {positive:.3g}")
    return at_most(case.rank.V, 1.0, error=1e-9)


def _off_diagonal(matrix: Array) -> Array:
    return np.asarray(matrix[~np.eye(len(matrix), dtype=bool)])


def _where_positive(case: Case) -> Network:
    require(case, "3")
    net = case.rank.counterexample
    if net is None:
        raise NotApplicable(f"M < 0 (V = {case.rank.V:.6g}): rank 1 has least norm")
    return net


def _program(case: Case) -> MinNorm:
    if "program" not in case.kept:
        case.kept["program"] = min_norm(case.labelled)
    program: MinNorm = case.kept["program"]
    return program


def _interval(program: MinNorm) -> str:
    return f"[{program.lower_bound:.9g}, {program.value:.9g}]"
