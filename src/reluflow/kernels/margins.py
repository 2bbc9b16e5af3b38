r"""Classification losses in their own clock: shares, and the steps solved with them."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.collocation import MAX_ITERATIONS, node_outputs, rebent, settled
from reluflow.kernels.layout import Neurons, Points, Rows, Tables


@njit(cache=True, nogil=True)
def shares(h: Array, y: Array, logistic: bool) -> Array:
    """Forces ``y_i p_i`` (S, n) of a classification loss in its own clock; the p sum to one."""
    c = np.empty(h.shape)
    stages, n = h.shape
    for k in range(stages):
        top = -np.inf
        for i in range(n):
            q = y[i] * h[k, i]
            slope = -q
            if logistic:
                slope = -max(q, 0.0) - np.log1p(np.exp(-abs(q)))
            c[k, i] = slope
            top = max(top, slope)
        total = 0.0
        for i in range(n):
            c[k, i] = np.exp(c[k, i] - top)
            total += c[k, i]
        for i in range(n):
            c[k, i] *= y[i] / total
    return c


@njit(cache=True, nogil=True)
def share_jacobian(h: Array, c: Array, y: Array, logistic: bool) -> Array:
    """The matrix ``-dc/dh`` (n, n) at outputs ``h`` (n,) with forces ``c``."""
    n = len(h)
    jacobian = np.empty((n, n))
    for k in range(n):
        # d log(-l')/dq is -1 for the exponential and -sigmoid(q) for the logistic loss
        bend = 1.0
        if logistic:
            q = y[k] * h[k]
            bend = 1.0 / (1.0 + np.exp(-q)) if q >= 0 else np.exp(q) / (1.0 + np.exp(q))
        for i in range(n):
            jacobian[i, k] = -c[i] * abs(c[k]) * bend * y[k]
        jacobian[k, k] += abs(c[k]) * bend
    return jacobian


@njit(cache=True, nogil=True)
def solve_margin(
    neurons: Neurons,
    rows: Rows,
    points: Points,
    tables: Tables,
    h0: Array,
    c0: Array,
    kernel: Array,
    stiff: bool,
    logistic: bool,
    step: float,
    bend: Array,
    ratio: float,
    goal: float,
    rounding: float,
    hidden: bool,
    kinks: Array,
) -> tuple[int, Array, Array, Array]:
    """Iterate on the outputs at the nodes: ``h - out(c(h)) - kinks = 0``.

    The shares have their own Jacobian at each node. Otherwise as `solve_square`. Where it is stiff
    the forecast is linearly implicit: late in training the slopes of the outputs at the start are
    noise, and a step along them would leave the region in which Newton's method converges.
    """
    n = len(h0)
    stages = len(tables.radau)
    slope = np.dot(kernel, c0)
    forecast = np.empty((stages, n))
    block = np.zeros((n, n))
    if stiff:
        block = np.dot(kernel, share_jacobian(h0, c0, points.y, logistic))
    for k in range(stages):
        ahead = step * tables.radau[k]
        rise = ahead * slope
        if stiff:
            rise = np.linalg.solve(np.eye(n) + ahead * block, rise)
        forecast[k] = h0 + rise
    h = forecast + rebent(bend, tables.nodes, ratio)
    c = h
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        c = shares(h, points.y, logistic)
        out = node_outputs(c, neurons, rows, points.X, step, tables.radau_a, hidden)
        change = out + kinks - h
        if not np.all(np.isfinite(change)):
            return 0, h, c, bend
        if stiff:
            matrix = np.empty((stages * n, stages * n))
            for q in range(stages):
                block = np.dot(kernel, share_jacobian(h[q], c[q], points.y, logistic))
                for k in range(stages):
                    f = step * tables.radau_a[k, q]
                    for i in range(n):
                        for r in range(n):
                            matrix[k * n + i, q * n + r] = f * block[i, r]
            for k in range(stages * n):
                matrix[k, k] += 1.0
            change = np.linalg.solve(matrix, change.reshape(stages * n)).reshape(stages, n)
        h += change
        size = np.abs(change).max()
        if settled(size, previous, goal, rounding):
            return iteration, h, shares(h, points.y, logistic), h - forecast
        if size > 2.0 * previous and iteration > 2:
            return 0, h, c, bend
        previous = size
    return 0, h, c, bend
