"""Changes of the activation pattern of a descent to its limit, iteration by iteration.

A change is dated by the first iteration with the new sign. All changes are counted; the events of
the first ``MAX_EVENTS`` are kept, by whole iterations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.trajectory import EVENT_DTYPE, Trajectory

MAX_EVENTS = 100_000

Changes = NDArray[np.int64]
Pattern = NDArray[np.bool_]


class EventLog:
    """Changes (iteration, neuron, point) since a start pattern, in the order of iterations."""

    def __init__(self, start: Pattern) -> None:
        self._start = start
        self._now = start.copy()
        self._kept: list[Changes] = []
        self._room = MAX_EVENTS
        self.complete_until: int | None = None
        self.iterations = 0
        self.last = 0

    @classmethod
    def resumed(cls, start: Pattern, now: Pattern, run: Trajectory) -> EventLog:
        """The log of an interrupted run, to be continued from its last pattern."""
        log = cls(start)
        log._now = now.copy()
        events = run.events[run.events["point"] >= 0]  # deaths follow from the others
        fields = [events[name].astype(np.int64) for name in ("t", "neuron", "point")]
        log._kept = [np.column_stack(fields)]
        log._room -= len(events)
        log.complete_until = run.stats["events_until"]
        log.iterations, log.last = int(run.stats["changes"]), int(run.stats["last_change"])
        return log

    def moment(self) -> tuple[int, int | None, int, int]:
        """How far the log is, for `as_of`."""
        return len(self._kept), self.complete_until, self.iterations, self.last

    def as_of(self, moment: tuple[int, int | None, int, int]) -> EventLog:
        """The events and counts of an earlier moment; nothing can be added to it."""
        log = EventLog(self._start)
        kept, log.complete_until, log.iterations, log.last = moment
        log._kept = self._kept[:kept]
        return log

    def add(self, changes: Changes) -> None:
        """Append the changes of a stretch that was iterated."""
        if not len(changes):
            return
        _, neuron, point = changes.T
        np.logical_xor.at(self._now, (neuron, point), True)
        times = np.unique(changes[:, 0])
        self.iterations += len(times)
        self.last = int(times[-1])
        if self.complete_until is None and len(changes) > self._room:
            # the iteration whose changes no longer fit, and all after it, are left out
            first_out = int(changes[self._room, 0])
            self.complete_until = first_out - 1
            changes = changes[changes[:, 0] < first_out]
        elif self.complete_until is not None:
            return
        self._kept.append(changes)
        self._room -= len(changes)

    def reach(self, t: int, pattern: Pattern) -> None:
        """Append what is needed to have this pattern at iteration t."""
        neuron, point = np.nonzero(pattern != self._now)
        self.add(np.column_stack([np.full(len(neuron), t), neuron, point]))

    def events(self) -> NDArray[np.void]:
        """Events of the kinds ``activate``, ``deactivate`` and ``die``, as in a `Trajectory`."""
        active, rows = self._start.copy(), []
        kept = np.concatenate([np.empty((0, 3), np.int64), *self._kept]).tolist()
        for k, (t, neuron, point) in enumerate(kept):
            active[neuron, point] ^= True
            kind = "activate" if active[neuron, point] else "deactivate"
            rows.append((float(t), float(np.log(t)), neuron, point, kind))
            last_of_neuron = k + 1 == len(kept) or kept[k + 1][:2] != [t, neuron]
            if last_of_neuron and not active[neuron].any():
                rows.append((float(t), float(np.log(t)), neuron, -1, "die"))
        return np.array(rows, EVENT_DTYPE)
