r"""What a neuron does where it meets planes: cross, slide, leave, or stop at a crossroads.

On a plane with normal ``u`` the pull across is ``high`` above and ``low`` below. With
``D = high - low`` the plane attracts if ``a D < 0``: both sides may push back, and the neuron
slides. For all attracting planes on which a neuron lies at once, the weights ``theta`` in [0, 1]
minimise ``|g_base + sum_p theta_p D_p u_p|``: the least element of the Clarke set, 1 goes on above,
0 below, anything between slides. A repelling plane is crossed in the direction of arrival.

That is the whole rule where the planes are independent. Where they are not (the origin, points in
a lattice) not every combination of sides is realised by a direction; such a place is a crossroads
and left to `reluflow.engines.flow.crossroads`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.box import box_weights
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE, Planes
from reluflow.kernels.flow.small import DEPENDENT, invert
from reluflow.kernels.kernel import kernel

# outcomes of a decision: as the rule says; the solution is not unique; planes depend on each other
PLAIN, TIE, CROSSROADS = 0, 1, 2
# a weight this near an end of [0, 1] is there: rounding of a small least-squares problem
EDGE = 1e-12
# pulls that leave a line by less than this are along it: rounding of a projection
PARALLEL = 1e-12


@kernel
def is_pulled(row: NDArray[Any], both: NDArray[Any]) -> bool:
    """Whether a plane that it is not on pulls a neuron; only then can an output weight 0 change."""
    for p in range(len(row)):
        if row[p] == ABOVE or (both[p] and row[p] == BELOW):
            return True
    return False


@kernel
def is_alive(row: NDArray[Any], both: NDArray[Any]) -> bool:
    """Whether any force acts on a neuron: it slides, or some point is active."""
    for p in range(len(row)):
        if row[p] != BELOW or both[p]:
            return True
    return False


@kernel
def independent(gram: Array, held: NDArray[Any]) -> bool:
    """Whether the normals of the planes ``held`` are linearly independent (Cholesky pivots)."""
    count = len(held)
    factor = np.zeros((count, count))
    for p in range(count):
        for q in range(p + 1):
            total = gram[held[p], held[q]]
            for r in range(q):
                total -= factor[p, r] * factor[q, r]
            if p == q:
                if total <= DEPENDENT:
                    return False
                factor[p, p] = np.sqrt(total)
            else:
                factor[p, q] = total / factor[q, q]
    return True


@kernel
def inverse_gram(gram: Array, held: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """Inverse of the products of some normals (on their span if they depend), and whether not."""
    count = len(held)
    own = np.empty((count, count))
    for p in range(count):
        for q in range(count):
            own[p, q] = gram[held[p], held[q]]
    if count <= 1:
        return own, True
    if independent(gram, held):
        invert(own)
        return own, True
    return np.linalg.pinv(own, 1e-12), False


@kernel
def ray_of(
    face: NDArray[Any], planes: Planes, held: NDArray[Any], dual: Array, axis: Array
) -> bool:
    """Whether all pulls in this row lie along one line; its direction goes to ``axis``.

    The pulls are the normals of active points, projected on the planes ``held`` (with their
    ``dual`` basis).
    """
    size, d = planes.U.shape
    part = np.empty(d)
    longest = 0.0
    for turn in range(2):  # the longest pull is the axis; then all are compared with it
        for p in range(size):
            if face[p] == SLIDE or (face[p] == BELOW and not planes.both[p]):
                continue
            for r in range(d):
                part[r] = planes.U[p, r]
            for q in range(len(held)):
                for r in range(d):
                    part[r] -= planes.gram[held[q], p] * dual[q, r]
            length, along, off = np.sqrt(np.dot(part, part)), 0.0, 0.0
            if longest > 0.0:
                along = np.dot(part, axis)
                for r in range(d):
                    off += (part[r] - along * axis[r]) ** 2
            # the direction of a short pull is known to rounding over its length
            if off > PARALLEL**2 and (turn == 1 or longest > 1e-3):
                axis[:] = 0.0
                return False
            if turn == 0 and length > max(longest, PARALLEL):
                longest = length
                for r in range(d):
                    axis[r] = part[r] / length
    _along(axis, planes, held, dual)
    return longest > 0.0


@kernel
def _along(v: Array, planes: Planes, held: NDArray[Any], dual: Array) -> None:
    """Project a direction once more on the planes it lies in: the first time left rounding."""
    for q in range(len(held)):
        off = np.dot(planes.U[held[q]], v)
        for r in range(len(v)):
            v[r] -= off * dual[q, r]


@kernel
def decide(
    a: float, row: NDArray[Any], on: NDArray[Any], arrival: Array, low: Array, high: Array,
    gram: Array,
) -> int:  # fmt: skip
    """Choose the modes of one neuron at the planes ``on`` (bool); ``row`` is changed.

    ``arrival`` holds the velocities across the planes on arrival (zero at a start, and on slides).
    Returns PLAIN, TIE where both sides of a plane push away and no direction of arrival says where
    to go, or CROSSROADS where the planes depend on each other: ``row`` is then as it was.
    """
    size = len(row)
    planes = np.flatnonzero(on)
    if not independent(gram, planes):
        return CROSSROADS
    f = np.empty(size)
    for p in range(size):
        f[p] = high[p] if row[p] == ABOVE else low[p]
    outcome, count = PLAIN, 0
    held = np.empty(len(planes), np.int64)
    theta = np.zeros(len(planes))
    fresh = 0
    for k in range(len(planes)):
        p = planes[k]
        if a * (high[p] - low[p]) < 0.0:
            # near the minimum if one plane is new; else the smallest weights are found first
            theta[count] = 0.5 if row[p] == SLIDE else float(row[p])
            fresh += row[p] != SLIDE
            held[count] = p
            count += 1
            f[p] = low[p]
        else:
            direction = arrival[p]
            if direction == 0.0:
                direction = _direction(a, p, f, low, high, gram)
                if direction == 0.0 and a * (high[p] - low[p]) > 0.0:
                    outcome = TIE
            row[p] = ABOVE if direction > 0.0 else BELOW
            f[p] = high[p] if row[p] == ABOVE else low[p]
    if count == 0:
        return outcome
    if fresh > 1:
        theta[:] = 0.0
    held, theta = held[:count], theta[:count]
    _weigh(held, f, low, high, gram, theta)
    stops = False
    for p in range(count):
        stops = stops or (row[held[p]] != SLIDE and EDGE < theta[p] < 1.0 - EDGE)
        if theta[p] <= EDGE:
            row[held[p]] = BELOW
        elif theta[p] >= 1.0 - EDGE:
            row[held[p]] = ABOVE
        else:
            row[held[p]] = SLIDE
    if stops and len(planes) > count:
        f = multipliers(low, high, row, gram)
        for k in range(len(planes)):
            p = planes[k]
            # where it stops at one plane, the way it came no longer says how it passes another
            if row[p] == SLIDE or a * (high[p] - low[p]) <= 0.0 or arrival[p] == 0.0:
                continue
            if _direction(a, p, f, low, high, gram) == 0.0:
                outcome = TIE
    return outcome


@kernel
def _weigh(
    held: NDArray[Any], f: Array, low: Array, high: Array, gram: Array, theta: Array
) -> None:
    """Weights ``theta`` of the planes ``held``; ``f`` are the pulls of all, of these from below."""
    count = len(held)
    base, force = np.zeros(count), np.empty(count)
    sub = np.empty((count, count))
    for p in range(count):
        force[p] = high[held[p]] - low[held[p]]
        for k in range(len(f)):
            base[p] += gram[held[p], k] * f[k]
        for q in range(count):
            sub[p, q] = gram[held[p], held[q]]
    box_weights(base, force, sub, theta)


@kernel
def _direction(a: float, p: int, f: Array, low: Array, high: Array, gram: Array) -> float:
    """The velocity across plane p if those on its two sides agree, otherwise zero."""
    across = 0.0
    for k in range(len(f)):
        if k != p:
            across += gram[p, k] * f[k]
    above, below = a * (across + high[p]), a * (across + low[p])
    return min(above, below) if below > 0.0 else min(max(above, below), 0.0)


@kernel
def multipliers(low: Array, high: Array, row: NDArray[Any], gram: Array) -> Array:
    """The forces (P,) with ``g = sum_p f_p u_p`` in this row; on slides the projection's."""
    size = len(row)
    f = np.zeros(size)
    for p in range(size):
        if row[p] != SLIDE:
            f[p] = high[p] if row[p] == ABOVE else low[p]
    held = np.flatnonzero(row == SLIDE)
    if len(held):
        normal, _ = inverse_gram(gram, held)
        pull = np.zeros(len(held))
        for p in range(len(held)):
            for k in range(size):
                pull[p] -= gram[held[p], k] * f[k]
        for p in range(len(held)):
            for q in range(len(held)):
                f[held[p]] += normal[p, q] * pull[q]
    return f


@kernel
def let_go(
    a: float, row: NDArray[Any], plane: int, up: bool, low: Array, high: Array, gram: Array,
    far: float,
) -> bool:  # fmt: skip
    """End the slide of one neuron on ``plane``, to the side ``up``; ``row`` changes.

    Its other planes hold it as before if they can, with multipliers between ``low`` and ``high`` as
    far as forces are known (to ``far``); otherwise the rule decides anew. False if by that rule the
    slide goes on and nothing changes.
    """
    size = len(row)
    f, away = multipliers(low, high, row, gram), np.zeros(size)
    for p in range(size):
        if row[p] == SLIDE:  # velocities off the plane, if those on its two sides agree
            away[p] = max(a * (low[p] - f[p]), 0.0) + min(a * (high[p] - f[p]), 0.0)
    alone, anew = row.copy(), row.copy()
    alone[plane] = ABOVE if (away[plane] > 0.0 if away[plane] != 0.0 else up) else BELOW
    if decide(a, anew, row == SLIDE, away, low, high, gram) == CROSSROADS:
        return False
    if anew[plane] == SLIDE:
        moves = bool((anew != row).any())
        _copy(anew, row)
        return moves
    f = multipliers(low, high, alone, gram)
    holds = True
    for p in range(size):
        if alone[p] == SLIDE:
            bottom, top = min(low[p], high[p]), max(low[p], high[p])
            holds = holds and bottom - far <= f[p] <= top + far
    _copy(alone if holds else anew, row)
    return True


@kernel
def _copy(values: NDArray[Any], out: NDArray[Any]) -> None:
    for p in range(len(out)):
        out[p] = values[p]


@kernel
def part_ways(row: NDArray[Any], low: Array, high: Array, gram: Array) -> None:
    """End all slides of a neuron whose output weight changes sign: its planes now repel.

    Descent is above a plane for the share ``theta`` of the time: it leaves above if that is more
    than half, otherwise below.
    """
    f = multipliers(low, high, row, gram)
    for p in range(len(row)):
        if row[p] == SLIDE:
            middle = 0.5 * (low[p] + high[p])
            row[p] = ABOVE if (f[p] - middle) * (high[p] - low[p]) > 0.0 else BELOW


@kernel
def land(w: Array, on: NDArray[Any], planes: Planes) -> None:
    """Project one neuron on the planes ``on`` (bool); ``w`` is changed.

    Where they meet in the origin only, what is left is rounding and becomes zero.
    """
    held = np.flatnonzero(on)
    count = len(held)
    if count == 0:
        return
    before = np.abs(w).max()
    normal, _ = inverse_gram(planes.gram, held)
    off = np.empty(count)
    for _ in range(2):  # the second pass removes the rounding of the first
        for p in range(count):
            off[p] = np.dot(planes.U[held[p]], w)
        for p in range(count):
            part = 0.0
            for q in range(count):
                part += normal[p, q] * off[q]
            for r in range(len(w)):
                w[r] -= part * planes.U[held[p], r]
    if np.abs(w).max() <= 1e-14 * before:
        w[:] = 0.0
