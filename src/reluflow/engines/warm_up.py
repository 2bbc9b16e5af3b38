"""Compile what the engines need ahead of their first use: what problems of no size call.

They are run where numba is switched off; that takes a second and shows which kernels Python enters,
with which types (`kernels.entered`). Any process can then compile any of these.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from reluflow.dataset import Dataset
from reluflow.engines import descend, flow
from reluflow.losses import Exponential, Logistic, Loss
from reluflow.network import Network

if TYPE_CHECKING:
    from reluflow.kernels.entered import Entry

ROUGH = 1e-3  # the same kernels are entered at any tolerance


def _points(classes: bool = False) -> Dataset:
    rng = np.random.default_rng(0)
    y = [1.0, 1.0, -1.0, 1.0, -1.0] if classes else rng.normal(size=5)
    return Dataset(rng.normal(size=(5, 2)), y)


def _start(log_scale: float = 0.0, seed: int = 1) -> Network:
    rng = np.random.default_rng(seed)
    return Network(0.1 * rng.normal(size=8), 0.1 * rng.normal(size=(8, 2)), log_scale=log_scale)


def _resting() -> Network:
    """A start with a neuron at the origin, and one that comes there."""
    net = _start(seed=8)
    W = net.W.copy()
    W[0] = 0.0
    return Network(net.a, W)


def square() -> None:
    """The flow of the square loss, slides, rests at the origin and all."""
    flow(_points(), _resting(), t_end=200.0, rtol=ROUGH, progress=False)


def crowd() -> None:
    """The flow of so many points that its steps are explicit."""
    from reluflow.engines.flow.problem import CROWD  # kernels: not before `switch_off`

    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(CROWD, 2)), rng.normal(size=CROWD))
    flow(data, _start(), t_end=0.3, rtol=1e-2, progress=False)


def plateaus() -> None:
    """The flow from a tiny start."""
    flow(_points(), _start(-100.0), rtol=ROUGH, progress=False)


def classification() -> None:
    """The flow of the other losses, which have their kernels in common."""
    data, net = _points(classes=True), _start()
    flow(data, net, loss=Logistic(), stop_log_loss=-1.0, rtol=ROUGH, progress=False)


def descent() -> None:
    """Gradient descent, for weights, in Gram form and in batches."""
    for train in ("both", "hidden"):
        descend(_points(), _start(), lr=0.1, steps=50, train=train, progress=False)
    descend(_points(), _start(), lr=0.1, steps=5, batch=2, seed=0, progress=False)
    rng = np.random.default_rng(0)
    wide = Dataset(rng.normal(size=(3, 9)), rng.normal(size=3))
    net = Network(np.ones(4), 0.1 * rng.normal(size=(4, 9)))
    descend(wide, net, lr=0.01, steps=50, train="hidden", progress=False)
    for loss in _LOSSES:
        descend(_points(classes=True), _start(), lr=0.1, steps=50, loss=loss, progress=False)


_LOSSES: tuple[Loss, ...] = (Exponential(), Logistic())


def switch_off() -> None:
    """Let kernels of this process be ordinary functions: before any is imported."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"


def entered() -> list[Entry]:
    """Return the kernels that Python enters; see `switch_off`."""
    from reluflow.kernels import entered as seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow, which compiled code leaves out
        for kind in KINDS:
            kind()
    return seen.entered()


def get_ready() -> None:
    """Load what every compilation needs, in a process that does nothing else."""
    from reluflow.kernels.flow import wanted  # noqa: F401
    from reluflow.kernels.haste import only_compile

    only_compile()


KINDS = (square, crowd, plateaus, classification, descent)
