"""Gradient flow: what callers use. Validation, a run, a continued run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array, choice, number, whole
from reluflow.dataset import Dataset
from reluflow.engines import checkpoints
from reluflow.engines.flow.driver import Ending, Flow
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.records import Records, restore
from reluflow.engines.flow.replay import at_times
from reluflow.engines.flow.state import start
from reluflow.engines.flow.stops import Stops
from reluflow.engines.progress import bar, is_shown
from reluflow.engines.request import announce_flow
from reluflow.errors import InputError
from reluflow.kernels.flow.wanted import wanted
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

# without a stop, training of a classifier ends here: the loss tends to zero but never arrives
DEFAULT_STOP_LOG_LOSS = -1000.0


class _StoppedError(Exception):
    """The caller's ``stop`` said so; never leaves this module."""


def flow(
    data: Dataset | Trajectory,
    net: Network | None,
    *,
    loss: Loss,
    train: str,
    decay: float,
    t_end: float,
    stop_loss: float | None,
    stop_log_loss: float | None,
    rtol: float,
    record: Any,
    max_seconds: float | None,
    max_events: int | None,
    stop: Callable[[], bool] | None,
    progress: bool | None,
    on_interrupt: str,
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
        train, decay = str(earlier.options["train"]), float(earlier.options.get("decay", 0.0))
    if not isinstance(data, Dataset) or not isinstance(net, Network):
        raise InputError(
            f"flow got {type(data).__name__} and {type(net).__name__}. Pass a Dataset and a "
            "Network, or a Trajectory of rf.flow to continue."
        )
    choice(train, "train", ("both", "hidden"))
    decay = number(decay, "decay", at_least=0.0)
    if decay > 0.0 and train != "both":
        raise InputError(
            f"`decay` is {decay:g} with train={train!r}. The flow with weight decay trains both "
            "layers; use rf.descend for one of them, or leave `decay` out."
        )
    choice(on_interrupt, "on_interrupt", ("raise", "return"))
    loss.check_data(data.X, data.y)
    stops = stops_of(loss, t_end, stop_loss, stop_log_loss, ends=decay > 0.0)
    seconds = np.inf if max_seconds is None else number(max_seconds, "max_seconds", above=0.0)
    events = np.inf if max_events is None else float(whole(max_events, "max_events"))
    rtol = number(rtol, "rtol", at_least=1e-13, at_most=0.1)
    times = None
    if not isinstance(record, (int, np.integer)):
        times = _record_times(record, stops.t_end)
    count = whole(record, "record", at_least=2) if times is None else 200
    _check_network(data, net, train)
    problem = Problem(data, net, loss, train, decay)
    if earlier is None:
        _check_forces(problem)
    inside = Stops(problem.units.from_time(stops.t_end), stops.log_loss, seconds, events)
    announce_flow(
        problem.n, problem.d, net.width, is_square=problem.is_square, explicit=problem.is_crowd,
        to_the_end=np.isinf(stops.t_end) and np.isinf(stops.log_loss), limit_s=seconds,
    )  # fmt: skip
    run = _begun(problem, earlier, rtol, inside, stops.t_end)
    records = Records(problem, count, earlier)
    options = {"train": train, "rtol": rtol, **({"decay": decay} if decay else {})}
    trajectory = _follow(run, records, options, progress, on_interrupt == "return", stop)
    if times is None or trajectory.status is Status.INTERRUPTED:
        return trajectory  # what was interrupted keeps the state it can be continued from
    return at_times(trajectory, times)


def _begun(
    problem: Problem, earlier: Trajectory | None, rtol: float, inside: Stops, t_end: float
) -> Flow:
    """A run at its start, or at the end of an earlier one; ``inside``: stops in natural units."""
    if earlier is None:
        run = Flow(problem, start(problem), rtol, inside)
        run.start_modes()
        return run
    state = restore(problem, earlier, len(earlier.t) - 1)
    if np.isfinite(t_end) and t_end < earlier.t[-1]:
        raise InputError(
            f"`t_end` is {t_end:g} but the run has reached {earlier.t[-1]:g}. Give a later time."
        )
    return Flow(problem, state, rtol, inside)


def _follow(
    run: Flow,
    records: Records,
    options: dict[str, Any],
    progress: bool | None,
    forgiving: bool,
    stop: Callable[[], bool] | None,
) -> Trajectory:
    """Run to the end; a signal raises, or returns the run up to there, and saves it if wished."""

    def so_far(reason: str) -> Trajectory:
        found = records.pack(run, Ending(Status.INTERRUPTED, np.nan, reason), options)
        # without the events of a step that was cut off between its end and its record
        return replace(found, events=found.events[found.events["t"] <= found.t[-1]])

    kernels, shown = wanted(run.problem.is_square), is_shown(progress)
    with (
        bar(shown, "gradient flow", kernels=kernels) as update,
        interrupts.deferred() as pending,
    ):

        def tick(log_t: float, log_loss: float) -> None:
            if shown:
                log_t += run.problem.units.log_time
                update(run.counters.steps, f"log t {log_t:.4g}, log loss {log_loss:.6g}")
            checkpoints.offer(so_far)
            pending.check()
            if stop is not None and stop():
                raise _StoppedError

        try:
            ending = run.run(records.add, tick)
        except _StoppedError:
            return so_far("the caller's `stop` asked for it")
        except KeyboardInterrupt:
            if records.last is None:
                raise
            checkpoints.offer_last(so_far)
            if not forgiving:
                raise
            pending.answer()
            return so_far(checkpoints.STOPPED)
    return records.pack(run, ending, options)


def _check_forces(problem: Problem) -> None:
    """With weight decay the clock of a classification loss is time, in which forces are floats."""
    if not problem.decay or problem.is_square:
        return
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        h = start(problem).outputs(problem)
        c = problem.forces(h)
    if not np.isfinite(c).all() or not c.any():
        raise InputError(
            f"the log-loss at the start is {problem.log_loss(h):.4g}, beyond the range of floats. "
            "With weight decay the flow needs ordinary losses: scale the network."
        )


def _check_network(data: Dataset, net: Network, train: str) -> None:
    if net.d != data.d:
        raise InputError(
            f"the network takes {net.d} inputs but the points have {data.d}. Make them agree."
        )
    if train == "hidden":
        scales = np.concatenate([net.log_scale, net.log_scale_out])
        if np.abs(scales).max() > 300.0:
            raise InputError(
                f"log_scale reaches {scales[np.abs(scales).argmax()]:g}, near the end of the range "
                "of floats. Training only the hidden layer needs ordinary scales: keep log_scale "
                "within 300 of 0."
            )
    apart = float(np.abs(net.log_scale_out - net.log_scale).max())
    if train == "both" and apart > 600.0:
        raise InputError(
            f"log_scale and log_scale_out differ by {apart:g}. The flow needs the two layers of a "
            "neuron within exp(600) of each other; bring them closer."
        )


def stops_of(
    loss: Loss, t_end: float, stop_loss: float | None, stop_log_loss: float | None,
    *, ends: bool = False,
) -> Stops:  # fmt: skip
    """The stops that a caller asked for, checked; a run that ``ends`` by itself needs none."""
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
    if not (ends or isinstance(loss, Square)) and np.isinf(log_loss) and np.isinf(t_end):
        log_loss = DEFAULT_STOP_LOG_LOSS
    return Stops(t_end, log_loss)


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
