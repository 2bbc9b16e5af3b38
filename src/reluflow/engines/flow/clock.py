r"""Time from the loss's own clock.

For the square loss, and with weight decay, the clock is time. For the others ``dt = ds / G`` with
``G`` as small as the loss, down to exp(-1e6): elapsed time is the integral of :math:`e^{\phi}`,
:math:`\phi = -\log G`, over the polynomial through the values of :math:`\phi` at the nodes of a
step, always in logs.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.tableau import Tableau, lagrange_matrix
from reluflow.losses import Square, logsumexp
from reluflow.quadrature import GAUSS_12, GAUSS_12_WEIGHTS


def log_slowness(problem: Problem, h: Array) -> float:
    """``log(dt/ds)`` at outputs ``h``: 0 where the clock is time."""
    if problem.is_timed or isinstance(problem.loss, Square):
        return 0.0
    return -problem.loss.log_total_force(problem.y * h)


def log_slowness_at(problem: Problem, rows: Array) -> Array:
    """The same at outputs (K, n)."""
    if problem.is_timed or isinstance(problem.loss, Square):
        return np.zeros(len(rows))
    logs = problem.loss.log_slope(problem.y * rows)
    top = logs.max(axis=1)
    total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
    return np.asarray(np.log(problem.n) - total)


def log_elapsed(method: Tableau, slowness: Array, step: float, tau: float = 1.0) -> float:
    r"""Logarithm of the time between the start of a step and its fraction ``tau``.

    ``slowness`` holds :math:`\phi` at the start and at the nodes of the ``method``. Late in
    training :math:`\phi` rises by hundreds within a step and all time passes at its end, so panels
    shrink geometrically towards ``tau``.
    """
    if tau <= 0.0:
        return -np.inf
    slopes = np.abs(np.diff(slowness)) / np.diff(method.tables.nodes)
    depth = int(np.clip(np.ceil(np.log2(max(float(slopes.max()) * tau, 1.0))), 0, 60))
    at, weights = panels(depth)
    matrix = _whole_panels(method, depth) if tau == 1.0 else _between(method, tau * at)
    return logsumexp(matrix @ slowness + weights) + float(np.log(tau * step))


def _between(method: Tableau, shares: Array) -> Array:
    return lagrange_matrix(method.tables.nodes, shares)


@cache
def _whole_panels(method: Tableau, depth: int) -> Array:
    return _between(method, panels(depth)[0])


@cache
def panels(depth: int) -> tuple[Array, Array]:
    """Nodes of panels that halve ``depth`` times towards one, and logarithms of their weights."""
    left = 0.5 ** np.arange(depth + 1)  # to one: near it differences of edges would be zero
    widths = np.append(left[:-1] - left[1:], left[-1])
    at = (1.0 - left[:, None] + widths[:, None] * GAUSS_12).ravel()
    return at, np.log((widths[:, None] * GAUSS_12_WEIGHTS).ravel())


def log_elapsed_at(method: Tableau, slowness: Array, step: float, shares: Array) -> Array:
    """The same for many fractions of a step."""
    slopes = np.abs(np.diff(slowness)) / np.diff(method.tables.nodes)
    depths = np.ceil(np.log2(np.maximum(float(slopes.max()) * shares, 1.0)))
    depths = np.clip(depths, 0, 60).astype(np.int64)
    passed = np.full(len(shares), -np.inf)
    for depth in np.unique(depths[shares > 0.0]).tolist():
        own = np.flatnonzero((depths == depth) & (shares > 0.0))
        at, weights = panels(depth)
        inside = shares[own, None] * at
        phi = _between(method, inside.ravel()) @ slowness
        logs = phi.reshape(inside.shape) + weights
        top = logs.max(axis=1)
        passed[own] = top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) + np.log(shares[own])
    return passed + float(np.log(step))
