"""What the events of a step lead to: modes changed at its end, and the log of it all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow import collocation
from reluflow.engines.flow.collocation import Start, Stretch
from reluflow.engines.flow.events import EventLog, decide
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, State
from reluflow.kernels import boundaries
from reluflow.kernels.releases import released


class Event(NamedTuple):
    """An event of a tried step: ``tau`` in it, who, and which point (-1: output weight zero).

    ``release`` marks the end of a slide; ``who`` is then a class, otherwise a neuron, ``unit``
    the size of its force, ``up`` whether it ends on the active side.
    """

    tau: float
    who: int
    point: int
    release: bool = False
    unit: float = 1.0
    up: bool = False

    def same(self, other: Event) -> bool:
        """Whether it is the same event at another time."""
        return (self.who, self.point, self.release) == (other.who, other.point, other.release)


class Outcomes:
    """Carries out events. ``slack``: forces are known to this share of their scale (the caller's).

    ``crowd`` counts the light events of the last step: the tolerance is shared among them.
    """

    def __init__(self, problem: Problem, log: EventLog) -> None:
        self.problem, self.log, self.slack = problem, log, 0.0
        self.crowd = 1

    def carry_out(
        self,
        at: Start,
        stretch: Stretch,
        end: State,
        moved: collocation.Moved,
        events: list[Event],
    ) -> None:
        """Log the light crossings and change the modes of the events at the end of the step."""
        self.crowd = 1 + int((moved.crossings[:, 2] >= 0).sum())
        if len(moved.crossings):
            self._log_crossings(at.state.clock, stretch.step, end, moved.crossings)
        if not events:
            return
        c = self.problem.forces(end.outputs(self.problem))
        for event in events:
            if event.release:
                for j in np.flatnonzero(at.classes.cid == event.who).tolist():
                    if end.mode[j, event.point] >= 2:
                        self._release(end, c, j, event)
            elif event.point < 0:
                self._flip(end, c, event.who)
            else:
                self._arrive(end, c, event.who, event.point)

    def _log_crossings(self, clock: float, step: float, end: State, rows: Array) -> None:
        """Write down what light neurons did inside the step."""
        when = clock + rows[:, 0] * step
        who = rows[:, 1].astype(np.int64)
        self.log.crossings(when, who, rows[:, 2].astype(np.int64), rows[:, 3].astype(np.int64))
        dead = ~(end.mode[who] == 1).any(axis=1)
        if dead.any():
            last = dict(zip(who[dead].tolist(), when[dead].tolist(), strict=True))
            for j, moment in sorted(last.items()):
                self.log.add(moment, j, -1, "die")

    def _arrive(self, end: State, c: Array, j: int, i: int) -> None:
        """One neuron reaches the plane of point i."""
        if end.mode[j, i] >= 2 or not (end.mode[j] == 1).any():
            return  # an event at the same instant has already decided
        before = end.mode[j].copy()
        near = ON_PLANE * size_of(end, j, self.problem.hidden)
        X, gram = self.problem.X, self.problem.gram
        boundaries.arrive(float(end.a[j]), end.w[j], end.mode[j], c, X, gram, i, near)
        self.log.compare(end.clock, j, before, end.mode[j])

    def _flip(self, end: State, c: Array, j: int) -> None:
        """An output weight passes zero: attracting and repelling planes change roles."""
        self.log.add(end.clock, j, -1, "flip")
        came = 1.0 if end.a[j] > 0 else -1.0
        on = end.mode[j] >= 2
        if on.any():
            # the sign it will have: that of its slope, opposite to the one it had
            slope = float(c @ np.where(end.mode[j] == 1, self.problem.X @ end.w[j], 0.0))
            end.a[j] = np.sign(slope) or -came
            before = decide(self.problem, end, c, j, on)
            self.log.compare(end.clock, j, before, end.mode[j])
        end.a[j] = 0.0

    def _release(self, end: State, c: Array, j: int, event: Event) -> None:
        """A sliding weight reaches 0 or 1: the neuron leaves the plane of that point."""
        before = end.mode[j].copy()
        scale = self.problem.force_scale if self.problem.is_square else 0.0
        released(
            float(end.a[j]), end.w[j], end.mode[j], c, self.problem.X, self.problem.gram,
            event.point, event.up, self.slack, scale,
        )  # fmt: skip
        self.log.compare(end.clock, j, before, end.mode[j])


def size_of(state: State, j: int, hidden: bool) -> float:
    """``|(a_j, w_j)|``, or ``|w_j|`` where output weights are not trained; never zero."""
    output = 0.0 if hidden else state.a[j]
    return max(float(np.sqrt(output**2 + state.w[j] @ state.w[j])), 1e-300)
