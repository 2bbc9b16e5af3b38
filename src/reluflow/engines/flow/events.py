"""Boundary events: what happens to a neuron when it reaches a plane, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import Modes, State
from reluflow.kernels.boundaries import settle
from reluflow.trajectory import EVENT_DTYPE


class EventLog:
    """Events of a run in the loss's own clock, appended in any order.

    `dated` is given the map from clock to time when a stretch of clock is finished.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, int, int, int, str]] = []
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

    def compare(self, clock: float, neuron: int, before: Modes, after: Modes) -> None:
        """Append all changes of one neuron's row, its death included."""
        for point in np.flatnonzero(before != after):
            self.change(clock, neuron, int(point), int(before[point]), int(after[point]))
        if (before == 1).any() and not (after == 1).any():
            self.add(clock, neuron, -1, "die")

    def date(self, log_time: Callable[[float], tuple[float, float]]) -> None:
        """Give the pending events their times: ``log_time(clock) = (t, log_t)``."""
        for clock, neuron, point, kind in self._pending:
            self.rows.append((*log_time(clock), neuron, point, len(self.rows), kind))
        self._pending.clear()

    def drop(self) -> None:
        """Forget the pending events of a step that is not kept."""
        self._pending.clear()

    def array(self) -> NDArray[np.void]:
        """The structured array of API order; a death follows the neuron's last deactivation."""

        def key(
            row: tuple[float, float, int, int, int, str],
        ) -> tuple[float, float, int, float, int]:
            t, log_t, neuron, point, order, kind = row
            return log_t, t, neuron, np.inf if kind == "die" else point, order

        out = np.empty(len(self.rows), EVENT_DTYPE)
        for k, (t, log_t, neuron, point, _, kind) in enumerate(sorted(self.rows, key=key)):
            out[k] = (t, log_t, neuron, point, kind)
        return out


def land(problem: Problem, state: State, neuron: int, points: Iterable[int]) -> None:
    """Put a neuron exactly on the planes of ``points`` (and of those it slides on)."""
    on = sorted({*points, *np.flatnonzero(state.mode[neuron] >= 2).tolist()})
    if not on:
        return
    planes = problem.X[on]
    own = problem.gram[np.ix_(on, on)]
    w = state.w[neuron]
    for _ in range(2):  # the second pass removes the rounding of the first
        w = w - np.linalg.lstsq(own, planes @ w, rcond=1e-12)[0] @ planes
    state.w[neuron] = w


def decide(
    problem: Problem, state: State, c: Array, neuron: int, on: NDArray[np.bool_], arrival: Array
) -> Modes:
    """Choose the modes of a neuron on its boundary points; returns the row as it was before."""
    before: Modes = state.mode[neuron].copy()
    row = state.mode[neuron].copy()
    settle(float(state.a[neuron]), c, problem.gram, row, on, arrival)
    if not (row == 1).any():
        row[row >= 2] = 0  # no force left: a neuron without active points is dead
    state.mode[neuron] = row
    land(problem, state, neuron, ())
    return before
