r"""Models that are linear in what is trained: fixed features at the start of a network.

.. math:: h(x) = h_0(x) + \phi(x) \cdot (\theta - \theta_0)

Two kinds. ``output``: the hidden layer stays, :math:`\phi = \varphi(W_0 x)` with the activation
:math:`\varphi`, and the model is the network itself. ``linearised``: the tangent of the network at
its start, with the features :math:`(\varphi(w_j \cdot x),\; a_j \varphi'(w_j \cdot x)\, x)_j`; its
outputs are not those of a network with the weights :math:`\theta`. Layers may learn at rates of
their own: with features multiplied by the roots of the rates, the flow is the plain one of
:math:`z`, :math:`\theta = \theta_0 + \sqrt{rate}\, z`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network, activation, gates

LARGEST_BYTES = 2**30
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Features on the data, ``U diag(sigma) V^T``, with the singular values that are not rounding.

    ``U`` (n, k), ``sigma`` (k,) falling, ``V`` (p, k); ``sigma**2`` are the eigenvalues of the
    kernel, right to rounding of the largest sigma.
    """

    U: Array
    sigma: Array
    V: Array


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model on data: ``net`` is the start, with plain weights; ``rates`` (hidden, output).

    Attributes
    ----------
    data, net : Dataset, Network
        The points, and where training starts.
    kind : str
        "output" or "linearised".
    rates : pair of float
        How fast hidden and output weights learn.
    """

    data: Dataset
    net: Network
    kind: str
    rates: tuple[float, float] = (1.0, 1.0)

    def features(self, X: Array) -> Array:
        """Features of points (n, d), multiplied by the roots of the rates: (n, p)."""
        z = X @ self.net.W.T
        hidden, output = np.sqrt(self.rates)
        outer = output * activation(z, self.net.slope)
        if self.kind == "output":
            return np.asarray(outer)
        factors = hidden * gates(z > 0.0, self.net.slope) * self.net.a  # (n, m)
        inner = factors[:, :, None] * X[:, None, :]
        return np.concatenate([outer, inner.reshape(len(X), -1)], axis=1)

    @cached_property
    def start_outputs(self) -> Array:
        """Outputs of the start on the data."""
        return np.asarray(activation(self.data.X @ self.net.W.T, self.net.slope) @ self.net.a)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Singular values and vectors of the features on the data."""
        n, m, d = self.data.n, self.net.width, self.data.d
        p = m if self.kind == "output" else m * (d + 1)
        if 8 * n * p > LARGEST_BYTES:
            raise InputError(
                f"{n} points have {p} features each, {8 * n * p / 2**30:.1f} GB. At most 1 GB is "
                "used. Take fewer points or neurons."
            )
        U, sigma, Vt = np.linalg.svd(self.features(self.data.X), full_matrices=False)
        kept = sigma > max(n, p) * EPS * sigma[0]
        return Spectrum(U[:, kept], sigma[kept], np.ascontiguousarray(Vt[kept].T))

    def network(self, z: Array) -> Network:
        """The weights at ``z`` (p,), the displacement in units of the roots of the rates."""
        m, (hidden, output) = self.net.width, np.sqrt(self.rates)
        a, W = self.net.a + output * z[:m], self.net.W
        if self.kind == "linearised":
            W = W + hidden * z[m:].reshape(W.shape)
        return Network(a, W, slope=self.net.slope)

    def modes(self, at: Network) -> Array:
        """The displacement of weights in the modes: the inverse of ``network(V @ zeta)``."""
        hidden, output = np.sqrt(self.rates)
        z = (at.a - self.net.a) / output
        if self.kind == "linearised":
            z = np.append(z, (at.W - self.net.W) / hidden)
        return np.asarray(self.spectrum.V.T @ z)

    def predict(self, X: Array, at: Network) -> Array:
        """Outputs of the model, not of the network, at points (n, d) with the weights ``at``."""
        z = X @ self.net.W.T
        h = activation(z, self.net.slope) @ at.a
        if self.kind == "linearised":
            passed = gates(z > 0.0, self.net.slope) * self.net.a
            h = h + (passed * (X @ (at.W - self.net.W).T)).sum(axis=1)
        return np.asarray(h)


@dataclass(frozen=True, eq=False)
class Fit:
    r"""Where square-loss training of a linear model leads, mode by mode.

    Residuals are :math:`r(t) = U e^{-\kappa \sigma^2 t} \rho + r_\perp`, and
    :math:`z(t) = V \sigma^{-1} (1 - e^{-\kappa \sigma^2 t}) \rho`.
    """

    model: LinearModel
    kappa: float

    @cached_property
    def rho(self) -> Array:
        """Residuals of the start in the modes."""
        return np.asarray(self.model.spectrum.U.T @ self._start)

    @cached_property
    def rest(self) -> Array:
        """The residual that no weights reach, zero if it is rounding."""
        rest = self._start - self.model.spectrum.U @ self.rho
        size = np.abs(self.model.data.y) + self._terms
        n = self.model.data.n
        if np.linalg.norm(rest) <= 10.0 * n * EPS * np.linalg.norm(size):
            return np.zeros(n)
        return np.asarray(rest)

    @cached_property
    def _start(self) -> Array:
        return np.asarray(self.model.data.y - self.model.start_outputs)

    @cached_property
    def _terms(self) -> Array:
        """The size of the terms that the outputs of the start are sums of."""
        net = self.model.net
        z = self.model.data.X @ net.W.T
        return np.asarray(np.abs(activation(z, net.slope)) @ np.abs(net.a))

    @cached_property
    def rates(self) -> Array:
        """The rates at which modes decay, largest first."""
        return np.asarray(self.kappa * self.model.spectrum.sigma**2)

    @property
    def interpolates(self) -> bool:
        """Whether the loss tends to zero."""
        return not self.rest.any()

    def displacement(self, t: float) -> Array:
        """The displacement z at time t, which may be infinite."""
        with np.errstate(over="ignore"):
            done = -np.expm1(-self.rates * t) if len(self.rates) else self.rates
        return np.asarray(self.model.spectrum.V @ (done * self.rho / self.model.spectrum.sigma))

    def outputs(self, t: float) -> Array:
        """Outputs on the data at time t."""
        with np.errstate(over="ignore", under="ignore"):
            left = np.exp(-self.rates * t) * self.rho
        return np.asarray(self.model.data.y - self.model.spectrum.U @ left - self.rest)

    def log_loss(self, t: float) -> float:
        """Logarithm of the loss at time t, also where it is below the range of floats."""
        with np.errstate(divide="ignore", over="ignore"):
            moving = 2.0 * np.log(np.abs(self.rho)) - 2.0 * self.rates * t
            logs = np.append(moving, 2.0 * np.log(np.linalg.norm(self.rest)))
        top = float(logs.max())
        if top == -np.inf:
            return top
        return top + float(np.log(np.exp(logs - top).sum()) + np.log(0.5 * self.kappa))

    @property
    def error(self) -> float:
        """Estimate of the rounding error of the displacement at infinite time."""
        sigma = self.model.spectrum.sigma
        if not len(sigma):
            return 0.0
        n, condition = self.model.data.n, float(sigma[0] / sigma[-1])
        size = float(np.linalg.norm(self.rho / sigma))
        lost = size + float(np.linalg.norm(self.rest)) / float(sigma[-1])
        weights = float(
            np.hypot(np.linalg.norm(self.model.net.a), np.linalg.norm(self.model.net.W))
        )
        rounding = float(np.linalg.norm(self._terms)) / float(sigma[-1])
        return float(4.0 * np.sqrt(n) * EPS * (condition * lost + rounding + weights))
