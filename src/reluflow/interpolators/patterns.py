r"""Activation patterns: the chambers of the arrangement of hyperplanes :math:`u_i \cdot w = 0`.

A pattern is the boolean row :math:`(u_i \cdot w > 0)_i` of some ``w`` off all hyperplanes.
``n`` points of rank ``r`` in general position have :math:`2\sum_{k<r}\binom{n-1}{k}` of them.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array

Patterns = NDArray[np.bool_]

_ON_HYPERPLANE = 1e-10


def chamber_bound(n: int, r: int) -> int:
    """Largest number of patterns of ``n`` points of rank ``r`` (attained in general position)."""
    return 2 * sum(comb(n - 1, k) for k in range(min(r, n)))


def enumerable(U: Array, limit: int = 1_000_000) -> bool:
    """Whether `all_patterns` needs at most ``limit`` rows of work."""
    n, r = U.shape
    if r == n:
        return bool(n <= 16)
    return bool(r <= 2 or comb(n, r - 1) << r <= limit)


def all_patterns(U: Array) -> Patterns:
    r"""Every activation pattern of the unit rows ``U`` (n, r) of rank r, one a row, sorted.

    Each chamber has a vertex, a ray on which r - 1 independent hyperplanes meet; around it the
    hyperplanes through the ray form an arrangement of one dimension less. So the chambers are
    found by listing the rays and, for each, the chambers of the smaller arrangement.

    Numerics
    --------
    A point within 1e-10 of a ray's hyperplane counts as through it; chambers thinner than that
    may be missed, which moves a supremum over directions by that fraction of ``|lam|_1``.
    O(C(n, r-1) 2^r n); 2^n when n = r.

    Examples
    --------
    >>> all_patterns(np.eye(2)).astype(int)
    array([[0, 0],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    r = U.shape[1]
    lines, of_point, orientation = _lines(U)
    if len(lines) == r:
        on_lines = ((np.arange(2**r)[:, None] >> np.arange(r)[::-1]) & 1).astype(bool)
    else:
        on_lines = _planar(lines) if r == 2 else _from_rays(lines)
    signs = on_lines[:, of_point]
    return _sorted(np.where(orientation > 0, signs, ~signs))


def pattern_of(U: Array, w: Array, *, boundary: bool = False) -> NDArray[np.bool_]:
    """Pattern of the direction ``w``; points on its boundary take the value ``boundary``."""
    t = U @ w
    on = np.abs(t) <= 1e-9 * np.sqrt(w @ w)
    return np.asarray(np.where(on, boundary, t > 0))


def _lines(U: Array) -> tuple[Array, NDArray[np.intp], Array]:
    """Rows up to sign: the lines, the line of each row, and the row's orientation on it."""
    chosen: list[int] = []
    of_point = np.zeros(len(U), dtype=np.intp)
    orientation = np.ones(len(U))
    for i, u in enumerate(U):
        lines = U[chosen]
        same = np.abs(lines - u).max(axis=1, initial=0.0) <= _ON_HYPERPLANE
        opposite = np.abs(lines + u).max(axis=1, initial=0.0) <= _ON_HYPERPLANE
        found = np.flatnonzero(same | opposite) if chosen else np.empty(0, dtype=np.intp)
        of_point[i] = found[0] if len(found) else len(chosen)
        if len(found):
            orientation[i] = 1.0 if same[found[0]] else -1.0
        else:
            chosen.append(i)
    return U[chosen], of_point, orientation


def _planar(lines: Array) -> Patterns:
    """Chambers in the plane: the arcs between sorted normals of the lines."""
    angles = np.arctan2(lines[:, 1], lines[:, 0]) + np.pi / 2
    ends = np.sort(np.mod(np.concatenate([angles, angles + np.pi]), 2 * np.pi))
    middles = (ends + np.append(ends[1:], ends[0] + 2 * np.pi)) / 2
    inside = np.stack([np.cos(middles), np.sin(middles)], axis=1)
    return np.asarray(inside @ lines.T > 0)


def _from_rays(lines: Array) -> Patterns:
    """Chambers of distinct hyperplanes of rank >= 3, by vertices."""
    n, r = lines.shape
    subsets = np.array(list(combinations(range(n), r - 1)))
    # the ray of a subset: the last right singular vector, unique when the subset has full rank
    _, sizes, right = np.linalg.svd(lines[subsets], full_matrices=True)
    independent = sizes[:, -1] > _ON_HYPERPLANE
    subsets, vertices = subsets[independent], right[independent, -1]
    products = vertices @ lines.T
    on = np.abs(products) <= _ON_HYPERPLANE
    on[np.arange(len(subsets))[:, None], subsets] = True
    simple = on.sum(axis=1) == r - 1
    found = [_around_simple(products[simple], subsets[simple])]
    seen: set[bytes] = set()
    for vertex, through, product in zip(
        vertices[~simple], on[~simple], products[~simple], strict=True
    ):
        if through.tobytes() in seen:
            continue
        seen.add(through.tobytes())
        found.append(_around(lines, vertex, through, product))
    return _sorted(np.concatenate(found))


def _around_simple(products: Array, subsets: NDArray[np.intp]) -> Patterns:
    """Chambers at vertices on exactly r - 1 hyperplanes: any signs there, fixed signs elsewhere."""
    count, n = products.shape
    k = subsets.shape[1]
    both = np.concatenate([products > 0, products < 0])
    places = np.concatenate([subsets, subsets])
    local = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(bool)
    patterns = np.repeat(both, 2**k, axis=0)
    rows = np.arange(2 * count * 2**k)[:, None]
    patterns[rows, np.repeat(places, 2**k, axis=0)] = np.tile(local, (2 * count, 1))
    return _sorted(patterns) if count else patterns.reshape(0, n)


def _around(lines: Array, vertex: Array, through: NDArray[np.bool_], product: Array) -> Patterns:
    """Chambers at a vertex on more hyperplanes: those of the arrangement across the vertex."""
    across = np.linalg.svd(vertex[None, :])[2][1:]  # basis of the complement of the vertex
    normals = lines[through] @ across.T
    local = all_patterns(normals / np.linalg.norm(normals, axis=1)[:, None])
    patterns = np.tile(product > 0, (2 * len(local), 1))
    patterns[len(local) :] = product < 0
    patterns[:, through] = np.concatenate([local, local])
    return patterns


def _sorted(patterns: Patterns) -> Patterns:
    """Distinct rows in lexicographic order."""
    packed = np.packbits(patterns, axis=1)
    as_item = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, index = np.unique(as_item, return_index=True)
    return patterns[index]
