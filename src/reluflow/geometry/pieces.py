r"""A network of one real input as a piecewise linear function; its kinks.

Neurons ``(w_j, b_j)`` with :math:`w_j \ne 0` bend the function at :math:`t_j = -b_j / w_j` by the
slope jump :math:`d_j = a_j |w_j|`, whichever way they face:

.. math:: h(x) = k + \sum_j d_j \, \mathrm{relu}(\pm (x - t_j)) .

Neurons with :math:`w_j = 0` add the constant :math:`a_j \mathrm{relu}(b_j)`. A leaky neuron of
slope :math:`\alpha` is two such terms,
:math:`\varphi(z) = \mathrm{relu}(z) - \alpha\, \mathrm{relu}(-z)`: they bend at the same place,
together by :math:`(1 - \alpha)\, d_j`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number
from reluflow.errors import InputError
from reluflow.geometry.normal import check_network, normal_form
from reluflow.network import Network, activation

_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Line:
    """The function ``exp(log_factor) (constant + sum_j jumps_j relu(sides_j (x - kinks_j)))``.

    Attributes
    ----------
    kinks, jumps, sides : (k,) arrays
        Position, normalised slope jump and direction (+-1) of each term, by position; a bending
        neuron has one, a leaky one two.
    neurons : (k,) array of int
        Whose terms they are.
    constant : float
        The sum of the constant neurons.
    log_factor : float
        Logarithm of the factor of the whole function.
    """

    kinks: Array
    jumps: Array
    sides: Array
    neurons: NDArray[np.intp]
    constant: float
    log_factor: float

    @property
    def total_jump(self) -> float:
        """The sum of all ``|jumps_j|``, rounded once."""
        return math.fsum(np.abs(self.jumps))

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Values at ``x`` (k,) without the factor, and the sums of the sizes of their terms."""
        values = np.full(len(x), self.constant)
        sizes = np.full(len(x), abs(self.constant))
        step = max(1, _BLOCK // max(1, len(self.kinks)))
        for start in range(0, len(x), step):
            block = slice(start, start + step)
            reach = np.maximum(self.sides * (x[block, None] - self.kinks), 0.0)
            values[block] += reach @ self.jumps
            sizes[block] += reach @ np.abs(self.jumps)
        return values, sizes


def line(net: Network, name: str = "net") -> Line:
    """Return the piecewise linear function of a network with inputs ``(x, 1)``."""
    if check_network(net, name).d != 2:
        raise InputError(
            f"`{name}` takes {net.d} inputs. Kinks and sign changes belong to functions of one "
            "number, written as (x, 1): 2 inputs, the last one the bias. Pass such a network."
        )
    if not (net.mantissa.a.any() and net.mantissa.W.any()):
        empty = np.empty(0)
        return Line(empty, empty, empty, np.empty(0, np.intp), 0.0, 0.0)
    form = normal_form(net)
    w, b = net.mantissa.W.T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # "+ 0.0" turns -0.0 into 0.0, so that equal positions compare equal bit for bit
        kinks = -b / w + 0.0
    jumps = form.weights * np.abs(net.directions[:, 0])
    # a kink beyond the range of floats is a constant for every float x
    bends = np.isfinite(kinks) & (w != 0.0) & (jumps != 0.0)
    constants = form.weights * activation(net.directions[:, 1], net.slope)
    neurons = np.flatnonzero(bends)
    neurons = neurons[np.argsort(kinks[neurons], kind="stable")]
    factors, sides = np.ones(len(neurons)), np.sign(w[neurons])
    if net.slope:  # the other sides of leaky neurons
        factors = np.tile([1.0, -net.slope], len(neurons))
        sides = np.repeat(sides, 2) * np.tile([1.0, -1.0], len(neurons))
        neurons = np.repeat(neurons, 2)
    return Line(
        kinks=kinks[neurons],
        jumps=factors * jumps[neurons],
        sides=sides,
        neurons=neurons,
        constant=math.fsum(constants[~bends]),
        log_factor=form.log_factor,
    )


@dataclass(frozen=True, eq=False)
class Kinks:
    """The kinks of a function, from left to right.

    Attributes
    ----------
    positions : (k,) array
        Where the slope changes; the mean of a merged cluster, weighted by the sizes of its jumps.
    jumps : (k,) array
        By how much, scales included (0 or inf outside the range of floats).
    relative_jumps : (k,) array
        The jumps divided by the sum of ``|d_j|`` over all neurons.
    neurons : tuple of int arrays
        The neurons that bend there.
    largest_discarded : float
        Largest relative jump among clusters that were dropped (0 if none was).
    """

    positions: Array
    jumps: Array
    relative_jumps: Array
    neurons: tuple[NDArray[np.intp], ...]
    largest_discarded: float

    @property
    def smallest_kept(self) -> float:
        """Smallest relative jump among the kinks (inf if there is none)."""
        return float(np.abs(self.relative_jumps).min(initial=np.inf))


def kinks(net: Network, tol_x: float = 1e-9, tol_jump: float = 1e-9) -> Kinks:
    r"""Return the kinks of a network of one real input.

    Neurons whose positions agree are merged first and their jumps added with sign; then clusters
    without a jump are dropped. In this order two large opposite jumps cancel.

    Parameters
    ----------
    net : Network
        Two inputs ``(x, 1)``.
    tol_x : float
        Positions within ``tol_x (1 + |t|)`` of the first of a cluster belong to it.
    tol_jump : float
        Clusters with a jump of at most ``tol_jump`` times the sum of all ``|d_j|`` are dropped.

    Returns
    -------
    Kinks
        Places and jumps of slope, from left to right.

    Examples
    --------
    >>> kinks(Network([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]])).jumps
    array([2.])
    >>> len(kinks(Network([1.0, -1.0], [[1.0, 0.0], [-1.0, 0.0]])).positions)
    0

    Numerics
    --------
    Sums are rounded once, so the order of the neurons never matters. Positions to 1 ulp of
    ``b/w``. O(m log m).
    """
    number(tol_x, "tol_x", at_least=0.0, below=1.0)
    number(tol_jump, "tol_jump", at_least=0.0, below=1.0)
    function = line(net)
    total = function.total_jump * ((1.0 - net.slope) / (1.0 + net.slope))  # of neurons, not terms
    found: list[tuple[float, float, NDArray[np.intp]]] = []
    discarded = 0.0
    for start, end in _clusters(function.kinks, tol_x):
        jumps = function.jumps[start:end]
        relative = math.fsum(jumps) / total
        if abs(relative) <= tol_jump:
            discarded = max(discarded, abs(relative))
            continue
        position = _position(function.kinks[start:end], jumps)
        found.append((position, relative, np.unique(function.neurons[start:end])))
    relative_jumps = np.array([relative for _, relative, _ in found])
    with np.errstate(over="ignore", under="ignore"):
        jumps = relative_jumps * (np.exp(function.log_factor) * total)
    return Kinks(
        positions=np.array([position for position, _, _ in found]),
        jumps=jumps,
        relative_jumps=relative_jumps,
        neurons=tuple(neurons for _, _, neurons in found),
        largest_discarded=discarded,
    )


def _clusters(positions: Array, tol_x: float) -> list[tuple[int, int]]:
    """Slices of sorted positions no wider than the tolerance (chains are cut, not followed)."""
    slices, start = [], 0
    while start < len(positions):
        first = positions[start]
        limit = first + tol_x * (1.0 + abs(first))
        end = int(np.searchsorted(positions, limit, side="right"))
        slices.append((start, end))
        start = end
    return slices


def _position(positions: Array, jumps: Array) -> float:
    low, high = float(positions[0]), float(positions[-1])
    sizes = np.abs(jumps)
    offset = math.fsum(sizes * (positions - low)) / math.fsum(sizes)
    return min(low + offset, high)
