r"""Time from the loss's own clock.

For the square loss, and with weight decay, the clock is time. For the others ``dt = ds / G`` with
``G`` as small as the loss, down to exp(-1e6): elapsed time is the integral of :math:`e^{\phi}`,
:math:`\phi = -\log G`, over the polynomial through the values of :math:`\phi` at the nodes of a
step, always in logs.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow import tableau
from reluflow.engines.flow.problem import Problem
from reluflow.losses import Square, logsumexp
from reluflow.quadrature import GAUSS_12, GAUSS_12_WEIGHTS


def log_slowness(problem: Problem, h: Array) -> float:
    """``log(dt/ds)`` at outputs ``h``: 0 where the clock is time."""
    if problem.is_timed or isinstance(problem.loss, Square):
        return 0.0
    return -problem.loss.log_total_force(problem.y * h)


def log_elapsed(slowness: Array, step: float, tau: float = 1.0) -> float:
    r"""Logarithm of the time between the start of a step and its fraction ``tau``.

    ``slowness`` holds :math:`\phi` at the start and at the Radau nodes. Late in training
    :math:`\phi` rises by hundreds within a step and all time passes at its end, so panels shrink
    geometrically towards ``tau``.
    """
    if tau <= 0.0:
        return -np.inf
    slopes = np.abs(np.diff(slowness)) / np.diff(tableau.START_RADAU)
    depth = int(np.clip(np.ceil(np.log2(max(float(slopes.max()) * tau, 1.0))), 0, 60))
    edges = tau * np.concatenate([1.0 - 0.5 ** np.arange(depth + 1), [1.0]])
    widths = np.diff(edges)
    at = (edges[:-1, None] + widths[:, None] * GAUSS_12).ravel()
    phi = tableau.lagrange_matrix(tableau.START_RADAU, at) @ slowness
    weights = (widths[:, None] * GAUSS_12_WEIGHTS).ravel()
    return logsumexp(phi + np.log(weights)) + float(np.log(step))
