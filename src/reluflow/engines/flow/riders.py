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
from reluflow.engines.flow.step import Start, Stretch
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.planes import multipliers

# outputs of riders are this many e-folds below the tolerance, and may come to be half as many
FAR = 80.0
# those that turn by less in a step are no burden
BURDEN = 0.1


def riders(at: Start, rtol: float) -> NDArray[np.bool_]:
    """The neurons (m,) that ride here and would limit the step to be tried."""
    problem, state, rows = at.problem, at.state, at.classes
    found = np.zeros(len(state.a), np.bool_)
    if problem.hidden or at.fastest * state.step < BURDEN:
        return found
    living = rows.cid >= 0
    found[living] = rows.ray[rows.cid[living]] & (at.speeds[rows.cid[living]] > 0.0)
    found &= (problem.sign == 0.0) & ~state.still.any(axis=1) & ~np.isnan(state.still_sigma)
    return found & (_log_outputs(state, problem) < _level(problem, rtol) - FAR)


def without(state: State, ride: NDArray[np.bool_]) -> State:
    """The state in which riders are nothing: nothing moves these."""
    left = state.copy()
    left.a[ride], left.w[ride] = 0.0, 0.0
    return left


def carried(
    at: Start, ride: NDArray[np.bool_], stretch: Stretch, end: State, rtol: float
) -> State | None:
    """The end of a step with its riders; None if one of them comes too near the tolerance."""
    problem, was = at.problem, at.state
    whole = stretch.step * (tableau.RADAU_A[-1] @ stretch.c)
    low, high = (pair[0] for pair in on_planes(whole[None], problem.planes))
    end.sigma = end.sigma.copy()
    for j in np.flatnonzero(ride).tolist():
        end.a[j], end.w[j] = was.a[j], was.w[j]
        pull = multipliers(low, high, was.mode[j], problem.planes.gram) @ problem.planes.U
        along = float(pull @ was.w[j]) / float(np.linalg.norm(was.w[j]))
        end.sigma[j] = was.sigma[j] + np.sign(was.a[j]) * along
        end.mode[j], end.still_sigma[j] = was.mode[j], was.still_sigma[j]
    near = _log_outputs(end, problem)[ride].max() > _level(problem, rtol) - 0.5 * FAR
    return None if near else end


def _level(problem: Problem, rtol: float) -> float:
    return float(np.log(rtol * problem.output_scale))


def _log_outputs(state: State, problem: Problem) -> Array:
    """Logarithm of a bound on the output of each neuron."""
    squares = state.a**2 + np.einsum("jd,jd->j", state.w, state.w)
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * state.sigma + np.log(squares) + np.log(problem.longest))
