r"""Upper bounds on the largest ReLU sum when the patterns are too many to list.

Each bounds :math:`F(\lambda) = \max_{|w| \le 1} \sum_i \lambda_i \mathrm{relu}(u_i \cdot w)`;
the smallest is returned. They are exact in the cases named, and otherwise only safe.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.complementarity import complementarity_bound


def supremum_bound(U: Array, lam: Array, target: float) -> float:
    """Smallest of the bounds below; refining stops once it has come down to ``target``."""
    gain = lam > 0
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


def _chord(U: Array, lam: Array) -> float:
    r"""``relu(t) <= (t + 1)/2`` for gains; the best :math:`\alpha_i t` below for losses."""
    from scipy.optimize import lsq_linear

    gain, loss = lam > 0, lam < 0
    c = lam[gain] @ U[gain] / 2
    B = -lam[loss, None] * U[loss]
    if len(B):
        c = c - np.clip(lsq_linear(B.T, c, bounds=(0.0, 1.0)).x, 0.0, 1.0) @ B
    return float(np.sqrt(c @ c)) + float(lam[gain].sum()) / 2
