"""The forms in which a network is trained: by its weights, by duals of the points, or in batches.

A form holds the running state of one network. It offers:

1. ``advance(iteration, steps, stop, ceiling)``: iterate in place; outcome, iteration reached,
   log-loss there, least log-loss on the way (`reluflow.kernels.descent.run`);
2. ``record()``: copies of the arrays that describe the state (a network, and what a restart needs);
3. ``restore(record)``: go back to such a state, bitwise; ``restart()``: to the start.

A neuron that has not moved is recorded as it was given, with its own split into scale and weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.engines.descent.batches import BatchForm
from reluflow.engines.descent.scale import as_given, join, plain_weights, power_of_two, split
from reluflow.engines.practice import Practice, saved_practice
from reluflow.kernels.descent import gram as gram_kernel
from reluflow.kernels.descent import patterns
from reluflow.kernels.descent import weights as weights_kernel
from reluflow.kernels.descent.forces import EXPONENTIAL, LOGISTIC, SQUARE
from reluflow.losses import Loss, Square
from reluflow.network import Network, row_norms
from reluflow.trajectory import Trajectory

Record = Mapping[str, NDArray[Any]]
Outcome = tuple[int, int, float, float]

_LOSSES = {"square": SQUARE, "exponential": EXPONENTIAL, "logistic": LOGISTIC}


@dataclass(frozen=True)
class Rule:
    """How to step: the loss, the step size, whether forces are normalised to shares, what moves.

    ``practice`` is None where steps are plain.
    """

    loss: Loss
    lr: float
    shares: bool
    train: str
    practice: Practice | None = None

    @property
    def hidden(self) -> bool:
        """Whether only the hidden layer moves."""
        return self.train == "hidden"

    @property
    def is_plain(self) -> bool:
        """Whether this is gradient descent on all points, with fixed output weights or none."""
        return self.practice is None and self.train != "output"

    def for_kernel(self, n: int) -> dict[str, Any]:
        """The fields of this rule in a kernel's problem."""
        kappa = self.loss.kappa(n) if isinstance(self.loss, Square) else 1.0
        return {
            "loss": _LOSSES[self.loss.name],
            "shares": self.shares,
            "kappa": kappa,
            "lr": self.lr,
            "keys": np.random.default_rng(0).integers(1, 2**63, n).astype(np.uint64),
        }


def saved_rule(run: Trajectory) -> Rule:
    """The rule of a finished run, from its options."""
    shares = run.options["alpha"] is not None
    lr = run.options["alpha"] if shares else run.options["lr"]
    practice = saved_practice(run.options)
    return Rule(run.loss_function, float(lr), shares, str(run.options["train"]), practice)


class Form(Protocol):
    """What a form offers; see the head of this module."""

    name: str
    state_bytes: int

    def advance(self, iteration: int, steps: int, stop: float, ceiling: float) -> Outcome:
        """Iterate in place."""

    def record(self) -> dict[str, NDArray[Any]]:
        """Copy the state."""

    def restore(self, record: Record) -> None:
        """Go back to a state."""

    def restart(self) -> None:
        """Go back to the start."""


def make_form(data: Dataset, net: Network, rule: Rule) -> Form:
    """The cheapest form: duals for the hidden layer alone when d > n, weights otherwise."""
    if not rule.is_plain:
        return BatchForm(data, net, rule, rule.practice or Practice())
    if rule.hidden and data.d > data.n:
        return GramForm(data, net, rule)
    return WeightForm(data, net, rule)


class WeightForm:
    """Both layers, or the hidden one, by weights with per-neuron powers of two."""

    name = "weights"

    def __init__(self, data: Dataset, net: Network, rule: Rule) -> None:
        self._net = net
        if rule.hidden:
            self._start = (*plain_weights(net), np.zeros(net.width, np.int64))
        else:
            self._start = split(net)
        X = data.X.copy()
        self._problem = patterns.Problem(
            X=X,
            XT=np.ascontiguousarray(X.T),
            y=data.y.copy(),
            inverse_lengths=1.0 / row_norms(X),
            hidden=rule.hidden,
            slope=net.slope,
            **rule.for_kernel(data.n),
        )
        self.restart()
        self.state_bytes = 8 * net.width * (net.d + 5)

    def advance(self, iteration: int, steps: int, stop: float, ceiling: float) -> Outcome:
        """Iterate in place."""
        outcome: Outcome = weights_kernel.run(
            self._problem, self._work, iteration, steps, stop, ceiling
        )
        return outcome

    def record(self) -> dict[str, NDArray[Any]]:
        """The network, the exponents of its neurons and which of them have moved."""
        a, W, e = patterns.neurons(self._work)
        a0, W0, e0 = self._start
        back = power_of_two(e - e0)
        moved = (a * back != a0) | (W * back[:, None] != W0).any(axis=1)
        a, W, log_scale, left = join(a, W, e)
        arrays = {"a": a, "W": W, "log_scale": log_scale, "log_scale_out": log_scale}
        as_given(arrays, self._net, moved)
        return arrays | {"exponent": left}

    def restore(self, record: Record) -> None:
        """Start again from a record."""
        moved = record["moved"]
        a0, W0, e0 = self._start
        self._work = patterns.workspace(
            self._problem,
            np.where(moved, record["a"], a0),
            np.where(moved[:, None], record["W"], W0),
            np.where(moved, record["exponent"], e0),
        )

    def restart(self) -> None:
        """Start again from the start."""
        self._work = patterns.workspace(self._problem, *self._start)


class GramForm:
    """The hidden layer by duals: ``w_j = w_j(0) + X^T b_j``, at a cost independent of d."""

    name = "gram"

    def __init__(self, data: Dataset, net: Network, rule: Rule) -> None:
        self._net, self._X = net, data.X
        self.a, self._W = plain_weights(net)
        self.gram = data.gram
        self._problem = gram_kernel.Problem(
            K=self.gram.copy(),
            y=data.y.copy(),
            a=self.a.copy(),
            start=np.ascontiguousarray(self._W @ data.X.T),
            slope=net.slope,
            **rule.for_kernel(data.n),
        )
        self.restart()
        self.state_bytes = 8 * net.width * (net.d + 3 * data.n + 4)

    def set_duals(self, B: Array) -> None:
        """Put the state to duals B and the pre-activations they give."""
        self._work = gram_kernel.workspace(self.preactivations(B), np.zeros_like(B), B)

    def preactivations(self, B: Array) -> Array:
        """``X w_j`` (m, n) with duals B."""
        return np.asarray(self._problem.start + B @ self.gram)

    @property
    def duals(self) -> Array:
        """A copy of ``b_j`` (m, n)."""
        return self._work.B.copy()

    def advance(self, iteration: int, steps: int, stop: float, ceiling: float) -> Outcome:
        """Iterate in place."""
        outcome: Outcome = gram_kernel.run(
            self._problem, self._work, iteration, steps, stop, ceiling
        )
        return outcome

    def watch(
        self, iteration: int, steps: int, stop: float, ceiling: float
    ) -> tuple[Outcome, NDArray[np.int64]]:
        """Iterate in place; also the changes of the pattern: rows (iteration, neuron, point)."""
        begin, room = self._work, 64
        while True:
            self._work = gram_kernel.workspace(begin.P, begin.rest, begin.B)
            log, active = np.empty((room, 3), np.int64), self._work.P > 0.0
            *outcome, count = gram_kernel.watch(
                self._problem, self._work, iteration, steps, stop, ceiling, active, log
            )
            if count <= room:
                return (outcome[0], outcome[1], outcome[2], outcome[3]), log[:count]
            room = count  # a second pass is bitwise the first

    def record(self) -> dict[str, NDArray[Any]]:
        """The network, its duals and pre-activations."""
        work = self._work
        return self.network_arrays(work.B) | {
            "dual": work.B.copy(),
            "preactivation": work.P.copy(),
            "preactivation_rest": work.rest.copy(),
        }

    def network_arrays(self, B: Array) -> dict[str, NDArray[Any]]:
        """The network with duals B."""
        zero = np.zeros(len(self.a))
        arrays: dict[str, NDArray[Any]] = {
            "a": self.a,
            "W": self._W + B @ self._X,
            "log_scale": zero,
            "log_scale_out": zero,
        }
        as_given(arrays, self._net, np.any(B != 0.0, axis=1))
        return arrays

    def restore(self, record: Record) -> None:
        """Start again from a record."""
        self._work = gram_kernel.workspace(
            record["preactivation"], record["preactivation_rest"], record["dual"]
        )

    def restart(self) -> None:
        """Start again from the start."""
        self.set_duals(np.zeros_like(self._problem.start))
