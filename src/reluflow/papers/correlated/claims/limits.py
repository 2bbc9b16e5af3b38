"""Limits of training as the scale vanishes (T7, T7b) and interpolators of least norm (T8a to Z)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reluflow.interpolators import MinNorm, min_norm
from reluflow.limits.hypotheses import common_scale, largest_angle
from reluflow.network import Network
from reluflow.papers.correlated.assumptions import LARGEST_PROGRAM
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims import ALL
from reluflow.papers.correlated.paper import paper
from reluflow.theory.fits import line
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, equals, holds
from reluflow.trajectory import Status, Trajectory

SCALES = 4  # runs of a fit
LARGEST_ANGLE = 1e-2  # predicted largest angle of the first run of a fit
RESOLUTION = 1e-11  # distances below this are rounding of the weights and of the limit


@paper.claim(
    "T7",
    "the flow ends at zero loss near rank 1, distance and angle proportional to the scale (worst)",
    needs=[*ALL, "correlated"],
    regime=["2", "late"],
)
def proportional(case: Correlated) -> Finding:
    """Theorem 7 on the subject's runs, and log-log slopes over scales of its start.

    Each run at a scale that is small enough must end at zero loss. Slopes of the distance to the
    rank-1 interpolators and of the largest angle are held to 1, and so is the last angle over its
    closed form.
    """
    for run in case.small:
        if run.status is Status.STATIONARY:
            end = float(run.log_loss[-1])
            return holds(False, end, None, f"the flow ends for good at the log-loss {end:.4g}")
        if run.status is Status.CONVERGED:
            nearest, allowed = rank_one_distance(case, run.final), _allowed(case, run)
            if nearest > allowed:
                note = "a limit further from rank 1 than the closed-form bundle allows"
                return at_most(nearest, allowed, 10 * case.error, note=note)
    runs = limit_runs(case)
    if any(run.status is Status.STATIONARY for run in runs):
        return holds(False, note="the flow from another scale of this start ends at positive loss")
    x = scales_of(runs)
    distances = [rank_one_distance(case, run.final) for run in runs]
    slopes: dict[str, float] = {}
    if min(distances) > RESOLUTION:
        slopes["slope of the distance"] = line(x, [math.log(value) for value in distances]).slope
    if len(case.positive) > 1:
        angles = [run.log_max_angle(float(run.t[-1]), case.positive) for run in runs]
        slopes["of the largest angle"] = line(x, angles).slope
        tail = math.exp(angles[-1] - case.bundle.log_max_angle(x[-1]))
        slopes["largest angle over its closed form"] = tail
    if not slopes:  # one neuron is a bundle of rank 1
        return at_most(max(distances), RESOLUTION, note="of rank 1 to rounding at every scale")
    worst = max(abs(value - 1.0) for value in slopes.values())
    note = ", ".join(f"{name} {value:.5g}" for name, value in slopes.items())
    return at_most(worst, 0.02, note=f"{note}; ln(scale) from {x[0]:.3g} to {x[-1]:.3g}")


def _allowed(case: Correlated, run: Trajectory) -> float:
    """How far from rank 1 a converged run may be: a few widths of the closed-form bundle."""
    log_width = case.bundle.log_max_angle(common_scale(run.net)[0])
    width = math.exp(min(log_width, 0.0)) + math.exp(min(common_scale(run.net)[0], 0.0))
    size = math.sqrt(float(np.linalg.norm(case.teacher)))
    return size * (10.0 * width + 100.0 * case.error)


@paper.claim(
    "T7b",
    "derived: distance to the predicted limit network is O(scale) (log-log slope)",
    needs=[*ALL, "correlated"],
    regime=["2", "late"],
)
def predicted_limit(case: Correlated) -> Finding:
    """Distance of the subject's limits, and of those from other scales, to the closed form."""
    for run in case.small:
        gap = distance(run.final, case.bundle.network)
        if run.status is Status.STATIONARY or (
            run.status is Status.CONVERGED and gap > _allowed(case, run)
        ):
            note = f"the run at ln(scale) = {common_scale(run.net)[0]:.4g} ends elsewhere"
            return at_most(gap, _allowed(case, run), note=note)
    runs = limit_runs(case)
    x = scales_of(runs)
    distances = [distance(run.final, case.bundle.network) for run in runs]
    if max(distances) < RESOLUTION:
        return at_most(max(distances), RESOLUTION, note="reached to rounding at every scale")
    if min(distances) < RESOLUTION:
        raise Unresolved(
            f"distances down to {min(distances):.1e} are below rounding; larger scales decide"
        )
    found = line(x, [math.log(value) for value in distances]).slope
    note = f"distance {distances[-1]:.3g} at ln(scale) = {x[-1]:.3g}"
    return at_least(found, 0.98, note=note)


def limit_runs(case: Correlated) -> list[Trajectory]:
    """Runs to the limit at scales whose predicted largest angle is small but far from rounding."""
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


def rank_one_distance(case: Correlated, net: Network) -> float:
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


@paper.claim(
    "T8a",
    "identity: rank 1 has least norm exactly when V < 1: least squared norm against 2|v*|",
    needs=["3"],
)
def least_norm(case: Correlated) -> Finding:
    """Signs of V - 1 and M; the value of the convex program, or the network of the proof."""
    answer, best = case.rank, 2.0 * float(np.linalg.norm(case.teacher))
    note = f"V = {answer.V:.6g}, M = {answer.M:.4g}"
    if (answer.V > 1.0) != (answer.M > 0.0):
        return holds(False, answer.V, 1.0, note)
    if case.data.n > LARGEST_PROGRAM:
        told = f"{note}; least norm not computed beyond {LARGEST_PROGRAM} points"
        return holds(True, answer.V, 1.0, told)
    program = _program(case)
    if answer.min_rank_is_min_norm:
        if not program.certified:
            raise Unresolved(
                f"the least norm is only known to be in {_interval(program)}; fewer points help"
            )
        return equals(program.value, best, 1e-6 * best, note=note)
    # a network below 2|v*| is the proof, whether or not the program is certified
    value = min(program.value, _fitting(case).squared_norm)
    if program.certified and value < best / max(answer.V, 1.0) * (1 - 1e-6):
        return holds(False, value, best / answer.V, f"below the dual bound 2|v*|/V; {note}")
    return at_most(value, best, 1e-9 * best, note=note)


@paper.claim(
    "T8b",
    "identity: where M > 0 a rank-2 network fits with smaller norm: squared norm",
    needs=["M > 0"],
)
def counterexample(case: Correlated) -> Finding:
    r"""The network of the proof interpolates, with squared norm at most :math:`2 - \xi^2`."""
    net = _fitting(case)
    size = float(np.linalg.norm(case.teacher))
    misfit = float(np.abs(net.predict(case.data.X) - case.data.y).max())
    if misfit > 1e-10 * float(case.data.y.max()):
        return holds(False, misfit, 0.0, "the network does not fit the labels")
    flat = net.flat()
    amount = float(np.linalg.norm(case.teacher - flat.a[0] * flat.W[0])) / size
    rank = int(np.linalg.matrix_rank(flat.W))
    bound = size * (2.0 - amount**2)
    note = f"xi = {amount:.4g}, rank {rank}, misfit {misfit:.1e}"
    return at_most(net.squared_norm, bound, 1e-12, note=note)


@paper.claim(
    "T8c",
    "where M > 0 the flow still ends at rank 1, above the least norm: squared norm",
    needs=[*ALL, "correlated", "M > 0", "small program"],
    regime=["2", "late"],
)
def flow_misses_least_norm(case: Correlated) -> Finding:
    """The subject's runs end at zero loss with squared norm 2|v*| + O(scale), above the minimum."""
    best, least = 2.0 * float(np.linalg.norm(case.teacher)), _program(case).value
    for run in case.small:
        if run.status is Status.STATIONARY:
            return holds(False, note=f"the flow ends for good at loss e^{run.log_loss[-1]:.4g}")
        if run.status is Status.CONVERGED:
            allowed = 4.0 * best * _allowed(case, run)
            if abs(run.final.squared_norm - best) > allowed:
                return equals(run.final.squared_norm, best, allowed, note="a run of the subject")
    runs = limit_runs(case)
    gaps = [abs(run.final.squared_norm - best) for run in runs]
    order = line(scales_of(runs), [math.log(max(gap, 1e-15)) for gap in gaps]).slope
    end = runs[-1].final.squared_norm
    if order < 0.98 and gaps[-1] > 1e-9:
        return holds(False, end, best, f"|theta|^2 - 2 shrinks like scale^{order:.3g} only")
    note = f"2|v*| is {best:.6g}; |theta|^2 - 2|v*| shrinks like scale^{order:.3g}"
    return at_least(end, least, 1e-9, note=note)


@paper.claim(
    "T8d",
    "identity: where M < 0 every minimiser is of rank 1: largest angle of an atom to v*",
    needs=["M < 0", "small program"],
)
def all_minimisers(case: Correlated) -> Finding:
    """Theorem 8(i): no atom of the program's solution leaves the direction of the teacher.

    V < 1 is the largest value of the dual certificate off the pattern of all points, so no other
    pattern can carry an atom of any minimiser; on that pattern the network is linear.
    """
    net = _program(case).network.flat()
    sizes = np.abs(net.a) * np.linalg.norm(net.W, axis=1)
    kept = sizes > 1e-5 * sizes.max()
    worst = max(largest_angle(case.teacher, w[None]) for w in net.W[kept])
    wrong = bool((net.a[kept] < 0.0).any())
    note = f"{int(kept.sum())} atoms; V = {case.rank.V:.6g}"
    if wrong:
        return holds(False, note=f"an atom has a negative output weight; {note}")
    return at_most(worst, 1e-3 / (1.0 - case.rank.V), note=note)


@paper.claim(
    "Z", "identity: if the inverse Gram matrix is a Z-matrix then V < 1: V", needs=["Z-matrix"]
)
def z_matrix_suffices(case: Correlated) -> Finding:
    """The sufficient test for M < 0."""
    return at_most(case.rank.V, 1.0, 1e-9)


@paper.claim("T8e", "identity: orthogonal points have M < 0: V", needs=["orthogonal"])
def orthogonal_points(case: Correlated) -> Finding:
    """A remark of the paper."""
    return at_most(case.rank.V, 1.0, 1e-9)


def _fitting(case: Correlated) -> Network:
    """The rank-2 network of the proof."""
    net = case.rank.counterexample
    if net is None:
        raise Unresolved("the network of the proof was not found; data with a larger M decide")
    return net


def _program(case: Correlated) -> MinNorm:
    if "program" not in case.kept:
        case.kept["program"] = min_norm(case.labelled)
    program: MinNorm = case.kept["program"]
    return program


def _interval(program: MinNorm) -> str:
    return f"[{program.lower_bound:.9g}, {program.value:.9g}]"
