r"""Univariate classification data: teachers with chosen zeros, and samples labelled by them.

The setting of Safran, Vardi and Lee, "On the Effective Number of Linear Regions in Shallow
Univariate ReLU Networks" (NeurIPS 2022, arXiv 2205.09072). Points are rows ``(x, 1)``, neurons rows
``(w, b)``; labels are the signs of the teacher, and the sign of zero is -1.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, generator, number, real_array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network

_MAX_ROUNDS = 100


class Samples(Protocol):
    """Anything that draws points on the line, such as the densities of `reluflow.densities`."""

    def sample(self, n: int, seed: int | np.random.Generator) -> NDArray[Any]:
        """``n`` points."""


def teacher_1d(zeros: ArrayLike, *, first_label: int = -1, strict: bool = False) -> Network:
    r"""Return a network whose sign changes exactly at ``zeros``.

    Between zeros the function is a zigzag of slopes +-1 that turns half way:

    .. math:: N(x) = \mathrm{relu}(x - z_1) + \sum_{j \ge 2} 2 (-1)^{j-1}\, \mathrm{relu}(x - c_j),
        \qquad c_j = (z_{j-1} + z_j)/2

    Parameters
    ----------
    zeros : (r,) array
        Strictly increasing places of the sign changes; empty for a constant teacher.
    first_label : {-1, 1}
        The label left of the first zero.
    strict : bool
        False: ``r`` neurons (for r >= 1), and one stretch labelled -1 is a plateau where N = 0: the
        first (``first_label = -1``), the last (+1, odd r) or the second (+1, even r). True:
        ``r + 1`` neurons and N nonzero except at the zeros, on the whole line: the first neuron is
        paired with :math:`-\mathrm{relu}(z_1 - x)`, which continues its line to the left.

    Returns
    -------
    Network
        Changes sign at the zeros and nowhere else.

    Examples
    --------
    >>> teacher = teacher_1d([0.0, 1.0, 2.0])
    >>> teacher.predict([[x, 1.0] for x in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)])
    array([ 0. ,  0. ,  0.5,  0. , -0.5,  0. ,  1. ])

    Numerics
    --------
    The turning points are rounded so that no error accumulates: each zero of the stored network is
    the one asked for to one ulp of the largest (``test_zeros_of_the_stored_network``).
    """
    z = real_array(zeros, "zeros", 1)
    _increasing(z)
    if abs(number(first_label, "first_label")) != 1.0:
        raise InputError(f"`first_label` is {first_label!r}; labels are -1 or 1. Pass one of them.")
    if len(z) == 0:
        return Network([float(first_label)], [[0.0, 1.0]])
    a, W = _zigzag(z)
    if strict:
        return Network(-first_label * np.append(a, -1.0), np.vstack([W, [-1.0, z[0]]]))
    if first_label == -1:
        return Network(a, W)
    if len(z) % 2:
        a, W = _zigzag(-z[::-1])
        return Network(a, W * [-1.0, 1.0])
    a, W = _zigzag(z[1:])
    return Network(np.append(a, 1.0), np.vstack([W, [-1.0, z[0]]]))


def sample_1d(
    teacher: Network, n: int, *, density: Samples, seed: int | np.random.Generator
) -> Dataset:
    r"""Points drawn from a density, sorted and distinct, labelled by the sign of the teacher.

    Parameters
    ----------
    teacher : Network
        With two inputs ``(x, 1)``, such as `teacher_1d`; kept as the teacher of the data.
    n : int
        Number of points.
    density : density of `reluflow.densities`
        Law of the points (anything with ``sample(n, seed)``).
    seed : int or Generator
        Order of draws: ``n`` points; then as many as repeat earlier ones, until all are distinct.

    Returns
    -------
    Dataset
        Rows ``(x, 1)`` with the signs of the teacher, which it keeps.

    Examples
    --------
    >>> from reluflow.densities import uniform
    >>> data = sample_1d(teacher_1d([0.0]), 4, density=uniform(-1, 1), seed=0)
    >>> bool(np.all(data.y == np.where(data.X[:, 0] > 0, 1.0, -1.0)))
    True
    """
    if not isinstance(teacher, Network) or teacher.d != 2:
        got = f"{teacher.d} inputs" if isinstance(teacher, Network) else type(teacher).__name__
        raise InputError(
            f"`teacher` is not a network of inputs (x, 1): got {got}. Use `teacher_1d`, or a "
            "Network with rows (w, b)."
        )
    if not hasattr(density, "sample"):
        raise InputError(
            f"`density` is {density!r}, which cannot be sampled. Use one of reluflow.densities."
        )
    x = _distinct(density, whole(n, "n"), generator(seed))
    X = np.column_stack([x, np.ones(len(x))])
    # a common factor leaves signs alone; without it a tiny teacher would underflow to label -1
    scale = teacher.log_scale + teacher.log_scale_out
    shifted = Network(
        *teacher.mantissa, 0.0, log_scale_out=scale - scale.max(), slope=teacher.slope
    )
    y = np.where(shifted.predict(X) > 0.0, 1.0, -1.0)
    return Dataset(X, y, teacher=teacher, name="sample_1d")


def _zigzag(zeros: Array) -> tuple[Array, Array]:
    """Right-facing neurons, zero left of ``zeros[0]``, rising there, turning between zeros."""
    kinks = [float(zeros[0])]
    zero = Fraction(float(zeros[0]))  # the zero that the stored kinks produce, exactly
    for left, right in pairwise(zeros):
        turn = (zero + Fraction(float(right))) / 2
        kink = float(turn)
        if not left < kink < right:
            raise InputError(
                f"`zeros` {left!r} and {right!r} are so close that no float separates them well. "
                "The teacher cannot turn between them. Move them apart."
            )
        kinks.append(kink)
        zero = 2 * Fraction(kink) - zero
    a = np.append(1.0, 2.0 * (-1.0) ** np.arange(1, len(zeros)))
    return a, np.column_stack([np.ones(len(kinks)), -np.array(kinks)])


def _increasing(zeros: Array) -> None:
    wrong = np.flatnonzero(np.diff(zeros) <= 0.0)
    if len(wrong):
        k = int(wrong[0])
        raise InputError(
            f"`zeros` does not increase: zeros[{k + 1}] = {zeros[k + 1]:g} follows {zeros[k]:g}. "
            "The sign can change once at each place. Sort them and drop repeats."
        )


def _distinct(density: Samples, n: int, rng: np.random.Generator) -> Array:
    x = np.unique(real_array(density.sample(n, rng), "sample", 1))
    for _ in range(_MAX_ROUNDS):
        if len(x) == n:
            return x
        more = real_array(density.sample(n - len(x), rng), "sample", 1)
        x = np.unique(np.concatenate([x, more]))
    raise InputError(
        f"the density yielded only {len(x)} distinct floats after {_MAX_ROUNDS} rounds; {n} are "
        "asked for. Points must differ. Widen its support or use fewer points."
    )
