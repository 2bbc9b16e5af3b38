"""Random problems of the figures, and the predictions that go with descent."""

from __future__ import annotations

import math

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.datasets import orthonormal
from reluflow.limits import SaddleToSaddle, saddle_to_saddle
from reluflow.limits.sharp import half_times
from reluflow.losses import logsumexp
from reluflow.network import Network
from reluflow.networks import balanced

TRIES = 1000


def covered(n: int, m: int, log_scale: float, seed: int) -> tuple[Dataset, Network, SaddleToSaddle]:
    """Positive labels and positive neurons, drawn again until every point has a neuron.

    The labels are those of the seed; only the start is drawn again.
    """
    rng = np.random.default_rng(seed)
    data = orthonormal(n, labels="positive", seed=rng)
    for _ in range(TRIES):
        net = balanced(n, m, log_scale=log_scale, directions="sphere", signs="positive", seed=rng)
        process = saddle_to_saddle(data, net)
        if process.interpolates:
            return data, net, process
    raise RuntimeError(f"no start of {m} neurons covers {n} points in {TRIES} draws")


def half_epochs(process: SaddleToSaddle, log_scale: float, lr: float) -> Array:
    r"""Epochs at which the groups reach half their norm under descent.

    A step multiplies a mode of rate g by :math:`1 + \eta g`, so slopes become
    :math:`\log(1 + \eta g)/\eta`; the constants are those of the flow.
    """
    assert process.log_chi is not None
    starts = [
        log_scale + 0.5 * logsumexp(2.0 * process.log_chi[neurons]) for neurons in process.members
    ]
    record = process.race
    times, _ = half_times(
        np.array(starts),
        record.jumpers,
        np.log1p(lr * record.slopes) / lr,
        record.overlaps,
        record.norms,
        process.kappa,
    )
    return np.asarray(times / lr)


def width_for(n: int, failure: float = 0.01) -> int:
    """Neurons of random sign that leave a point uncovered with probability at most ``failure``.

    Examples
    --------
    >>> [width_for(n) for n in (16, 1024, 100_000)]
    [26, 41, 57]
    """
    return math.ceil(math.log(n / failure) / math.log(4.0 / 3.0))


def near_orthogonal(n: int, d: int, m: int, strength: float, seed: int) -> tuple[Dataset, Network]:
    r"""Unit points :math:`x_i \propto e_i + \epsilon g_i`, g Gaussian of norm about 1.

    The labels, the noise and the start are the same for every strength.
    """
    rng = np.random.default_rng(seed)
    y = np.abs(rng.standard_normal(n)) + 0.1
    noise = rng.standard_normal((n, d)) / math.sqrt(d)
    net = balanced(d, m, directions="sphere", signs="positive", seed=rng)
    X = np.eye(n, d) + strength * noise
    return Dataset(X / np.linalg.norm(X, axis=1)[:, None], y), net
