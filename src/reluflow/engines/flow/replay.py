"""Any time of a finished run, recomputed from the last record before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, number
from reluflow.engines.flow.driver import Flow
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.records import restore, stack, times_of
from reluflow.engines.flow.state import State, start
from reluflow.engines.flow.stops import Stops, resolution
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

# logarithms of times up to here are those of floats, in any units
LARGEST = 600.0


def problem_of(run: Trajectory) -> Problem:
    """The problem that a run solved."""
    train, decay = str(run.options["train"]), float(run.options.get("decay", 0.0))
    return Problem(run.data, run.net, run.loss_function, train, decay)


def replay(run: Trajectory, **target: float) -> Network:
    """The network at a time, log-time or log-loss, recomputed from the last record before it."""
    ((name, value),) = target.items()
    value = number(value, name, infinite=True)
    problem = problem_of(run)
    if name == "log_loss":
        return _at_loss(run, problem, value)
    log_t = value if name == "log_t" else (float(np.log(value)) if value > 0 else -np.inf)
    if log_t > run.log_t[-1] + 1e-15 * (1 + abs(run.log_t[-1])) or (name == "t" and value < 0):
        if run.status in (Status.CONVERGED, Status.STATIONARY) and value > 0:
            return run.final
        raise InputError(
            f"`{name}` is {value:g}, outside the span of the run (t from 0 to {run.t[-1]:g}). "
            "Ask for a time inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    k = int(np.searchsorted(run.log_t, log_t, side="right")) - 1
    state = restore(problem, run, k) if k >= 0 else _begun(problem)
    if k < 0 or log_t > run.log_t[k]:
        stops = _until(problem, log_t)
        if name == "t":
            stops = Stops(problem.units.from_time(value))
        state = _continued(run, problem, state, stops)
    return state.network(problem)


def _begun(problem: Problem) -> State:
    """The start of a run, which need not be among its records."""
    state = start(problem)
    Flow(problem, state, 1e-8, Stops()).start_modes()
    return state


def _until(problem: Problem, log_t: float) -> Stops:
    """An end time by its logarithm; the time itself may be beyond the range of floats."""
    if log_t < LARGEST:
        return Stops(problem.units.from_time(float(np.exp(log_t))))
    return Stops(log_t=log_t - problem.units.log_time)


def _at_loss(run: Trajectory, problem: Problem, log_loss: float) -> Network:
    # a run that stopped at this loss came as near to it as rounding lets it
    below = np.flatnonzero(run.log_loss <= log_loss + resolution(problem, log_loss))
    if not len(below) or log_loss > run.log_loss[0]:
        raise InputError(
            f"`log_loss` is {log_loss:g}, outside the span of the run ({run.log_loss[0]:g} down to "
            f"{run.log_loss[-1]:g}). Ask for a value inside it, or continue the run."
        )
    state = restore(problem, run, max(int(below[0]) - 1, 0))
    return _continued(run, problem, state, Stops(log_loss=log_loss)).network(problem)


def _continued(run: Trajectory, problem: Problem, state: State, stops: Stops) -> State:
    part = Flow(problem, state, float(run.options["rtol"]), stops)
    part.run(lambda *_: None, lambda *_: None)
    return part.state


def at_times(run: Trajectory, times: Array) -> Trajectory:
    """The same run with records at chosen times only (those it reached)."""
    problem = problem_of(run)
    states, log_losses = [], []
    for t in times[times <= run.t[-1]]:
        k = int(np.searchsorted(run.t, t, side="right")) - 1
        state = restore(problem, run, k)
        if run.t[k] < t:
            stops = Stops(problem.units.from_time(float(t)))
            state = _continued(run, problem, state, stops)
        states.append(state)
        log_losses.append(problem.log_loss(state.outputs(problem)))
    t, log_t = times_of(problem, states)
    return replace(
        run, t=t, log_t=log_t, log_loss=np.array(log_losses), kept=stack(problem, states)
    )


def sample(run: Trajectory, log_times: ArrayLike, stop: Callable[[], bool] | None) -> Trajectory:
    """The run with records at chosen log-times only, each reached from the latest before it.

    Records of ``run`` are dense where many steps were kept and sparse where they were thinned, so a
    time starts from the last record or from the time sampled just before, whichever is later.
    ``stop`` is asked between times and ends the sweep early.
    """
    wanted = _log_times(run, log_times)
    problem = problem_of(run)
    unit = problem.units.log_time
    state = _begun(problem)
    states, log_losses = [], []
    for log_t in wanted.tolist():
        k = int(np.searchsorted(run.log_t, log_t, side="right")) - 1
        if k >= 0 and run.log_t[k] - unit >= state.log_t:
            state = restore(problem, run, k)
        if log_t > state.log_t + unit and (k < 0 or run.log_t[k] < log_t) and k < len(run.t) - 1:
            state = _continued(run, problem, state.copy(), _until(problem, log_t))
        states.append(state)
        log_losses.append(problem.log_loss(state.outputs(problem)))
        if stop is not None and stop():
            break
    t, reached = times_of(problem, states)
    return replace(
        run, t=t, log_t=reached, log_loss=np.array(log_losses), kept=stack(problem, states)
    )


def _log_times(run: Trajectory, log_times: ArrayLike) -> Array:
    """Times in order and without repetition; those after the end of a limit are its last record."""
    wanted = np.unique(np.asarray(log_times, dtype=np.float64))
    if not len(wanted) or wanted.ndim != 1 or np.isnan(wanted).any():
        raise InputError(
            f"`log_times` is {log_times!r}; it must be a list of numbers, -inf for the start. "
            "Change it."
        )
    last = float(run.log_t[-1])
    if wanted[-1] > last + 1e-15 * (1 + abs(last)) and run.status not in (
        Status.CONVERGED,
        Status.STATIONARY,
    ):
        raise InputError(
            f"`log_times` reaches {wanted[-1]:g}, after the end of the run ({last:g}). Ask for "
            "times inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    return np.unique(np.minimum(wanted, last))
