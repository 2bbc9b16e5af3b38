"""Gradient flow: what callers use. Validation, runs, continued runs, replay."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.checks import Array, choice, number, whole
from reluflow.dataset import Dataset
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.records import Records, restore
from reluflow.engines.flow.run import Flow, Stops, resolution
from reluflow.engines.flow.state import State, start
from reluflow.engines.progress import bar
from reluflow.errors import InputError
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

# without a stop, training of a classifier ends here: the loss tends to zero but never arrives
DEFAULT_STOP_LOG_LOSS = -1000.0


def flow(
    data: Dataset | Trajectory,
    net: Network | None,
    *,
    loss: Loss,
    train: str,
    t_end: float,
    stop_loss: float | None,
    stop_log_loss: float | None,
    rtol: float,
    record: Any,
    max_seconds: float | None,
    max_events: int | None,
    progress: bool,
) -> Trajectory:
    """Validate, run, and pack a Trajectory; see `reluflow.flow`."""
    earlier = data if isinstance(data, Trajectory) else None
    if earlier is not None and earlier.engine != "flow":
        raise InputError(
            f"the run to continue is of {earlier.engine}, which keeps no modes. Pass its data and "
            "its final network instead."
        )
    if earlier is not None:
        data, net, loss = earlier.data, earlier.net, earlier.loss_function
        train = str(earlier.options["train"])
    if not isinstance(data, Dataset) or not isinstance(net, Network):
        raise InputError(
            f"flow got {type(data).__name__} and {type(net).__name__}. Pass a Dataset and a "
            "Network, or a Trajectory of rf.flow to continue."
        )
    choice(train, "train", ("both", "hidden"))
    loss.check_data(data.X, data.y)
    stops = _stops(loss, t_end, stop_loss, stop_log_loss, max_seconds, max_events)
    rtol = number(rtol, "rtol", at_least=1e-13, at_most=0.1)
    problem = Problem(data, loss, train)
    options = {"train": train, "rtol": rtol}
    if earlier is None:
        run = Flow(problem, start(problem, net), rtol, stops)
        run.start_modes()
    else:
        state, step = restore(problem, earlier, len(earlier.t) - 1)
        if np.isfinite(stops.t_end) and stops.t_end <= state.t:
            raise InputError(
                f"`t_end` is {stops.t_end:g} but the run has reached {state.t:g}. "
                "Give a later time."
            )
        run = Flow(problem, state, rtol, stops)
        run.coupled.step = step
    times = None
    if not isinstance(record, (int, np.integer)):
        times = _record_times(record, stops.t_end)
    count = whole(record, "record", at_least=2) if times is None else 200
    records = Records(problem, net, count, earlier)
    with bar(progress, "gradient flow") as update:

        def tick(log_t: float, log_loss: float) -> None:
            update(run.counters.steps, f"log t {log_t:.4g}, log loss {log_loss:.6g}")

        status, error = run.run(records, tick)
    return records.pack(run, status, error, options, times)


def _stops(
    loss: Loss,
    t_end: float,
    stop_loss: float | None,
    stop_log_loss: float | None,
    max_seconds: float | None,
    max_events: int | None,
) -> Stops:
    t_end = number(t_end, "t_end", above=0.0, infinite=True)
    if stop_loss is not None and stop_log_loss is not None:
        raise InputError(
            f"both `stop_loss` ({stop_loss:g}) and `stop_log_loss` ({stop_log_loss:g}) are given. "
            "Give one of them."
        )
    log_loss = -np.inf
    if stop_loss is not None:
        log_loss = float(np.log(number(stop_loss, "stop_loss", above=0.0)))
    if stop_log_loss is not None:
        log_loss = number(stop_log_loss, "stop_log_loss")
    if not isinstance(loss, Square) and np.isinf(log_loss) and np.isinf(t_end):
        log_loss = DEFAULT_STOP_LOG_LOSS
    seconds = np.inf if max_seconds is None else number(max_seconds, "max_seconds", above=0.0)
    events = np.inf if max_events is None else float(whole(max_events, "max_events"))
    return Stops(t_end, log_loss, seconds, events)


def _record_times(record: Any, t_end: float) -> Array:
    times = np.asarray(record, dtype=np.float64)
    if times.ndim != 1 or not len(times) or not np.all(np.isfinite(times)):
        raise InputError(
            f"`record` is {record!r}; it must be a count or a list of finite times. Change it."
        )
    if times.min() < 0 or times.max() > t_end:
        raise InputError(
            f"`record` spans [{times.min():g}, {times.max():g}], outside [0, t_end={t_end:g}]. "
            "Drop the times outside."
        )
    return np.unique(times)


def replay(run: Trajectory, **target: float) -> Network:
    """The network at a time, log-time or log-loss, recomputed from the last record before it."""
    ((name, value),) = target.items()
    value = number(value, name, infinite=True)
    problem = Problem(run.data, run.loss_function, str(run.options["train"]))
    ended = run.status in (Status.CONVERGED, Status.STATIONARY)
    if name == "log_loss":
        return _replay_loss(run, problem, value)
    log_t = value if name == "log_t" else (float(np.log(value)) if value > 0 else -np.inf)
    if log_t > run.log_t[-1] + 1e-15 * (1 + abs(run.log_t[-1])) or (name == "t" and value < 0):
        if ended and value > 0:
            return run.final
        raise InputError(
            f"`{name}` is {value:g}, outside the span of the run (t from 0 to {run.t[-1]:g}). "
            "Ask for a time inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    k = int(np.searchsorted(run.log_t, log_t, side="right")) - 1
    state, step = restore(problem, run, max(k, 0))
    if log_t <= state.log_t:
        return state.network(problem, run.net)
    t_end = value if name == "t" else float(np.exp(value))
    return _continue(run, problem, state, step, Stops(t_end, -np.inf, np.inf, np.inf))


def _replay_loss(run: Trajectory, problem: Problem, log_loss: float) -> Network:
    # a run that stopped at this loss came as near to it as rounding lets it
    below = np.flatnonzero(run.log_loss <= log_loss + resolution(problem, log_loss))
    if not len(below) or log_loss > run.log_loss[0]:
        raise InputError(
            f"`log_loss` is {log_loss:g}, outside the span of the run ({run.log_loss[0]:g} down to "
            f"{run.log_loss[-1]:g}). Ask for a value inside it, or continue the run."
        )
    state, step = restore(problem, run, max(int(below[0]) - 1, 0))
    return _continue(run, problem, state, step, Stops(np.inf, log_loss, np.inf, np.inf))


def _continue(
    run: Trajectory, problem: Problem, state: State, step: float, stops: Stops
) -> Network:
    part = Flow(problem, state, float(run.options["rtol"]), stops)
    part.coupled.step = step
    part.run(Records(problem, run.net, 2, None), lambda *_: None)
    return part.state.network(problem, run.net)
