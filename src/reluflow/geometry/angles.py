r"""Angles between neurons, to rounding of the weights themselves.

For rows ``p`` and ``q`` let :math:`c = |p|/|q|` and :math:`e = c q - p`, an error-free product
followed by a difference that is exact when the rows are close. Then

.. math:: \tan \angle(p, q) = \frac{|e_\perp|}{|p| + e \cdot p / |p|}, \qquad
          e_\perp = e - \frac{e \cdot p}{|p|^2} p .

The arc cosine of a dot product has a floor near 1e-8, differences of normalised rows one near
1e-16; this form has one near 1e-31.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.geometry.normal import check_network
from reluflow.network import Network, row_norms

# pairs examined at full accuracy once all others are known to be narrower (see `max_angle`)
_CANDIDATES = 4096
_BLOCK = 1 << 22

Subset = Sequence[int] | NDArray[Any] | None


def pairwise_angles(net: Network, subset: Subset = None) -> Array:
    """Return the symmetric matrix of angles between hidden weight vectors, in radians.

    Parameters
    ----------
    net : Network
        The network; its scales play no role.
    subset : sequence of int or boolean mask, optional
        The neurons to compare; all of them if not given.

    Returns
    -------
    (k, k) array
        Zero diagonal; nan in the rows and columns of neurons whose hidden weights are zero.

    Examples
    --------
    >>> float(pairwise_angles(Network([1.0, 1.0], [[1.0, 0.0], [1.0, 1e-12]]))[0, 1])
    1e-12

    Numerics
    --------
    Relative error below 1e-15 for angles from 1e-15 to pi, absolute error 1e-31 below that
    (``tests/geometry/test_angles.py``, 50 digits). O(k^2 d) with a constant near 25.
    """
    chosen = _choose(net, subset)
    rows = net.mantissa.W[chosen]
    angles = np.full((len(chosen), len(chosen)), np.nan)
    alive = np.flatnonzero(rows.any(axis=1))
    rows = _ordinary(rows[alive])
    angles[alive, alive] = 0.0
    for k, row in enumerate(_upper_rows(rows)):
        angles[alive[k], alive[k + 1 :]] = angles[alive[k + 1 :], alive[k]] = row
    return angles


def mean_angle(net: Network, subset: Subset = None) -> float:
    """Return the mean angle over pairs of different neurons; zero neurons are left out.

    Parameters
    ----------
    net : Network
        Its neurons are compared.
    subset : (k,) int array or (m,) bool array, optional
        These neurons only.

    Returns
    -------
    float
        Radians, 0 for a single neuron.

    Examples
    --------
    >>> float(mean_angle(Network([1.0, 1.0], [[1.0, 0.0], [0.0, 2.0]])) / np.pi)
    0.5

    Numerics
    --------
    As `pairwise_angles`, without storing the matrix; 0 for a single neuron.
    """
    rows = _alive(net, subset)
    pairs = len(rows) * (len(rows) - 1) // 2
    total = math.fsum(float(row.sum()) for row in _upper_rows(rows))
    return total / pairs if pairs else 0.0


def max_angle(net: Network, subset: Subset = None) -> float:
    """Return the largest angle between two neurons, in radians; zero neurons are left out.

    Parameters
    ----------
    net : Network
        The network; its scales play no role.
    subset : sequence of int or boolean mask, optional
        The neurons to compare; all of them if not given.

    Returns
    -------
    float
        Radians, 0 for a single neuron.

    Examples
    --------
    >>> max_angle(Network([1.0, 1.0], [[1.0, 0.0], [1.0, 3e-9]]), subset=[0, 1])
    3e-09

    Numerics
    --------
    Relative error below 1e-15 down to angles of 1e-15. Chords come from one product of matrices,
    taken relative to the first neuron so that a tight bundle loses nothing; the widest pairs are
    then computed again as in `pairwise_angles` (at most 4096 of those that tie to 1e-11).
    O(k^2 d) by matrix products. Angles that are lost already in the weights (below 1e-16 of their
    size) are kept by ``Trajectory.log_max_angle``.
    """
    rows = _alive(net, subset)
    first, second = _widest(_offsets(rows))
    return float(_angles(rows[first], rows[second]).max()) if len(first) else 0.0


def _choose(net: Network, subset: Subset) -> NDArray[np.intp]:
    """Return indices of neurons, checked."""
    width = check_network(net).width
    if subset is None:
        return np.arange(width)
    raw = np.asarray(subset)
    if raw.dtype == bool and raw.shape == (width,):
        raw = np.flatnonzero(raw)
    if raw.ndim != 1 or len(raw) == 0 or raw.dtype.kind not in "iu":
        raise InputError(
            f"`subset` has shape {raw.shape} and dtype {raw.dtype}; angles need at least one "
            f"neuron. Pass indices, or a mask of length {width} with a True in it."
        )
    outside = raw[(raw < 0) | (raw >= width)]
    if len(outside):
        raise InputError(
            f"`subset` names neuron {outside[0]} but there are {width}, counted from 0. "
            "Leave it out."
        )
    return raw.astype(np.intp)


def _alive(net: Network, subset: Subset) -> Array:
    chosen = _choose(net, subset)
    rows = net.mantissa.W[chosen]
    rows = rows[rows.any(axis=1)]
    if len(rows) == 0:
        raise InputError(
            "every neuron asked for has zero hidden weights. A zero vector has no direction, so "
            "no angle exists. Choose neurons with non-zero weights."
        )
    return _ordinary(rows)


def _ordinary(rows: Array) -> Array:
    """Scale rows by powers of two, exactly, to largest entries in [0.5, 1)."""
    if len(rows) == 0:
        return rows
    _, exponent = np.frexp(np.abs(rows).max(axis=1))
    return np.asarray(np.ldexp(rows, -exponent[:, None]))


def _upper_rows(rows: Array) -> Iterator[Array]:
    """Yield the angles of row k with all later rows, for k = 0, 1, ..."""
    for k in range(len(rows) - 1):
        later = rows[k + 1 :]
        yield _angles(np.broadcast_to(rows[k], later.shape), later)


def _residual(p: Array, q: Array) -> tuple[Array, Array]:
    """Return the part of ``c q`` across ``p`` and, in units of |p|, along it (c = |p|/|q|)."""
    p_norm = row_norms(p)
    c = (p_norm / row_norms(q))[:, None]
    product = c * q
    # Dekker's product: low is exactly c q - product
    c_high, q_high = _high(c), _high(q)
    c_low, q_low = c - c_high, q - q_high
    low = ((c_high * q_high - product) + c_high * q_low + c_low * q_high) + c_low * q_low
    e = (product - p) + low
    along = np.einsum("ij,ij->i", e, p) / p_norm**2
    return (e - along[:, None] * p) / p_norm[:, None], 1.0 + along


def _high(x: Array) -> Array:
    """Return the upper 26 bits of each number (Veltkamp splitting)."""
    carried = 134217729.0 * x
    return np.asarray(carried - (carried - x))


def _angles(p: Array, q: Array) -> Array:
    """Angles between corresponding rows."""
    obtuse = np.einsum("ij,ij->i", p, q) < 0
    across, along = _residual(p, np.where(obtuse[:, None], -q, q))
    angles = np.arctan2(row_norms(across), along)
    return np.where(obtuse, np.pi - angles, angles)


def _offsets(rows: Array) -> Array:
    """Unit rows minus the first unit row, accurate relative to the widest of them."""
    first = np.broadcast_to(rows[0], rows.shape)
    across, along = _residual(first, rows)
    angles = np.arctan2(row_norms(across), along)
    # cos - 1 from the angle: the parallel part of the residual is only right to 1e-16
    return np.asarray(across - np.outer(2 * np.sin(angles / 2) ** 2, rows[0] / row_norms(rows)[0]))


def _widest(offsets: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs whose chord ties with the longest one; none if all rows coincide."""
    top = float(np.abs(offsets).max())
    if top == 0.0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    points = offsets / top
    squares = np.einsum("ij,ij->i", points, points)
    step = max(1, _BLOCK // len(points))
    blocks = range(0, len(points), step)

    def chords(start: int) -> Array:
        block = slice(start, start + step)
        return np.asarray(squares[block, None] + squares - 2 * points[block] @ points.T)

    longest = max(float(chords(start).max()) for start in blocks)
    found: list[tuple[Array, Array]] = []
    for start in blocks:
        squared = chords(start)
        i, k = np.nonzero(squared >= longest * (1 - 1e-11))
        best = np.argsort(-squared[i, k], kind="stable")[: 2 * _CANDIDATES]
        found.append((np.stack([i[best] + start, k[best]]), squared[i[best], k[best]]))
    pairs = np.concatenate([pair for pair, _ in found], axis=1)
    length = np.concatenate([squared for _, squared in found])
    best = np.argsort(-length, kind="stable")[: 2 * _CANDIDATES]
    return pairs[0, best], pairs[1, best]
