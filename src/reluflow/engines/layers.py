"""Which layers the flow trains, and at which rates: to whom a call of `reluflow.flow` goes.

``both`` and ``hidden`` are the flow of `reluflow.engines.flow`, at rates other than (1, 1) after a
change of variables (`rated`). ``output`` and ``linearised`` have fixed features (`linear`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from reluflow.checks import choice, number
from reluflow.dataset import Dataset
from reluflow.engines import checkpoints, linear, rated
from reluflow.engines.flow import angles, entry
from reluflow.engines.flow import replay as replaying
from reluflow.errors import InputError
from reluflow.losses import Loss
from reluflow.network import Network
from reluflow.trajectory import Trajectory

TRAIN = ("both", "hidden", "output", "linearised")
PLAIN = (1.0, 1.0)


def flow(
    data: Dataset | Trajectory,
    net: Network | None,
    *,
    loss: Loss,
    train: str,
    rates: Any,
    decay: float,
    **options: Any,
) -> Trajectory:
    """Train, or go on with a run of the flow; see `reluflow.flow`."""
    if isinstance(data, Trajectory) and data.engine == "flow":
        return _continued(data, options)
    choice(train, "train", TRAIN)
    pair = check_rates(rates, train)
    if decay and (train in linear.KINDS or pair != PLAIN):
        raise InputError(
            f"`decay` is {decay:g} with train={train!r} and rates={pair}. Weight decay of the flow "
            "is for both layers at rates (1, 1); leave one of them out."
        )
    if train in linear.KINDS:
        return linear.flow(data, net, kind=train, rates=pair, loss=loss, options=options)  # type: ignore[arg-type]
    if pair == PLAIN or not isinstance(data, Dataset) or not isinstance(net, Network):
        return entry.flow(data, net, loss=loss, train=train, decay=decay, **options)
    start, points = rated.network_inside(net, pair), rated.points_inside(data, pair)
    with checkpoints.translated(lambda run: rated.outside(run, data, net, pair)):
        run = entry.flow(points, start, loss=loss, train=train, decay=0.0, **options)
    return rated.outside(run, data, net, pair)


def _continued(earlier: Trajectory, options: dict[str, Any]) -> Trajectory:
    data, net, loss = earlier.data, earlier.net, earlier.loss_function
    train, pair = str(earlier.options["train"]), rated.rates_of(earlier)
    if linear.is_linear(earlier):
        return linear.flow(data, net, kind=train, rates=pair or PLAIN, loss=loss, options=options)
    if pair is None:
        return entry.flow(earlier, None, loss=loss, train=train, decay=0.0, **options)
    with checkpoints.translated(lambda run: rated.outside(run, data, net, pair)):
        run = entry.flow(rated.inside(earlier), None, loss=loss, train=train, decay=0.0, **options)
    return rated.outside(run, data, net, pair)


def check_rates(rates: Any, train: str) -> tuple[float, float]:
    """The pair (rate of the hidden weights, rate of the output weights)."""
    if isinstance(rates, (str, bytes)) or not hasattr(rates, "__len__") or len(rates) != 2:
        raise InputError(
            f"`rates` is {rates!r}. Give a pair: the rate of the hidden weights and that of the "
            "output weights."
        )
    hidden, output = (number(rate, "rates", above=0.0) for rate in rates)
    still = {"hidden": (output, "output"), "output": (hidden, "hidden")}.get(train)
    if still is not None and still[0] != 1.0:
        raise InputError(
            f'`rates` gives {still[0]:g} to the {still[1]} weights, which train="{train}" keeps as '
            "they are. Give 1 there."
        )
    return hidden, output


def replay(run: Trajectory, **target: float) -> Network:
    """The network of a run of the flow at a time or a loss."""
    if linear.is_linear(run):
        return linear.replay(run, **target)
    net, rates = replaying.replay(rated.inside(run), **target), rated.rates_of(run)
    return net if rates is None else rated.network_outside(net, rates)


def sample(run: Trajectory, log_times: ArrayLike, stop: Callable[[], bool] | None) -> Trajectory:
    """A run of the flow at many times in one sweep."""
    if linear.is_linear(run):
        return linear.sample(run, log_times, stop)
    found, rates = replaying.sample(rated.inside(run), log_times, stop), rated.rates_of(run)
    return found if rates is None else rated.outside(found, run.data, run.net, rates)


def log_max_angle(run: Trajectory, t: float, subset: Sequence[int] | None) -> float:
    """Logarithm of the largest angle between neurons, which rates do not change."""
    if linear.is_linear(run):
        raise InputError(
            f'log_max_angle is for networks that train; this run has train="{run.options["train"]}"'
            ". Take rf.geometry.max_angle of run.at(t)."
        )
    return angles.log_max_angle(rated.inside(run), t, subset)
