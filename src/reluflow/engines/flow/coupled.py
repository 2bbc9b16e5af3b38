r"""The coupled phase: adaptive collocation steps, and where they must end.

A step is solved with the modes it starts with. Then each neuron's path, a polynomial, is searched
for exits from its row (Bernstein form: no double crossing is missed). Events whose kink in the
outputs is below the tolerance, because the neuron is small or the step ends soon after, are carried
out inside the step, for that neuron alone; the `agenda` of crossings to come chooses steps of which
that is true. Any other event (the end of a large neuron's slide, a change of sign in a slide) is
landed on: the size of the step is solved for until the event lies at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import collocation, tableau
from reluflow.engines.flow.agenda import Agenda
from reluflow.engines.flow.collocation import Start, Stretch
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.outcomes import Event, Outcomes, size_of
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import ON_PLANE, State
from reluflow.kernels.classes import spread

ORDER = 2 * tableau.STAGES - 1
SAFETY = 0.85
# the first step, and how much longer the next one may be: a try that fails costs no more than a
# step that is too short
FIRST, GROWTH = 2.0, 12.0
# share of a step in which a neuron gets nowhere
AT_ONCE = 1e-9


@dataclass
class Counters:
    """Work done, for the statistics of a run."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0


class Step(NamedTuple):
    """A step taken: the solved stretch and the state at its end."""

    stretch: Stretch
    end: State


class Coupled:
    """Steps the coupled flow; remembers the step size between calls."""

    def __init__(self, problem: Problem, rtol: float, counters: Counters, log: EventLog) -> None:
        self.problem, self.rtol, self.counters, self.log = problem, rtol, counters, log
        self.step = FIRST * rtol ** (1.0 / ORDER) / problem.rate
        self.agenda = Agenda()
        self.tol_event = max(0.01 * rtol, 1e-12)
        self.tol_release = max(0.1 * rtol, 1e-11)
        self.outcomes = Outcomes(problem, log)

    def advance(self, at: Start, limit: float) -> Step:
        """Take one step of at most ``limit`` and carry out the events at its end."""
        problem = self.problem
        # rounding of the forces, times the step, must stay far below the tolerance
        # (a sliding point is felt through the active ones that its plane balances, not by itself)
        felt = at.classes.active.any(axis=0)
        pulls = np.abs(at.c) * problem.lengths
        noise = 2e-16 * float(pulls[felt].sum())
        light_bound = self._light_bound()
        rate = max(at.fastest, float(pulls.max()))
        reach = self.agenda.reach(at.state.clock, light_bound, rate, at.stiffness)
        step = min(self.step, reach, limit, 0.03 * self.rtol / max(noise, 1e-300))
        cut = step == reach  # not by its own error
        self.outcomes.slack = self._slack(at)
        aim: Event | None = None
        heavy = np.zeros(len(at.state.a), dtype=bool)
        tries, beyond = 0, step
        longer: Stretch | None = None
        patient = False  # asks for all neurons, although an event lies inside the step
        for _ in range(400):
            stretch, moved = collocation.attempt(
                problem, at, step, self.rtol, longer, heavy, light_bound, self.tol_release,
                self.outcomes.slack, patient,
            )  # fmt: skip
            longer, patient = stretch, False
            if stretch is None or moved is None:
                self.counters.rejected += 1
                error = 1e9 if stretch is None else stretch.error
                step *= max(0.15, SAFETY * error ** (-1.0 / ORDER))
                self.step, aim = step, None
                continue
            self.counters.evaluations += stretch.iterations
            instant = 4.0 * float(np.spacing(max(at.state.clock, 1e-3 * step)))
            end = self._end(at, stretch, moved)
            events = self._events(at, moved)
            early = self._earliest(at, stretch, end, events, moved.light)
            if not moved.whole and (early is None or step <= instant):
                patient = True
                continue
            if early is not None and step > instant:
                beyond = step
                if not early.release and moved.light[early.who]:
                    heavy[early.who] = True  # more than a walk can do: all planes at once, say
                    if early.tau < AT_ONCE:  # no walk, then: its class says what comes first
                        aim = None
                        continue
                aim = self._landing(events, heavy)
                self._expect(at, stretch, events, heavy)
                rate = max(stretch.boost / step, rate)
                reach = self.agenda.reach(at.state.clock, light_bound, rate, at.stiffness)
                if not reach < step:  # the event is an instant ahead
                    aim = early
                if aim is not None and aim.tau * step <= reach:
                    if not aim.release:
                        heavy[aim.who] = True
                    step = max(step * aim.tau, 0.5 * instant)
                else:
                    aim, step = None, reach
                cut = True
                continue
            if aim is not None and not any(aim.same(e) for e in events):
                gap = self._gap(at, stretch, end, aim)
                tries += 1
                tol = self.tol_release if aim.release else self.tol_event
                # a weight that was outside from the start, but not surely so, is released there
                if abs(gap) <= tol or (aim.release and aim.tau == 0.0):
                    events.append(aim)
                elif tries <= 8:
                    more = abs(gap) / max(self._speed(at, stretch, end, aim), 1e-300)
                    # far from it the long step's paths were no guide: halve the decades between
                    far = more > 0.5 * step
                    step = min(float(np.sqrt(step * beyond)) if far else step + more, limit)
                    continue
            self._accept(stretch, cut)
            self.outcomes.carry_out(at, stretch, end, moved, events)
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

    def _accept(self, stretch: Stretch, cut: bool) -> None:
        self.counters.steps += 1
        growth = min(GROWTH, SAFETY * max(stretch.error, 1e-12) ** (-1.0 / ORDER))
        fitting = stretch.step * growth
        self.step = max(self.step, fitting) if cut else fitting

    # ------------------------------------------------------------------ what limits the step

    def _light_bound(self) -> float:
        """Largest size of a neuron, times the square of the boost, whose crossings are harmless."""
        share = 0.2 * self.rtol * self.problem.output_scale / float(np.sqrt(self.outcomes.crowd))
        return share / (0.05 * self.problem.longest**2)

    def _slack(self, at: Start) -> float:
        """Share of a force that may be error: a sliding weight is released if it is out by more.

        The error of a weight that settles at an end of [0, 1] would release it, and it would slide
        again at once. Outputs are known to the tolerance; a margin of q to q times it, and the
        shares of a classification loss depend on margins exponentially.
        """
        margin = 0.0 if self.problem.is_square else -at.log_loss
        return max(self.rtol * max(5.0, margin), 1e-11)

    def _landing(self, events: list[Event], heavy: NDArray[np.bool_]) -> Event | None:
        """The first event at which a step must end, whatever the size of its neuron."""
        return next((event for event in events if self._must_land(event, heavy)), None)

    def _must_land(self, event: Event, heavy: NDArray[np.bool_]) -> bool:
        return bool(event.release or event.point < 0 or heavy[event.who])

    def _expect(
        self, at: Start, stretch: Stretch, events: list[Event], heavy: NDArray[np.bool_]
    ) -> None:
        walks = [event for event in events if not self._must_land(event, heavy)]
        sizes = [
            float(at.neurons.weight[e.who]) * size_of(at.state, e.who, False) ** 2 for e in walks
        ]
        self.agenda.expect(at.state.clock, stretch.step, [e.tau for e in walks], sizes)

    def _events(self, at: Start, moved: collocation.Moved) -> list[Event]:
        """All events of the tried step that must end it, in order of time."""
        met = moved.met.tolist()
        events = [Event(float(moved.tau[j]), j, int(moved.point[j])) for j in met]
        classes, leaving = at.classes, moved.leaving
        for p in np.flatnonzero(leaving.tau <= 1.0).tolist() if len(leaving.tau) else ():
            who = int(np.searchsorted(classes.begin, p, side="right")) - 1
            point, size = int(classes.point[p]), float(leaving.unit[p])
            events.append(Event(float(leaving.tau[p]), who, point, True, size, bool(leaving.up[p])))
        return sorted(events, key=lambda e: e.tau)

    def _gap(self, at: Start, stretch: Stretch, end: State, event: Event) -> float:
        """How far the end of the step is from the event: an angle, a share of a weight."""
        if event.release:
            return self._hold(at, stretch.c[-1], event) + self.tol_release
        if event.point < 0:
            return float(end.a[event.who]) / self._flip_unit(at, stretch, event)
        z = float(end.w[event.who] @ self.problem.X[event.point])
        norm = size_of(end, event.who, self.problem.hidden)
        return z / (norm * float(self.problem.lengths[event.point]))

    def _flip_unit(self, at: Start, stretch: Stretch, event: Event) -> float:
        """The output weight before the step, however small beside the others; or its rounding."""
        rounding = ON_PLANE * stretch.boost * size_of(at.state, event.who, False)
        return max(abs(float(at.state.a[event.who])), rounding, 1e-300)

    def _speed(self, at: Start, stretch: Stretch, end: State, event: Event) -> float:
        """Rate of change of the gap at the end of the step."""
        if event.release:
            earlier = tableau.lagrange_matrix(tableau.RADAU, np.array([0.95]))[0] @ stretch.c
            change = self._hold(at, stretch.c[-1], event) - self._hold(at, earlier, event)
            return abs(change) / (0.05 * stretch.step)
        rho = spread(stretch.c[-1:], at.classes)[at.classes.cid[event.who], 0]
        if event.point < 0:
            slope = float(rho @ (self.problem.X @ end.w[event.who]))
            return abs(slope) / self._flip_unit(at, stretch, event)
        norm = size_of(end, event.who, self.problem.hidden)
        pull = float(end.a[event.who] * (rho @ self.problem.gram[event.point]))
        return abs(pull) / (norm * float(self.problem.lengths[event.point]))

    def _hold(self, at: Start, c: Array, event: Event) -> float:
        """How far a sliding weight is inside [0, 1] in forces ``c``, in the event's unit."""
        classes = at.classes
        first, last = classes.begin[event.who], classes.begin[event.who + 1]
        p = first + int(np.searchsorted(classes.point[first:last], event.point))
        rho, force = float(classes.lift[p] @ c), float(c[event.point])
        side = 1.0 if at.c[event.point] > 0 else -1.0
        return min(side * rho, side * (force - rho)) / event.unit

    # ------------------------------------------------------------------ the end of the step

    def _end(self, at: Start, stretch: Stretch, moved: collocation.Moved) -> State:
        was = at.state
        return State(
            moved.a, moved.w, was.sigma.copy(), moved.mode, was.t, was.log_t,
            was.clock + stretch.step, was.rest, was.rest_sigma,
        )  # fmt: skip
