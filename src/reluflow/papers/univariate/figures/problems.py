r"""Problems of the univariate figures: evenly spaced labels, normal starts.

The teacher changes sign at ``r`` evenly spaced places of (-1, 1); points are uniform there. Hidden
and output weights have deviations :math:`s_h/\sqrt k` and :math:`s_o/\sqrt k`, so that the norm of
the start does not depend on the width k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from reluflow.dataset import Dataset
from reluflow.datasets import sample_1d, teacher_1d
from reluflow.densities import Density, uniform
from reluflow.losses import Exponential, Logistic
from reluflow.network import Network
from reluflow.networks import gaussian
from reluflow.sweeps import Point, derived_seed
from reluflow.trajectory import Trajectory

# a run that takes longer is counted as unfinished, as one that fails is, and never waited for
MAX_SECONDS = 120.0
LOSSES: dict[str, Exponential | Logistic] = {"exponential": Exponential(), "logistic": Logistic()}


def density() -> Density:
    """The law of the inputs."""
    return uniform(-1.0, 1.0)


def teacher(r: int) -> Network:
    """The network with r evenly spaced sign changes."""
    return teacher_1d(np.linspace(-1.0, 1.0, r + 2)[1:-1])


def sample(parameters: Mapping[str, Any], seed: int) -> Dataset:
    """The points: ``n`` of them, ``r`` sign changes."""
    rng = np.random.default_rng([seed, 0])
    return sample_1d(teacher(parameters["r"]), parameters["n"], density=density(), seed=rng)


def start(parameters: Mapping[str, Any], seed: int) -> Network:
    """The network at the start: ``width``, ``hidden`` and ``output`` scales."""
    k = parameters["width"]
    return gaussian(
        2,
        k,
        sigma_hidden=parameters["hidden"] / np.sqrt(k),
        sigma_output=parameters["output"] / np.sqrt(k),
        seed=np.random.default_rng([seed, 1]),
    )


def train(parameters: Mapping[str, Any], seed: int, *, loss: str = "exponential") -> Trajectory:
    """Gradient flow to ``-log L = level``."""
    from reluflow.engines import flow

    return flow(
        sample(parameters, seed),
        start(parameters, seed),
        loss=LOSSES[parameters.get("loss", loss)],
        stop_log_loss=-float(parameters["level"]),
        max_seconds=MAX_SECONDS,
    )


def outcome(run: Trajectory) -> dict[str, Any]:
    """How a run ended: its status, whether all points are right, whether it was cut short."""
    data = run.data
    right = bool(np.all(data.y * run.final.predict(data.X) > 0.0))
    y = data.y[np.argsort(data.X[:, 0])]
    return {
        "status": str(run.status),
        "separated": right,
        "unfinished": not run.status.is_asked_for,
        "level": -float(run.log_loss[-1]),
        "switches": int(np.count_nonzero(y[1:] != y[:-1])),
    }


def point(task: str, parameters: Mapping[str, Any], seed: int, key: str) -> Point:
    """A computation whose draws depend on ``key`` only, so that others share its sample."""
    return Point(
        f"reluflow.papers.univariate.figures.measures:{task}", parameters, derived_seed(seed, key)
    )


def problem(
    r: int, n: int, width: int, hidden: float, output: float, level: float = 1e4, **more: Any
) -> dict[str, Any]:
    """Parameters of `sample`, `start` and `train`."""
    own = {"r": r, "n": n, "width": width, "hidden": hidden, "output": output, "level": level}
    return own | more


def trials(
    task: str, parameters: Mapping[str, Any], count: int, seed: int, key: str
) -> Iterator[Point]:
    """The same computation on so many draws; ``key`` names them."""
    return (point(task, parameters, seed, f"{key} {trial}") for trial in range(count))


def scale_of(r: int) -> float:
    """The scale of the starts: it grows with r, as stretches of one label shorten."""
    return 0.5 * r
