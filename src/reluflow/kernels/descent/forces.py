r"""Compiled losses for gradient descent: forces ``c_i = -dL/dh_i`` and the log-loss together.

The readable twins are the losses of `reluflow.losses`: ``forces``, ``shares``, ``log_value``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.kernel import kernel

Array = NDArray[np.float64]

SQUARE, EXPONENTIAL, LOGISTIC = 0, 1, 2


@kernel(error_model="numpy")
def square_forces(kappa: float, h: Array, y: Array, c: Array) -> float:
    """Fill the forces of the square loss and return its logarithm (inf if not finite)."""
    top = 0.0
    for i in range(len(y)):
        r = y[i] - h[i]
        if not math.isfinite(r):
            return np.inf
        c[i] = kappa * r
        top = max(top, abs(r))
    if top == 0.0:
        return -np.inf
    total = 0.0
    for i in range(len(y)):
        r = (y[i] - h[i]) / top
        total += r * r
    return math.log(0.5 * kappa * total) + 2.0 * math.log(top)


@kernel(error_model="numpy")
def log_pointwise(loss: int, q: float) -> float:
    """Logarithm of the loss at margin q: ``-q`` or ``log log(1 + e^-q)``, by series above 30."""
    if loss == EXPONENTIAL:
        return -q
    if q > 30.0:
        return -q - 0.5 * math.exp(-q)
    return math.log(math.log1p(math.exp(-abs(q))) + max(-q, 0.0))


@kernel(error_model="numpy")
def margin_forces(loss: int, shares: bool, h: Array, y: Array, c: Array) -> float:
    """Fill the forces (or the shares ``y_i p_i``, which sum to one) and return the log-loss."""
    n = len(y)
    top_loss, top_slope = -np.inf, -np.inf
    for i in range(n):
        q = y[i] * h[i]
        if not math.isfinite(q):
            return np.inf
        slope = -(max(q, 0.0) + math.log1p(math.exp(-abs(q)))) if loss == LOGISTIC else -q
        c[i] = slope
        top_slope = max(top_slope, slope)
        top_loss = max(top_loss, log_pointwise(loss, q))
    total_loss, total = 0.0, 0.0
    shift = top_slope if shares else 0.0
    for i in range(n):
        total_loss += math.exp(log_pointwise(loss, y[i] * h[i]) - top_loss)
        weight = math.exp(c[i] - shift)
        total += weight
        c[i] = y[i] * weight
    scale = total if shares else float(n)
    for i in range(n):
        c[i] /= scale
    return math.log(total_loss / n) + top_loss


@kernel
def forces(loss: int, shares: bool, kappa: float, h: Array, y: Array, c: Array) -> float:
    """Fill ``c`` and return the log-loss; ``shares`` and ``kappa`` as each loss needs them."""
    log_loss: float
    if loss == SQUARE:
        log_loss = square_forces(kappa, h, y, c)
    else:
        log_loss = margin_forces(loss, shares, h, y, c)
    return log_loss
