r"""One step of the coupled flow: collocation in output space, stiff or not.

Given the modes, the flow is determined by the forces ``c(t)`` (n numbers): neurons are carried by
linear equations. The step looks for the forces at the Radau nodes such that the outputs of the
carried neurons give back the same forces,

.. math:: h_k = \mathrm{outputs}\Bigl(\text{neurons carried by } c\Bigr)(t_k), \quad c_k = c(h_k),

by Newton's method with the matrix :math:`I + H A \otimes \hat K J`: :math:`\hat K` is the tangent
kernel at the start of the step, :math:`J = -dc/dh`. That is the Radau IIA method of order
``2 STAGES - 1``, L-stable, in n unknowns per node instead of m(d+1). With the forces found, every
class is carried to the end of the step by Gauss collocation, a Lorentz transformation: balance and
Minkowski products are kept to rounding.

Numerics
--------
Order 7 between events. Steps are limited by accuracy, not stability. One step costs
``O(rows n^2 + m n + n^3)`` per Newton iteration, independent of d.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import growth, tableau
from reluflow.engines.flow.clock import log_elapsed, log_slowness
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.engines.flow.tolerances import LATE, ON_PLANE, PICARD, SOLVED, TICKS
from reluflow.kernels.flow import collocation as kernel
from reluflow.kernels.flow.classes import outputs as node_state
from reluflow.kernels.flow.classes import rescale, rows_of
from reluflow.kernels.flow.collocation import System
from reluflow.kernels.flow.ending import LONG
from reluflow.kernels.flow.forces import speeds
from reluflow.kernels.flow.layout import SLIDE, Limits, Neurons, Rows
from reluflow.kernels.flow.neuron import Log
from reluflow.kernels.flow.step import Moved, begin, carry, keep_still

ORDER = 2 * tableau.STAGES - 1
# measured: at rtol 1e-4 the power of the defect overestimates the error by this much or more.
# Below, the error would fall like rtol^0.65; the estimate is raised so that it falls like rtol.
CALIBRATION, LOOSE, PROPORTION = 0.02, 1e-4, 0.45
# so often a stiff step is solved with the kinks of its walks; they are repeated if they agree to
# ENOUGH times the goal of the equations, and must agree to ten times that. If they do not, the
# error is said to be UNSETTLED: a step of two fifths follows
CORRECTIONS, ENOUGH, UNSETTLED = 8, 50.0, 200.0
_NO_VALUES, _NO_VECTORS = np.empty(0), np.empty((0, 0))


@dataclass(eq=False)
class Start:
    """What a step knows before it begins; reused when the step is tried again with another size.

    ``stiffness`` bounds the rates of the outputs; ``speeds`` holds ``|g|`` of each class and
    ``fastest`` the largest of them.
    """

    problem: Problem
    state: State
    classes: Rows
    neurons: Neurons
    h: Array
    rounding: float
    c: Array
    kernel: Array
    stiffness: float
    speeds: Array
    log_loss: float

    @cached_property
    def fastest(self) -> float:
        """The largest ``|g|``."""
        return float(self.speeds.max(initial=0.0))

    @cached_property
    def pulls(self) -> Array:
        """The pull of each point (n,), ``|c x|``."""
        return np.asarray(np.abs(self.c * self.problem.planes.length))

    @property
    def most_noise(self) -> float:
        """A bound on the rounding of the forces, to a few of its own roundings."""
        return max(2e-16 * float(self.pulls.sum()), 1e-300)

    @cached_property
    def noise(self) -> float:
        """The rounding of the forces.

        A sliding point is felt through the active ones that its plane balances, not by itself.
        """
        planes = self.problem.planes
        face = self.classes.face[:, planes.owner]
        felt = (face != SLIDE if planes.slope > 0.0 else face == self.problem.side).any(axis=0)
        return max(2e-16 * float(self.pulls[felt].sum()), 1e-300)

    @cached_property
    def resting(self) -> list[int]:
        """Neurons that slide on dependent planes."""
        rows = self.classes
        if rows.free.all():
            return []
        found: list[int] = np.flatnonzero((rows.cid >= 0) & ~rows.free[rows.cid]).tolist()
        return found

    @cached_property
    def strongest(self) -> float:
        """The largest force."""
        return float(np.abs(self.c).max())

    @cached_property
    def system(self) -> System:
        """All of it as kernels take it, without eigenvectors."""
        problem = self.problem
        return System(
            self.neurons, self.classes, problem.planes, problem.law, self.h, self.c, self.kernel,
            _NO_VALUES, _NO_VECTORS, self.rounding,
        )  # fmt: skip

    @cached_property
    def stiff_system(self) -> System:
        """The same with eigenvalues and eigenvectors."""
        plain, (values, vectors) = self.system, self.eigen
        return System(
            plain.neurons, plain.rows, plain.planes, plain.law, plain.h, plain.c, plain.kernel,
            values, vectors, plain.rounding,
        )  # fmt: skip

    @cached_property
    def whole(self) -> Start:
        """The same with the tangent kernel."""
        return self if len(self.kernel) else begin_whole(self.problem, self.state)

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Rates and modes of the residual: eigenvalues and eigenvectors of kappa K."""
        values, vectors = kernel.eigen(self.kernel, self.problem.kappa)
        return values, vectors


class Stretch(NamedTuple):
    """A solved step: outputs and forces at the Radau nodes, the error relative to the tolerance.

    ``bend`` is what a linear forecast missed of the unknowns at the nodes, ``boost`` the largest
    angle by which a neuron turns, or would if it crossed a plane.
    """

    step: float
    h: Array
    c: Array
    error: float
    boost: float
    iterations: int
    bend: Array


class Attempt(NamedTuple):
    """A tried step: not solved (no stretch), too inaccurate (no neurons moved), or both.

    ``events`` has the rows of `kernels.flow.neuron.Log`; their moments are shares of the step.
    """

    stretch: Stretch | None
    moved: Moved | None
    events: Array


def begin_at(problem: Problem, state: State) -> Start:
    """Collect the quantities at the start of a step; rescales the state."""
    if problem.is_crowd:
        return _begin_crowd(problem, state)
    return begin_whole(problem, state)


def _begin_crowd(problem: Problem, state: State) -> Start:
    """The same without the kernel, of n^2 numbers; its trace bounds the rates of the outputs."""
    a, w, planes, law = state.a, state.w, problem.planes, problem.law
    fixed = np.zeros(len(a), np.bool_)
    if law.hidden:
        fixed[:] = a == 0.0
    else:
        rescale(a, w, state.sigma)
        fixed[:] = (a == 0.0) & ~w.any(axis=1)
    rows = rows_of(state.mode, planes, fixed)
    if not law.hidden:
        keep_still(w, state.sigma, state.still, state.still_sigma, rows)
    z, weight, h, most = node_state(a, w, state.sigma, state.mode, planes)
    c = problem.forces(h)
    neurons = Neurons(
        a, w, state.sigma, state.mode, z, weight, problem.sign, problem.log_balance, state.still,
        state.still_sigma,
    )  # fmt: skip
    squares = weight * (a**2 + np.einsum("jd,jd->j", w, w))
    bound = (law.kappa or 1.0) * float(squares.sum()) * float(np.square(planes.length).sum())
    return Start(
        problem, state, rows, neurons, h, 4e-16 * max(most, problem.output_scale), c, _NO_VECTORS,
        bound, speeds(c, rows, planes), problem.log_loss(h),
    )  # fmt: skip


def begin_whole(problem: Problem, state: State) -> Start:
    """Everything a step knows before it begins, the tangent kernel too."""
    begun = begin(
        state.a, state.w, state.sigma, state.mode, state.still, state.still_sigma,
        problem.planes, problem.law,
    )  # fmt: skip
    # outputs are sums that may cancel: their rounding is that of the largest sum of sizes
    rounding = 4e-16 * max(begun.most, problem.output_scale)
    neurons = Neurons(
        state.a, state.w, state.sigma, state.mode, begun.z, begun.weight, problem.sign,
        problem.log_balance_at(state.t), state.still, state.still_sigma,
    )  # fmt: skip
    return Start(
        problem, state, begun.rows, neurons, begun.h, rounding, begun.c, begun.kernel,
        begun.stiffness, begun.speeds, problem.log_loss(begun.h),
    )  # fmt: skip


def attempt(
    at: Start,
    step: float,
    rtol: float,
    longer: Stretch | None,
    limits: Limits,
    sure: NDArray[np.bool_],
    patient: bool,
) -> Attempt:
    """Solve one step and carry the neurons to its end.

    ``longer`` is a solved step from the same start: it tells what a linear forecast will miss.
    `limits.light` is asked of size times the square of the boost; for ``sure`` and ``patient`` see
    `kernels.flow.step.carry`.

    The equations know the rows of the start. A light neuron that leaves its row adds a kink to the
    outputs, below the tolerance as such; but where the outputs react fast the others would have
    answered it, and the forces, which are small late in training, are off by the kink. A stiff step
    is therefore solved again with the kinks of its walks as given, until the walks repeat them.
    """
    kinks = np.zeros((tableau.STAGES, at.problem.n))
    bend, ratio = kinks, 1.0
    if longer is not None:
        bend, ratio = longer.bend, step / longer.step
    relax, gap = 1.0, kinks
    tail = 1.0 / max(step * at.stiffness, 1.0)
    stretch: Stretch | None = None
    moved, rows = None, np.empty((0, 5))
    for turn in range(CORRECTIONS):
        solved, goal = _solve(at, step, rtol, bend, ratio, kinks)
        if solved is None:
            return Attempt(None, None, rows)
        error, boost = (stretch.error, stretch.boost) if stretch else _error(at, solved, step, rtol)
        stretch = Stretch(step, solved.h, solved.c, error, boost, solved.iterations, solved.bend)
        if not error <= 1.0:  # also where it is not a number
            return Attempt(stretch, None, rows)
        bound = limits.light / max(min(1.0, boost) ** 2, 1e-300)
        limits_now = Limits(*limits[:5], bound, LATE * bound, tail)
        moved, rows = _carried(at, solved.c, step, limits_now, sure, patient)
        if step * at.problem.decay > LONG and (moved.first <= 1.0).any():
            return Attempt(stretch._replace(error=UNSETTLED), None, rows)
        if tail == 1.0 or not len(rows) or not moved.whole or (moved.stopped <= 1.0).any():
            break
        gap, before = moved.kinks - kinks, gap
        size = np.abs(gap).max()
        if size <= ENOUGH * goal:
            break
        if turn == CORRECTIONS - 1 and size > 10.0 * ENOUGH * goal:
            return Attempt(stretch._replace(error=UNSETTLED), None, rows)
        change = gap - before
        if turn > 0 and change.any():  # the secant along the last two gaps (Irons and Tuck)
            relax *= -float((before * change).sum() / (change * change).sum())
        kinks = kinks + relax * gap
        bend, ratio = solved.bend, 1.0
    return Attempt(stretch, moved, rows)


def _solve(
    at: Start, step: float, rtol: float, bend: Array, ratio: float, kinks: Array
) -> tuple[kernel.Solved | None, float]:
    """The equations of the step, and the goal to which they were solved."""
    problem = at.problem
    stiff = step * at.stiffness >= PICARD
    goal = SOLVED * rtol
    if problem.is_square:
        goal *= at.strongest / problem.kappa
    if problem.decay:  # pulls of that size remain at rest, of larger forces that cancel
        tight = goal * min(1.0, problem.decay / max(at.strongest * problem.longest, 1e-300))
        goal = max(tight, min(goal, 30.0 * at.rounding))
    goal = max(goal, at.rounding)
    system = at.stiff_system if stiff and problem.is_square else at.system
    guess = kernel.Guess(bend, ratio, kinks, goal)
    try:
        if problem.is_square:
            solved = kernel.solve_square(system, step, guess, tableau.TABLES)
        else:
            solved = kernel.solve_margin(system, step, stiff, guess, tableau.TABLES)
    except np.linalg.LinAlgError:  # Newton's matrix is singular to rounding: too long a step
        return None, goal
    return (solved if solved.iterations else None), goal


def carried_alone(
    at: Start, which: NDArray[np.int64], c: Array, step: float, limits: Limits
) -> tuple[Moved, Array]:
    """Some of the neurons through a step with forces ``c`` (S, n) at its nodes; their events."""
    problem = at.problem
    neurons = Neurons(*(column[which] for column in at.neurons))
    rows = rows_of(neurons.mode, problem.planes, np.zeros(len(which), np.bool_))
    part = replace(at, classes=rows, neurons=neurons)
    return _carried(part, c, step, limits, np.zeros(len(rows.face), np.bool_), True)


def _carried(
    at: Start, c: Array, step: float, limits: Limits, sure: NDArray[np.bool_], patient: bool
) -> tuple[Moved, Array]:
    """Neurons at the end of the step, and the events on their way."""
    capacity = 64 + at.neurons.z.size
    while True:
        log = Log(np.empty((capacity, 5)), np.zeros(1, np.int64))
        moved = carry(at.system, c, step, tableau.TABLES, limits, sure, patient, log)
        used = int(log.used[0])
        if used <= capacity:
            return moved, log.rows[:used]
        capacity = 2 * used


def _error(at: Start, solved: kernel.Solved, step: float, rtol: float) -> tuple[float, float]:
    """Return ``(error / rtol, boost)``; see `Stretch`.

    The force polynomial misses the known start value by a defect of order S. At the end of a step
    the error is of order 2S-1, because Radau nodes make the defect orthogonal to polynomials. So
    the relative defect to the power (2S-1)/S measures the error per unit of progress.
    """
    law = at.problem.law
    stages = tableau.STAGES
    defect, largest, last = kernel.defects(at.system, solved.c, tableau.RADAU_TO_START)
    if largest == 0.0:
        return 0.0, 0.0
    boost = step * max(at.fastest, last)
    error = CALIBRATION * max(LOOSE / rtol, 1.0) ** PROPORTION
    error *= (defect / largest) ** (ORDER / stages)
    error *= min(largest / (law.force_scale * at.problem.longest), 1.0)
    # forces that fall like one over the time move the weights as far in every e-fold of it
    lasts = np.inf if law.decay > 0.0 else 1e3
    error *= max(1.0, min(step * law.rate, lasts))
    if not law.hidden:
        error += growth.missed(at, step, boost)
    if not at.problem.is_timed and error <= rtol:
        error += clock_error(at, solved.h, step)
    return error / rtol, max(boost, step * largest)


def outputs(at: Start, c: Array, step: float) -> Array:
    """Outputs (S, n) at the nodes of neurons carried by forces ``c`` (S, n) at the nodes."""
    return np.asarray(kernel.node_outputs(c, at.system, step, tableau.RADAU_A))


def limits_of(at: Start, near: float, far: float, unit: float, light: float) -> Limits:
    """The limits of a step: ends of slides, and the size of light neurons at boost one."""
    return Limits(ON_PLANE, tick_of(at), near, far, unit, light, LATE * light, 1.0)


def tick_of(at: Start) -> float:
    """What is zero of hidden weights that alone are trained, over the output weight."""
    moved = at.fastest * float(np.spacing(at.state.clock))
    return TICKS * moved if at.problem.hidden else 0.0


def clock_error(at: Start, h: Array, step: float) -> float:
    """Error of the elapsed time, from interpolants of the clock with and without the start."""
    slowness = np.array([log_slowness(at.problem, row) for row in (at.h, *h)])
    cut = np.concatenate([[tableau.RADAU_TO_START @ slowness[1:]], slowness[1:]])
    gap = abs(log_elapsed(slowness, step) - log_elapsed(cut, step))
    return float(gap ** (1.0 + 1.0 / tableau.STAGES))
