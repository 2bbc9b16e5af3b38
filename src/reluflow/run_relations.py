"""Do the numbers of a run fit each other: losses to networks, modes to the signs of the weights?

A file whose arrays have the right shapes may still hold numbers that no training led to (a data set
from elsewhere, a changed weight). Continued from such a record, an engine might go on for ever. So
loading compares some records with what follows from them; `reluflow.verify` compares all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.losses import Loss, Square
from reluflow.network import activation

# engines keep these relations to 1e-9 or better; a file that was tampered with misses them by far
TOL = 1e-5
WORK = 3e7  # multiplications that loading may spend

States = Mapping[str, NDArray[Any]]


def check(
    data: Dataset,
    loss: Loss,
    states: States,
    log_loss: Array,
    *,
    t: Array,
    options: Mapping[str, Any],
    slope: float = 0.0,
    work: float = WORK,
) -> None:
    """Raise `InputError` at the first record whose loss or modes are not those of its network.

    ``slope`` is that of the activation. A linearised network has outputs and patterns of its own:
    its loss is that of the outputs.
    """
    if options["train"] == "linearised":
        for k, h in enumerate(states["outputs"]):
            _check_loss(loss, h, data.y, np.abs(h), float(log_loss[k]), k)
        return
    if "mode" in states and not slope:
        _check_dead(states, _decayed(t, options))
    k, m, d = states["W"].shape
    count = int(min(max(work / (m * data.n * d), 2), k))
    for some in np.array_split(np.linspace(0, k - 1, count).astype(int), -(-count // 64)):
        with np.errstate(all="ignore"):
            _check_some(data, slope, loss, states, log_loss, some)


def _check_some(
    data: Dataset,
    slope: float,
    loss: Loss,
    states: States,
    log_loss: Array,
    some: NDArray[np.intp],
) -> None:
    a, W = states["a"][some], states["W"][some]
    z = W @ data.X.T  # (records, neurons, points)
    reach = np.linalg.norm(W, axis=2)[..., None] * np.linalg.norm(data.X, axis=1)
    if "mode" in states:
        _check_modes(states["mode"][some], z, reach * TOL + np.abs(a)[..., None] * TOL, some)
    scale = states["log_scale"][some] + states["log_scale_out"][some]
    outer = a * np.exp(scale)
    h = np.einsum("kmn,km->kn", activation(z, slope), outer)
    # the size of the terms: their rounding is what is left of outputs that cancel
    size = np.einsum("kmn,km->kn", reach, np.abs(outer))
    # beyond these scales the factors leave the range of floats; below, ordinary weights count as 0
    ordinary = np.abs(a) * reach.max(axis=2) < 1e50
    clear = (scale < 600.0) & ((scale > -600.0) | ordinary)
    for row, k in enumerate(some.tolist()):
        if "mode" in states and not ((scale[row] < 600.0).all() and np.isfinite(size[row]).all()):
            raise InputError(f"the outputs of record {k} leave the range of floats")
        if clear[row].all() and np.isfinite(size[row]).all():
            _check_loss(loss, h[row], data.y, size[row], float(log_loss[k]), k)


def check_start(net: States, states: States, t: Array, *, options: Mapping[str, Any]) -> None:
    """Raise `InputError` if the records of a flow do not come from its start.

    The first record is the start, where there is one at time zero. Every neuron keeps the balance
    ``a^2 - |w|^2`` of the start, which the engine takes from there when it goes on; without trained
    outputs it keeps ``a``, and without trained hidden weights ``w``. Layers with rates of their own
    keep the balance of the weights divided by the roots of the rates. With weight decay mu the
    balance at time t is ``exp(-2 mu t)`` times that of the start.
    """
    train = options["train"]
    if train == "linearised":
        return
    hidden = train == "hidden"
    logs = 0.5 * np.log(np.array(options.get("rates", (1.0, 1.0)), dtype=np.float64))
    with np.errstate(all="ignore"):
        start, records = _logs(net, *logs), _logs(states, *logs)
        # shares of the largest size a neuron ever had: what it loses to rounding is of that size
        (a, w), (later_a, later_w) = _shares(start, records)
        if train == "output":
            kept = later_w - w
        else:
            left = np.exp(-2.0 * _decayed(t, options))[:, None]
            kept = later_a - a if hidden else (later_a**2 - later_w**2) - left * (a**2 - w**2)
        # logarithms of deep scales are known to their spacing, which is then that of the shares;
        # no flow starts as far above the range of floats
        depth = np.where(np.isfinite(start[1]), np.maximum(-start[1], 0.0), 0.0)
        loose = TOL + 8.0 * np.spacing(depth)
        fits = np.abs(kept) <= loose
        if t[0] == 0.0:
            first = tuple(part[:1] for part in records)
            (a, w), (later_a, later_w) = _shares(start, first)
            fits[0] &= (np.abs(later_a - a)[0] <= loose) & (np.abs(later_w - w)[0] <= loose)
    if not fits.all():
        k, neuron = (int(i) for i in np.unravel_index(fits.argmin(), fits.shape))
        raise InputError(f"neuron {neuron} of record {k} does not come from the start of the run")


def _shares(start: Any, records: Any) -> list[tuple[Array, ...]]:
    """Sizes given by their logarithms, as shares of the largest of each neuron."""
    top = np.maximum(np.maximum(*start), np.maximum(*records).max(axis=0))
    top = np.where(np.isfinite(top), top, 0.0)
    return [tuple(np.exp(part - top) for part in parts) for parts in (start, records)]


def _logs(arrays: States, hidden: float, output: float) -> tuple[Array, Array]:
    """Logarithms of the sizes of output and hidden weights, divided by factors given as logs."""
    outer = np.log(np.abs(arrays["a"])) + arrays["log_scale_out"] - output
    inner = np.log(np.linalg.norm(arrays["W"], axis=-1)) + arrays["log_scale"] - hidden
    return outer, inner


def _decayed(t: Array, options: Mapping[str, Any]) -> Array:
    """``mu t``: by how many e-folds weight decay alone has shrunk the records."""
    decay = float(options.get("decay", 0.0))
    return decay * t if decay else np.zeros_like(t)


def _check_dead(states: States, decayed: Array) -> None:
    """A neuron inactive everywhere since its death feels no force: it stays, or decays alone."""
    dead = (states["mode"] == 0).all(axis=2)
    dead = np.logical_and.accumulate(dead[::-1])[::-1]  # dead from here to the end
    for name in ("a", "W", "log_scale", "log_scale_out"):
        values = states[name].reshape(*dead.shape, -1)
        if name.startswith("log_scale"):
            values = values + decayed[:, None, None]
        with np.errstate(all="ignore"):
            moved = np.abs(values[1:] - values[:-1]) > TOL * (1.0 + np.abs(values[-1]))
        wrong = moved.any(axis=2) & dead[:-1]
        if wrong.any():
            k, neuron = (int(i) for i in np.unravel_index(wrong.argmax(), wrong.shape))
            raise InputError(
                f"`states.{name}` changes after record {k} for the dead neuron {neuron}"
            )


def _check_modes(
    mode: NDArray[np.int8], z: Array, slack: NDArray[Any], some: NDArray[np.intp]
) -> None:
    """0 and 2 forbid positive pre-activations, 1 and 3 negative ones; 2 and 3 slide: both."""
    wrong = (z > slack) & (mode != 1) | (z < -slack) & (mode != 0)
    if wrong.any():
        row, neuron, point = (int(i) for i in np.unravel_index(wrong.argmax(), wrong.shape))
        raise InputError(
            f"`states.mode` is {mode[row, neuron, point]} for neuron {neuron} and point {point} "
            f"of record {some[row]}, whose weights say otherwise"
        )


def _check_loss(loss: Loss, h: Array, y: Array, size: Array, recorded: float, k: int) -> None:
    """The recorded loss must be one that outputs within the rounding of ``h`` have."""
    if np.isnan(recorded) or not np.isfinite(h).all():
        return
    found = loss.log_value(h, y)
    if isinstance(loss, Square):
        unit = np.exp(0.5 * loss.log_value_of_residual(np.abs(y) + size))
        residuals = np.exp(0.5 * np.array([recorded, found]))
        fits = abs(residuals[0] - residuals[1]) <= TOL * unit
    else:  # the loss falls as margins grow
        low, high = (loss.log_value(h + sign * TOL * size * y, y) for sign in (1.0, -1.0))
        fits = low - TOL * (1.0 + abs(low)) <= recorded <= high + TOL * (1.0 + abs(high))
    if not fits and not abs(found - recorded) <= TOL:
        raise InputError(
            f"record {k} has the log-loss {recorded:.9g}, but its network has {found:.9g}"
        )
