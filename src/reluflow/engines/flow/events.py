"""Boundary events: what happens to a neuron when it reaches a plane, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import Modes, State
from reluflow.kernels import boundaries
from reluflow.trajectory import EVENT_DTYPE

# the first are modes; for the others see `kernels.layout`
KINDS = np.array(["deactivate", "activate", "slide", "slide", "release", "die", "flip"])
CODES = {kind: code for code, kind in enumerate(KINDS.tolist()) if code != 3}
Columns = tuple[NDArray[Any], ...]


class EventLog:
    """Events of a run in the loss's own clock, appended in any order.

    `date` is given the map from clock to time when a stretch of clock is finished. Kinds are kept
    as codes; those of crossings are the new modes.
    """

    def __init__(self) -> None:
        self._dated: list[Columns] = []  # (t, log_t, neuron, point, code)
        self._crossed: list[Columns] = []  # (clock, neuron, point, code), not dated
        self._pending: list[tuple[float, int, int, int]] = []  # the same, one by one
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, clock: float, neuron: int, point: int, kind: str) -> None:
        """Append one event."""
        self._pending.append((clock, neuron, point, CODES[kind]))
        self._count += 1

    def change(self, clock: float, neuron: int, point: int, old: int, new: int) -> None:
        """Append what a change of mode means; a slide that ends is a release and what follows."""
        if old < 2 and new >= 2:
            self.add(clock, neuron, point, "slide")
        elif old >= 2 and new < 2:
            self.add(clock, neuron, point, "release")
            self.add(clock, neuron, point, "activate" if new else "deactivate")
        elif old < 2 and old != new:
            self.add(clock, neuron, point, "activate" if new else "deactivate")

    def crossings(
        self, clocks: Array, neurons: NDArray[Any], points: NDArray[Any], modes: NDArray[Any]
    ) -> None:
        """Append what light neurons did by the new modes, or codes."""
        self._crossed.append((clocks, neurons, points, modes))
        self._count += len(clocks)

    def compare(self, clock: float, neuron: int, before: Modes, after: Modes) -> None:
        """Append all changes of one neuron's row, its death included."""
        for point in np.flatnonzero(before != after):
            self.change(clock, neuron, int(point), int(before[point]), int(after[point]))
        if (before == 1).any() and not (after == 1).any():
            self.add(clock, neuron, -1, "die")

    def date(self, log_time: Callable[[Array], tuple[Array, Array]]) -> None:
        """Give the events without time theirs: ``log_time(clocks) = (t, log_t)``."""
        if self._pending:
            rows = zip(*self._pending, strict=True)
            self._crossed.append(tuple(np.array(column) for column in rows))
        for clocks, *rest in self._crossed:
            self._dated.append((*log_time(clocks), *rest))
        self._crossed.clear()
        self._pending.clear()

    def drop(self) -> None:
        """Forget the events of a step that is not kept."""
        self._count -= len(self._pending) + sum(len(clocks) for clocks, *_ in self._crossed)
        self._crossed.clear()
        self._pending.clear()

    def array(self) -> NDArray[np.void]:
        """The structured array of API order; a death follows the neuron's last deactivation."""
        out = np.empty(self._count, EVENT_DTYPE)
        if self._dated:
            *columns, codes = (np.concatenate(column) for column in zip(*self._dated, strict=True))
            for name, column in zip(EVENT_DTYPE.names or (), [*columns, KINDS[codes]], strict=True):
                out[name] = column
        last = np.where(out["kind"] == "die", np.iinfo(np.int64).max, out["point"])
        return out[np.lexsort((last, out["neuron"], out["t"], out["log_t"]))]


def decide(problem: Problem, state: State, c: Array, neuron: int, on: NDArray[np.bool_]) -> Modes:
    """Choose the modes of a neuron at rest on its boundary points; returns the row before."""
    before: Modes = state.mode[neuron].copy()
    boundaries.decide(
        float(state.a[neuron]), state.w[neuron], state.mode[neuron], c, problem.X, problem.gram,
        on, np.zeros(problem.n),
    )  # fmt: skip
    return before
