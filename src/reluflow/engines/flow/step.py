r"""One step of the coupled flow: collocation in output space, stiff or not.

Given the modes, the flow is determined by the forces ``c(t)`` (n numbers): neurons are carried by
linear equations. The step looks for the forces at the Radau nodes such that the outputs of the
carried neurons give back the same forces,

.. math:: h_k = \mathrm{outputs}\Bigl(\text{neurons carried by } c\Bigr)(t_k), \quad c_k = c(h_k),

by Newton's method with the matrix :math:`I + H A \otimes \hat K J`: :math:`\hat K` is the tangent
kernel at the start of the step, :math:`J = -dc/dh`. That is the Radau IIA method of S stages and
order 2S - 1, L-stable, in n unknowns per node instead of m(d+1). With the forces found, every
class is carried to the end of the step by Gauss collocation, a Lorentz transformation: balance and
Minkowski products are kept to rounding.

Numerics
--------
Order 7 or 11 between events. Steps are limited by accuracy, not stability. One step costs
``O(rows n^2 + m n + n^3)`` per Newton iteration, independent of d.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import growth, tolerances
from reluflow.engines.flow.clock import log_elapsed, log_slowness_at
from reluflow.engines.flow.start import Start, classes_of
from reluflow.engines.flow.tableau import FOUR, Tableau
from reluflow.engines.flow.tolerances import DROWNING, LATE, ON_PLANE, PICARD, SOLVED, TICKS
from reluflow.kernels.flow import collocation as kernel
from reluflow.kernels.flow.ending import LONG
from reluflow.kernels.flow.layout import Limits, Neurons
from reluflow.kernels.flow.neuron import Log
from reluflow.kernels.flow.step import Moved, carry

# measured: at rtol 1e-4 the power of the defect overestimates the error by this much or more.
# Below, the error would fall like rtol^0.69; the estimate is raised so that it falls like rtol.
CALIBRATION, LOOSE, PROPORTION = 0.02, 1e-4, 0.5
# so often a stiff step is solved with the kinks of its walks; they are repeated if they agree to
# ENOUGH times the goal of the equations, and must agree to ten times that. If they do not, the
# error is said to be UNSETTLED: a step of two fifths follows
CORRECTIONS, ENOUGH, UNSETTLED = 8, 50.0, 200.0


class Stretch(NamedTuple):
    """A step solved by ``method``: outputs and forces at the Radau nodes, the error over rtol.

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
    method: Tableau


class Attempt(NamedTuple):
    """A tried step: not solved (no stretch), too inaccurate (no neurons moved), or both.

    ``events`` has the rows of `kernels.flow.neuron.Log`; their moments are shares of the step.
    """

    stretch: Stretch | None
    moved: Moved | None
    events: Array


def attempt(
    at: Start,
    step: float,
    rtol: float,
    method: Tableau,
    longer: Stretch | None,
    limits: Limits,
    sure: NDArray[np.bool_],
    patient: bool,
) -> Attempt:
    """Solve one step and carry the neurons to its end.

    ``longer`` is a step from the same start, solved by the same method: it tells what a linear
    forecast will miss. `limits.light` is asked of size times the square of the boost; for ``sure``
    and ``patient`` see `kernels.flow.step.carry`.

    The equations know the rows of the start. A light neuron that leaves its row adds a kink to the
    outputs, below the tolerance as such; but where the outputs react fast the others would have
    answered it, and the forces, which are small late in training, are off by the kink. A stiff step
    is therefore solved again with the kinks of its walks as given, until the walks repeat them.
    """
    kinks = np.zeros((method.stages, at.problem.n))
    bend, ratio = kinks, 1.0
    if longer is not None:
        bend, ratio = longer.bend, step / longer.step
    relax, gap = 1.0, kinks
    tail = 1.0 / max(step * at.stiffness, 1.0)
    stretch: Stretch | None = None
    moved, rows = None, np.empty((0, 5))
    goal = _goal(at, rtol)
    limits = limits._replace(
        tail=tail, most=_most(at, step, limits), turn=growth.turn(rtol, method)
    )
    for attempts in range(CORRECTIONS):
        solved = _solve(at, step, method, kernel.Guess(bend, ratio, kinks, goal))
        if solved is None:
            return Attempt(None, None, rows)
        if stretch is None:
            error, boost = _error(at, solved, step, rtol, method)
            light = limits.light / max(min(1.0, boost) ** 2, 1e-300)
            limits = limits._replace(light=light, late=LATE * light)
        stretch = Stretch(
            step, solved.h, solved.c, error, boost, solved.iterations, solved.bend, method
        )
        if not error <= 1.0:  # also where it is not a number
            return Attempt(stretch, None, rows)
        moved, rows = _carried(at, solved.c, step, method, limits, sure, patient)
        if step * at.problem.decay > LONG and (moved.first <= 1.0).any():
            return Attempt(stretch._replace(error=UNSETTLED), None, rows)
        if tail == 1.0 or not len(rows) or not moved.whole or (moved.stopped <= 1.0).any():
            break
        gap, before = moved.kinks - kinks, gap
        size = np.abs(gap).max()
        if size <= ENOUGH * goal:
            break
        if attempts == CORRECTIONS - 1 and size > 10.0 * ENOUGH * goal:
            return Attempt(stretch._replace(error=UNSETTLED), None, rows)
        change = gap - before
        if attempts > 0 and change.any():  # the secant along the last two gaps (Irons and Tuck)
            relax *= -float((before * change).sum() / (change * change).sum())
        kinks = kinks + relax * gap
        bend, ratio = solved.bend, 1.0
    return Attempt(stretch, moved, rows)


def _most(at: Start, step: float, limits: Limits) -> float:
    """The mean force outside [0, 1] that a slide may miss in a step; see `Limits`.

    A slide that goes on misses its boost: near a slow saddle steps are long, and small forces move
    neurons far. Not below the rounding of forces. (Shares are known to a small part of themselves,
    and the weight of a slide is a ratio of those of its planes.)
    """
    least = tolerances.SLACK_FLOOR * at.problem.law.force_scale
    return max(limits.far / (step * at.problem.longest), least)


def _goal(at: Start, rtol: float) -> float:
    """Changes of the unknowns below this end the iteration."""
    problem, goal = at.problem, SOLVED * rtol
    if problem.is_square:
        goal *= at.strongest / problem.kappa
    if problem.decay:  # pulls of that size remain at rest, of larger forces that cancel
        tight = goal * min(1.0, problem.decay / max(at.strongest * problem.longest, 1e-300))
        goal = max(tight, min(goal, 30.0 * at.rounding))
    return max(goal, at.rounding)


def _solve(at: Start, step: float, method: Tableau, guess: kernel.Guess) -> kernel.Solved | None:
    """The equations of the step; None if they could not be solved."""
    problem = at.problem
    stiff = step * at.stiffness >= PICARD
    system = at.stiff_system if stiff and problem.is_square else at.system
    try:
        if problem.is_square:
            solved = kernel.solve_square(system, step, guess, method.tables)
        else:
            solved = kernel.solve_margin(system, step, stiff, guess, method.tables)
    except np.linalg.LinAlgError:  # Newton's matrix is singular to rounding: too long a step
        return None
    return solved if solved.iterations else None


def carried_alone(
    at: Start, which: NDArray[np.int64], c: Array, step: float, limits: Limits
) -> tuple[Moved, Array]:
    """Some of the neurons through a step with forces ``c`` (4, n) at its nodes; their events."""
    neurons = Neurons(*(column[which] for column in at.neurons))
    _, rows = classes_of(at.classes, at.classes.cid[which])
    part = replace(at, classes=rows, neurons=neurons)
    sure = np.zeros(len(rows.face), np.bool_)
    return _carried(part, c, step, FOUR, limits, sure, True)


def _carried(
    at: Start, c: Array, step: float, method: Tableau, limits: Limits, sure: NDArray[np.bool_],
    patient: bool,
) -> tuple[Moved, Array]:  # fmt: skip
    """Neurons at the end of the step, and the events on their way."""
    capacity = 64 + at.neurons.z.size
    while True:
        log = Log(np.empty((capacity, 5)), np.zeros(1, np.int64))
        moved = carry(at.system, c, step, method.tables, limits, sure, patient, log)
        used = int(log.used[0])
        if used <= capacity:
            return moved, log.rows[:used]
        capacity = 2 * used


def _error(
    at: Start, solved: kernel.Solved, step: float, rtol: float, method: Tableau
) -> tuple[float, float]:
    """Return ``(error / rtol, boost)``; see `Stretch`.

    The force polynomial misses the known start value by a defect of order S. At the end of a step
    the error is of order 2S-1, because Radau nodes make the defect orthogonal to polynomials. So
    the relative defect to the power (2S-1)/S measures the error per unit of progress.
    """
    law = at.problem.law
    defect, largest = solved.defect, solved.largest
    if largest == 0.0:
        return 0.0, 0.0
    boost = step * max(at.fastest, solved.fastest)
    error = CALIBRATION * max(LOOSE / rtol, 1.0) ** PROPORTION
    error *= (defect / largest) ** (method.order / method.stages)
    error *= min(largest / (law.force_scale * at.problem.longest), 1.0)
    # forces that fall like one over the time move the weights as far in every e-fold of it
    lasts = np.inf if law.decay > 0.0 else 1e3
    error *= max(1.0, min(step * law.rate, lasts))
    if not law.hidden:
        most = max(boost, step * largest)  # no weight moves by more
        if most < rtol and at.drowned > DROWNING:
            error = min(error, most * defect / largest)
        error += growth.missed(at, step, boost, method)
    if not at.problem.is_timed and error <= rtol:
        error += clock_error(at, solved.h, step, method)
    return error / rtol, max(boost, step * largest)


def limits_of(at: Start, near: float, far: float, unit: float, light: float, rtol: float) -> Limits:
    """The limits of a step: ends of slides, and the size of light neurons at boost one."""
    late, turn, known = LATE * light, growth.turn(rtol), tolerances.KNOWN * rtol
    return Limits(ON_PLANE, tick_of(at), near, far, unit, light, late, 1.0, np.inf, turn, known)


def tick_of(at: Start) -> float:
    """What is zero of hidden weights that alone are trained, over the output weight."""
    moved = at.fastest * float(np.spacing(at.state.clock))
    return TICKS * moved if at.problem.hidden else 0.0


def clock_error(at: Start, h: Array, step: float, method: Tableau) -> float:
    """Error of the elapsed time, from interpolants of the clock with and without the start."""
    slowness = log_slowness_at(at.problem, np.vstack([at.h, h]))
    cut = np.concatenate([[method.tables.to_start @ slowness[1:]], slowness[1:]])
    gap = abs(log_elapsed(method, slowness, step) - log_elapsed(method, cut, step))
    return float(gap ** (1.0 + 1.0 / method.stages))
