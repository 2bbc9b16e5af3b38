r"""Cells into which planes through the origin cut a space, and the least element of a hull.

A direction in every cell is found by angles in two dimensions and beside edges otherwise; beyond
`EDGES` edges directions are drawn, and a cell that none of them meets is missed.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np

from reluflow.checks import Array

# up to so many edges are looked at, all of them; beyond, so many directions are drawn
EDGES, DIRECTIONS = 2000, 4096


def sectors(normals: Array) -> Array:
    """One direction in each sector into which lines with these normals cut the plane."""
    if normals.shape[1] == 1:
        return np.array([[1.0], [-1.0]])
    turns = np.arctan2(normals[:, 1], normals[:, 0]) + 0.5 * np.pi
    edges = np.sort(np.concatenate([turns, turns + np.pi]) % (2.0 * np.pi))
    gaps = np.diff(np.append(edges, edges[0] + 2.0 * np.pi))
    middle = (edges + 0.5 * gaps)[gaps > 1e-13]
    return np.column_stack([np.cos(middle), np.sin(middle)])


def corners(normals: Array) -> Array:
    """Directions in all cells of planes through the origin that span three dimensions or more.

    Every cell has an edge, where all planes but one dimension's worth meet: the directions beside
    an edge, on all sides of its planes, are in all cells. Beyond `EDGES` edges some are drawn.
    """
    k, r = normals.shape
    rng = np.random.default_rng(0)
    if comb(k, r - 1) > EDGES:
        return rng.normal(size=(DIRECTIONS, r))
    signs = np.array(list(product((-1.0, 1.0), repeat=r - 1)))
    found = [rng.normal(size=(64, r))]
    for some in combinations(range(k), r - 1):
        own = normals[list(some)]
        _, sizes, basis = np.linalg.svd(own)
        if sizes[-1] > 1e-9:
            aside = 1e-6 * signs @ np.linalg.pinv(own).T
            found += [basis[-1] + aside, aside - basis[-1]]
    return np.concatenate(found)


def least_element(points: Array) -> Array:
    """The point of least norm in the convex hull of ``points`` (k, r): Wolfe's algorithm.

    Numerics
    --------
    Finite; ends when no point is nearer to the origin along the one found than 1e-12 of the
    largest squared norm. Wolfe, Finding the nearest point in a polytope, 1976.
    """
    scale = float((points**2).sum(axis=1).max())
    if scale == 0.0:
        return np.zeros(points.shape[1])
    chosen = [int((points**2).sum(axis=1).argmin())]
    weights = np.ones(1)
    for _ in range(50 * len(points) + 50):
        x = weights @ points[chosen]
        best = int((points @ x).argmin())
        if points[best] @ x > x @ x - 1e-12 * scale or best in chosen:
            break
        chosen.append(best)
        weights = np.append(weights, 0.0)
        while True:
            affine = _affine_least(points[chosen])
            if affine.min() > 1e-14:
                weights = affine
                break
            falls = affine < weights
            share = float(np.min(weights[falls] / (weights - affine)[falls], initial=1.0))
            weights = weights + share * (affine - weights)
            keep = weights > 1e-14
            if keep.all() or not keep.any():
                break
            chosen = [c for c, k in zip(chosen, keep, strict=True) if k]
            weights = weights[keep] / weights[keep].sum()
    return np.asarray(weights @ points[chosen])


def _affine_least(points: Array) -> Array:
    """Weights, of sum one, of the least point in the affine hull."""
    k = len(points)
    matrix = np.ones((k + 1, k + 1))
    matrix[0, 0] = 0.0
    matrix[1:, 1:] = points @ points.T
    scale = max(float(np.trace(matrix[1:, 1:])) / k, 1e-300)
    matrix[1:, 1:] /= scale
    right = np.zeros(k + 1)
    right[0] = 1.0
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-14)[0][1:])
