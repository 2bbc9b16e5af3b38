r"""Where dependent planes meet (the origin, above all): which way a neuron goes on.

Near such a place the pull depends on the direction ``v`` from it alone: with output weight and
forces frozen, ``v' = a g(v)`` is constant on cones. Descent with a small step passes the place at a
distance of the order of the step and then follows this *cone flow*, so the neuron does the same:
from just past the place in the direction of arrival, across planes and along them, until it moves
away for good or is back. In the second case it rests there (it slides on all planes) for as long as
0 lies in the convex hull of the pulls that some direction realises; when it no longer does, the
neuron leaves along the least element of that hull.

Starts at a comparable distance may lead elsewhere. Then the solution is not unique: the way found
is taken, and the run records a ``branch``.

Numerics
--------
Piecewise linear, exact up to rounding; a handful of events. Realised patterns are enumerated, by
angles where the planes span two dimensions and by edges otherwise; beyond `EDGES` edges directions
are drawn, and a cell that none of them meets is left out of the hull.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import Modes
from reluflow.kernels.flow import planes as kernel
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE

# directions and distances of this relative size are zero: rounding of products
TINY = 1e-10
# the cone flow is back at the place, or away from it, when it has shrunk or grown this much
BACK, AWAY = 1e-7, 1e7
# a neuron rests until the least pull is this share of the forces: it grows from zero, so what is
# missed by then is of second order, and its direction is well above rounding
REST = 1e-6
# planes that span three dimensions or more: up to so many edges are looked at, all of them; beyond,
# so many directions are drawn
EDGES, DIRECTIONS = 2000, 4096
# starts beside the one of arrival, to see whether they lead elsewhere
BESIDE = 6


class Way(NamedTuple):
    """How a neuron goes on: its modes, whether other ways exist, where it is (nan: at the place).

    ``offset`` is a direction to be displaced by, where the cone flow leaves by a spiral.
    """

    row: Modes
    unique: bool
    offset: Array | None


@dataclass
class Crossroads:
    """One neuron where planes meet; ``a`` its output weight, ``low, high`` the pulls of planes."""

    problem: Problem
    a: float
    low: Array
    high: Array

    def choose(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Way:
        """Modes at the planes ``on``, from modes elsewhere and the direction of arrival."""
        gram = self.problem.planes.gram
        if kernel.independent(gram, np.flatnonzero(on)):
            return self._independent(row, on, direction)
        if direction is None or self._across(on, direction).max(initial=0.0) <= TINY:
            least = self.least(row, on)
            if np.linalg.norm(least) <= TINY * self._noise():
                return Way(np.where(on, SLIDE, row).astype(np.int8), True, None)
            direction = self.a * least
        direction = direction / np.linalg.norm(direction)
        way = self._follow(row, on, direction)
        rng = np.random.default_rng(0)
        for _ in range(BESIDE if way.unique else 0):
            aside = rng.normal(size=len(direction)) / np.sqrt(len(direction))
            other = self._follow(row, on, direction + aside)
            if not np.array_equal(other.row, way.row):
                return way._replace(unique=False)
        return way

    def least(self, row: Modes, on: NDArray[np.bool_]) -> Array:
        """The least element of the hull of pulls over the patterns at ``on`` that are realised.

        Only the part across the planes: along them a neuron moves freely.
        """
        planes = self.problem.planes
        basis, sides = self._cells(on)
        away = ~on
        f = np.where(row == ABOVE, self.high, self.low)[away]
        here = np.where(sides, self.high[on], self.low[on])
        pulls = f @ planes.U[away] + here @ planes.U[on]
        return np.asarray(least_element(pulls @ basis) @ basis.T)

    def rests(self, row: Modes) -> bool:
        """Whether a neuron that slides on dependent planes may stay on all of them."""
        on = row == SLIDE
        return bool(np.linalg.norm(self.least(row, on)) <= REST * self._noise())

    # ------------------------------------------------------------------ the cone flow

    def _follow(self, row: Modes, on: NDArray[np.bool_], direction: Array) -> Way:
        """The cone flow from ``direction`` until it leaves the planes ``on`` or is back."""
        U = self.problem.planes.U
        place = direction.copy()
        z = U @ place
        row = row.copy()
        near = on & (np.abs(z) <= TINY * np.linalg.norm(place))
        row[on & ~near] = np.where(z > 0, ABOVE, BELOW)[on & ~near]
        unique = True
        if near.any():
            row, unique, _ = self.choose(row, near, None)
        begun = np.linalg.norm(U[on] @ place)
        for _ in range(40 * len(on) + 40):
            velocity = self.a * self._pull(row)
            # the side of a plane it is on is that of its row: a product at rounding has any sign
            side = np.where(row == ABOVE, 1.0, -1.0)
            z, rate = side * np.maximum(side * (U @ place), 0.0), U @ velocity
            speed = np.linalg.norm(velocity) + 1e-300
            falls = on & (row < SLIDE) & (side * rate < -TINY * speed)
            if not falls.any():
                return Way(row, unique, None)
            time = float(np.min(-z[falls] / rate[falls]))
            place = place + time * velocity
            size = np.linalg.norm(U[on] @ place)
            if size <= BACK * begun:
                return Way(np.where(on, SLIDE, row).astype(np.int8), unique, None)
            if size >= AWAY * begun:
                return Way(row, unique, place / np.linalg.norm(place))
            hit = falls & (np.abs(z + time * rate) <= TINY * (np.abs(z) + size))
            held = on & (row == SLIDE)
            row, one, _ = self.choose(row, hit | held, velocity)
            unique = unique and one
        return Way(row, False, place / np.linalg.norm(place))

    def _independent(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Way:
        """The rule of independent planes; see `kernels.flow.planes.decide`."""
        arrival = np.zeros(len(row))
        if direction is not None:
            arrival = np.where(row < SLIDE, self.problem.planes.U @ direction, 0.0)
        row = row.copy()
        outcome = kernel.decide(
            self.a, row, on, arrival, self.low, self.high, self.problem.planes.gram
        )
        return Way(row, outcome != kernel.TIE, None)

    # ------------------------------------------------------------------ pulls and patterns

    def _pull(self, row: Modes) -> Array:
        planes = self.problem.planes
        return np.asarray(kernel.multipliers(self.low, self.high, row, planes.gram) @ planes.U)

    def _noise(self) -> float:
        """Size of the forces that make up a pull."""
        return float(np.abs(self.low).sum() + np.abs(self.high).sum()) + 1e-300

    def _span(self, on: NDArray[np.bool_]) -> Array:
        """Orthonormal basis (d, r) of the normals of the planes ``on``."""
        _, sizes, basis = np.linalg.svd(self.problem.planes.U[on], full_matrices=False)
        return np.asarray(basis[sizes > 1e-7 * sizes[0]].T)

    def _across(self, on: NDArray[np.bool_], direction: Array) -> Array:
        size = float(np.linalg.norm(direction)) + 1e-300
        return np.asarray(np.abs(self.problem.planes.U[on] @ direction) / size)

    def _cells(self, on: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Basis of the normals of ``on``, and the sides (k, ..) that some direction is on.

        They depend on the planes alone and are found once.
        """
        key = on.tobytes()
        if key not in self.problem.cells:
            basis = self._span(on)
            normals = self.problem.planes.U[on] @ basis
            directions = _sectors(normals) if normals.shape[1] <= 2 else _corners(normals)
            sides = np.unique(directions @ normals.T > 0.0, axis=0)
            self.problem.cells[key] = basis, sides
        return self.problem.cells[key]


def _sectors(normals: Array) -> Array:
    """One direction in each sector into which lines with these normals cut the plane."""
    if normals.shape[1] == 1:
        return np.array([[1.0], [-1.0]])
    turns = np.arctan2(normals[:, 1], normals[:, 0]) + 0.5 * np.pi
    edges = np.sort(np.concatenate([turns, turns + np.pi]) % (2.0 * np.pi))
    gaps = np.diff(np.append(edges, edges[0] + 2.0 * np.pi))
    middle = (edges + 0.5 * gaps)[gaps > 1e-13]
    return np.column_stack([np.cos(middle), np.sin(middle)])


def _corners(normals: Array) -> Array:
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
