r"""Upper bounds on the largest sum of activations when the patterns are too many to list.

Each bounds :math:`F(\lambda) = \max_{|w| \le 1} \sum_i \lambda_i \varphi(u_i \cdot w)` with
:math:`\varphi(t) = \max(t, \sigma t)`; the smallest is returned. They are exact in the cases named,
and otherwise only safe.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.complementarity import complementarity_bound


def supremum_bound(U: Array, lam: Array, target: float, slope: float = 0.0) -> float:
    """Smallest of the bounds below; refining stops once it has come down to ``target``."""
    gain = lam > 0
    if slope:
        return min(_leaky_spectral(U, lam, slope), _chord(U, lam, slope))
    if not gain.any():
        return 0.0
    bounds = [_spectral(U[gain], lam[gain]), _chord(U, lam)]
    if len(U) == U.shape[1]:
        bounds.append(complementarity_bound(U, lam, target))
    return min(bounds)


def _spectral(U: Array, lam: Array) -> float:
    r"""``relu(t) = (t + |t|)/2`` and Cauchy-Schwarz: with :math:`S = \sum \lambda_i u_i u_i^T`,
    :math:`\sum \lambda_i |u_i \cdot w| \le \sqrt{|\lambda|_1\, w^T S w}`.
    """
    linear = lam @ U
    top = float(np.linalg.eigvalsh((U * lam[:, None]).T @ U)[-1])
    return (float(np.sqrt(linear @ linear)) + float(np.sqrt(lam.sum() * top))) / 2


def _leaky_spectral(U: Array, lam: Array, slope: float) -> float:
    r"""As `_spectral`, with :math:`\varphi(t) = ((1 + \sigma) t + (1 - \sigma) |t|)/2`."""
    gain = lam > 0
    c = _less_losses(U, lam, (1.0 + slope) / 2.0 * (lam[gain] @ U[gain]), slope)
    top = float(np.linalg.eigvalsh((U[gain] * lam[gain, None]).T @ U[gain])[-1])
    bent = float(np.sqrt(lam[gain].sum() * max(top, 0.0)))
    return float(np.sqrt(c @ c)) + (1.0 - slope) / 2.0 * bent


def _chord(U: Array, lam: Array, slope: float = 0.0) -> float:
    r"""The chord of :math:`\varphi` over [-1, 1] for gains, a line below it for losses."""
    gain = lam > 0
    c = _less_losses(U, lam, (1.0 + slope) * (lam[gain] @ U[gain]) / 2, slope)
    return float(np.sqrt(c @ c)) + (1.0 - slope) * float(lam[gain].sum()) / 2


def _less_losses(U: Array, lam: Array, c: Array, slope: float) -> Array:
    r"""Subtract losses by the lines :math:`\alpha_i t \le \varphi(t)` that leave least of ``c``."""
    from scipy.optimize import lsq_linear

    loss = lam < 0
    B = -lam[loss, None] * U[loss]
    if not len(B):
        return c
    shares = np.clip(lsq_linear(B.T, c, bounds=(slope, 1.0)).x, slope, 1.0)
    return np.asarray(c - shares @ B)
