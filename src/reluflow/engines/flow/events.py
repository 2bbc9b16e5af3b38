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


class EventLog:
    """Events of a run in the loss's own clock, appended in any order.

    `dated` is given the map from clock to time when a stretch of clock is finished.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, int, int, str]] = []
        self._pending: list[tuple[float, int, int, str]] = []

    def __len__(self) -> int:
        return len(self.rows) + len(self._pending)

    def add(self, clock: float, neuron: int, point: int, kind: str) -> None:
        """Append one event."""
        self._pending.append((clock, neuron, point, kind))

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
        """Append crossings and starts of slides by their new modes."""
        kinds = [("deactivate", "activate", "slide", "slide")[mode] for mode in modes.tolist()]
        rows = zip(clocks.tolist(), neurons.tolist(), points.tolist(), kinds, strict=True)
        self._pending.extend(rows)

    def compare(self, clock: float, neuron: int, before: Modes, after: Modes) -> None:
        """Append all changes of one neuron's row, its death included."""
        for point in np.flatnonzero(before != after):
            self.change(clock, neuron, int(point), int(before[point]), int(after[point]))
        if (before == 1).any() and not (after == 1).any():
            self.add(clock, neuron, -1, "die")

    def date(self, log_time: Callable[[Array], tuple[Array, Array]]) -> None:
        """Give the pending events their times: ``log_time(clocks) = (t, log_t)``."""
        if not self._pending:
            return
        t, log_t = log_time(np.array([row[0] for row in self._pending]))
        whole = zip(t.tolist(), log_t.tolist(), self._pending, strict=True)
        self.rows.extend((time, log, *row[1:]) for time, log, row in whole)
        self._pending.clear()

    def drop(self) -> None:
        """Forget the pending events of a step that is not kept."""
        self._pending.clear()

    def array(self) -> NDArray[np.void]:
        """The structured array of API order; a death follows the neuron's last deactivation."""
        out = np.empty(len(self.rows), EVENT_DTYPE)
        if self.rows:
            columns = zip(*self.rows, strict=True)
            for name, column in zip(EVENT_DTYPE.names or (), columns, strict=True):
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
