r"""Projections on cones: non-negative least squares with the gap that certifies them.

.. math:: \min_{\mu \ge 0} |b - A\mu|

The residual is the projection of ``b`` on the polar of the cone of the columns. For every feasible
:math:`\mu` its length is an upper bound on the length of the projection, and with
:math:`g = A^T(b - A\mu)` the square exceeds that of the projection by at most
:math:`|\mu|\cdot|g|` when no entry of g is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.geometry.nonnegative import nnls


@dataclass(frozen=True)
class NonnegativeFit:
    r"""A minimiser and its proof.

    Attributes
    ----------
    mu : (k,) array
        Non-negative coefficients.
    residual : (r,) array
        :math:`b - A\mu`.
    kkt : float
        The larger of the violation of :math:`A^T(b - A\mu) \le 0`, over ``|b|`` and the column
        lengths, and of the gap :math:`|\mu|\cdot|A^T(b - A\mu)| / |b|^2`.
    """

    mu: Array
    residual: Array
    kkt: float


def nonnegative_fit(A: Array, b: Array) -> NonnegativeFit:
    """Best non-negative fit of ``b`` by the columns of ``A`` (r, k).

    Numerics
    --------
    The solver is `geometry.nonnegative.nnls` (SciPy's, checked, with a fallback); the violation
    is measured here once more, as a gap, because that is what bounds the length of a projection.
    """
    mu = nnls(A, b).x
    residual = b - A @ mu
    square = float(b @ b)
    if square == 0.0 or A.shape[1] == 0:
        return NonnegativeFit(mu, residual, 0.0)
    slope = A.T @ residual
    lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
    ascent = float((slope / np.where(lengths > 0, lengths, 1.0)).max()) / np.sqrt(square)
    gap = float(np.abs(mu * slope).sum()) / square
    return NonnegativeFit(mu, residual, max(ascent, gap, 0.0))
