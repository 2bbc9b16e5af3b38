r"""The coupled phase: how long a step may be, and what becomes of a tried one.

A step is solved with the modes it starts with; neurons with events on the way walk, each alone. A
tried step is then

* *rejected* if it could not be solved or its error is too large;
* *shortened* if an event of a large neuron lies so far inside that the outputs would miss its kink
  (the `agenda` of crossings to come says how long a step may be), or if a neuron stopped on its way
  because dependent planes meet there: the step ends where it did;
* *accepted* otherwise; neurons that stopped are told at its end how to go on (`crossroads`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow import growth, riders, tolerances
from reluflow.engines.flow import step as coupled
from reluflow.engines.flow.agenda import Agenda
from reluflow.engines.flow.crossroads import Crossroads
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.pace import Pace
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.redirect import part, redirect
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.state import Modes, State, pairs_in
from reluflow.engines.flow.step import Attempt, Stretch
from reluflow.engines.flow.tableau import lagrange_matrix
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import SLIDE, Limits

# e-folds of weight decay in a step, at most: the weights are multiplied by that, and divided again
LONGEST = 20.0
# so often a step is tried before the run fails
TRIES = 400
# ... and how much longer the next step waits for an event that was about to come and did not
LONGER = 8.0
# where riders could not ride they are not asked for up to so many steps
LONG_WALK = 15


class StepFailedError(ArithmeticError):
    """A step that could not be completed, with the reason in words."""


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


class Controller:
    """Steps the coupled flow."""

    def __init__(self, problem: Problem, rtol: float, counters: Counters, log: EventLog) -> None:
        self.problem, self.rtol, self.counters, self.log = problem, rtol, counters, log
        self.agenda = Agenda()
        self.crowd = 1  # events inside the last step: the tolerance is shared among them
        self.leaving: dict[int, float] = {}  # when in this step the rests of neurons end
        self.pace = Pace(problem, rtol)
        # whether the step at hand was cut to just after an event too near for the agenda; how long
        # after, in harmless stretches: it grows while no event comes
        self.waits, self.delay = False, 1.0
        self.on_foot = self.failed = 0  # steps until riders are tried again; as many last time
        self.tol_event = max(tolerances.EVENT * rtol, tolerances.EVENT_FLOOR)

    def advance(self, at: Start, limit: float) -> Step:
        """Take one step of at most ``limit`` and carry out the events in it."""
        if self.on_foot > 0:
            self.on_foot -= 1
            return self._advance(at, limit)
        burden = growth.turn(self.rtol, self.pace.method) / self.pace.wanted(at)
        ride = riders.riders(at, self.rtol, burden)
        if not len(ride):
            return self._advance(at, limit)
        others = riders.without(at, ride)
        allowed = min(limit, riders.room(at, ride, self.rtol))
        while True:
            step = self._advance(others, allowed)
            taken = riders.carried(at, ride, step.stretch, step.end, self.rtol)
            if taken.end is not None:
                self.failed = 0
                return Step(step.stretch, taken.end)
            self.log.drop()
            allowed = 0.5 * step.stretch.step
            if not taken.shorter or allowed * at.fastest < 1.0:
                self.on_foot = self.failed = min(2 * self.failed + 1, LONG_WALK)
                return self._advance(at, limit)

    def _advance(self, at: Start, limit: float) -> Step:
        limits = self.limits(at)
        self.leaving.clear()
        reach = self._reach(at, limits, 0.0)
        method, wanted = self.pace.method, self.pace.wanted(at)
        step = min(wanted, reach, limit)
        if step * at.most_noise > 0.5 * tolerances.NOISE * self.rtol:
            # rounding stays far below the tolerance
            step = min(step, tolerances.NOISE * self.rtol / at.noise)
        if self.problem.decay:
            step = min(step, LONGEST / self.problem.decay)
        cut = step == reach  # not by its own error
        longer: Stretch | None = None
        patient = False  # all neurons walk, although the event of a large one lies inside
        sure = np.zeros(len(at.classes.face), dtype=bool)  # slides that a longer step saw end
        for _ in range(TRIES):
            tried = coupled.attempt(at, step, self.rtol, method, longer, limits, sure, patient)
            longer = tried.stretch
            if tried.moved is None:
                self.counters.rejected += 1
                self.waits = False
                step = wanted = self.pace.after_failure(tried.stretch, step)
                if at.state.clock + step == at.state.clock:
                    raise StepFailedError(
                        f"no step at clock {at.state.clock:.6g} meets the tolerance: at a log-loss "
                        f"of {at.log_loss:.3g} the forces are known to rounding only"
                    )
                continue
            assert tried.stretch is not None
            self.counters.evaluations += tried.stretch.iterations
            instant = 4.0 * float(np.spacing(max(at.state.clock, 1e-3 * step)))
            shorter = self._shorten(at, tried, limits) if step > instant else None
            if shorter is not None and shorter < step:
                step, cut, patient = max(shorter, 0.5 * instant), True, False
                sure |= tried.moved.leaves <= 1.0
            elif not (tried.moved.whole or patient):
                patient = True
            else:
                in_vain = self.waits and not len(tried.events)
                self.waits, self.delay = False, LONGER * self.delay if in_vain else 1.0
                return self.accept(at, tried, self.pace.following(tried, wanted, cut))
        raise StepFailedError(
            f"a step at clock {at.state.clock:.6g} was tried {TRIES} times, last with size "
            f"{step:.3g}, and could not be completed"
        )

    # ------------------------------------------------------------------ what limits a step

    def limits(self, at: Start) -> Limits:
        """Ends of slides, and the size of neurons whose events are harmless at boost one.

        The error of a weight that settles at an end of [0, 1] would release it, and it would slide
        again at once. Outputs are known to the tolerance; a margin of q to q times it, and the
        shares of a classification loss depend on margins exponentially. Shares far below the
        tolerance move nothing in one step (`unit`); what they do in a long one is asked by
        `Limits.most`.
        """
        problem = self.problem
        margin = 0.0 if problem.is_square else -at.log_loss
        far = max(self.rtol * max(tolerances.SLACK, margin), tolerances.SLACK_FLOOR)
        near = max(tolerances.RELEASE * self.rtol, tolerances.RELEASE_FLOOR)
        share = tolerances.CROSSINGS * self.rtol * problem.output_scale / float(np.sqrt(self.crowd))
        light = share / (tolerances.MISSED * problem.longest**2)
        if problem.hidden:  # what moves may be far smaller than the output weights that move it
            light *= float(np.clip(np.abs(at.state.w).max(), 1e-12, 1.0))
        unit = problem.law.force_scale * (1.0 if problem.is_square else self.rtol)
        return coupled.limits_of(at, near, far, unit, light, self.rtol)

    def _reach(self, at: Start, limits: Limits, boost_rate: float) -> float:
        if not len(self.agenda.moments):
            return np.inf
        rate = max(at.fastest, float(at.pulls.max()), boost_rate)
        reach = self.agenda.reach(at.state.clock, limits.light, rate, at.stiffness)
        # what was expected now lies behind: a step has to move the clock
        return max(reach, 2.0 * float(np.spacing(at.state.clock)))

    def _shorten(self, at: Start, tried: Attempt, limits: Limits) -> float | None:
        """The size of a shorter step, if this one passes over something that matters."""
        moved, stretch = tried.moved, tried.stretch
        assert moved is not None
        assert stretch is not None
        if not moved.whole:
            walks = np.flatnonzero(moved.first <= 1.0)
            # after its event a light one may have grown by as much as others at its pull
            squares = moved.a[walks] ** 2 + np.square(moved.w[walks]).sum(axis=1)
            squares = np.maximum(squares, at.state.sizes(False)[walks] ** 2)
            sizes = at.neurons.weight[walks] * squares
            self.agenda.expect(at.state.clock, stretch.step, moved.first[walks], sizes)
            reach = self._reach(at, limits, stretch.boost / stretch.step)
            self.waits = reach >= stretch.step
            if not self.waits:
                return reach
            # what lies an instant ahead is on no agenda: the step ends just after it. Not there: a
            # slide might for ever be about to end, to rounding, or by its class and not by itself
            return float(moved.first.min()) * stretch.step + self.delay * self._harmless(stretch)
        end = min(float(moved.stopped.min()), self._leaves_rest(at, stretch))
        if end <= 1.0 and (1.0 - end) * stretch.boost > self.tol_event:
            self.waits = False
            return end * stretch.step
        return None

    def _harmless(self, stretch: Stretch) -> float:
        """A stretch of clock in which nothing moves by more than an event may be missed."""
        return self.tol_event * stretch.step / max(stretch.boost, 1e-300)

    # ------------------------------------------------------------------ crossroads

    def _leaves_rest(self, at: Start, stretch: Stretch) -> float:
        """When in the step the first of these can no longer rest, by bisection; 2.0: never.

        The clock of that moment is noted.
        """
        leaves = 2.0
        known: dict[tuple[float, bytes], float] = {}  # neurons of one row go together
        for j in at.resting:
            a, row = float(at.state.a[j]), at.state.mode[j]
            key = float(np.sign(a)), row.tobytes()
            if key not in known:
                known[key] = self._end_of_rest(at, a, row, stretch)
            if known[key] <= 1.0:
                self.leaving[j] = at.state.clock + known[key] * stretch.step
                leaves = min(leaves, known[key])
        return leaves

    def _end_of_rest(self, at: Start, a: float, row: Modes, stretch: Stretch) -> float:
        """The share of a step at which a rest ends; 2.0: it lasts.

        Outputs that react within the step forget the force of its start. Until they have, it
        counts: a rest that ends so early ends with it, too.
        """
        if self._crossroads(a, stretch.c[-1]).rests(row):
            return 2.0
        reacted = 1.0 / max(stretch.step * at.stiffness, 1.0)

        def end(known: int) -> float:
            low, high = 0.0, 1.0
            while (high - low) * stretch.boost > 0.1 * self.tol_event and high > 1e-14:
                middle = 0.5 * (low + high)
                stays = self._crossroads(a, _forces_at(at, stretch, middle, known)).rests(row)
                low, high = (middle, high) if stays else (low, middle)
            return high

        moment = end(1) if reacted < 1.0 else 0.0
        return moment if moment >= reacted else end(0)

    def _crossroads(self, a: float, c: Array) -> Crossroads:
        low, high = on_planes(c[None], self.problem.planes)
        return Crossroads(self.problem, a, low[0], high[0])

    # ------------------------------------------------------------------ the end of a step

    def accept(self, at: Start, tried: Attempt, following: float) -> Step:
        """The state after a tried step, its events written down; ``following``: the next to try."""
        stretch, moved = tried.stretch, tried.moved
        assert moved is not None
        assert stretch is not None
        self.counters.steps += 1
        was = at.state
        changed = (moved.mode != was.mode).any(axis=1)
        end = State(
            moved.a, moved.w, was.sigma.copy(), moved.mode, was.still.copy(),
            np.where(changed, np.nan, was.still_sigma), was.t, was.log_t,
            was.clock + stretch.step, following, was.rest, was.rest_sigma,
        )  # fmt: skip
        end.fade(self.problem.decay * stretch.step)
        self.crowd = 1 + len(tried.events)
        self.log.extend(was.clock, stretch.step, tried.events)
        stopped = (moved.stopped <= 1.0).nonzero()[0].tolist()
        if stopped or at.resting:
            c = self.problem.forces(end.outputs(self.problem))
            tick = coupled.tick_of(at)
            for j in stopped:
                redirect(self.problem, end, c, j, self.log, came_from=was, tick=tick)
            near = self._harmless(stretch)
            for j in at.resting:
                # what the forces inside the step said is confirmed by those at its end: a neuron
                # that left before its rest ends would be back at once
                if self.leaving.get(j, np.inf) <= end.clock + near:
                    held = self._crossroads(float(end.a[j]), c).rests(end.mode[j])
                    # where rounding decides, the two must not keep the clock from going on
                    if held and stretch.boost <= self.tol_event:
                        redirect(self.problem, end, stretch.c[-1], j, self.log)
                    elif not held:
                        redirect(self.problem, end, c, j, self.log)
        self._part(at, end, stretch.c[-1])
        return Step(stretch, end)

    def _part(self, at: Start, end: State, c: Array) -> None:
        """Let go of neurons that slide on planes which repel them."""
        neuron, plane = pairs_in(end.mode == SLIDE)
        if not self.problem.jumps_turn or not len(neuron):
            return
        (low, high), law = on_planes(c[None], self.problem.planes), self.problem.law
        pushes = np.sign(end.a)[neuron] * (high - low)[0, plane]
        repels = pushes > self.limits(at).far * law.force_scale
        # one that has just come to rest, where planes meet, lies on some that repel it
        rests = (end.mode != at.state.mode).any(axis=1)
        rests[at.resting] = True
        repels &= ~rests[neuron]
        for j in np.unique(neuron[repels]).tolist():
            away = plane[repels & (neuron == j)]
            part(self.problem, end, (low[0], high[0]), j, away, self.log)


def _forces_at(at: Start, stretch: Stretch, tau: float, known: int) -> Array:
    """Forces at a share of a solved step: a polynomial through them, from node ``known`` on."""
    nodes, c = stretch.method.tables.nodes[known:], np.vstack([at.c, stretch.c])[known:]
    return np.asarray(lagrange_matrix(nodes, np.array([tau]))[0] @ c)
