r"""The coupled phase: adaptive collocation steps that end exactly at the events that matter.

A step is solved with the modes it starts with. Then each neuron's path, a polynomial, is searched
for exits from its row (Bernstein form: no double crossing is missed). Crossings of *light* neurons,
whose kink in the outputs is below the tolerance, are carried out inside the step, for that neuron
alone. Any other event (a heavy crossing, a slide, a release, a change of sign of an output weight)
shortens the step to end there: its size is solved for until the event lies at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import collocation, tableau
from reluflow.engines.flow.collocation import Start, Stretch
from reluflow.engines.flow.events import EventLog, decide, land
from reluflow.engines.flow.modes import classify
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, State
from reluflow.kernels.collocation import first_exit

ORDER = 2 * tableau.STAGES - 1
SAFETY = 0.85


@dataclass
class Counters:
    """Work done, for the statistics of a run."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    landings: int = 0


@dataclass(frozen=True)
class Event:
    """An event of a tried step: ``tau`` in it, who, and which point (-1: output weight zero).

    ``release`` marks the end of a slide; ``who`` is then a class, otherwise a neuron.
    """

    tau: float
    who: int
    point: int
    release: bool = False

    def same(self, other: Event) -> bool:
        """Whether it is the same event at another time."""
        return (self.who, self.point, self.release) == (other.who, other.point, other.release)


@dataclass(frozen=True)
class Step:
    """A step taken: the solved stretch and the state at its end."""

    stretch: Stretch
    end: State


class Coupled:
    """Steps the coupled flow; remembers the step size between calls."""

    def __init__(self, problem: Problem, rtol: float, counters: Counters, log: EventLog) -> None:
        self.problem, self.rtol, self.counters, self.log = problem, rtol, counters, log
        self.step = 0.5 * rtol ** (1.0 / ORDER) / problem.rate
        self.foreseen = np.inf  # clock of an event seen in the last step that was shortened
        self.crowd = 1  # light events of the last step: the tolerance is shared among them
        self.tol_event = max(0.01 * rtol, 1e-12)
        # a late release costs no more than this share of the tolerance; without it a weight that
        # settles at an end of [0, 1] would release and slide for ever
        self.tol_release = max(0.1 * rtol, 1e-11)

    def advance(self, at: Start, limit: float) -> Step:
        """Take one step of at most ``limit`` and carry out the events at its end."""
        problem = self.problem
        # rounding of the forces, times the step, must stay far below the tolerance
        felt = (at.classes.rows > 0).any(axis=0)
        noise = 2e-16 * float((np.abs(at.c) * problem.lengths)[felt].sum())
        step = min(self.step, limit, 0.03 * self.rtol / max(noise, 1e-300))
        if at.state.clock < self.foreseen:
            step = min(step, 1.05 * (self.foreseen - at.state.clock))
        aim: Event | None = None
        heavy = np.zeros(len(at.state.a), dtype=bool)
        tries = 0
        instant = 4.0 * float(np.spacing(max(at.state.clock, 1e-3 * step)))
        for _ in range(400):
            stretch = collocation.solve(problem, at, step, self.rtol)
            if stretch is None or stretch.error > 1.0:
                self.counters.rejected += 1
                error = 1e9 if stretch is None else stretch.error
                step *= max(0.15, SAFETY * error ** (-1.0 / ORDER))
                self.step, aim = step, None
                continue
            self.counters.evaluations += stretch.iterations
            light = self._light(at, stretch) & ~heavy
            moved = collocation.carry(problem, at, stretch, light, self._can_flip(at))
            end = self._end(at, stretch, moved)
            events = self._events(at, stretch, moved)
            early = self._earliest(at, stretch, end, events, light)
            if early is not None and step > instant:
                aim = early
                if not aim.release:
                    heavy[aim.who] = True  # a light neuron with a second slide needs a landing
                later = next((e.tau for e in events if e.tau > aim.tau), None)
                self.foreseen = at.state.clock + step * later if later else np.inf
                step = max(step * aim.tau, 0.5 * instant)
                self.counters.landings += 1
                continue
            if aim is not None and not any(aim.same(e) for e in events):
                gap = self._gap(at, stretch, end, aim)
                tries += 1
                if abs(gap) <= (self.tol_release if aim.release else self.tol_event):
                    events.append(aim)
                elif tries <= 8:
                    more = abs(gap) / max(self._speed(at, stretch, end, aim), 1e-300)
                    step = min(step + min(more, 0.5 * step), limit)
                    continue
            self._accept(stretch, bool(events))
            self._carry_out(at, stretch, end, moved, events)
            return Step(stretch, end)
        raise FloatingPointError("a step of the flow could not be completed")

    def _earliest(
        self, at: Start, stretch: Stretch, end: State, events: list[Event], light: NDArray[np.bool_]
    ) -> Event | None:
        """The first event that does not lie at the end of the step to tolerance."""
        for event in events:
            if not event.release and light[event.who]:
                return event
            tol = self.tol_release if event.release else self.tol_event
            if abs(self._gap(at, stretch, end, event)) > tol and event.tau < 1.0 - 1e-13:
                return event
        return None

    def _accept(self, stretch: Stretch, shortened: bool) -> None:
        self.counters.steps += 1
        growth = min(8.0, SAFETY * max(stretch.error, 1e-12) ** (-1.0 / ORDER))
        fitting = stretch.step * growth
        seen = shortened or np.isfinite(self.foreseen)
        self.step = max(self.step, fitting) if seen else fitting
        if not shortened:
            self.foreseen = np.inf

    # ------------------------------------------------------------------ what limits the step

    def _light(self, at: Start, stretch: Stretch) -> NDArray[np.bool_]:
        """Neurons whose crossings leave kinks in the outputs far below the tolerance.

        A crossing bends the outputs by a slope of the neuron's size times the force. A quadrature
        over the step misses about a twentieth of the bend times the step, and the force it then
        misses acts for the step: size x boost^2 / 20. Of N crossings in a step the mean effect is
        smooth; what is missed grows like the square root of N.
        """
        state, problem = at.state, self.problem
        size = at.weight * (state.a**2 + np.einsum("jd,jd->j", state.w, state.w))
        bend = 0.05 * size * float(problem.lengths.max()) ** 2 * min(1.0, stretch.boost) ** 2
        bound = 0.1 * self.rtol * problem.output_scale / np.sqrt(self.crowd)
        return np.asarray((bend < bound) & ((state.mode >= 2).sum(axis=1) <= 1))

    def _can_flip(self, at: Start) -> NDArray[np.bool_]:
        """Only a neuron with ``|a| < |w|`` can change the sign of its output weight."""
        if self.problem.hidden:
            return np.zeros(len(at.state.a), dtype=bool)
        squares = np.einsum("jd,jd->j", at.state.w, at.state.w)
        return np.asarray(at.state.a**2 < squares * (1.0 - 1e-12))

    def _events(self, at: Start, stretch: Stretch, moved: collocation.Moved) -> list[Event]:
        """All events of the tried step that must end it, in order of time."""
        met = np.flatnonzero(moved.tau <= 1.0)
        events = [
            Event(float(moved.tau[j]), int(j), int(moved.point[j]))
            for j in met[np.argsort(moved.tau[met], kind="stable")]
        ]
        if not at.classes.slides:
            return events
        c = np.concatenate([at.c[None], stretch.c])
        rho = at.classes.forces(c)
        for slide in at.classes.slides:
            for i in slide.points:
                side = 1.0 if at.c[i] > 0 else -1.0
                tiny = self.tol_release * float(np.abs(c[:, i]).max())
                tau = min(
                    first_exit(tableau.FORCE_BERNSTEIN @ curve, side, tiny)
                    for curve in (rho[slide.index, :, i], c[:, i] - rho[slide.index, :, i])
                )
                if tau <= 1.0:
                    events.append(Event(tau, slide.index, int(i), release=True))
        return sorted(events, key=lambda e: e.tau)

    def _gap(self, at: Start, stretch: Stretch, end: State, event: Event) -> float:
        """How far the end of the step is from the event, as an angle or a sliding weight."""
        if event.release:
            theta = self._theta(at, stretch.c[-1], event)
            return min(theta, 1.0 - theta) + self.tol_release
        norm = _size(end, event.who)
        if event.point < 0:
            return float(end.a[event.who]) / norm
        z = float(end.w[event.who] @ self.problem.X[event.point])
        return z / (norm * float(self.problem.lengths[event.point]))

    def _speed(self, at: Start, stretch: Stretch, end: State, event: Event) -> float:
        """Rate of change of the gap at the end of the step."""
        if event.release:
            earlier = tableau.lagrange_matrix(tableau.RADAU, np.array([0.95]))[0] @ stretch.c
            change = self._theta(at, stretch.c[-1], event) - self._theta(at, earlier, event)
            return abs(change) / (0.05 * stretch.step)
        rho = at.classes.forces(stretch.c[-1:])[at.classes.cid[event.who], 0]
        norm = _size(end, event.who)
        if event.point < 0:
            return abs(float(rho @ (self.problem.X @ end.w[event.who]))) / norm
        pull = float(end.a[event.who] * (rho @ self.problem.gram[event.point]))
        return abs(pull) / (norm * float(self.problem.lengths[event.point]))

    def _theta(self, at: Start, c: Array, event: Event) -> float:
        """Weight of a sliding point in forces ``c``."""
        rho = at.classes.forces(c[None])[event.who, 0, event.point]
        return float(rho / c[event.point]) if c[event.point] != 0.0 else 0.0

    # ------------------------------------------------------------------ the end of the step

    def _end(self, at: Start, stretch: Stretch, moved: collocation.Moved) -> State:
        end = at.state.copy()
        end.a, end.w, end.mode = moved.a, moved.w, moved.mode
        for (
            slide
        ) in at.classes.slides:  # back onto the planes: a long slide leaves them by rounding
            members = at.classes.cid == slide.index
            planes = self.problem.X[slide.points]
            off = end.w[members] @ planes.T
            end.w[members] -= off @ slide.normal @ planes
        end.clock += stretch.step
        return end

    def _carry_out(
        self,
        at: Start,
        stretch: Stretch,
        end: State,
        moved: collocation.Moved,
        events: list[Event],
    ) -> None:
        """Log the light crossings and change the modes of the events at the end of the step."""
        self.crowd = 1 + len(moved.crossings)
        dying = {int(j) for j in moved.crossings[:, 1] if not (end.mode[int(j)] == 1).any()}
        for tau, j, i, new in moved.crossings:
            clock = at.state.clock + tau * stretch.step
            old = 1 - int(new) if new < 2 else int(new) - 2
            self.log.change(clock, int(j), int(i), old, int(new))
            if new >= 2:
                land(self.problem, end, int(j), ())
        for j in sorted(dying):
            last = float(moved.crossings[moved.crossings[:, 1] == j, 0].max())
            self.log.add(at.state.clock + last * stretch.step, j, -1, "die")
        if not events:
            return
        c = self.problem.forces(end.outputs(self.problem, end.preactivations(self.problem)))
        for event in events:
            if event.release:
                for j in np.flatnonzero(at.classes.cid == event.who).tolist():
                    if end.mode[j, event.point] >= 2:
                        self._release(end, c, j, event.point)
            elif event.point < 0:
                self._flip(end, c, event.who)
            else:
                self._arrive(end, c, event.who, event.point)

    def _arrive(self, end: State, c: Array, j: int, i: int) -> None:
        """One neuron reaches the plane of point i."""
        if end.mode[j, i] >= 2 or not (end.mode[j] == 1).any():
            return  # an event at the same instant has already decided
        land(self.problem, end, j, (i,))
        near = np.abs(self.problem.X @ end.w[j]) <= ON_PLANE * _size(end, j) * self.problem.lengths
        on = near | (end.mode[j] >= 2)
        on[i] = True
        rho = classify(end.mode[j : j + 1], self.problem.gram).forces(c[None])[0, 0]
        arrival = end.a[j] * (self.problem.X @ (rho @ self.problem.X))
        before = decide(self.problem, end, c, j, on, arrival)
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
            before = decide(self.problem, end, c, j, on, np.zeros(self.problem.n))
            self.log.compare(end.clock, j, before, end.mode[j])
        end.a[j] = 0.0

    def _release(self, end: State, c: Array, j: int, i: int) -> None:
        """A sliding weight reaches 0 or 1: the neuron leaves the plane of point i."""
        before = decide(self.problem, end, c, j, end.mode[j] >= 2, np.zeros(self.problem.n))
        if end.mode[j, i] >= 2:
            row = classify(end.mode[j : j + 1], self.problem.gram)
            theta = row.forces(c[None])[0, 0, i] / c[i]
            end.mode[j, i] = 1 if theta > 0.5 else 0
            if not (end.mode[j] == 1).any():
                end.mode[j] = 0
        self.log.compare(end.clock, j, before, end.mode[j])


def _size(state: State, j: int) -> float:
    """``|(a_j, w_j)|``, never zero."""
    return max(float(np.sqrt(state.a[j] ** 2 + state.w[j] @ state.w[j])), 1e-300)
