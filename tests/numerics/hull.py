r"""The realisable pulls on a neuron at rest, and whether zero is among their mixtures.

For forces ``c`` (n,) and points ``X`` (n, d) the pull in a direction u is
:math:`g(u) = \sum_{i : x_i \cdot u > 0} c_i x_i`. A neuron at w = 0 may rest only if 0 lies in the
convex hull of all pulls. Which sets of points a direction makes active depends on X alone: that is
a list of cells, found by angles in the plane and by linear programs in general.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls

PARALLEL = 1e-12


def lines(X):
    """Unit normals (k, d) of the distinct planes, the plane of each point, and its side +-1."""
    units, plane, side = [], [], []
    for x in X:
        u = x / np.linalg.norm(x)
        for k, other in enumerate(units):
            sign = np.sign(u @ other)
            if np.linalg.norm(u - sign * other) <= PARALLEL:
                plane.append(k)
                side.append(sign)
                break
        else:
            units.append(u)
            plane.append(len(units) - 1)
            side.append(1.0)
    return np.array(units), np.array(plane), np.array(side)


def cells(X):
    """All sets of points that some direction makes active and no direction on a plane: (cells, n).

    In one and two dimensions by angles, otherwise by `cells_by_programs`.
    """
    if X.shape[1] == 1:
        return np.array([X[:, 0] > 0, X[:, 0] < 0])
    return cells_by_angles(X) if X.shape[1] == 2 else cells_by_programs(X)


def cells_by_angles(X):
    """The cells of points in the plane: one between any two neighbouring boundary rays."""
    normals = np.arctan2(X[:, 1], X[:, 0])
    rays = np.sort(np.concatenate([normals + np.pi / 2, normals - np.pi / 2]) % (2 * np.pi))
    gaps = np.diff(np.append(rays, rays[0] + 2 * np.pi))
    middles = (rays + gaps / 2)[gaps > PARALLEL]
    return np.column_stack([np.cos(middles), np.sin(middles)]) @ X.T > 0


def cells_by_programs(X):
    """The cells in any dimension: side by side of each plane, kept while a direction exists."""
    units, plane, side = lines(X)
    partial = [np.array([1.0])]
    for k in range(1, len(units)):
        partial = [
            signs
            for start in partial
            for signs in (np.append(start, 1.0), np.append(start, -1.0))
            if _has_direction(signs[:, None] * units[: k + 1])
        ]
    above = np.array([signs[plane] * side > 0 for signs in partial])
    return np.concatenate([above, ~above])


def _has_direction(rows):
    """Whether some u has ``rows @ u >= 1``."""
    k, d = rows.shape
    answer = linprog(np.zeros(d), A_ub=-rows, b_ub=-np.ones(k), bounds=[(None, None)] * d)
    return answer.status == 0


def pulls(active, c, X):
    """The pulls (cells, d) of the given cells."""
    return active @ (c[:, None] * X)


def least_element(points):
    """The point of least norm in the convex hull of the rows.

    With weights scaled by s the residual of ``[P^T; 1^T] w = [0; 1]`` is
    ``s^2 |p|^2 + (1 - s)^2``, least ``|p|^2 / (1 + |p|^2)``: it grows with ``|p|``, so nonnegative
    least squares finds the mixture of least norm.
    """
    size = np.abs(points).max()
    if size == 0.0:
        return np.zeros(points.shape[1])
    rows = np.vstack([points.T / size, np.ones(len(points))])
    weights, _ = nnls(rows, np.append(np.zeros(points.shape[1]), 1.0))
    return weights @ points / weights.sum()


def zero_is_outside(points, margin=1e-9):
    """Whether a plane through 0 has all rows strictly on one side, by ``margin`` of their size.

    In the plane by angles (all within less than half a turn), otherwise by a linear program; the
    decision does not use `least_element`.
    """
    size = np.linalg.norm(points, axis=1).max()
    if size == 0.0 or np.linalg.norm(points, axis=1).min() <= margin * size:
        return False
    if points.shape[1] == 1:
        return bool((points > margin * size).all() or (points < -margin * size).all())
    if points.shape[1] == 2:
        angles = np.sort(np.arctan2(points[:, 1], points[:, 0]))
        gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
        return bool(gaps.max() > np.pi + margin)
    d = points.shape[1]
    rows = np.column_stack([-points / size, np.ones(len(points))])
    goal = np.append(np.zeros(d), -1.0)
    answer = linprog(goal, A_ub=rows, b_ub=np.zeros(len(points)), bounds=[(-1, 1)] * d + [(0, 1)])
    return bool(-answer.fun > margin)
