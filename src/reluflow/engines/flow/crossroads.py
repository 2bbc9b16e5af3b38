r"""Where dependent planes meet (the origin, above all): which way a neuron goes on.

Near such a place the pull depends on the direction ``v`` from it alone: with output weight and
forces frozen, ``v' = a g(v)`` is constant on cones. Descent with a small step passes the place at a
distance of the order of the step and then follows this *cone flow*, so the neuron does the same:
from just past the place in the direction of arrival, across planes and along them, until it moves
away for good or is back. In the second case it rests there (it slides on all planes) for as long as
0 lies in the convex hull of the pulls that some direction realises, and the cone flow comes back
from wherever descent hovers around the place. If 0 has left the hull, the neuron leaves along its
least element; if the cone flow leads off, by that way.

Starts at a comparable distance may lead elsewhere, and where 0 lies in the hull to rest would be a
solution too. Then the solution is not unique: the way found is taken, and the run records a
``branch``.

Numerics
--------
Piecewise linear, exact up to rounding; a handful of events. For the patterns that some direction
realises see `cells`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.cells import corners, least_element, sectors
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import Modes
from reluflow.kernels.flow import planes as kernel
from reluflow.kernels.flow.hover import hover
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE

# directions and distances of this relative size are zero: rounding of products
TINY = 1e-10
# ... and normals that span a direction by more than this span it
SPANS = 1e-9
# the cone flow is back at the place, or away from it, when it has shrunk or grown this much
BACK, AWAY = 1e-7, 1e7
# a spiral that takes very long: it leaves if it has grown this much
GROWN = 1e3
# a neuron rests until the least pull is this share of the forces: it grows from zero, so what is
# missed by then is of second order, and its direction is well above rounding
REST = 1e-6
# starts beside the one of arrival, to see whether they lead elsewhere
BESIDE = 6


class Way(NamedTuple):
    """How a neuron goes on: its modes, and whether that is the only way.

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
        way = self._choose(row, on, direction)
        slides = way.row == SLIDE
        if slides[on].all() or kernel.independent(self.problem.planes.gram, np.flatnonzero(slides)):
            return way
        # it goes along where some of the planes meet; if it cannot stay on them, it leaves at once
        return way if self.rests(way.row) else self._choose(way.row, slides, None)

    def _choose(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Way:
        if kernel.independent(self.problem.planes.gram, np.flatnonzero(on)):
            way = self._independent(row, on, direction)
            if direction is None:
                below = np.where(on, BELOW, row).astype(np.int8)
                idle = self._idle(below, on) or self._idle(way.row, on)
                way = way._replace(unique=way.unique and not idle)
            return way
        way = self._turn(row, on, direction)
        start = self._start(row, on, direction)
        if start is not None and way.unique:
            way = way._replace(unique=self._alike(row, on, start, way))
        if _is_back(way, on):
            return self._way_out(row, on, direction) or way
        if np.linalg.norm(self.least(row, on)) > REST * self._noise():
            return way
        # to rest is a solution too. Descent that comes along a slide zigzags across its plane, and
        # does not pass the place in the direction of arrival: it goes from where it hovers
        rest = Way(np.where(on, SLIDE, row).astype(np.int8), False, None)
        if direction is not None and (row[on] == SLIDE).any():
            return self._way_out(row, on, direction) or rest
        return way._replace(unique=False) if self._leaves(way, on) else rest

    def _turn(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Way:
        """The same, if a neuron that comes back once rests."""
        if kernel.independent(self.problem.planes.gram, np.flatnonzero(on)):
            return self._independent(row, on, direction)
        start = self._start(row, on, direction)
        if start is None:
            return Way(np.where(on, SLIDE, row).astype(np.int8), True, None)
        return self._follow(row, on, start)

    def _start(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Array | None:
        """Where past the place the cone flow begins; None where nothing pulls off it."""
        start = direction
        if start is None or self._meets(on, start) <= TINY:
            start = self.a * self.least(row, on)
            if np.linalg.norm(start) <= TINY * abs(self.a) * self._noise():
                return None
        return np.asarray(start / np.linalg.norm(start))

    def _alike(self, row: Modes, on: NDArray[np.bool_], start: Array, way: Way) -> bool:
        """Whether starts beside the one of a way, past the place or before it, lead to the same.

        Descent arrives beside its way by a step. From before the place some come to it again.
        """
        rng = np.random.default_rng(0)
        for k in range(2 * BESIDE):
            past = k < BESIDE
            aside = rng.normal(size=len(start)) / np.sqrt(len(start))
            other = self._follow(row, on, (start if past else -start) + aside)
            if not np.array_equal(other.row, way.row) and (past or not _is_back(other, on)):
                return False
        return True

    def _way_out(self, row: Modes, on: NDArray[np.bool_], direction: Array | None) -> Way | None:
        """A way that leaves for good from where descent hovers around the place; None if none does.

        Its steps, in frozen forces, have no scale: small ones do the same nearer to the place. It
        visits some directions by turns, and goes by the first way that leads off one of them.
        """
        U = np.ascontiguousarray(self.problem.planes.U[on])
        some = np.random.default_rng(0).normal(size=U.shape[1])
        start = direction if direction is not None and direction.any() else some
        low, high = self.a * self.low[on], self.a * self.high[on]
        unit = 1.0 / (abs(self.a) * self._noise())
        base = self.a * self._across(on, self._base(row, on))
        for place in hover(start / np.linalg.norm(start), unit * base, unit * low, unit * high, U):
            way = self._follow(row, on, place)
            if self._leaves(way, on):
                return way._replace(unique=False)
        return None

    def least(self, row: Modes, on: NDArray[np.bool_]) -> Array:
        """The least element of the hull of pulls over the patterns at ``on`` that are realised.

        Only the part across the planes: along them a neuron moves freely.
        """
        basis, sides = self._cells(on)
        here = np.where(sides, self.high[on], self.low[on])
        pulls = self._base(row, on) + here @ self.problem.planes.U[on]
        return np.asarray(least_element(pulls @ basis) @ basis.T)

    def rests(self, row: Modes) -> bool:
        """Whether a neuron that slides on dependent planes may stay on all of them."""
        on = row == SLIDE
        if self.a == 0.0:  # nothing moves it
            return True
        if np.linalg.norm(self.least(row, on)) > REST * self._noise():
            return False
        return self._way_out(row, on, None) is None

    def _leaves(self, way: Way, on: NDArray[np.bool_]) -> bool:
        """Whether a way leads off: a pull that is left, or nothing active (it dies there).

        Pulls that cancel to rounding hold a neuron where it is.
        """
        if _is_back(way, on):
            return False
        f = kernel.multipliers(self.low, self.high, way.row, self.problem.planes.gram)
        across = np.linalg.norm(self.problem.planes.U[on] @ (f @ self.problem.planes.U))
        return bool(across > REST * self._noise() or not f[on].any())

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
            row, unique, _ = self._turn(row, near, None)
        begun = size = np.linalg.norm(U[on] @ place)
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
            hit = falls & (np.abs(z + time * rate) <= TINY * (np.abs(z) + size))
            met = hit | (on & (row == SLIDE))
            if size <= BACK * begun or self._only_there(met, on):
                return Way(np.where(on, SLIDE, row).astype(np.int8), unique, None)
            if size >= AWAY * begun:
                return Way(row, unique, place / np.linalg.norm(place))
            before = row
            row, one, _ = self._turn(row, met, velocity)
            unique = unique and one
            if np.array_equal(row, before):  # held by less than rounding: it stands there for ever
                break
        if size >= GROWN * begun:
            return Way(row, False, place / np.linalg.norm(place))
        return Way(np.where(on, SLIDE, row).astype(np.int8), unique, None)

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

    def _idle(self, row: Modes, on: NDArray[np.bool_]) -> bool:
        """Whether a neuron that starts on planes could stay inactive on some, or go off there.

        Nothing moves it off: all active points are orthogonal to those of the planes, say. Were it
        active on one of them, that would.
        """
        planes = self.problem.planes
        f = kernel.multipliers(self.low, self.high, row, planes.gram)
        below = on & (row == BELOW)
        held = np.abs(planes.gram) @ np.abs(f) <= TINY * self._noise()
        stays = (held | (self.a * (planes.gram @ f) <= 0.0))[below].all()
        return bool(stays and (self.a * self.high[below & held] > 0.0).any())

    # ------------------------------------------------------------------ pulls and patterns

    def _base(self, row: Modes, on: NDArray[np.bool_]) -> Array:
        """The pull of all planes but ``on``."""
        f = np.where(row == ABOVE, self.high, self.low)[~on]
        return np.asarray(f @ self.problem.planes.U[~on])

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

    def _across(self, on: NDArray[np.bool_], vector: Array) -> Array:
        """The part of a vector across the planes ``on``."""
        basis = self._cells(on)[0]
        return np.asarray(basis @ (basis.T @ vector))

    def _meets(self, on: NDArray[np.bool_], direction: Array) -> float:
        """The largest sine at which a direction meets the planes ``on``."""
        size = float(np.linalg.norm(direction)) + 1e-300
        return float(np.abs(self.problem.planes.U[on] @ direction).max(initial=0.0)) / size

    def _only_there(self, met: NDArray[np.bool_], on: NDArray[np.bool_]) -> bool:
        """Whether the planes ``met`` have no more in common than all planes ``on``.

        The place itself, then, which a neuron that slides slowly comes to by rounding only.
        """
        basis = self._cells(on)[0]
        if met.sum() < basis.shape[1]:
            return False
        sizes = np.linalg.svd(self.problem.planes.U[met] @ basis, compute_uv=False)
        return bool(sizes[-1] > SPANS)

    def _cells(self, on: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Basis of the normals of ``on``, and the sides (k, ..) that some direction is on.

        They depend on the planes alone and are found once.
        """
        key = on.tobytes()
        if key not in self.problem.cells:
            basis = self._span(on)
            normals = self.problem.planes.U[on] @ basis
            directions = sectors(normals) if normals.shape[1] <= 2 else corners(normals)
            sides = np.unique(directions @ normals.T > 0.0, axis=0)
            self.problem.cells[key] = basis, sides
        return self.problem.cells[key]


def _is_back(way: Way, on: NDArray[np.bool_]) -> bool:
    return bool((way.row[on] == SLIDE).all())
