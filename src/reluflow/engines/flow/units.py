r"""Natural units: powers of two that bring points, labels and rates near one, exactly.

With :math:`x = L x'`, :math:`y = Y y'` and weights :math:`a = s_a a'`, :math:`w = s_w w'` such that
:math:`s_a s_w L = Y`, the flow of the primed problem is that of the given one in the time
:math:`t' = t\,s_a Y L / s_w`. Both layers trained need :math:`s_a = s_w`; with fixed output weights
:math:`s_a` is their size. So every tolerance of the solver is a pure number, and since all factors
are powers of two nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.losses import Loss, Square
from reluflow.network import Network

# exponents beyond this leave no room for squares and products of weights
WIDEST = 500


@dataclass(frozen=True)
class Units:
    """Exponents of two: points, labels, output weights, hidden weights; ``time`` of ``t / t'``."""

    length: int
    label: int
    output: int
    hidden: int

    @property
    def time(self) -> int:
        """Exponent of ``t / t'``."""
        return self.hidden - self.output - self.label - self.length

    def to_time(self, t: Array | float) -> Array:
        """Times of the given problem from those of the solver."""
        with np.errstate(over="ignore"):
            return np.ldexp(t, self.time)

    def from_time(self, t: float) -> float:
        """A time of the solver from one of the given problem."""
        return float(np.ldexp(t, -self.time))

    @property
    def log_time(self) -> float:
        """Logarithm of ``t / t'``."""
        return float(self.time * np.log(2.0))


def natural_units(data: Dataset, net: Network, loss: Loss, hidden: bool) -> Units:
    """The units of a problem; refuses sizes that the solver's numbers cannot hold."""
    length = _exponent(np.linalg.norm(data.X, axis=1).max(), "the longest point", "Scale the data")
    label, output = 0, 0
    if isinstance(loss, Square) and np.any(data.y):
        label = _exponent(np.abs(data.y).max(), "the largest label", "Scale the labels")
    elif isinstance(loss, Square):
        outputs = float(np.abs(net.predict(data.X)).max())
        label = _exponent(outputs or 1.0, "the largest output", "Scale the network")
    if hidden:
        flat = net.flat()
        if np.any(flat.a):
            output = _exponent(np.abs(flat.a).max(), "the largest output weight", "Scale it")
        return Units(length, label, output, label - length - output)
    if (label - length) % 2:
        if isinstance(loss, Square):
            label += 1
        else:
            length += 1
    return Units(length, label, (label - length) // 2, (label - length) // 2)


def in_range(h: Array) -> bool:
    """Whether outputs ``h`` (n,) can be squared."""
    return bool(np.abs(h).max() <= 2.0**WIDEST)


def _exponent(size: float, what: str, remedy: str) -> int:
    exponent = int(np.round(np.log2(size))) if size > 0.0 else -2000
    if abs(exponent) > WIDEST:
        raise InputError(
            f"{what} has size {size:.3g}; the flow needs sizes from 2^-{WIDEST} to 2^{WIDEST}, so "
            f"that squares stay within the range of floats. {remedy}; the flow is the same in "
            "other units."
        )
    return exponent
