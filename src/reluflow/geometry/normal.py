r"""The scales of a network, taken out: what every measurement is computed on.

.. math:: h(x) = e^{\phi} \sum_j c_j \, \varphi(u_j \cdot x), \quad |u_j| = 1

Late in training weights are large, at the start they may be ``exp(-1e6)``. Differences of log
scales are formed before anything is exponentiated, so a measurement loses nothing to the size of
the scale itself: a log scale of -1e6 has an ulp of 1e-10, its difference to another has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.network import Network, row_norms


@dataclass(frozen=True)
class NormalForm:
    """A network with its scales apart.

    Attributes
    ----------
    weights : (m,) array
        The numbers ``c_j``, of ordinary size.
    log_factor : float
        The number ``phi``.
    hidden, outputs : (m,) arrays
        ``|w_j| / |theta|`` and ``a_j / |theta|`` (underflow to zero is harmless there).
    log_norm_ratio : float
        ``log(|theta|^2) - phi``.
    """

    weights: Array
    log_factor: float
    hidden: Array
    outputs: Array
    log_norm_ratio: float


def normal_form(net: Network) -> NormalForm:
    """Split a network into numbers of ordinary size and logarithms; refuse an all-zero one."""
    norms = row_norms(net.mantissa.W)
    hidden, ref_hidden = rescaled(norms, net.log_scale)
    outputs, ref_outputs = rescaled(net.mantissa.a, net.log_scale_out)
    if not (hidden.any() or outputs.any()):
        raise InputError(
            f"all {net.width} neurons are zero. Directions and margins are undefined there. "
            "Give a network with a non-zero weight."
        )
    weights, log_factor = _products(net, norms)
    parts = np.array([_log_square(hidden), _log_square(outputs) + 2 * (ref_outputs - ref_hidden)])
    # log |theta|, counted from ref_hidden (or ref_outputs when all hidden weights are zero)
    half = 0.5 * float(np.logaddexp(parts[0], parts[1]))
    with np.errstate(under="ignore"):
        return NormalForm(
            weights=weights,
            log_factor=log_factor,
            hidden=hidden * np.exp(-half),
            outputs=np.sign(outputs)
            * np.exp(_log(np.abs(outputs)) + (ref_outputs - ref_hidden) - half),
            log_norm_ratio=2 * half + ((ref_hidden - log_factor) + ref_hidden),
        )


def rescaled(values: Array, log_scale: Array) -> tuple[Array, float]:
    """Return ``(v, r)`` with ``values * exp(log_scale) = v * exp(r)`` and ``max |v|`` ordinary."""
    logs = _log(np.abs(values)) + log_scale
    best = int(np.argmax(logs))
    if values[best] == 0.0:
        return np.zeros_like(values), 0.0
    reference = float(log_scale[best])
    shift = log_scale - reference
    top = 0.0 if 1e-100 < abs(values[best]) < 1e100 else float(np.log(abs(values[best])))
    with np.errstate(under="ignore"):
        through_logs = np.sign(values) * np.exp(_log(np.abs(values)) - top + shift)
    # values that need no factor are passed on bit for bit
    plain = (shift == 0.0) & (top == 0.0)
    return np.where(plain, values, through_logs), reference + top


def _products(net: Network, norms: Array) -> tuple[Array, float]:
    """The weights ``a_j |W_j|`` with their common factor; mantissas where products leave range."""
    scale = net.log_scale + net.log_scale_out
    with np.errstate(over="ignore", under="ignore"):
        products = net.mantissa.a * norms
    size = np.abs(products[(net.mantissa.a != 0.0) & (norms != 0.0)])
    if np.all((size > 1e-290) & (size < 1e290)):
        return rescaled(products, scale)
    (a, a_exponent), (w, w_exponent) = np.frexp(net.mantissa.a), np.frexp(norms)
    return rescaled(a * w, scale + (a_exponent + w_exponent) * np.log(2.0))


def check_network(net: Any, name: str = "net") -> Network:
    """Refuse anything but a Network."""
    if not isinstance(net, Network):
        raise InputError(f"`{name}` is a {type(net).__name__}, not a Network. Pass a Network.")
    return net


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _log_square(values: Array) -> float:
    return float(_log(np.asarray(values @ values)))
