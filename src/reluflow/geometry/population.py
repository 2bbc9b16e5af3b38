"""Misclassified mass of a network of one real input under a density: exact, no sampling."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.geometry.pieces import line
from reluflow.geometry.signs import sign_pieces
from reluflow.network import Network


class Density(Protocol):
    """What is asked of a density: its distribution function, for arrays, and its support."""

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval with all the mass."""

    def cdf(self, x: Any) -> Any:
        """The mass left of each x."""


def population_error(net: Network, teacher: Network, density: Density) -> float:
    r"""Return the mass of inputs on which a network and its teacher predict different labels.

    .. math:: \Pr_{x \sim \mu} [\mathrm{sign}\, h(x) \ne \mathrm{sign}\, h^*(x)],
              \quad \mathrm{sign}(0) = -1

    Parameters
    ----------
    net, teacher : Network
        Two inputs ``(x, 1)`` each.
    density : Density
        An object with ``cdf(x)`` for arrays and ``support``.

    Returns
    -------
    float
        Probability of the set where the signs differ.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> uniform = SimpleNamespace(support=(-1.0, 1.0), cdf=lambda x: (np.clip(x, -1, 1) + 1) / 2)
    >>> step, shifted = Network([1.0], [[1.0, 0.0]]), Network([1.0], [[1.0, -0.5]])
    >>> population_error(shifted, step, uniform)
    0.25

    Numerics
    --------
    The support is cut at the sign changes of both functions; the masses between them are added
    with one rounding. The error is that of the cut points times the density, about 1e-15.
    """
    low, high = support_of(density)
    cuts, labels = sign_pieces(line(net), low, high)
    teacher_cuts, teacher_labels = sign_pieces(line(teacher, "teacher"), low, high)
    nodes = np.unique(np.concatenate([[low, high], cuts, teacher_cuts]))
    wrong = labels_of(nodes, cuts, labels) != labels_of(nodes, teacher_cuts, teacher_labels)
    mass = np.diff(masses(density, nodes))
    return min(1.0, max(0.0, math.fsum(mass[wrong])))


def labels_of(nodes: Array, cuts: Array, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of the cells between sorted nodes, which contain all cuts."""
    return np.asarray(labels[np.searchsorted(cuts, nodes[:-1], side="right")])


def masses(density: Density, x: Array) -> Array:
    """The distribution function at sorted points, checked."""
    values = np.asarray(density.cdf(x), dtype=np.float64)
    if values.shape != x.shape or not np.all((values >= 0.0) & (values <= 1.0)):
        raise InputError(
            f"`density.cdf` gave {values!r} for {x!r}. Masses must be between 0 and 1, one for "
            "each point. Use a density of reluflow.densities, or mend its cdf."
        )
    return values


def support_of(density: Density) -> tuple[float, float]:
    """The ends of the support, checked."""
    if not (hasattr(density, "cdf") and hasattr(density, "support")):
        raise InputError(
            f"`density` is {density!r}, without `cdf` and `support`. Masses cannot be computed "
            "from it. Use a density of reluflow.densities."
        )
    low, high = (float(end) for end in density.support)
    if not low < high or math.isnan(low) or math.isnan(high):
        raise InputError(
            f"`density.support` is ({low:g}, {high:g}), which is not an interval. No mass lies "
            "there. Give two increasing numbers."
        )
    return low, high
