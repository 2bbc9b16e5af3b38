r"""What stays fixed during a flow: reduced points, Gram matrix, and the force law of the loss.

Forces are :math:`c_i = -dL/dh_i` in the clock of the loss. For the square loss the clock is time.
For the exponential and logistic losses it is ``s`` with ``ds = G dt``,
:math:`G = (1/n) \sum_i -\ell'(q_i)`: the forces are then ``y_i p_i`` with shares ``p`` that sum to
one, and nothing underflows (see `clock`).
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.kernels.layout import Law, Points
from reluflow.losses import Loss, Square


class Problem:
    """Data, loss and trained layers, in the coordinates the solver uses.

    When ``d > n`` the points are written in an orthonormal basis ``Q`` (d, n) of their span: the
    part of a neuron orthogonal to it never moves and is kept aside.
    """

    def __init__(self, data: Dataset, loss: Loss, train: str) -> None:
        self.data, self.loss, self.hidden = data, loss, train == "hidden"
        self.n = data.n
        self.basis: Array | None = None
        self.X: Array = np.array(data.X, order="C")  # writable: one signature of the kernels
        if data.d > data.n:
            q, r = np.linalg.qr(data.X.T)
            self.basis, self.X = q, np.ascontiguousarray(r.T)
        self.d = self.X.shape[1]
        self.y: Array = np.array(data.y)
        self.gram: Array = np.ascontiguousarray(self.X @ self.X.T)
        self.lengths: Array = np.sqrt(np.diag(self.gram))
        self.longest = float(self.lengths.max())
        self.points = Points(self.X, self.gram, self.lengths, self.y)
        self.spectral_norm = float(np.linalg.norm(self.X, 2))
        self.is_square = isinstance(loss, Square)
        self.is_logistic = loss.name == "logistic"
        self.kappa = loss.kappa(self.n) if isinstance(loss, Square) else 1.0
        self.output_scale = float(np.abs(self.y).max()) if self.is_square else 1.0
        if self.output_scale == 0.0:
            self.output_scale = 1.0
        self.force_scale = self.kappa * self.output_scale if self.is_square else 1.0
        # a bound on the speed |g| at a small start: one over the unit of clock time
        self.rate = self.longest
        if self.is_square:
            self.rate = self.kappa * self.spectral_norm * float(np.linalg.norm(self.y)) or 1.0
        self.law = Law(self.hidden, self.kappa, self.force_scale, self.longest, self.rate)

    def forces(self, h: Array) -> Array:
        """Forces for outputs ``h`` (..., n)."""
        if isinstance(self.loss, Square):
            return self.kappa * (self.y - h)
        slopes = self.loss.log_slope(self.y * h)
        weights = np.exp(slopes - slopes.max(axis=-1, keepdims=True))
        return np.asarray(self.y * weights / weights.sum(axis=-1, keepdims=True))

    def force_jacobian(self, h: Array) -> Array:
        r"""The matrix ``-dc/dh`` (n, n): kappa times the identity, or that of the shares."""
        if isinstance(self.loss, Square):
            return self.kappa * np.eye(self.n)
        q = self.y * h
        p = np.abs(self.forces(h))
        # d log(-l')/dq is -1 for the exponential and -sigmoid(q) for the logistic loss
        bend = np.ones(self.n) if self.loss.name == "exponential" else _sigmoid(q)
        jacobian = np.diag(p * bend) - np.outer(p, p * bend)
        return np.asarray(self.y[:, None] * jacobian * self.y[None, :])

    def log_loss(self, h: Array) -> float:
        """Logarithm of the loss at outputs ``h``."""
        return self.loss.log_value(h, self.y)


def _sigmoid(q: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0.0, -q)))
