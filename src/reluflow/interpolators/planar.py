r"""Points on a line with a bias: activation patterns, and the exact largest ReLU sum.

Points are :math:`p_i = (x_i, 1)` with increasing x. A neuron is active on a suffix (kink to the
left of it, slope up), on a prefix, or on all points: 2n - 1 non-empty patterns, each an arc of
directions between two kinks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array


@dataclass(frozen=True)
class Line:
    """Labelled points by increasing ``x``; unit rows ``points`` along (x, 1) and their norms."""

    x: Array
    y: Array
    points: Array
    norms: Array


def line(x: Array, y: Array) -> Line:
    """Points (x, 1) with labels +-1, for increasing ``x``."""
    norms = np.hypot(x, 1.0)
    return Line(x, y, np.stack([x / norms, 1.0 / norms], axis=1), norms)


@dataclass(frozen=True)
class Arcs:
    """Patterns as arcs: n suffixes (starting at 0, 1, ...), then n - 1 prefixes (ending at 0, ...).

    ``first`` and ``second`` (2n - 1, 2) are inward normals of the two ends: w lies in the arc iff
    both products are non-negative.
    """

    first: Array
    second: Array


def arcs(points: Array) -> Arcs:
    """Arcs of the patterns of unit rows ``points``, sorted along the line."""
    suffix_end = np.concatenate([points[-1:], -points[:-1]])
    return Arcs(np.concatenate([points, points[:-1]]), np.concatenate([suffix_end, -points[1:]]))


def suffix_prefix_sums(vectors: Array) -> Array:
    """Sums of the rows over the patterns, in the order of `Arcs`."""
    return np.concatenate([np.cumsum(vectors[::-1], axis=0)[::-1], np.cumsum(vectors, axis=0)[:-1]])


def kinks(points: Array) -> Array:
    """Unit directions that vanish at each point and grow to the right of it."""
    return np.stack([points[:, 1], -points[:, 0]], axis=1)


def sum_peaks(points: Array, lam: Array, threshold: float) -> Array:
    r"""Directions inside arcs where :math:`|\sum_i \lambda_i \mathrm{relu}(p_i \cdot w)|` peaks.

    On an arc the sum is :math:`\xi_P \cdot w`, largest at :math:`\pm\xi_P/|\xi_P|` if that lies in
    the arc. Only peaks above ``threshold`` are returned.

    Numerics
    --------
    Directions within 1e-12 of an arc count as inside: the sum there differs from
    :math:`|\xi_P|` by rounding only.
    """
    ends = arcs(points)
    xi = suffix_prefix_sums(lam[:, None] * points)
    sizes = np.sqrt(np.einsum("ij,ij->i", xi, xi))
    one = np.einsum("ij,ij->i", xi, ends.first)
    two = np.einsum("ij,ij->i", xi, ends.second)
    found = []
    for sign in (1.0, -1.0):
        inside = (sign * one >= -1e-12 * sizes) & (sign * two >= -1e-12 * sizes)
        high = inside & (sizes > threshold)
        found.append(sign * xi[high] / sizes[high, None])
    return np.concatenate(found)


def largest_sum(points: Array, lam: Array) -> float:
    r"""Exact :math:`\max_{|w| \le 1} |\sum_i \lambda_i \mathrm{relu}(p_i \cdot w)|`.

    The largest of the peaks inside arcs and the values at the kinks, so finitely many directions
    decide.

    Numerics
    --------
    O(n); safe to rounding (1e-15 of ``|lam|_1``).
    """
    n = len(points)
    peaks = sum_peaks(points, lam, 0.0)
    xi = suffix_prefix_sums(lam[:, None] * points)[:n]
    at = kinks(points)
    right = np.einsum("ij,ij->i", xi, at)
    left = np.einsum("ij,ij->i", xi - lam @ points, at)
    tops = np.abs(np.concatenate([right, left, np.maximum(peaks @ points.T, 0.0) @ lam]))
    return float(tops.max())
