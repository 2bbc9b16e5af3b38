"""What is explored: a checked value that the page, a link and a TOML file all carry.

The page sends it as JSON with every message; `from_json` refuses what is not within the limits with
one sentence, and names the points that are to blame where there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from reluflow import losses, networks
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.wording import cut

VERSION = 1
MAX_POINTS, MAX_WIDTH, MAX_COORDINATES = 40, 400, 64
MAX_MESSAGE_BYTES = 256 * 1024
LARGEST = 1e6
DEFAULT_STOP = -50.0  # log-loss at which a classifier's run ends

Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Seed = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Width = Annotated[int, msgspec.Meta(ge=1, le=MAX_WIDTH)]
Rate = Annotated[float, msgspec.Meta(ge=1.0 / LARGEST, le=LARGEST)]


class StateError(InputError):
    """A state that cannot be explored; ``points`` are the points to blame."""

    def __init__(self, message: str, points: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.points = points


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the state; a field that is not listed is an error."""


class Drawn(_Part, frozen=True, kw_only=True, tag_field="kind", tag="drawn"):
    """Neurons drawn by `reluflow.networks.balanced` or ``dominated``."""

    width: Width = 50
    seed: Seed = 1
    init: Literal["balanced", "dominated"] = "balanced"
    directions: Literal["gaussian", "sphere"] = "gaussian"
    signs: Literal["random", "positive"] = "random"


class Given(_Part, frozen=True, kw_only=True, tag_field="kind", tag="given"):
    """Neurons given one by one; log scales are added to the common one."""

    a: list[float]
    W: list[list[float]]
    log_scale: list[float] | None = None
    log_scale_out: list[float] | None = None


class Move(_Part, frozen=True, kw_only=True):
    """A neuron turned by hand: its direction (of a plane) and the sign of its output weight."""

    neuron: Annotated[int, msgspec.Meta(ge=0, lt=MAX_WIDTH)]
    angle: Annotated[float, msgspec.Meta(ge=-7.0, le=7.0)] | None = None
    flip: bool = False


class State(_Part, frozen=True, kw_only=True):
    """Points, network, loss and engine settings."""

    v: Literal[1] = 1
    line: bool = True
    X: list[list[Number]]
    y: list[Number]
    net: Drawn | Given = Drawn()
    moves: list[Move] = []
    log_scale: Annotated[float, msgspec.Meta(ge=-1e7, le=20.0)] = -10.0
    loss: Literal["square", "exponential", "logistic"] = "square"
    factor: Literal["1/2n", "1/2", "1/n"] = "1/2n"
    train: Literal["both", "hidden", "output", "linearised"] = "both"
    rates: tuple[Rate, Rate] = (1.0, 1.0)
    decay: Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)] = 0.0
    slope: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)] = 0.0
    rtol: Annotated[float, msgspec.Meta(ge=1e-12, le=1e-2)] = 1e-8
    stop_log_loss: Annotated[float, msgspec.Meta(ge=-1e4, le=0.0)] | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.X)

    @property
    def width(self) -> int:
        """Number of neurons."""
        return self.net.width if isinstance(self.net, Drawn) else len(self.net.a)

    @property
    def is_regression(self) -> bool:
        """Whether the loss is the square loss."""
        return self.loss == "square"

    @property
    def is_plain(self) -> bool:
        """Whether it is plain training of a ReLU network, which limit theorems are about."""
        plain = self.train == "both" and self.rates == (1.0, 1.0)
        return plain and self.decay == 0.0 and self.slope == 0.0

    def dataset(self) -> Dataset:
        """The points with their labels."""
        return Dataset(self.X, self.y, name="explored")

    def loss_function(self) -> losses.Loss:
        """The loss."""
        if self.loss == "square":
            return losses.Square(self.factor)
        return losses.Exponential() if self.loss == "exponential" else losses.Logistic()

    def network(self) -> Network:
        """The network at the start: drawn or given, then turned by hand."""
        net, d = self.net, len(self.X[0])
        if isinstance(net, Drawn):
            start = getattr(networks, net.init)(
                d,
                net.width,
                log_scale=self.log_scale,
                directions=net.directions,
                signs=net.signs,
                seed=net.seed,
            )
        else:
            added, added_out = net.log_scale, net.log_scale_out
            hidden = self.log_scale + np.asarray(added if added is not None else 0.0)
            out = None if added_out is None else self.log_scale + np.asarray(added_out)
            start = Network(net.a, net.W, hidden, log_scale_out=out)
        return (self._turned(start) if self.moves else start).with_slope(self.slope)

    def _turned(self, net: Network) -> Network:
        a, W = mantissas(net)
        for move in self.moves:
            if move.angle is not None:
                size = np.hypot(*W[move.neuron])
                W[move.neuron] = size * np.array([np.cos(move.angle), np.sin(move.angle)])
            if move.flip:
                a[move.neuron] = -a[move.neuron]
        return Network(a, W, net.log_scale, log_scale_out=net.log_scale_out)

    def options(self) -> dict[str, Any]:
        """Arguments of `reluflow.flow` besides data and network, limits of time apart."""
        stop = self.stop_log_loss
        if stop is None and not self.is_regression:
            stop = DEFAULT_STOP
        return {
            "loss": self.loss_function(),
            "train": self.train,
            "rates": self.rates,
            "decay": self.decay,
            "rtol": self.rtol,
            "stop_log_loss": stop,
        }


def mantissas(net: Network) -> tuple[Array, Array]:
    """Copies of the weights without their log scales."""
    arrays = net.to_arrays()
    return arrays["a"].copy(), arrays["W"].copy()


def from_json(raw: Any) -> State:
    """Check the plain data of a state; a sentence says what is wrong with one that is refused."""
    try:
        state = msgspec.convert(raw, State)
    except msgspec.ValidationError as error:
        raise StateError(f"this state cannot be used: {cut(str(error), 300)}. Change it.") from None
    check(state)
    return state


def to_json(state: State) -> dict[str, Any]:
    """Plain data from which `from_json` makes an equal state."""
    found: dict[str, Any] = msgspec.to_builtins(state)
    return {**found, "rates": list(state.rates)}  # as JSON has it


def check(state: State) -> None:
    """Refuse what is beyond the limits of the page or what no network can be trained on."""
    _check_sizes(state)
    still = {"hidden": 1, "output": 0}.get(state.train)
    if still is not None and state.rates[still] != 1.0:
        raise StateError(
            f"the rate of the {('hidden', 'output')[still]} weights is {state.rates[still]:g}, but "
            f"only the {state.train} weights are trained. Give 1 there."
        )
    if state.decay and (state.train != "both" or state.rates != (1.0, 1.0)):
        raise StateError(
            f"weight decay is {state.decay:g}; the flow has it for both layers at rates 1 and 1. "
            "Set it to 0, or train these."
        )
    X, y = np.array(state.X), np.array(state.y)
    if state.line and (X.shape[1] != 2 or np.any(X[:, 1] != 1.0)):
        raise StateError("points on a line are rows (x, 1). Use a plane for other inputs.")
    zero = np.flatnonzero(~X.any(axis=1))
    if len(zero):
        raise StateError(
            f"point {zero[0]} is the origin. Every neuron is silent there, so it cannot be "
            "learned. Move it away from 0.",
            tuple(zero.tolist()),
        )
    if not state.is_regression:
        bad = np.flatnonzero(np.abs(y) != 1.0)
        if len(bad):
            raise StateError(
                f"label {y[bad[0]]:g} of point {bad[0]} is not -1 or 1, which the {state.loss} "
                "loss needs. Change it, or choose the square loss.",
                tuple(bad.tolist()),
            )
        clash = contradictions(X, y)
        if clash:
            raise StateError(
                f"points {clash[0]} and {clash[1]} coincide and have opposite labels. No network "
                "separates them. Move one of them.",
                clash,
            )


def contradictions(X: Array, y: Array) -> tuple[int, ...]:
    """The first two points that coincide with different labels, if any."""
    for i in range(len(y)):
        for j in range(i):
            if np.array_equal(X[i], X[j]) and y[i] != y[j]:
                return (j, i)
    return ()


def _check_sizes(state: State) -> None:
    widths = {len(row) for row in state.X}
    if not 1 <= state.n <= MAX_POINTS:
        raise StateError(f"{state.n} points: the explorer takes 1 to {MAX_POINTS}. Drop some.")
    if len(state.y) != state.n:
        raise StateError(f"{state.n} points have {len(state.y)} labels. Give one each.")
    if len(widths) != 1 or not 1 <= min(widths) <= MAX_COORDINATES:
        raise StateError(
            f"points have {min(widths)} to {max(widths)} coordinates; all need the same number, "
            f"1 to {MAX_COORDINATES}. Change them."
        )
    net, d = state.net, len(state.X[0])
    if isinstance(net, Given):
        lengths = {len(net.a), len(net.W)}
        lengths |= {len(part) for part in (net.log_scale, net.log_scale_out) if part is not None}
        if not 1 <= len(net.a) <= MAX_WIDTH or len(lengths) != 1:
            raise StateError(
                f"{len(net.a)} output weights: the explorer takes 1 to {MAX_WIDTH} neurons, with "
                "as many rows of hidden weights. Change them."
            )
        if any(len(row) != d for row in net.W):
            raise StateError(f"hidden weights need {d} coordinates, like the points. Change them.")
        if not np.isfinite([*net.a, *(w for row in net.W for w in row)]).all():
            raise StateError("a weight is not a finite number. Change it.")
    for move in state.moves:
        if move.neuron >= state.width or (move.angle is not None and d != 2):
            raise StateError(
                f"neuron {move.neuron} cannot be turned: there are {state.width}, with {d} "
                "coordinates. Drop the move."
            )
    if len(state.moves) > MAX_WIDTH:
        raise StateError(f"{len(state.moves)} moves: at most one a neuron. Drop some.")


def of_values(data: Dataset, start: Network | None, **settings: Any) -> State:
    """The state of a data set and a network given as values."""
    is_line = data.d == 2 and bool(np.all(data.X[:, 1] == 1.0))
    fields: Mapping[str, Any] = {"X": data.X.tolist(), "y": data.y.tolist(), "line": is_line}
    if start is None:
        chosen: dict[str, Any] = {}
    else:
        common = float(start.log_scale[0])
        a, W = mantissas(start)
        rest = (start.log_scale - common).tolist() if np.any(start.log_scale != common) else None
        out = None
        if np.any(start.log_scale_out != start.log_scale):
            out = (start.log_scale_out - common).tolist()
        chosen = {
            "net": Given(a=a.tolist(), W=W.tolist(), log_scale=rest, log_scale_out=out),
            "log_scale": common,
            "slope": start.slope,
        }
    return from_json(to_json(State(**fields, **chosen, **settings)))
