r"""Descent as practised: what is asked for beyond plain steps on all points, and who draws.

Step k moves by a velocity (heavy ball),

.. math:: v \leftarrow \beta v - \eta\,(\nabla L_B(\theta) + \mu\,\theta), \qquad
          \theta \leftarrow \theta + v ,

with the points B of its batch and fresh noise on their labels. Everything random is a function of
the seed and the step, so any step can be repeated by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, generator, number, whole
from reluflow.dataset import Dataset
from reluflow.engines.rates import LossBased
from reluflow.errors import InputError
from reluflow.losses import Loss, Square

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory

LARGEST_SEED = 2**63


@dataclass(frozen=True)
class Batches:
    """Mini-batches of ``size`` points.

    Without replacement the points are put in a new random order for each epoch and taken in turn;
    the last batch of an epoch is smaller where the size does not divide their number. With
    replacement each point of each batch is drawn by itself.

    Examples
    --------
    >>> Batches(8, replacement=True).size
    8
    """

    size: int
    replacement: bool = False

    def __post_init__(self) -> None:
        whole(self.size, "batch", at_least=1)
        if not isinstance(self.replacement, bool):
            raise InputError(f"`replacement` is {self.replacement!r}. Give True or False.")


@dataclass(frozen=True)
class Practice:
    """How steps differ from plain ones; ``batches`` is None for all points at once."""

    batches: Batches | None = None
    momentum: float = 0.0
    label_noise: float = 0.0
    decay: float = 0.0
    seed: int = 0

    def to_options(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {
            "batch": self.batches.size if self.batches else None,
            "replacement": bool(self.batches and self.batches.replacement),
            "momentum": self.momentum,
            "label_noise": self.label_noise,
            "decay": self.decay,
            "seed": self.seed,
        }


def saved_practice(options: Mapping[str, Any]) -> Practice | None:
    """The practice of a finished run, from its options; None if its steps were plain."""
    if "momentum" not in options:
        return None
    size = options["batch"]
    batches = None if size is None else Batches(int(size), options["replacement"])
    return Practice(
        batches,
        momentum=float(options["momentum"]),
        label_noise=float(options["label_noise"]),
        decay=float(options["decay"]),
        seed=int(options["seed"]),
    )


def practice_of(
    data: Dataset, loss: Loss, lr: float | LossBased, asked: Mapping[str, Any]
) -> Practice | None:
    """Check what is asked for; None if that is plain descent."""
    momentum = number(asked["momentum"], "momentum", at_least=0.0, below=1.0)
    noise = number(asked["label_noise"], "label_noise", at_least=0.0)
    decay = number(asked["decay"], "decay", at_least=0.0)
    batches = _batches(asked["batch"], data)
    if batches is None and momentum == noise == decay == 0.0:
        return None
    if noise > 0.0 and not isinstance(loss, Square):
        raise InputError(
            f"`label_noise` is {noise:g} with the {loss.name} loss, whose labels are -1 and 1. "
            "Noise is added to labels of the square loss; leave it out, or use that loss."
        )
    if decay > 0.0 and isinstance(lr, LossBased):
        raise InputError(
            f"`decay` is {decay:g} with a step that grows without bound as the loss falls: the "
            "weights would blow up. Pass a number as `lr`."
        )
    draws = batches is not None or noise > 0.0
    return Practice(batches, momentum, noise, decay, _key(asked["seed"]) if draws else 0)


def _batches(batch: Any, data: Dataset) -> Batches | None:
    if batch is None:
        return None
    batches = batch if isinstance(batch, Batches) else Batches(whole(batch, "batch"))
    if batches.size > data.n and not batches.replacement:
        raise InputError(
            f"`batch` is {batches.size} but there are {data.n} points. Take at most {data.n}, or "
            f"draw with replacement: rf.Batches({batches.size}, replacement=True)."
        )
    return batches


def _key(seed: Any) -> int:
    """The integer that all draws of a run depend on."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(LARGEST_SEED))
    if seed is None:
        raise InputError(
            "`batch` and `label_noise` draw at random and `seed` is not given. Pass a non-negative "
            "int or a numpy.random.Generator; draws without a seed cannot be repeated."
        )
    generator(seed)  # refuses what is no seed
    return whole(seed, "seed", at_least=0, at_most=LARGEST_SEED - 1)


class Batch(NamedTuple):
    """What a step was made of: numbers of points, and their labels, noise and all."""

    points: NDArray[np.int64]
    labels: Array


def batch_of(run: Trajectory, step: int) -> Batch:
    """Return the points and labels that a step of a descent used, counted from 0.

    With it a loop of another library can follow the same batches and noise.

    Parameters
    ----------
    run : Trajectory
        A run of `reluflow.descend`.
    step : int
        The step that led from iteration ``step`` to the next.

    Returns
    -------
    Batch
        ``points``, indices of the data, and ``labels``.

    Examples
    --------
    >>> import reluflow as rf
    >>> data = rf.Dataset([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> run = rf.descend(data, rf.Network([0.5], [[0.5]]), lr=0.1, steps=4, batch=2, seed=0)
    >>> sorted([*rf.batch_of(run, 2).points.tolist(), *rf.batch_of(run, 3).points.tolist()])
    [0, 1, 2]
    """
    if run.engine != "descent":
        raise InputError("the flow has no steps of its own; `batch_of` is for runs of rf.descend.")
    practice = saved_practice(run.options)
    if practice is None:
        return Batch(np.arange(run.data.n), run.data.y.copy())
    from reluflow.engines.descent.batches import drawn

    return Batch(*drawn(run.data, practice, whole(step, "step", at_least=0)))
