"""The events of a run: written down by plane and clock, told by point and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.state import Modes
from reluflow.kernels.flow.layout import ABOVE, BRANCH, DIE, FLIP, GRAZES, SLIDE, Planes
from reluflow.kernels.flow.planes import is_alive
from reluflow.trajectory import EVENT_DTYPE

_NAMES = {DIE: "die", FLIP: "flip", BRANCH: "branch"}


class EventLog:
    """Events in the loss's own clock, appended in any order.

    A row is (clock, neuron, plane, mode before, mode after), as the kernels write it; where no
    mode changes the last is a code. `date` is given the map from clock to time when a stretch of
    clock is finished.
    """

    def __init__(self) -> None:
        self._dated: list[tuple[Array, Array, Array]] = []  # (t, log_t, rows)
        self._pending: list[Array] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def grazes(self) -> int:
        """How often the error of the run decided on which side of a plane a neuron went on."""
        return sum(int((rows[:, 3] == GRAZES).sum()) for _, _, rows in self._dated)

    def extend(self, clock: float, unit: float, rows: Array) -> None:
        """Append rows whose moments are counted from ``clock`` in ``unit``."""
        if len(rows):
            rows = rows.copy()
            rows[:, 0] = clock + unit * rows[:, 0]
            self._pending.append(rows)
            self._count += len(rows)

    def add(self, clock: float, neuron: int, plane: int, code: int) -> None:
        """Append one event that changes no mode."""
        self.extend(clock, 0.0, np.array([[0.0, neuron, plane, code, code]]))

    def compare(
        self, clock: float, neuron: int, before: Modes, after: Modes, both: NDArray[np.bool_]
    ) -> None:
        """Append all changes of one neuron's row, its death included."""
        rows = [
            [0.0, neuron, p, before[p], after[p]] for p in np.flatnonzero(before != after).tolist()
        ]
        if is_alive(before, both) and not is_alive(after, both):
            rows.append([0.0, neuron, -1, 0, DIE])
        self.extend(clock, 0.0, np.array(rows).reshape(-1, 5))

    def take(self, other: EventLog) -> None:
        """Append what another log has, not dated."""
        self._pending.extend(other._pending)
        self._count += len(other)

    def date(self, times: Callable[[Array], tuple[Array, Array]]) -> None:
        """Give the events without time theirs: ``times(clocks) = (t, log_t)``."""
        if self._pending:
            rows = np.concatenate(self._pending)
            self._dated.append((*times(rows[:, 0]), rows))
            self._pending.clear()

    def drop(self) -> None:
        """Forget the events of a step that is not kept."""
        self._count -= sum(len(rows) for rows in self._pending)
        self._pending.clear()

    def array(self, planes: Planes) -> NDArray[np.void]:
        """The structured array of API order; a death follows the neuron's last deactivation."""
        if not self._dated:
            return np.empty(0, EVENT_DTYPE)
        t, log_t, rows = (np.concatenate(column) for column in zip(*self._dated, strict=True))
        which, point, kind = _by_point(rows[:, 2:].astype(np.int64), planes)
        out = np.empty(len(which), EVENT_DTYPE)
        columns = (t[which], log_t[which], rows[which, 1], point, kind)
        for name, column in zip(EVENT_DTYPE.names or (), columns, strict=True):
            out[name] = column
        last = np.where(kind == "die", np.iinfo(np.int64).max, point)
        return out[np.lexsort((last, out["neuron"], out["t"], out["log_t"]))]


def _by_point(
    rows: NDArray[np.int64], planes: Planes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Tell rows (plane, before, after) by point: ``(row, point, kind)``, in order.

    Points on one plane change together, one event each. A slide that ends is a release and what
    follows.
    """
    order = np.argsort(planes.owner, kind="stable")
    begin = np.searchsorted(planes.owner[order], np.arange(len(planes.U) + 1))
    plane, before, after = rows.T
    changes = (plane >= 0) & (before < BRANCH)
    counts = np.where(changes, np.diff(begin)[np.maximum(plane, 0)], 1)
    which = np.repeat(np.arange(len(rows)), counts)
    place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    own = np.maximum(plane[which], 0)
    point = np.where(plane[which] >= 0, order[begin[own] + place], -1)
    below = (planes.length[point] < 0.0) & changes[which]
    was, now = before[which], after[which]
    now = np.where(below & (now < SLIDE), ABOVE - now, now)
    kind = np.where(now == ABOVE, "activate", "deactivate").astype("U10")
    kind[now == SLIDE] = "slide"
    for code, name in _NAMES.items():
        kind[~changes[which] & (after[which] == code)] = name
    released = changes[which] & (was == SLIDE) & (now != SLIDE)
    twice = np.repeat(np.arange(len(which)), 1 + released)
    first = np.concatenate([[True], np.diff(twice) > 0]) if len(twice) else np.empty(0, bool)
    kind = np.where(first & released[twice], "release", kind[twice])
    return which[twice], point[twice], kind
