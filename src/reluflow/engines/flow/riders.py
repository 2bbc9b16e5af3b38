r"""Neurons in balance that ride along one line, far below what outputs notice.

A balanced neuron with all of ``w`` along a line on which all pulls on it lie has ``|a| = |w|`` for
ever, and

    d log|w| / dt = sign(a) g.w/|w|,

a quadrature of forces that are known: it meets no plane, and has no error of its own. While its
outputs are negligible it need not limit the steps of the others, however many e-folds it shrinks
or grows in one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import tableau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.engines.flow.step import Start, Stretch, begin_at
from reluflow.engines.flow.tolerances import BURDEN, FAR
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import SLIDE
from reluflow.kernels.flow.planes import multipliers
from reluflow.kernels.flow.plateau import any_below


def riders(at: Start, rtol: float) -> NDArray[np.bool_]:
    """The neurons (m,) that ride here and would limit the step to be tried."""
    problem, state, rows = at.problem, at.state, at.classes
    found = np.zeros(len(state.a), np.bool_)
    if problem.hidden or at.fastest * state.step < BURDEN or not rows.ray.any():
        return found
    level = _level(problem, rtol) - FAR
    if not any_below(state.a, state.w, state.sigma, rows.cid, level - np.log(problem.longest / 2)):
        return found
    living = rows.cid >= 0
    found[living] = rows.ray[rows.cid[living]] & (at.speeds[rows.cid[living]] > 0.0)
    found &= (problem.sign == 0.0) & ~state.still.any(axis=1) & ~np.isnan(state.still_sigma)
    return found & (state.log_outputs(problem) < level)


def without(state: State, ride: NDArray[np.bool_]) -> State:
    """The state in which riders are nothing: nothing moves these."""
    left = state.copy()
    left.a[ride], left.w[ride] = 0.0, 0.0
    return left


def carried(
    at: Start, ride: NDArray[np.bool_], stretch: Stretch, end: State, rtol: float
) -> State | None:
    """The end of a step with its riders; None if one of them cannot ride all the way.

    It may come too near the tolerance, or a slide of it may end.
    """
    problem, was = at.problem, at.state
    if not all(_holds(problem, was, c, ride) for c in (at.c, *stretch.c)):
        return None
    whole = stretch.step * (tableau.RADAU_A[-1] @ stretch.c)
    end.a[ride], end.w[ride], end.mode[ride] = was.a[ride], was.w[ride], was.mode[ride]
    end.still_sigma[ride] = was.still_sigma[ride]
    end.sigma = end.sigma.copy()
    end.sigma[ride] = was.sigma[ride] + _growth(problem, was, whole, ride)
    near = end.log_outputs(problem)[ride].max() > _level(problem, rtol) - 0.5 * FAR
    return None if near else end


def lasting(at: Start, rtol: float) -> Start:
    """The start without the riders that clearly shrink: where the others rest, these fade away.

    If there are no others it is a plateau.
    """
    problem, state = at.problem, at.state
    fading = riders(at, rtol)
    if not fading.any():
        return at
    fading[fading] = _growth(problem, state, at.c, fading) < -rtol * problem.rate
    alone = fading[at.classes.cid >= 0].all()
    return at if alone or not fading.any() else begin_at(problem, without(state, fading))


def _growth(problem: Problem, state: State, c: Array, ride: NDArray[np.bool_]) -> Array:
    """``sign(a) g.w/|w|`` of each rider in forces ``c``, or their integral."""
    planes = problem.planes
    low, high = (pair[0] for pair in on_planes(c[None], planes))
    pulls = [multipliers(low, high, row, planes.gram) @ planes.U for row in state.mode[ride]]
    w = state.w[ride]
    along = np.einsum("jd,jd->j", np.array(pulls), w) / np.linalg.norm(w, axis=1)
    return np.asarray(np.sign(state.a[ride]) * along)


def _holds(problem: Problem, state: State, c: Array, ride: NDArray[np.bool_]) -> bool:
    """Whether riders that slide go on to do so in forces ``c``: weights in [0, 1]."""
    planes = problem.planes
    low, high = (pair[0] for pair in on_planes(c[None], planes))
    for row in np.unique(state.mode[ride], axis=0):
        slides = row == SLIDE
        if slides.any():
            f = multipliers(low, high, row, planes.gram)[slides]
            ends = np.sort([low[slides], high[slides]], axis=0)
            if (f < ends[0]).any() or (f > ends[1]).any():
                return False
    return True


def _level(problem: Problem, rtol: float) -> float:
    return float(np.log(rtol * problem.output_scale))
