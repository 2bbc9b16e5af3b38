r"""Gradient flow of models with fixed features: the output layer alone, or the linearised network.

For the square loss everything is a closed form in the eigenvectors of the kernel
(`reluflow.geometry.linear_model.Fit`): any time, any loss, and the limit. There are no events:
patterns are those of the start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, number, whole
from reluflow.dataset import Dataset
from reluflow.engines.descent_scale import plain_weights
from reluflow.errors import InputError
from reluflow.geometry.linear_model import Fit, LinearModel
from reluflow.losses import Loss, Square
from reluflow.modes import modes_of_signs
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

KINDS = ("output", "linearised")
FIRST = 1e-3  # the first record after the start, in units of the fastest mode
LAST = 40.0  # a limit is reached to rounding after so many times of the slowest mode


def is_linear(run: Trajectory) -> bool:
    """Whether a run is one of a linear model."""
    return run.engine == "flow" and run.options.get("train") in KINDS


def model_of(data: Dataset, net: Network, kind: str, rates: tuple[float, float]) -> LinearModel:
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
    return LinearModel(data, Network(a, W), kind, rates)


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
    if not isinstance(loss, Square):
        raise InputError(
            f'train="{kind}" is solved in closed form, for the square loss; the loss is '
            f'{loss.name}. Use loss="square", or train="both" from a large scale, where '
            "training is nearly linear."
        )
    fit = Fit(model, loss.kappa(data.n))
    end, status = _end(fit, options)
    times = _times(fit, options["record"], end)
    final, error = model.network(fit.displacement(end)), math.nan
    if status in (Status.CONVERGED, Status.STATIONARY):
        final, error = model.network(fit.displacement(math.inf)), fit.error
    settings = {"train": kind, "rtol": number(options["rtol"], "rtol", at_least=1e-13, at_most=0.1)}
    if rates != (1.0, 1.0):
        settings["rates"] = list(rates)
    return Trajectory(
        engine="flow",
        data=data,
        net=net,
        loss_function=loss,
        t=times,
        log_t=_logs(times),
        log_loss=np.array([fit.log_loss(t) for t in times]),
        kept=_stack(fit, times),
        final=final,
        status=status,
        limit_error=error,
        stats={"form": "linear", "steps": 0, "events": {}},
        options=settings,
    )


def replay(run: Trajectory, **target: float) -> Network:
    """The network of a run at ``t``, ``log_t`` or ``log_loss``, by the closed form."""
    ((name, value),) = target.items()
    value, fit = number(value, name, infinite=True), _fit_of(run)
    if name == "log_loss":
        t = _time_of(fit, value)
        if value > run.log_loss[0] or t > _last(run):
            raise InputError(
                f"`log_loss` is {value:g}, outside the span of the run ({run.log_loss[0]:g} down "
                f"to {run.log_loss[-1]:g}). Ask for a value inside it, or continue the run."
            )
        return fit.model.network(fit.displacement(t))
    t = value if name == "t" else math.exp(min(value, 709.0))
    if t < 0.0 or t > _last(run) * (1.0 + 1e-14):
        raise InputError(
            f"`{name}` is {value:g}, outside the span of the run (t from 0 to {run.t[-1]:g}). "
            "Ask for a time inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    return fit.model.network(fit.displacement(t))


def sample(run: Trajectory, log_times: ArrayLike) -> Trajectory:
    """The run with records at these log-times only."""
    from dataclasses import replace

    wanted = np.unique(np.asarray(log_times, dtype=np.float64))
    if wanted.ndim != 1 or not len(wanted) or np.isnan(wanted).any():
        raise InputError(
            f"`log_times` is {log_times!r}; it must be a list of numbers, -inf for the start. "
            "Change it."
        )
    last = _last(run)
    with np.errstate(over="ignore"):
        times = np.exp(wanted)
    if times[-1] > last * (1.0 + 1e-14):
        raise InputError(
            f"`log_times` reaches {wanted[-1]:g}, after the end of the run ({run.log_t[-1]:g}). "
            "Ask for times inside it, or continue the run with rf.flow(run, t_end=...)."
        )
    times = np.unique(np.minimum(times, run.t[-1]))
    fit = _fit_of(run)
    return replace(
        run,
        t=times,
        log_t=_logs(times),
        log_loss=np.array([fit.log_loss(t) for t in times]),
        kept=_stack(fit, times),
    )


def _fit_of(run: Trajectory) -> Fit:
    given = run.options.get("rates", (1.0, 1.0))
    rates = float(given[0]), float(given[1])
    loss = run.loss_function
    assert isinstance(loss, Square)  # no other is trained
    model = model_of(run.data, run.net, str(run.options["train"]), rates)
    return Fit(model, loss.kappa(run.data.n))


def _last(run: Trajectory) -> float:
    """The latest time that can be asked for."""
    is_limit = run.status in (Status.CONVERGED, Status.STATIONARY)
    return math.inf if is_limit else float(run.t[-1])


def _end(fit: Fit, options: dict[str, Any]) -> tuple[float, Status]:
    """When a run ends, and why; for a limit, when it is reached to rounding."""
    t_end = number(options["t_end"], "t_end", above=0.0, infinite=True)
    given, given_log = options["stop_loss"], options["stop_log_loss"]
    if given is not None and given_log is not None:
        raise InputError(
            f"both `stop_loss` ({given:g}) and `stop_log_loss` ({given_log:g}) are given. Give one "
            "of them."
        )
    stop = -math.inf
    if given is not None:
        stop = math.log(number(given, "stop_loss", above=0.0))
    if given_log is not None:
        stop = number(given_log, "stop_log_loss")
    t_stop = _time_of(fit, stop)
    if t_stop <= t_end and t_stop < math.inf:
        return t_stop, Status.STOP_LOSS
    if t_end < math.inf:
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


def _times(fit: Fit, record: Any, end: float) -> Array:
    if not isinstance(record, (int, np.integer)):
        times = np.asarray(record, dtype=np.float64)
        if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or times.min() < 0.0:
            raise InputError(
                f"`record` is {record!r}; it must be a count or a list of finite times. Change it."
            )
        return np.unique(np.minimum(times, end))
    count = whole(record, "record", at_least=2)
    if end == 0.0:
        return np.zeros(1)
    first = min(FIRST / float(fit.rates[0]) if len(fit.rates) else end, end)
    inner = np.geomspace(first, end, count - 1) if count > 2 else np.array([end])
    inner[-1] = end
    return np.unique(np.append(0.0, np.minimum(inner, end)))


def _logs(times: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(times))


def _stack(fit: Fit, times: Array) -> dict[str, NDArray[Any]]:
    """The arrays of records at these times; ``outputs`` are those of the model."""
    nets = [fit.model.network(fit.displacement(float(t))) for t in times]
    zero = np.zeros((len(times), fit.model.net.width))
    mode = modes_of_signs(fit.model.net, fit.model.data)
    return {
        "a": np.stack([net.a for net in nets]),
        "W": np.stack([net.W for net in nets]),
        "log_scale": zero,
        "log_scale_out": zero.copy(),
        "mode": np.repeat(mode[None], len(times), axis=0),
        "outputs": np.stack([fit.outputs(float(t)) for t in times]),
    }
