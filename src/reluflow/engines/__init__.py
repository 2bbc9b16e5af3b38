"""Engines: gradient descent and gradient flow, from a start to a Trajectory.

This file is the public face: it loads an engine only when it is called, so that importing reluflow
stays cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reluflow.dataset import Dataset
from reluflow.engines.rates import LossBased
from reluflow.losses import Loss, Square
from reluflow.network import Network

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory

__all__ = ["LossBased", "descend", "flow", "log_max_angle", "replay"]


def descend(
    data: Dataset,
    net: Network,
    *,
    lr: float | LossBased,
    steps: float,
    loss: Loss = Square(),  # noqa: B008 (frozen)
    train: str = "both",
    stop_loss: float | None = None,
    stop_log_loss: float | None = None,
    record: Any = 200,
    max_seconds: float | None = None,
    progress: bool = False,
) -> Trajectory:
    """Train by exact full-batch gradient descent; see `reluflow.engines.descent`."""
    from reluflow.engines import descent

    return descent.descend(
        data,
        net,
        lr=lr,
        steps=steps,
        loss=loss,
        train=train,
        stop_loss=stop_loss,
        stop_log_loss=stop_log_loss,
        record=record,
        max_seconds=max_seconds,
        progress=progress,
    )


def flow(
    data: Dataset | Trajectory,
    net: Network | None = None,
    *,
    loss: Loss = Square(),  # noqa: B008 (frozen)
    train: str = "both",
    t_end: float = float("inf"),
    stop_loss: float | None = None,
    stop_log_loss: float | None = None,
    rtol: float = 1e-8,
    record: Any = 200,
    max_seconds: float | None = None,
    max_events: int | None = None,
    progress: bool = False,
) -> Trajectory:
    """Train by gradient flow, events and all; see `reluflow.engines.flow.driver`."""
    from reluflow.engines.flow import driver

    return driver.flow(
        data,
        net,
        loss=loss,
        train=train,
        t_end=t_end,
        stop_loss=stop_loss,
        stop_log_loss=stop_log_loss,
        rtol=rtol,
        record=record,
        max_seconds=max_seconds,
        max_events=max_events,
        progress=progress,
    )


def replay(run: Trajectory, **target: float) -> Network:
    """Recompute the state of a run at ``t``, ``log_t`` or ``log_loss``."""
    if run.engine == "descent":
        from reluflow.engines import descent

        return descent.replay(run, **target)
    from reluflow.engines.flow import driver

    return driver.replay(run, **target)


def log_max_angle(run: Trajectory, t: float, subset: Sequence[int] | None) -> float:
    """Logarithm of the largest angle between neurons of a run at time t."""
    from reluflow.engines.flow import angles

    return angles.log_max_angle(run, t, subset)
