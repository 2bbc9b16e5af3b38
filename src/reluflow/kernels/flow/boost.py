r"""A neuron in a constant pull: a boost, in light-cone coordinates.

With ``e = g/|g|``, ``p = e.w`` and ``q = tau |g|`` a neuron moves by

    p + a -> (p + a) e^q,    p - a -> (p - a) e^-q,    w - p e  constant.

Their product is ``-(B + |w - p e|^2)`` with the balance ``B``: the smaller of the two follows from
it without cancellation, so a neuron that shrinks by any factor and grows again is as exact as one
that only grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.neuron import Neuron
from reluflow.kernels.flow.roots import NEVER
from reluflow.kernels.kernel import kernel


class Boost(NamedTuple):
    """Light-cone coordinates of one neuron: ``p + a``, ``p - a``, the rest of ``w``, ``|g|``."""

    plus: float
    minus: float
    across: Array
    speed: float


@kernel
def coordinates(neuron: Neuron, g: Array, across: Array) -> Boost:
    """Light-cone coordinates of a neuron, ``across`` (d,) the part of ``w`` across the pull."""
    speed = np.sqrt(np.dot(g, g))
    a, p = neuron.a[0], np.dot(g, neuron.w) / speed
    product = -(neuron.balance + np.dot(across, across))
    plus, minus = p + a, p - a
    if abs(plus) < abs(minus):
        plus = product / minus if minus != 0.0 else 0.0
    elif plus != 0.0:
        minus = product / plus
    return Boost(plus, minus, across, speed)


@kernel
def boosted(neuron: Neuron, boost: Boost, q: float, g: Array) -> tuple[float, float]:
    """Move a neuron by the boost ``q``; returns the shift of its log scale and the factor of rest.

    Its pre-activations are left as they were.
    """
    plus, minus = boost.plus, boost.minus
    rest = np.abs(boost.across).max()
    shift = -NEVER
    if plus != 0.0:
        shift = max(shift, np.log(abs(plus)) + q)
    if minus != 0.0:
        shift = max(shift, np.log(abs(minus)) - q)
    if rest != 0.0:
        shift = max(shift, np.log(rest))
    if shift == -NEVER:
        return 0.0, 1.0
    if plus != 0.0:
        plus *= np.exp(q - shift)
    minus *= np.exp(-q - shift)
    shrink = np.exp(-shift) if rest != 0.0 else 0.0  # else 0 times an overflow
    p = 0.5 * (plus + minus)
    neuron.a[0] = 0.5 * (plus - minus)
    for k in range(len(g)):
        neuron.w[k] = boost.across[k] * shrink + p * g[k] / boost.speed
    return shift, shrink
