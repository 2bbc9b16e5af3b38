r"""Gradient flow of models with fixed features: the output layer alone, or the linearised network.

For the square loss everything is a closed form in the eigenvectors of the kernel
(`reluflow.geometry.linear_model.Fit`): any time, any loss, and the limit. The other losses have a
solver of their own (`linear_margin`). There are no events: patterns are those of the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, choice, number, whole
from reluflow.dataset import Dataset
from reluflow.engines import linear_margin
from reluflow.engines.descent.scale import plain_weights
from reluflow.engines.flow.entry import stops_of
from reluflow.errors import InputError
from reluflow.geometry.linear_model import Fit, LinearModel
from reluflow.losses import Loss, Square
from reluflow.modes import modes_of_signs
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

KINDS = ("output", "linearised")
FIRST = 1e-3  # the first record after the start, in units of the fastest mode
LAST = 40.0  # a limit is reached to rounding after so many times of the slowest mode


class Record(NamedTuple):
    """A moment of a run: time and its logarithm, log-loss, displacement, outputs of the model."""

    t: float
    log_t: float
    log_loss: float
    z: Array
    outputs: Array


class Course(NamedTuple):
    """What a run came to."""

    records: list[Record]
    final: Array
    status: Status
    reason: str = ""
    error: float = math.nan
    steps: int = 0


def is_linear(run: Trajectory) -> bool:
    """Whether a run is one of a linear model."""
    return run.engine == "flow" and run.options.get("train") in KINDS


def model_of(data: Dataset, net: Network, kind: str, rates: Sequence[float]) -> LinearModel:
    """The linear model of a network on data; plain weights are needed."""
    if not isinstance(data, Dataset) or not isinstance(net, Network):
        raise InputError(
            f"flow got {type(data).__name__} and {type(net).__name__}. Pass a Dataset and a "
            "Network, or a Trajectory of rf.flow to continue."
        )
    if net.d != data.d:
        raise InputError(
            f"the network takes {net.d} inputs but the points have {data.d}. Make them agree."
        )
    a, W = plain_weights(net)
    start = Network(a, W, slope=net.slope)
    return LinearModel(data, start, kind, (float(rates[0]), float(rates[1])))


def flow(
    data: Dataset,
    net: Network,
    *,
    kind: str,
    rates: tuple[float, float],
    loss: Loss,
    options: dict[str, Any],
) -> Trajectory:
    """Train a linear model; ``options`` are those of `reluflow.flow` that are not named here."""
    loss.check_data(data.X, data.y)
    model = model_of(data, net, kind, rates)
    rtol = number(options["rtol"], "rtol", at_least=1e-13, at_most=0.1)
    choice(options["on_interrupt"], "on_interrupt", ("raise", "return"))
    stops = _stops(loss, options)
    if isinstance(loss, Square):
        course = _closed_form(Fit(model, loss.kappa(data.n)), stops, options["record"])
    else:
        course = _integrated(linear_margin.Margins(model, loss, rtol), stops, options)
    settings: dict[str, Any] = {"train": kind, "rtol": rtol}
    if rates != (1.0, 1.0):
        settings["rates"] = list(rates)
    return Trajectory(
        engine="flow",
        data=data,
        net=net,
        loss_function=loss,
        final=model.network(course.final),
        status=course.status,
        reason=course.reason,
        limit_error=course.error,
        stats={"form": "linear", "steps": course.steps, "events": {}},
        options=settings,
        **_arrays(model, course.records),
    )


def replay(run: Trajectory, **target: float) -> Network:
    """The network of a run at ``t``, ``log_t`` or ``log_loss``."""
    ((name, value),) = target.items()
    value = number(value, name, infinite=True)
    log_loss, log_t = -math.inf, math.inf
    if name == "log_loss":
        log_loss = value
        inside = run.log_loss[-1] <= value <= run.log_loss[0]
        span = f"{run.log_loss[0]:g} down to {run.log_loss[-1]:g}"
    else:
        log_t = value if name == "log_t" else (math.log(value) if value > 0.0 else -math.inf)
        inside = not (name == "t" and value < 0.0) and log_t <= _last(run)
        span = f"t from 0 to {run.t[-1]:g}"
    if not inside:
        raise InputError(
            f"`{name}` is {value:g}, outside the span of the run ({span}). Ask for one inside it, "
            "or continue the run with rf.flow(run, t_end=...)."
        )
    if log_t > run.log_t[-1] and _has_limit(run):
        log_t = math.inf
    if log_t == math.inf and name != "log_loss":
        return run.final
    model = _model_of(run)
    return model.network(_record(run, model, log_t, log_loss).z)


def sample(
    run: Trajectory, log_times: ArrayLike, stop: Callable[[], bool] | None = None
) -> Trajectory:
    """The run with records at these log-times only; ``stop`` is asked between two of them."""
    wanted = np.unique(np.asarray(log_times, dtype=np.float64))
    if wanted.ndim != 1 or not len(wanted) or np.isnan(wanted).any():
        raise InputError(
            f"`log_times` is {log_times!r}; it must be a list of numbers, -inf for the start. "
            "Change it."
        )
    if wanted[-1] > _last(run):
        raise InputError(
            f"`log_times` reaches {wanted[-1]:g}, after the end of the run ({run.log_t[-1]:g}). "
            "Ask for times inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    model = _model_of(run)
    times = np.unique(np.minimum(wanted, run.log_t[-1])).tolist()
    records = []
    for log_t in times:
        records.append(_record(run, model, log_t, -math.inf))
        if stop is not None and stop():
            break
    return replace(run, **_arrays(model, records))


def _record(run: Trajectory, model: LinearModel, log_t: float, log_loss: float) -> Record:
    """The moment of a run at a log-time, or where its loss is this."""
    loss = run.loss_function
    if isinstance(loss, Square):
        fit = Fit(model, loss.kappa(run.data.n))
        return _moment(fit, _time_of(fit, log_loss) if log_t == math.inf else math.exp(log_t))
    flow = linear_margin.Margins(model, loss, float(run.options["rtol"]))
    before = (run.log_t <= log_t) & (run.log_loss >= log_loss)
    k = max(int(before.sum()) - 1, 0)
    begin = flow.point(model.modes(run.network(k)), float(run.log_t[k]))
    found = linear_margin.follow(flow, begin, linear_margin.Stops(log_t, log_loss))
    return _of_point(flow, found.points[-1])


def _model_of(run: Trajectory) -> LinearModel:
    rates = run.options.get("rates", (1.0, 1.0))
    return model_of(run.data, run.net, str(run.options["train"]), rates)


def _has_limit(run: Trajectory) -> bool:
    return run.status in (Status.CONVERGED, Status.STATIONARY)


def _last(run: Trajectory) -> float:
    """The latest log-time that can be asked for."""
    last = float(run.log_t[-1])
    return math.inf if _has_limit(run) else last + 1e-14 * (1.0 + abs(last))


def _stops(loss: Loss, options: dict[str, Any]) -> linear_margin.Stops:
    found = stops_of(loss, options["t_end"], options["stop_loss"], options["stop_log_loss"])
    seconds = options["max_seconds"]
    seconds = math.inf if seconds is None else number(seconds, "max_seconds", above=0.0)
    return linear_margin.Stops(found.log_t_end, found.log_loss, seconds)


def _record_times(record: Any, end: float) -> Array | None:
    """The times that were asked for, up to the end; None where a count was."""
    if isinstance(record, (int, np.integer)):
        whole(record, "record", at_least=2)
        return None
    times = np.asarray(record, dtype=np.float64)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or times.min() < 0.0:
        raise InputError(
            f"`record` is {record!r}; it must be a count or a list of finite times. Change it."
        )
    return np.unique(np.minimum(times, end))


# ------------------------------------------------------------------------------ the square loss


def _closed_form(fit: Fit, stops: linear_margin.Stops, record: Any) -> Course:
    end, status = _end(fit, stops)
    times = _record_times(record, end)
    if times is None:
        times = _spread(fit, int(record), end)
    records = [_moment(fit, float(t)) for t in times]
    if status in (Status.CONVERGED, Status.STATIONARY):
        return Course(records, fit.displacement(math.inf), status, "", fit.error)
    return Course(records, fit.displacement(end), status)


def _moment(fit: Fit, t: float) -> Record:
    log_t = math.log(t) if t > 0.0 else -math.inf
    return Record(t, log_t, fit.log_loss(t), fit.displacement(t), fit.outputs(t))


def _end(fit: Fit, stops: linear_margin.Stops) -> tuple[float, Status]:
    """When a run ends, and why; for a limit, when it is reached to rounding."""
    t_end, t_stop = math.exp(min(stops.log_t, 709.0)), _time_of(fit, stops.log_loss)
    if t_stop < math.inf and (stops.log_t == math.inf or t_stop <= t_end):
        return t_stop, Status.STOP_LOSS
    if stops.log_t < math.inf:
        return t_end, Status.T_END
    moving = fit.rates[fit.rho != 0.0]
    end = LAST / float(moving[-1]) if len(moving) else 0.0
    return end, Status.CONVERGED if fit.interpolates else Status.STATIONARY


def _time_of(fit: Fit, log_loss: float) -> float:
    """When the loss, which falls, is this; infinite if it stays above."""
    if fit.log_loss(0.0) <= log_loss:
        return 0.0
    if not len(fit.rates) or fit.log_loss(math.inf) >= log_loss:
        return math.inf
    high = 1.0 / float(fit.rates[0])
    while fit.log_loss(high) > log_loss:
        high *= 2.0
    low = 0.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if fit.log_loss(middle) > log_loss else (low, middle)
    return high


def _spread(fit: Fit, count: int, end: float) -> Array:
    """Times of records: 0, then in geometric progression to the end."""
    if end == 0.0:
        return np.zeros(1)
    first = min(FIRST / float(fit.rates[0]) if len(fit.rates) else end, end)
    inner = np.geomspace(first, end, count - 1) if count > 2 else np.array([end])
    inner[-1] = end
    return np.unique(np.append(0.0, np.minimum(inner, end)))


# ------------------------------------------------------------------------------ the other losses


def _integrated(
    flow: linear_margin.Margins, stops: linear_margin.Stops, options: dict[str, Any]
) -> Course:
    spectrum, record = flow.model.spectrum, options["record"]
    begin = flow.point(np.zeros(len(spectrum.sigma)), -math.inf)
    times = _record_times(record, math.exp(min(stops.log_t, 709.0)))
    if not len(spectrum.sigma):  # nothing is felt
        return Course([_of_point(flow, begin)], np.zeros(len(spectrum.V)), Status.STATIONARY, "", 0)
    forgiving = options["on_interrupt"] == "return"
    found = linear_margin.follow(flow, begin, stops, stop=options["stop"], forgiving=forgiving)
    last = found.points[-1].zeta if found.limit is None else found.limit
    points = found.points
    if times is not None and found.status is not Status.INTERRUPTED:
        points = [_reached(flow, found.points, t) for t in times if t <= _time(points[-1])]
    elif times is None and len(points) > record:
        pick = np.unique(np.linspace(0, len(points) - 1, int(record)).round().astype(int))
        points = [points[k] for k in pick]
    records = [_of_point(flow, point) for point in points]
    steps = len(found.points) - 1
    return Course(records, spectrum.V @ last, found.status, found.reason, found.error, steps)


def _reached(
    flow: linear_margin.Margins, points: list[linear_margin.Point], t: float
) -> linear_margin.Point:
    """The moment at a time, from the last point before it."""
    log_t = math.log(t) if t > 0.0 else -math.inf
    begin = [point for point in points if point.log_t <= log_t][-1]
    return linear_margin.follow(flow, begin, linear_margin.Stops(log_t, -math.inf)).points[-1]


def _time(point: linear_margin.Point) -> float:
    """The time of a point, inf beyond the range of floats."""
    return math.exp(point.log_t) if point.log_t < 709.0 else math.inf


def _of_point(flow: linear_margin.Margins, point: linear_margin.Point) -> Record:
    outputs = flow.model.data.y * flow.margins(point.zeta)
    z = flow.model.spectrum.V @ point.zeta
    return Record(_time(point), point.log_t, point.log_loss, z, outputs)


def _arrays(model: LinearModel, records: list[Record]) -> dict[str, Any]:
    """The arrays of a run's records; ``outputs`` are those of the model."""
    nets = [model.network(record.z) for record in records]
    zero = np.zeros((len(nets), model.net.width))
    mode = modes_of_signs(model.net, model.data)
    kept: dict[str, NDArray[Any]] = {
        "a": np.stack([net.a for net in nets]),
        "W": np.stack([net.W for net in nets]),
        "log_scale": zero,
        "log_scale_out": zero.copy(),
        "mode": np.repeat(mode[None], len(nets), axis=0),
        "outputs": np.stack([record.outputs for record in records]),
    }
    return {
        "t": np.array([record.t for record in records]),
        "log_t": np.array([record.log_t for record in records]),
        "log_loss": np.array([record.log_loss for record in records]),
        "kept": kept,
    }
