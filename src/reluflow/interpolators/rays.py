r"""Data as rays: what an interpolation problem really depends on.

Networks without bias are positively homogeneous, so point ``(x_i, y_i)`` says the same as
``(x_i / |x_i|, y_i / |x_i|)``. Points on one ray with one label become one; other labels are a
contradiction. Opposite rays need care too: :math:`h(x) - h(-x)` is linear in ``x`` for every such
network, because :math:`\mathrm{relu}(t) - \mathrm{relu}(-t) = t`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import row_norms

_SAME_RAY = 1e-13
_SAME_LABEL = 1e-10


@dataclass(frozen=True)
class Rays:
    """Distinct unit directions in coordinates of their span, with labels of size at most 1.

    Attributes
    ----------
    U : (n, r) array
        Unit rows, r the rank of the points.
    z : (n,) array
        Labels over point norms and over ``scale``.
    basis : (r, d) array
        Orthonormal rows; weights ``w`` here are ``w @ basis`` in the original space.
    scale : float
        Largest of the label over norm (1 if all labels are zero).
    first, norms : (n,) arrays
        Index and norm of the first data point on each ray.
    """

    U: Array
    z: Array
    basis: Array
    scale: float
    first: NDArray[np.intp]
    norms: Array


def rays(data: Dataset) -> Rays:
    """Merge points on one ray, refuse contradictions, scale, and pass to the span of the points."""
    norms = row_norms(data.X)
    units = data.X / norms[:, None]
    labels = data.y / norms
    first = refuse_contradictions(units, labels)
    z = labels[first]
    scale = float(np.abs(z).max()) or 1.0
    reduced, basis = span_coordinates(units[first])
    return Rays(reduced, z / scale, basis, scale, first, norms[first])


def margin_rays(data: Dataset) -> Rays:
    r"""Merge points on one ray for margins; refuse labels that no network separates.

    Of points on one ray the shortest decides: :math:`y\,h(x) \ge 1` says
    :math:`y\,h(x/|x|) \ge 1/|x|`.
    """
    refuse_other_labels(data.y)
    norms = row_norms(data.X)
    units = data.X / norms[:, None]
    first, of_point = _group(units)
    clash = np.flatnonzero(data.y != data.y[first][of_point])
    if len(clash):
        raise InputError(
            f"points {first[of_point[clash[0]]]} and {clash[0]} lie on one ray with opposite "
            "labels. No network without bias separates them. Drop one, or add a bias coordinate."
        )
    members = [np.flatnonzero(of_point == k) for k in range(len(first))]
    nearest = np.array([group[norms[group].argmin()] for group in members], dtype=np.intp)
    _refuse_inseparable(units[nearest], data.y[nearest], nearest)
    z = data.y[nearest] / norms[nearest]
    scale = float(np.abs(z).max())
    reduced, basis = span_coordinates(units[nearest])
    return Rays(reduced, z / scale, basis, scale, nearest, norms[nearest])


@dataclass(frozen=True)
class MeanRays:
    """Rays with the weighted means of the labels on them, and what was merged.

    ``rays.norms`` are root sums of squares of the ``lengths`` (n,) of the points, ``of_point`` (n,)
    their rays.
    """

    rays: Rays
    of_point: NDArray[np.intp]
    lengths: Array


def mean_rays(data: Dataset) -> MeanRays:
    r"""Merge points on one ray for square losses.

    :math:`\sum_i (|x_i| h - y_i)^2` is least at :math:`h = \sum_i |x_i| y_i / \sum_i |x_i|^2`.
    """
    lengths = row_norms(data.X)
    units = data.X / lengths[:, None]
    first, of_point = _group(units)
    together = np.sqrt(np.bincount(of_point, weights=lengths**2))
    z = np.bincount(of_point, weights=lengths * data.y) / together**2
    scale = float(np.abs(z).max()) or 1.0
    reduced, basis = span_coordinates(units[first])
    return MeanRays(Rays(reduced, z / scale, basis, scale, first, together), of_point, lengths)


def refuse_other_labels(y: Array) -> None:
    """Raise unless all labels are 1 or -1."""
    wrong = np.flatnonzero(np.abs(y) != 1.0)
    if len(wrong):
        raise InputError(
            f"label {wrong[0]} is {y[wrong[0]]:g}; margins need labels 1 or -1. Use the sign."
        )


def too_close(problem: Rays) -> str:
    """Name the pair of rays that makes the labels nearly contradictory."""
    apart = np.sqrt(((problem.U[:, None] - problem.U) ** 2).sum(axis=2))
    jump = np.abs(problem.z[:, None] - problem.z) / np.where(apart > 0, apart, np.inf)
    i, j = sorted(int(problem.first[k]) for k in np.unravel_index(jump.argmax(), jump.shape))
    return (
        f"points {i} and {j} differ by {apart.flat[jump.argmax()]:.1e} in direction but have "
        "different labels. A network that tells them apart needs weights beyond the solver's "
        "range. Drop one of them."
    )


def refuse_contradictions(units: Array, labels: Array) -> NDArray[np.intp]:
    """Raise if no network fits ``labels`` at the ``units``; the first point of each ray if any."""
    first, of_point = _group(units)
    _refuse_two_labels(labels, first, of_point)
    z = labels[first]
    _refuse_opposites(units[first], z / (np.abs(z).max() or 1.0), first)
    return first


def span_coordinates(X: Array) -> tuple[Array, Array]:
    r"""Coordinates of the rows in an orthonormal basis of their span: ``X = coordinates @ basis``.

    Numerics
    --------
    Singular values below 1e-13 of the largest are treated as zero, which moves a point by less
    than that fraction of the largest norm.
    """
    if X.shape[1] == 1:
        return np.array(X), np.ones((1, 1))
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    rank = int((sizes > 1e-13 * sizes[0]).sum())
    if rank == X.shape[1]:  # nothing to gain: keep the caller's coordinates, and their zeros
        return np.array(X), np.eye(rank)
    return left[:, :rank] * sizes[:rank], right[:rank]


def _group(units: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First member of each group of equal rays, and the group of each point."""
    first: list[int] = []
    of_point = np.zeros(len(units), dtype=np.intp)
    for i, u in enumerate(units):
        gaps = np.abs(units[first] - u).max(axis=1) if first else np.empty(0)
        near = np.flatnonzero(gaps <= _SAME_RAY)
        of_point[i] = near[0] if len(near) else len(first)
        if not len(near):
            first.append(i)
    return np.array(first, dtype=np.intp), of_point


def _refuse_two_labels(labels: Array, first: NDArray[np.intp], of_point: NDArray[np.intp]) -> None:
    wanted = labels[first][of_point]
    wrong = np.abs(labels - wanted) > _SAME_LABEL * np.maximum(np.abs(labels), np.abs(wanted))
    if wrong.any():
        j = int(np.flatnonzero(wrong)[0])
        i = int(first[of_point[j]])
        raise InputError(
            f"points {i} and {j} lie on one ray but have labels over norms {labels[i]:g} and "
            f"{labels[j]:g}. No network without bias fits both. Drop one, or add a bias coordinate."
        )


def _opposites(units: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of opposite rows: the later ones, and their earlier partners."""
    pairs = [
        (i, int(j))
        for i in range(len(units))
        for j in np.flatnonzero(np.abs(units[:i] + units[i]).max(axis=1, initial=0.0) <= _SAME_RAY)
    ]
    one, other = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return one, other


def _refuse_inseparable(units: Array, y: Array, index: NDArray[np.intp]) -> None:
    """Check that a linear map has the signs of the opposite pairs with opposite labels."""
    from scipy.optimize import linprog

    one, other = _opposites(units)
    differ = y[one] != y[other]
    one, other = one[differ], other[differ]
    if not len(one):
        return
    sides = y[one, None] * units[one]
    found = linprog(
        np.zeros(units.shape[1]), A_ub=-sides, b_ub=-np.ones(len(one)), bounds=(None, None)
    )
    if found.status == 2:
        named = ", ".join(f"({index[j]}, {index[i]})" for i, j in zip(one, other, strict=True))
        raise InputError(
            f"opposite points {named} have labels that no linear map separates. h(x) - h(-x) is "
            "linear for every network without bias, so none does. Drop a pair, or add a bias "
            "coordinate."
        )


def _refuse_opposites(units: Array, z: Array, first: NDArray[np.intp]) -> None:
    """Check that the odd parts ``z(x) - z(-x)`` of opposite pairs are values of a linear map."""
    one, other = _opposites(units)
    if not len(one):
        return
    odd = z[one] - z[other]
    linear = np.linalg.lstsq(units[one], odd, rcond=1e-12)[0]
    gap = np.abs(units[one] @ linear - odd)
    if gap.max() > 1e-9:
        named = ", ".join(f"({first[j]}, {first[i]})" for i, j in zip(one, other, strict=True))
        raise InputError(
            f"opposite points {named} have label differences that no linear map gives (off by "
            f"{gap.max():.3g} of the largest label). h(x) - h(-x) is linear for every network "
            "without bias, so none fits. Drop a pair, or add a bias coordinate."
        )
