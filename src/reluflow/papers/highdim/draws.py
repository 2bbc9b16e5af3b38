r"""Problems of the paper, ready to be trained: data, start and step.

The step is :math:`\eta = 1/(C\,l_1)`, with ``C`` raised to 1.1 times :math:`\mu_{\max}(G)/l_1`
where that is larger: descent diverges beyond twice the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.datasets import bartlett
from reluflow.datasets.highdim import effective_dimensions
from reluflow.network import Network
from reluflow.networks import by_preactivations


@dataclass(frozen=True)
class Problem:
    """Data, start and step of one training."""

    data: Dataset
    net: Network
    lr: float


def trace_of(data: Dataset) -> float:
    """``l1``: trace of the covariance where it is known, mean squared norm of the points if not."""
    if data.spectrum is not None:
        return effective_dimensions(data).trace
    return float(np.trace(data.gram) / data.n)


def step_size(data: Dataset, constant: float) -> float:
    """``1/(C l1)``, at most ``1/(1.1 mu_max)``."""
    top = float(np.linalg.eigvalsh(data.gram)[-1])
    return 1.0 / max(constant * trace_of(data), 1.1 * top)


def positive_start(
    n: int,
    d: int,
    *,
    constant: float = 2.0,
    eps: float | None = None,
    signs: ArrayLike = (1,),
    n_positive: int | None = None,
    seed: int,
) -> Problem:
    """Isotropic data and a start that is active everywhere (Theorems 1 and 3).

    ``eps`` is 0.02 of the first kick by default, ``0.02 y_min/C``.
    """
    data = bartlett(n, d, n_positive=n_positive, seed=seed)
    size = 0.02 * float(np.abs(data.y).min()) / constant if eps is None else eps
    return Problem(data, by_preactivations(data, size, signs), step_size(data, constant))


def random_start(
    n: int, d: int, sigma: float, *, constant: float = 2.0, n_positive: int | None = None, seed: int
) -> Problem:
    """Isotropic data and one positive neuron with pre-activations N(0, sigma^2 G/d)."""
    data = bartlett(n, d, n_positive=n_positive, seed=seed)
    W = np.random.default_rng([seed, 1]).normal(size=(1, data.d)) * sigma / np.sqrt(d)
    return Problem(data, Network([1.0], W), step_size(data, constant))


def assigned_start(
    n: int, d: int, signs: ArrayLike, *, eps: float = 0.1, constant: float = 2.0, seed: int
) -> Problem:
    """Isotropic data and a start with a neuron of its own for each point (Theorem 5).

    Points of one sign are dealt to the neurons of that sign in turn; ``eps`` is in units of
    ``y_min``.
    """
    data = bartlett(n, d, seed=seed)
    s = np.asarray(signs, dtype=np.float64)
    tau = deal(data.y, s)
    size = eps * float(np.abs(data.y).min())
    net = by_preactivations(data, size, s, assignment=tau)
    return Problem(data, net, step_size(data, constant))


def deal(y: Array, s: Array) -> NDArray[np.int64]:
    """An assignment of points to neurons of their sign, in turn."""
    tau = np.zeros(len(y), dtype=np.int64)
    for sign in (1.0, -1.0):
        points, neurons = np.flatnonzero(np.sign(y) == sign), np.flatnonzero(s == sign)
        if len(points):
            tau[points] = neurons[np.arange(len(points)) % len(neurons)]
    return tau
