"""The form of descent as practised: weights, velocities, and batches drawn by number of step.

It is a form as those of `reluflow.engines.descent.forms`, and is used where something of
`reluflow.engines.practice` is asked for, or only the output weights move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.engines.descent.scale import (
    Indices,
    as_given,
    join,
    plain_weights,
    power_of_two,
    split,
)
from reluflow.engines.practice import Practice
from reluflow.kernels.descent import batches as kernel
from reluflow.network import Network

if TYPE_CHECKING:
    from reluflow.engines.descent.forms import Outcome, Record, Rule


class BatchForm:
    """Weights with per-neuron powers of two, and their velocities."""

    name = "batches"

    def __init__(self, data: Dataset, net: Network, rule: Rule, practice: Practice) -> None:
        self._net = net
        if rule.train == "both":
            self._start = split(net)
        else:
            self._start = (*plain_weights(net), np.zeros(net.width, np.int64))
        self._problem = _problem(data, net, rule, practice)
        self._has_velocity = practice.momentum > 0.0
        self.restart()
        self.state_bytes = 8 * net.width * (2 * net.d + 6)

    def advance(self, iteration: int, steps: int, stop: float, ceiling: float) -> Outcome:
        """Iterate in place."""
        outcome: Outcome = kernel.run(self._problem, self._work, iteration, steps, stop, ceiling)
        return outcome

    def record(self) -> dict[str, NDArray[Any]]:
        """The network, exponents, which neurons have moved, and velocities if there are any."""
        work, (a0, W0, e0) = self._work, self._start
        d, back = work.W.shape[1], power_of_two(work.e - e0)
        va, vW = work.velocity_a, work.velocity
        if not self._has_velocity:  # what they hold is the last step
            va, vW = np.zeros_like(va), np.zeros_like(vW)
        moved = (work.a * back != a0) | (work.W * back[:, None] != W0).any(axis=1)
        moved |= (va != 0.0) | vW.any(axis=1)
        # weights and velocities share their exponents
        a, rest, log_scale, left = join(work.a, np.column_stack([work.W, vW, va]), work.e)
        arrays: dict[str, NDArray[Any]] = {
            "a": a,
            "W": np.ascontiguousarray(rest[:, :d]),
            "log_scale": log_scale,
            "log_scale_out": log_scale,
        }
        as_given(arrays, self._net, moved)
        arrays["exponent"] = left
        if self._has_velocity:
            arrays["velocity_W"] = np.ascontiguousarray(rest[:, d:-1])
            arrays["velocity_a"] = rest[:, -1].copy()
        return arrays

    def restore(self, record: Record) -> None:
        """Start again from a record."""
        moved = record["moved"]
        a0, W0, e0 = self._start
        self._begin(
            np.where(moved, record["a"], a0),
            np.where(moved[:, None], record["W"], W0),
            np.where(moved, record["exponent"], e0),
            record.get("velocity_a"),
            record.get("velocity_W"),
        )

    def restart(self) -> None:
        """Start again from the start."""
        self._begin(*self._start, None, None)

    def _begin(self, a: Array, W: Array, e: Indices, va: Array | None, vW: Array | None) -> None:
        va = np.zeros_like(a) if va is None else va
        vW = np.zeros_like(W) if vW is None else vW
        self._work = kernel.workspace(self._problem, a, W, e, va, vW)


def drawn(data: Dataset, practice: Practice, step: int) -> tuple[NDArray[np.int64], Array]:
    """Points of a step and their labels, as the kernel has them."""
    problem = kernel.Problem(
        X=data.X.copy(),
        y=data.y.copy(),
        loss=0,
        shares=False,
        kappa=1.0,
        lr=0.0,
        moves_hidden=True,
        moves_output=True,
        **_draws(data, practice),
    )
    none = np.zeros((1, data.d))
    work = kernel.workspace(problem, none[0, :1], none, np.zeros(1, np.int64), none[0, :1], none)
    count = kernel.choose(problem, work, step)
    labels = data.y[work.points[:count]]
    if practice.label_noise > 0.0:
        kernel.disturb(problem, work, step, count)
        labels = labels + work.labels[:count]
    return work.points[:count].copy(), labels


def _problem(data: Dataset, net: Network, rule: Rule, practice: Practice) -> kernel.Problem:
    fields = rule.for_kernel(data.n)
    del fields["keys"]
    return kernel.Problem(
        X=data.X.copy(),
        y=data.y.copy(),
        moves_hidden=rule.train != "output",
        moves_output=rule.train != "hidden",
        slope=net.slope,
        **fields,
        **_draws(data, practice),
    )


def _draws(data: Dataset, practice: Practice) -> dict[str, Any]:
    """The fields of a practice in the kernel's problem."""
    batches = practice.batches
    return {
        "momentum": practice.momentum,
        "decay": practice.decay,
        "noise": practice.label_noise,
        "key": practice.seed,
        "size": batches.size if batches else 0,
        "is_drawn": bool(batches and batches.replacement),
        "look": -(-data.n // batches.size) if batches else 1,
    }
