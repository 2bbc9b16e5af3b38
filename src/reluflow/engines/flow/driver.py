r"""Gradient flow: the driver over the phases.

A *phase* answers: does it apply here, and where does it lead? The driver asks, in this order:

1. `certificate`: is the limit known? Then the run ends there.
2. `plateau`: do the outputs stand still? Then dormant neurons move in closed form.
3. `controller`: otherwise, one adaptive step of the coupled flow.

Between phases it dates the events (`clock`), checks the stops, and keeps records from which any
time of the run can be recomputed. Times are in the units of the solver.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow import clock, decayed, riders
from reluflow.engines.flow.certificate import Limit, Stagnation, find_limit
from reluflow.engines.flow.controller import Controller, Counters, Step, StepFailedError
from reluflow.engines.flow.crowd import Crowd
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.plateau import Plateau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.redirect import redirect
from reluflow.engines.flow.start import Start, begin_at
from reluflow.engines.flow.state import State
from reluflow.engines.flow.stops import Stops, resolution
from reluflow.engines.flow.tolerances import DROWNED, ON_PLANE
from reluflow.engines.flow.units import in_range
from reluflow.kernels.compiling import Stopwatch
from reluflow.trajectory import Status


class Ending(NamedTuple):
    """How a run ended: status, bound on the distance to the limit (nan: none), reason in words."""

    status: Status
    error: float = np.nan
    reason: str = ""


class OutOfTimeError(Exception):
    """The time that a caller allowed is over in the middle of a phase."""


class Flow:
    """One run of the flow, from a state to a stop."""

    def __init__(self, problem: Problem, state: State, rtol: float, stops: Stops) -> None:
        self.problem, self.state, self.rtol, self.stops = problem, state, rtol, stops
        self.log = EventLog()
        self.counters = Counters()
        self.watch = Stopwatch()
        self.plateau = Plateau(problem, rtol, self.log, self._pause)
        self.controller = Controller(problem, rtol, self.counters, self.log)
        self.crowd = Crowd(self.controller)
        self.seconds = {"plateau": 0.0, "coupled": 0.0}
        self.plateaus = 0
        self.close = resolution(problem, stops.log_loss)
        if state.step == 0.0:
            state.step = self.controller.pace.first()

    def start_modes(self) -> None:
        """Settle neurons that start exactly on planes: no motion brought them there."""
        state, problem = self.state, self.problem
        z = np.abs(state.w @ problem.planes.U.T)
        on = (z <= ON_PLANE * state.sizes(problem.hidden)[:, None]).any(axis=1)
        h = state.outputs(problem)
        if on.any() and in_range(h):
            c = problem.forces(h)
            for j in np.flatnonzero(on).tolist():
                redirect(problem, state, c, j, self.log)
            self.log.date(lambda moments: (0.0 * moments, np.full(len(moments), -np.inf)))

    def run(
        self, keep: Callable[[State, float], None], tick: Callable[[float, float], None]
    ) -> Ending:
        """Run to a stop or a limit; ``keep(state, log_loss)`` after each phase."""
        self.watch = Stopwatch()
        stagnation = Stagnation()
        with np.errstate(over="ignore", invalid="ignore"):
            at = begin_at(self.problem, self.state)
        keep(self.state, at.log_loss)
        if not in_range(at.h):
            return Ending(Status.FAILED, np.nan, "squares of outputs leave the range of floats")
        while True:
            tick(self.state.log_t, at.log_loss)
            # until a time that is asked for, what fades away is followed
            lasting = at if self.stops.has_end else riders.lasting(at, self.rtol)
            limit = find_limit(self.problem, lasting, self.rtol) or stagnation.find_limit(
                self.problem, lasting, self.rtol
            )
            if self.plateau.endless:
                # what is rest to rounding may be the slow growth of a margin
                limit = Limit(Status.STATIONARY, 0.0 if self.problem.is_timed else np.inf)
            ending = self._ending(at, limit)
            if ending is not None:
                return ending
            try:
                self._move(at, limit)
            except (StepFailedError, FloatingPointError) as error:
                self.log.drop()
                return Ending(Status.FAILED, np.nan, f"the flow could not go on: {error}")
            except OutOfTimeError:
                self.log.drop()
                return self._out_of_time()
            except KeyboardInterrupt:
                self.log.drop()
                raise
            at = begin_at(self.problem, self.state)
            keep(self.state, at.log_loss)

    def _pause(self) -> None:
        if self.watch.seconds() > self.stops.max_seconds:
            raise OutOfTimeError

    def _out_of_time(self) -> Ending:
        reason = f"max_seconds={self.stops.max_seconds:g} is reached"
        return Ending(Status.BUDGET, np.nan, reason)

    def _ending(self, at: Start, limit: Limit | None) -> Ending | None:
        """Whether the run ends here, and how."""
        stops = self.stops
        if np.isfinite(stops.log_loss) and at.log_loss <= stops.log_loss + self._close(at):
            return Ending(Status.STOP_LOSS)
        if stops.has_end and self.state.log_t >= stops.log_t_end:
            return Ending(Status.T_END)
        if limit is not None and not stops.has_end:
            if at.drowned > DROWNED:
                reason = "the outputs of huge weights cancel: their rounding hides the labels"
                return Ending(Status.FAILED, np.nan, reason)
            return Ending(limit.status, limit.error)
        if self.watch.seconds() > stops.max_seconds:
            return self._out_of_time()
        if len(self.log) >= stops.max_events:
            return Ending(Status.BUDGET, np.nan, f"max_events={stops.max_events:g} is reached")
        return None

    def _close(self, at: Start) -> float:
        """How near the loss to stop at is to be reached: where outputs of large neurons cancel,
        the rounding of these outputs decides.
        """
        if not self.problem.is_square or at.log_loss > self.stops.log_loss + 1.0:
            return self.close
        residual = float(np.linalg.norm(self.problem.y - at.h))
        rounding = 4.0 * float(np.sqrt(self.problem.n)) * at.rounding
        return self.close + min(rounding / max(residual, 1e-300), 1.0)

    def _move(self, at: Start, limit: Limit | None) -> None:
        """Advance by one phase."""
        certain = limit is not None and (self.problem.is_timed or self.plateau.endless)
        if certain and self._wait(at, self.stops.t_end):
            return
        pause = decayed.time_to_fade(at, self.rtol) if self.problem.decay else 0.0
        if pause > 0.0 and self._wait(at, min(self.stops.t_end, self.state.t + pause)):
            return
        began = time.perf_counter()
        moving = self.plateau.dormant(at)
        if moving is not None:
            self._plateau(at, moving)
            self.plateaus += 1
            self.seconds["plateau"] += time.perf_counter() - began
        else:
            self._coupled(at)
            self.seconds["coupled"] += time.perf_counter() - began

    # ------------------------------------------------------------------ phases

    def _plateau(self, at: Start, moving: Any) -> None:
        before = self.state
        slowness = clock.log_slowness(self.problem, at.h)
        end = self.plateau.walk(at, moving, self._left(slowness))

        def dated(moments: Array) -> tuple[Array, Array]:
            if self.problem.is_timed:
                return _with_logs(before.t + (moments - before.clock))
            with np.errstate(divide="ignore", over="ignore"):
                log_t = np.logaddexp(before.log_t, np.log(moments - before.clock) + slowness)
                return np.exp(log_t), log_t

        self.log.date(dated)
        end.t, end.log_t = _only(dated(np.array([end.clock])))
        last = self.stops.log_t_end
        if self.stops.has_end and end.log_t >= last - 1e-15 * max(1.0, abs(last)):
            end.t, end.log_t = self.stops.t_end, last
        # a plateau may be so long that steps after it would not move its clock
        end.clock = 0.0
        self.controller.agenda.forget()
        self.state = end

    def _left(self, slowness: float) -> float:
        """What is left on the clock until the end time, at this slowness of the clock."""
        state, stops = self.state, self.stops
        if self.problem.is_timed or not stops.has_end:
            return stops.t_end - state.t if self.problem.is_timed else np.inf
        with np.errstate(divide="ignore", over="ignore"):
            log_left = stops.log_t_end + np.log1p(-np.exp(state.log_t - stops.log_t_end))
            return float(np.exp(log_left - slowness))

    def _wait(self, at: Start, end: float) -> bool:
        """Nothing moves any more, but for neurons that fade: a time is reached by waiting.

        False, and nothing happens, if one of these would come to count.
        """
        before, state = self.state, self.state.copy()
        if self.problem.decay:
            fades = ~decayed.counting(at, self.rtol) & (at.classes.cid >= 0)
            state = self.plateau.carried(at, fades, end - before.t)
            if state.log_outputs(self.problem)[fades].max(initial=-np.inf) > self.plateau.log_level:
                self.log.drop()
                return False
            self.log.date(lambda moments: _with_logs(before.t + (moments - before.clock)))
        # two logarithms of one number may differ in the last digit
        log_end = math.log(end) if end < self.stops.t_end else self.stops.log_t_end
        self.state = replace(state, t=end, log_t=log_end)
        return True

    def _coupled(self, at: Start) -> None:
        before = self.state
        left = self.stops.t_end - before.t if self.problem.is_timed else np.inf
        advance = self._stepper(at)
        step = advance(at, left)
        for _ in range(8):
            fraction = self._fraction(at, step)
            if fraction is None:
                break
            self.log.drop()
            step = advance(at, fraction * step.stretch.step)
            step.end.step = before.step
        self._date(at, step)
        self.state = step.end

    def _stepper(self, at: Start) -> Callable[[Start, float], Step]:
        """Explicit steps where points are many and react slowly, else implicit ones."""
        if self.problem.is_crowd:
            if self.crowd.applies(at):
                return self.crowd.advance
            return self._implicit
        return self.controller.advance

    def _implicit(self, at: Start, limit: float) -> Step:
        step = self.controller.advance(at.whole, limit)
        self.crowd.reconsider(at.whole, step)
        return step

    def _slowness(self, at: Start, step: Step) -> Array:
        return clock.log_slowness_at(self.problem, np.vstack([at.h, step.stretch.h]))

    def _fraction(self, at: Start, step: Step) -> float | None:
        """Share of the step at which a stop lies, if it lies clearly inside."""
        target, stretch = self.stops.log_loss, step.stretch
        shares = []
        if target > -np.inf and self.problem.log_loss(stretch.h[-1]) < target - self.close:
            losses = np.array([at.log_loss, *map(self.problem.log_loss, stretch.h)])
            curve = (stretch.method.monomials @ (losses - target)).tolist()
            shares.append(_crossing(lambda tau: _horner(curve, tau)))
        if not self.problem.is_timed and self.stops.has_end:
            slowness = self._slowness(at, step)

            def lead(tau: float) -> float:
                passed = clock.log_elapsed(stretch.method, slowness, stretch.step, tau)
                return self.stops.log_t_end - float(np.logaddexp(at.state.log_t, passed))

            if lead(1.0) < -1e-11:
                shares.append(_crossing(lead))
        return min(shares) if shares else None

    def _date(self, at: Start, step: Step) -> None:
        """Give the step's events and its end their times."""
        origin, end = at.state, step.end
        size, method = step.stretch.step, step.stretch.method
        if self.problem.is_timed:

            def dated(moments: Array) -> tuple[Array, Array]:
                return _with_logs(origin.t + (moments - origin.clock))

            self.log.date(dated)
            end.t = origin.t + (end.clock - origin.clock)
            end.log_t = math.log(end.t)
            if end.t >= self.stops.t_end * (1 - 4e-16):
                end.t, end.log_t = self.stops.t_end, self.stops.log_t_end
            return
        slowness = self._slowness(at, step)

        def dated_slow(moments: Array) -> tuple[Array, Array]:
            shares = np.minimum((moments - origin.clock) / size, 1.0)
            passed = clock.log_elapsed_at(method, slowness, size, shares)
            log_t = np.logaddexp(origin.log_t, passed)
            with np.errstate(over="ignore"):
                return np.exp(log_t), log_t

        self.log.date(dated_slow)
        # also where the last step to a time was too short to move the clock
        passed = clock.log_elapsed(method, slowness, size)
        end.log_t = float(np.logaddexp(origin.log_t, passed))
        with np.errstate(over="ignore"):
            end.t = float(np.exp(end.log_t))
        if self.stops.has_end and end.log_t > self.stops.log_t_end - 2e-11:
            end.t, end.log_t = self.stops.t_end, self.stops.log_t_end


def _with_logs(t: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore"):
        return t, np.log(t)


def _only(pair: tuple[Array, Array]) -> tuple[float, float]:
    return float(pair[0][0]), float(pair[1][0])


def _horner(coefficients: list[float], tau: float) -> float:
    total = 0.0
    for coefficient in reversed(coefficients):
        total = total * tau + coefficient
    return total


def _crossing(lead: Callable[[float], float]) -> float:
    """Where a function that is positive at 0 and negative at 1 changes sign, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if lead(middle) > 0.0:
            low = middle
        else:
            high = middle
    return max(high, 1e-12)
