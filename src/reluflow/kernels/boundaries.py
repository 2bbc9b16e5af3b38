r"""What a neuron does at data hyperplanes: cross, slide, or go inactive.

Modes of a pair (neuron, point): 0 inactive, 1 active, 2 sliding (came from inactive), 3 sliding
(came from active). At ``w.x_i = 0`` the boundary attracts when ``a c_i < 0``; there the weight
``theta_i`` in [0, 1] of the point is the one that minimises the norm of
``g = g_base + sum_i theta_i c_i x_i``, the smallest element of the Clarke subdifferential.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array

EDGE = 1e-12


@njit(cache=True, nogil=True)
def box_weights(base: Array, c: Array, gram: Array, theta: Array) -> None:
    """Minimise ``|g_base + sum theta_i c_i x_i|`` over the unit box; ``theta`` begins in it.

    ``base_i = x_i.g_base``. Primal active set: the objective is a convex quadratic that falls with
    every change of the set, so it ends, after one or two changes if ``theta`` is inside the box
    where the minimum is.
    """
    size = len(base)
    free = (theta > 0.0) & (theta < 1.0)
    for turn in range(8 * size + 8):
        if turn == 0 and free.any():
            _minimise(base, c, gram, theta, free)
        # the bound whose release lowers the objective fastest (slope c_i x_i.g)
        worst, pick = -1e-13, -1
        for i in range(size):
            if not free[i]:
                pull = base[i]
                noise = abs(base[i])
                for k in range(size):
                    pull += gram[i, k] * theta[k] * c[k]
                    noise += abs(gram[i, k] * theta[k] * c[k])
                slope = pull / (noise + 1e-300)  # not times c, which may be at the end of floats
                gain = slope if (theta[i] == 0.0) == (c[i] > 0.0) else -slope
                if gain < worst:
                    worst, pick = gain, i
        if pick < 0:
            break
        free[pick] = True
        _minimise(base, c, gram, theta, free)


@njit(cache=True, nogil=True)
def _minimise(base: Array, c: Array, gram: Array, theta: Array, free: Array) -> None:
    """The minimum over the ``free`` weights; those that meet an end of the box stay there."""
    size = len(base)
    for _ in range(size + 1):
        count = 0
        for i in range(size):
            if free[i]:
                count += 1
        if count == 0:
            break
        index = np.empty(count, np.int64)
        count = 0
        for i in range(size):
            if free[i]:
                index[count] = i
                count += 1
        sub = np.empty((count, count))
        rhs = np.empty(count)
        for p in range(count):
            rhs[p] = -base[index[p]]
            for k in range(size):
                if not free[k]:
                    rhs[p] -= gram[index[p], k] * theta[k] * c[k]
            for q in range(count):
                sub[p, q] = gram[index[p], index[q]]
        # solved for theta c: the forces of the points may differ by twenty orders of magnitude
        target = rhs / sub[0, 0] if count == 1 else np.linalg.lstsq(sub, rhs)[0]
        for p in range(count):
            target[p] = min(max(target[p] / c[index[p]], -1e300), 1e300)
        share, block = 1.0, -1
        for p in range(count):
            old, new = theta[index[p]], target[p]
            if new < 0.0 and old > 0.0 and old / (old - new) < share:
                share, block = old / (old - new), p
            elif new > 1.0 and old < 1.0 and (1.0 - old) / (new - old) < share:
                share, block = (1.0 - old) / (new - old), p
            elif (new < 0.0 and old <= 0.0) or (new > 1.0 and old >= 1.0):
                share, block = 0.0, p
        for p in range(count):
            theta[index[p]] += share * (target[p] - theta[index[p]])
        if block < 0:
            break
        theta[index[block]] = 0.0 if target[block] < 0.0 else 1.0
        free[index[block]] = False


@njit(cache=True, nogil=True)
def settle(a: float, c: Array, gram: Array, row: Array, on: Array, arrival: Array) -> None:
    """Choose the modes of one neuron at its boundary points ``on`` (bool); ``row`` is changed.

    ``arrival`` holds the velocities of the pre-activations on arrival (zero at a start). A
    repelling plane is crossed in the direction of arrival, several at once where they meet (all
    of them at ``w = 0``); without a direction it is inactive. A slide whose plane turned repelling
    (its force or output weight changed sign) ends in that direction too, if there is none on the
    side it came from.
    """
    n = len(row)
    held = np.empty(n, np.int64)
    size = 0
    for i in range(n):
        if not on[i]:
            continue
        if a * c[i] < 0.0:
            held[size] = i
            size += 1
        elif row[i] >= 2 and arrival[i] == 0.0:
            row[i] -= 2
        else:
            row[i] = 1 if arrival[i] > 0.0 else 0
    if size == 0:
        return
    base = np.zeros(size)
    force = np.empty(size)
    sub = np.empty((size, size))
    for p in range(size):
        i = held[p]
        force[p] = c[i]
        for k in range(n):
            if row[k] == 1:
                base[p] += gram[i, k] * c[k]
        for q in range(size):
            sub[p, q] = gram[i, held[q]]
            if row[held[q]] == 1:
                base[p] -= gram[i, held[q]] * c[held[q]]
    # near the minimum if one plane is new; where many meet weights are not unique, and the
    # smallest are taken
    theta, fresh = np.zeros(size), 0
    for p in range(size):
        fresh += row[held[p]] < 2
    for p in range(size if fresh <= 1 else 0):
        theta[p] = 0.5 if row[held[p]] >= 2 else float(row[held[p]])
    box_weights(base, force, sub, theta)
    for p in range(size):
        i = held[p]
        if theta[p] <= EDGE:
            row[i] = 0
        elif theta[p] >= 1.0 - EDGE:
            row[i] = 1
        elif row[i] < 2:
            row[i] += 2


@njit(cache=True, nogil=True)
def slide_forces(c: Array, gram: Array, row: Array, rho: Array) -> None:
    """``rho`` with ``g = sum rho_i x_i``: c on active points, the projection's on sliding ones."""
    n = len(row)
    count = 0
    for i in range(n):
        rho[i] = c[i] if row[i] == 1 else 0.0
        if row[i] >= 2:
            count += 1
    if count == 0:
        return
    held = np.empty(count, np.int64)
    count = 0
    for i in range(n):
        if row[i] >= 2:
            held[count] = i
            count += 1
    sub = np.empty((count, count))
    pull = np.empty(count)
    for p in range(count):
        pull[p] = 0.0
        for k in range(n):
            pull[p] -= gram[held[p], k] * rho[k]
        for q in range(count):
            sub[p, q] = gram[held[p], held[q]]
    if count == 1:
        rho[held[0]] = pull[0] / sub[0, 0]
    else:
        solution = np.linalg.lstsq(sub, pull)[0]
        for p in range(count):
            rho[held[p]] = solution[p]


@njit(cache=True, nogil=True)
def land(w: Array, on: Array, X: Array, gram: Array) -> None:
    """Project one neuron on the planes of the points ``on`` (bool); ``w`` is changed.

    Where they meet in the origin only, what is left is rounding and becomes zero.
    """
    index = np.flatnonzero(on)
    count = len(index)
    if count == 0:
        return
    before = np.abs(w).max()
    off = np.empty(count)
    own = np.empty((count, count))
    for p in range(count):
        for q in range(count):
            own[p, q] = gram[index[p], index[q]]
    for _ in range(2):  # the second pass removes the rounding of the first
        for p in range(count):
            off[p] = np.dot(X[index[p]], w)
        # points that meet may be linearly dependent: a least-squares solution
        part = off / own[0, 0] if count == 1 else np.linalg.lstsq(own, off, 1e-12)[0]
        for p in range(count):
            for q in range(len(w)):
                w[q] -= part[p] * X[index[p], q]
    if np.abs(w).max() <= 1e-14 * before:
        w[:] = 0.0


@njit(cache=True, nogil=True)
def arrive(
    a: float, w: Array, row: Array, c: Array, X: Array, gram: Array, point: int, near: float
) -> None:
    """One neuron reaches the plane of ``point``: put it there and choose its modes anew.

    Other planes within ``near`` times the length of their point count as reached too. ``w`` and
    ``row`` are changed.
    """
    n = len(row)
    on = row >= 2
    on[point] = True
    land(w, on, X, gram)
    rho = np.empty(n)
    slide_forces(c, gram, row, rho)
    g = np.dot(rho, X)
    arrival = np.empty(n)
    for i in range(n):
        if abs(np.dot(X[i], w)) <= near * np.sqrt(gram[i, i]):
            on[i] = True
        arrival[i] = a * np.dot(X[i], g) if row[i] < 2 else 0.0
    decide(a, w, row, c, X, gram, on, arrival)


@njit(cache=True, nogil=True)
def decide(
    a: float, w: Array, row: Array, c: Array, X: Array, gram: Array, on: Array, arrival: Array
) -> None:
    """`settle`, then the rule of death, then back on the planes of the slides."""
    settle(a, c, gram, row, on, arrival)
    bury(row)
    land(w, row >= 2, X, gram)


@njit(cache=True, nogil=True)
def bury(row: Array) -> None:
    """End the slides of a neuron without active points: no force is left, it is dead."""
    if not (row == 1).any():
        for i in range(len(row)):
            if row[i] >= 2:
                row[i] = 0
