r"""Mean losses over an interval of margins, in logs.

While x runs through a cell where the network is linear and the label constant, the margin runs
linearly from ``q_1`` to ``q_2``; under a uniform density the expected loss there is

.. math:: \frac{1}{q_2 - q_1} \int_{q_1}^{q_2} \ell(q) \, dq .

Margins are given as ``h exp(log_factor)``, so that factors beyond the range of floats do no harm.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.losses import Exponential, Logistic, logsumexp
from reluflow.quadrature import GAUSS_16, GAUSS_16_WEIGHTS

# beyond this margin the logistic loss is exp(-q), or -q, to rounding
_FAR = 40.0


def log_mean_loss(
    loss: Exponential | Logistic, first: float, last: float, log_factor: float
) -> float:
    """Return the logarithm of the mean loss over margins ``exp(log_factor) [first, last]``.

    Numerics
    --------
    Relative error of the mean below 1e-14 (times ``|q|`` where the loss is exp(|q|)): closed form
    for the exponential loss; for the logistic one Gauss-Legendre on pieces of length 1 up to
    margins of +-40 (the nearest singularities are at distance pi) and closed forms beyond.
    """
    low, high = min(first, last), max(first, last)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        factor = np.exp(log_factor)
        q_low, q_high = _times(low, factor), _times(high, factor)
        log_width = float(log_factor + np.log(high - low))
        width = float(np.exp(log_width))
        if isinstance(loss, Exponential):
            return -q_low + _log_decay(width, log_width)
        if width <= 1.0:
            middle = q_low + width * GAUSS_16 if np.isfinite(q_low) else np.full(1, q_low)
            weights = GAUSS_16_WEIGHTS if np.isfinite(q_low) else np.ones(1)
            return logsumexp(loss.log_pointwise(middle) + np.log(weights))
        return logsumexp(
            np.array(
                [
                    _log_left(low, high, log_factor),
                    *_log_centre(loss, q_low, q_high, log_width),
                    _log_right(q_low, q_high, log_width),
                ]
            )
        )


def _times(value: float, factor: float) -> float:
    """A product in which zero wins over infinity."""
    return 0.0 if value == 0.0 else float(value * factor)


def _log_decay(width: float, log_width: float) -> float:
    """``log((1 - exp(-width)) / width)``."""
    if width < 1e-5:
        return -0.5 * width + width * width / 24.0
    return float(np.log(-np.expm1(-width))) - log_width


def _log_left(low: float, high: float, log_factor: float) -> float:
    """Share of margins below -40, where the loss is -q."""
    near = max(-high, _FAR * float(np.exp(-log_factor)))
    if -low <= near:
        return -np.inf
    mean, share = 0.5 * (near - low), (-low - near) / (high - low)
    return float(log_factor + np.log(mean) + np.log(share))


def _log_centre(loss: Logistic, q_low: float, q_high: float, log_width: float) -> Array:
    start, end = max(q_low, -_FAR), min(q_high, _FAR)
    if start >= end:
        return np.full(1, -np.inf)
    edges = np.linspace(start, end, int(np.ceil(end - start)) + 1)
    q = edges[:-1, None] + np.diff(edges)[:, None] * GAUSS_16
    logs = loss.log_pointwise(q) + np.log(GAUSS_16_WEIGHTS) + np.log(np.diff(edges))[:, None]
    return np.asarray(logs.ravel() - log_width)


def _log_right(q_low: float, q_high: float, log_width: float) -> float:
    """Share of margins above 40, where the loss is exp(-q)."""
    start = max(q_low, _FAR)
    if q_high <= start:
        return -np.inf
    return float(-start + np.log(-np.expm1(-(q_high - start))) - log_width)
