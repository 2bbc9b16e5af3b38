"""Engines: gradient descent and gradient flow, from a start to a Trajectory.

This file is the public face: it loads an engine only when it is called, so that importing reluflow
stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

# The package of the flow's parts and the function `flow` share a name: importing the package first
# lets the function below take the name for good.
import reluflow.engines.flow  # noqa: F401
from reluflow.dataset import Dataset
from reluflow.engines.options import explained
from reluflow.engines.practice import Batch, Batches, batch_of
from reluflow.engines.rates import LossBased
from reluflow.losses import Loss, named
from reluflow.network import Network

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory

__all__ = [
    "Batch",
    "Batches",
    "LossBased",
    "batch_of",
    "descend",
    "flow",
    "log_max_angle",
    "replay",
    "resume",
    "sample",
]


@explained
def descend(
    data: Dataset,
    net: Network,
    *,
    lr: float | LossBased,
    steps: float,
    loss: Loss | str = "square",
    train: str = "both",
    decay: float = 0.0,
    batch: int | Batches | None = None,
    momentum: float = 0.0,
    label_noise: float = 0.0,
    seed: int | np.random.Generator | None = None,
    stop_loss: float | None = None,
    stop_log_loss: float | None = None,
    record: Any = 200,
    max_seconds: float | None = None,
    progress: bool | None = None,
) -> Trajectory:
    r"""Train by exact gradient descent, :math:`\theta \leftarrow \theta - \eta \nabla L`.

    Parameters
    ----------
    data, net : Dataset, Network
        What to train, and from where.
    lr : float or LossBased
        The step :math:`\eta`; `LossBased` lets it grow as a classification loss falls.
    steps : int or inf
        How many; inf where the limit can be certified (hidden layer only, square loss).
    loss : "square", "exponential", "logistic" or an object of `reluflow.losses`
        The loss; `Square` says with which factor ("1/2n" by name).
    train : "both", "hidden" or "output"
        Which layers move.
    decay : float
        Weight decay mu: steps follow :math:`\nabla L + \mu \theta`. Losses are those without it.
    batch : int or Batches, optional
        Points of a step, in a new random order for each epoch; `Batches` draws with replacement.
        The gradient of a batch is scaled so that its mean is that of all points.
    momentum : float
        Heavy ball: a step adds this share of the step before.
    label_noise : float
        Standard deviation of fresh Gaussian noise on the labels of each step (square loss).
    seed : int or numpy.random.Generator, optional
        Of batches and noise, which are functions of it and the number of the step.
    stop_loss, stop_log_loss : float, optional
        End when the loss (its logarithm) is at most this; tested before each update, with batches
        before each epoch.
    record : int or array
        At most so many records, geometric in iterations, or at these iterations exactly.
    max_seconds : float, optional
        End with status ``budget`` after so much time; that of compilation does not count.
    progress : bool, optional
        Show a bar on work over two seconds, and what is compiled; if not said, on a terminal.

    Returns
    -------
    Trajectory
        The run: records, events, how it ended.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0]], [1.0])
    >>> run = descend(data, Network([0.5], [[0.5, 0.0]]), lr=0.1, steps=20)
    >>> str(run.status), round(float(run.loss[-1]), 6)
    ('steps', 0.000887)

    Numerics
    --------
    Each neuron carries a power-of-two exponent, so any scale is exact: the run equals one in floats
    of unlimited range. A step agrees with a textbook loop to 1e-13; `Trajectory.at` is bitwise,
    with batches and noise too.
    """
    from reluflow.engines.descent import entry

    return entry.descend(
        data,
        net,
        lr=lr,
        steps=steps,
        loss=named(loss),
        train=train,
        decay=decay,
        batch=batch,
        momentum=momentum,
        label_noise=label_noise,
        seed=seed,
        stop_loss=stop_loss,
        stop_log_loss=stop_log_loss,
        record=record,
        max_seconds=max_seconds,
        progress=progress,
    )


@explained
def flow(
    data: Dataset | Trajectory,
    net: Network | None = None,
    *,
    loss: Loss | str = "square",
    train: str = "both",
    rates: Sequence[float] = (1.0, 1.0),
    decay: float = 0.0,
    t_end: float = float("inf"),
    stop_loss: float | None = None,
    stop_log_loss: float | None = None,
    rtol: float = 1e-8,
    record: Any = 200,
    max_seconds: float | None = None,
    max_events: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: bool | None = None,
    on_interrupt: str = "raise",
) -> Trajectory:
    r"""Train by gradient flow, :math:`\dot\theta \in -\partial L(\theta)`, events and all.

    Parameters
    ----------
    data : Dataset or Trajectory
        What to train; a run of `flow` is continued (its loss, layers, decay and network are
        kept).
    net : Network
        From where, at any scale.
    loss : "square", "exponential", "logistic" or an object of `reluflow.losses`
        The loss; `Square` says with which factor ("1/2n" by name).
    train : "both", "hidden", "output" or "linearised"
        Which layers move; "linearised" trains the tangent of the network at its start, whose
        outputs are ``run.states["outputs"]``. The last two have fixed features: closed forms for
        the square loss, a solver of their own for the others.
    rates : pair of float
        How fast hidden and output weights learn.
    decay : float
        Weight decay mu: the flow of :math:`L + \mu |\theta|^2 / 2`, of both layers at rates (1, 1).
        Losses are those without it; `Trajectory.objective` has the sum.
    t_end : float
        End time. Without it the run goes to its limit (``converged``, ``stationary``); a
        classification loss has none, and ends at log-loss -1000 unless told otherwise.
    stop_loss, stop_log_loss : float, optional
        End when the loss (its logarithm) reaches this.
    rtol : float
        Relative accuracy of the weights, from 1e-13 to 0.1.
    record : int or array
        At most so many records, or at these times exactly.
    max_seconds, max_events : float, int, optional
        End with status ``budget`` after so much; time of compilation does not count.
    stop : callable, optional
        Asked between steps; once it returns True the run so far is returned, ``interrupted``.
    progress : bool, optional
        Show a bar on work over two seconds, and what is compiled; if not said, on a terminal.
    on_interrupt : "raise" or "return"
        At Ctrl-C: KeyboardInterrupt, or the run so far with status ``interrupted``.

    Returns
    -------
    Trajectory
        The run: records, events, how it ended, and its limit where it has one.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0]], [1.0])
    >>> run = flow(data, Network([1.0], [[0.6, 0.8]], log_scale=-1000.0))
    >>> str(run.status), round(run.final.squared_norm, 9)
    ('converged', 2.0)

    Numerics
    --------
    Order 7 between events, Radau IIA in the n outputs; neurons are carried by Lorentz
    transformations, so balance is kept to rounding. Slides are Filippov solutions. Plateaus and
    tiny starts are closed forms. How it works and when it fails: docs/flow-engine.md.
    """
    from reluflow.engines import layers

    return layers.flow(
        data,
        net,
        loss=named(loss),
        train=train,
        rates=rates,
        decay=decay,
        t_end=t_end,
        stop_loss=stop_loss,
        stop_log_loss=stop_log_loss,
        rtol=rtol,
        record=record,
        max_seconds=max_seconds,
        max_events=max_events,
        stop=stop,
        progress=progress,
        on_interrupt=on_interrupt,
    )


def resume(run: Trajectory, **options: Any) -> Trajectory:
    """Go on with an interrupted run, given the options that it was started with.

    A descent ends in the same bits as if it had not been interrupted, a flow within its tolerance.
    """
    from reluflow.engines import resuming

    return resuming.resume(run, options)


def replay(run: Trajectory, **target: float) -> Network:
    """Recompute the state of a run at ``t``, ``log_t`` or ``log_loss``."""
    if run.engine == "descent":
        from reluflow.engines.descent import entry

        return entry.replay(run, **target)
    from reluflow.engines import layers

    return layers.replay(run, **target)


def sample(run: Trajectory, log_times: ArrayLike, stop: Callable[[], bool] | None) -> Trajectory:
    """Recompute a run at many times in one sweep."""
    from reluflow.engines import layers

    return layers.sample(run, log_times, stop)


def log_max_angle(run: Trajectory, t: float, subset: Sequence[int] | None) -> float:
    """Logarithm of the largest angle between neurons of a run at time t."""
    from reluflow.engines import layers

    return layers.log_max_angle(run, t, subset)
