r"""Gradient flow: the driver over the phases.

A *phase* answers: does it apply here, and where does it lead? The driver asks, in this order:

1. `certificate`: is the limit known? Then the run ends there.
2. `plateau`: do the outputs stand still? Then dormant neurons move in closed form.
3. `coupled`: otherwise, one adaptive step that ends at the next event that matters.

Between phases it dates the events (`clock`), checks the stops, and keeps records from which any
time of the run can be recomputed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow import clock, tableau
from reluflow.engines.flow.certificate import Limit, Stagnation, find_limit
from reluflow.engines.flow.collocation import Start, begin
from reluflow.engines.flow.coupled import Counters, Coupled, Step
from reluflow.engines.flow.events import EventLog, decide
from reluflow.engines.flow.plateau import Plateau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.records import Records
from reluflow.engines.flow.state import ON_PLANE, State
from reluflow.trajectory import Status


@dataclass(frozen=True)
class Stops:
    """What ends a run before its limit."""

    t_end: float
    log_loss: float
    max_seconds: float
    max_events: float


class Flow:
    """One run of the flow, from a state to a stop."""

    def __init__(self, problem: Problem, state: State, rtol: float, stops: Stops) -> None:
        self.problem, self.state, self.rtol, self.stops = problem, state, rtol, stops
        self.log = EventLog()
        self.counters = Counters()
        self.plateau = Plateau(problem, rtol, self.log)
        self.coupled = Coupled(problem, rtol, self.counters, self.log)
        self.seconds = {"plateau": 0.0, "coupled": 0.0}
        self.plateaus = 0
        self.close = resolution(problem, stops.log_loss)
        self.log_t_end = np.log(stops.t_end) if np.isfinite(stops.t_end) else np.inf

    def start_modes(self) -> None:
        """Settle pairs that start exactly on a boundary: the box rule where it attracts."""
        state, problem = self.state, self.problem
        z = state.w @ problem.X.T
        on = np.abs(z) <= ON_PLANE * state.reach(problem)
        if not on.any():
            return
        c = problem.forces(state.outputs(problem))
        for j in np.flatnonzero(on.any(axis=1)):
            before = decide(problem, state, c, int(j), on[j])
            self.log.compare(0.0, int(j), before, state.mode[j])
        self.log.date(lambda clocks: (np.zeros(len(clocks)), np.full(len(clocks), -np.inf)))

    def run(self, records: Records, tick: Callable[[float, float], None]) -> tuple[Status, float]:
        """Run to a stop or a limit; returns the status and the bound on the distance to a limit."""
        began = time.perf_counter()
        stagnation = Stagnation()
        at = self._begin()
        records.add(self.state, at.log_loss, self.coupled.step)
        while True:
            log_loss = at.log_loss
            tick(self.state.log_t, log_loss)
            if np.isfinite(self.stops.log_loss) and log_loss <= self.stops.log_loss + self.close:
                return Status.STOP_LOSS, np.nan
            if self.state.log_t >= self.log_t_end:
                return Status.T_END, np.nan
            limit = find_limit(self.problem, at, self.rtol) or stagnation.find_limit(
                self.problem, at, log_loss, self.rtol
            )
            if self.plateau.endless:
                limit = Limit(Status.STATIONARY, 0.0)
            if limit is not None and np.isinf(self.stops.t_end):
                return limit.status, limit.error
            spent = time.perf_counter() - began
            if spent > self.stops.max_seconds or len(self.log) >= self.stops.max_events:
                return Status.BUDGET, np.nan
            try:
                self._move(at, limit)
            except FloatingPointError:
                return Status.BUDGET, np.nan
            at = self._begin()
            records.add(self.state, at.log_loss, self.coupled.step)

    def _begin(self) -> Start:
        return begin(self.problem, self.state)

    def _move(self, at: Start, limit: Limit | None) -> None:
        """Advance by one phase."""
        if limit is not None and (self.problem.is_square or self.plateau.endless):
            self._jump_to_end()
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

    def _jump_to_end(self) -> None:
        """Nothing moves any more: the end time is reached by waiting."""
        self.state = self.state.copy()
        self.state.t = self.stops.t_end
        self.state.log_t = float(np.log(self.stops.t_end))

    # ------------------------------------------------------------------ phases

    def _plateau(self, at: Start, moving: Any) -> None:
        before = self.state
        slowness = clock.log_slowness(self.problem, at.h)
        left = (self.stops.t_end - before.t) * np.exp(-slowness)
        end = self.plateau.walk(at, moving, left)

        def dated(moments: Array) -> tuple[Array, Array]:
            return _with_logs(before.t + (moments - before.clock) * np.exp(slowness))

        self.log.date(dated)
        end.t, end.log_t = _only(dated(np.array([end.clock])))
        if end.t >= self.stops.t_end * (1 - 1e-15):
            end.t, end.log_t = self.stops.t_end, float(np.log(self.stops.t_end))
        self.state = end

    def _coupled(self, at: Start) -> None:
        before = self.state
        left = self.stops.t_end - before.t if self.problem.is_square else np.inf
        usual = self.coupled.step
        step = self.coupled.advance(at, left)
        for _ in range(8):
            fraction = self._fraction(at, step)
            if fraction is None:
                break
            self.log.drop()
            step = self.coupled.advance(at, fraction * step.stretch.step)
            self.coupled.step = usual
        self._date(at, step)
        self.state = step.end

    def _slowness(self, at: Start, step: Step) -> Array:
        rows = [at.h, *step.stretch.h]
        return np.array([clock.log_slowness(self.problem, row) for row in rows])

    def _fraction(self, at: Start, step: Step) -> float | None:
        """Share of the step at which a stop lies, if it lies clearly inside."""
        target = self.stops.log_loss
        shares = []
        if target > -np.inf and self.problem.log_loss(step.stretch.h[-1]) < target - self.close:
            rows = [self.problem.log_loss(row) for row in step.stretch.h]
            losses = np.array([at.log_loss, *rows])
            curve = (tableau.START_RADAU_MONOMIALS @ (losses - target)).tolist()
            shares.append(_crossing(lambda tau: _horner(curve, tau)))
        if not self.problem.is_square and np.isfinite(self.stops.t_end):
            slowness = self._slowness(at, step)
            goal = float(np.log(self.stops.t_end))

            def lead(tau: float) -> float:
                passed = clock.log_elapsed(slowness, step.stretch.step, tau)
                return goal - float(np.logaddexp(at.state.log_t, passed))

            if lead(1.0) < -1e-11:
                shares.append(_crossing(lead))
        return min(shares) if shares else None

    def _date(self, at: Start, step: Step) -> None:
        """Give the step's events and its end their times."""
        origin, end, size = at.state, step.end, step.stretch.step
        if self.problem.is_square:

            def dated(moments: Array) -> tuple[Array, Array]:
                return _with_logs(origin.t + (moments - origin.clock))

            self.log.date(dated)
            end.t = origin.t + (end.clock - origin.clock)
            end.log_t = math.log(end.t)
            if end.t >= self.stops.t_end * (1 - 4e-16):
                end.t, end.log_t = self.stops.t_end, float(np.log(self.stops.t_end))
            return
        slowness = self._slowness(at, step)

        def dated_slow(moments: Array) -> tuple[Array, Array]:
            shares = np.minimum((moments - origin.clock) / size, 1.0)
            passed = np.array([clock.log_elapsed(slowness, size, tau) for tau in shares])
            log_t = np.logaddexp(origin.log_t, passed)
            with np.errstate(over="ignore"):
                return np.exp(log_t), log_t

        self.log.date(dated_slow)
        end.t, end.log_t = _only(dated_slow(np.array([end.clock])))
        if np.isfinite(self.stops.t_end) and end.log_t > np.log(self.stops.t_end) - 2e-11:
            end.t, end.log_t = self.stops.t_end, float(np.log(self.stops.t_end))


def _with_logs(t: Array) -> tuple[Array, Array]:
    with np.errstate(divide="ignore"):
        return t, np.log(t)


def _only(pair: tuple[Array, Array]) -> tuple[float, float]:
    return float(pair[0][0]), float(pair[1][0])


def resolution(problem: Problem, log_loss: float) -> float:
    """How near a log-loss can be reached: nearer, rounding of the residuals decides.

    Steps towards the exact value would go on forever.
    """
    if not np.isfinite(log_loss):
        return 0.0
    rounding = 0.0
    if problem.is_square:
        log_residual = 0.5 * (log_loss + np.log(2.0 / (problem.kappa * problem.n)))
        rounding = 4e-15 * problem.output_scale * np.exp(min(-log_residual, 60.0))
    return float(1e-10 * max(1.0, abs(log_loss)) + min(rounding, 1.0))


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
