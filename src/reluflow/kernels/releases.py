r"""Ends of slides: when a sliding weight leaves [0, 1], and where its neuron goes.

The weight of a sliding point is ``rho_i / c_i``; ``rho_i`` and ``c_i - rho_i`` keep the sign of
``c_i`` while it lies inside. Both are polynomials in a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.boundaries import bury, land, settle, slide_forces
from reluflow.kernels.exits import first_exit
from reluflow.kernels.layout import Rows
from reluflow.kernels.passage import weights_at


@njit(cache=True, nogil=True)
def leaves_box(
    rho: Array, force: Array, bernstein: Array, near: float, far: float
) -> tuple[float, bool]:
    """First time at which a weight is outside by ``near``, if it comes to be by ``far``; else 2.0.

    ``rho`` and ``force`` are values at the nodes of the table. The second result says whether it
    leaves at 1, to the active side.
    """
    side = 1.0 if force[0] > 0.0 else -1.0
    low, high = np.dot(bernstein, rho), np.dot(bernstein, force - rho)
    tau, up = 2.0, False
    if first_exit(low, side, far) <= 1.0:
        tau = first_exit(low, side, near)
    if first_exit(high, side, far) <= 1.0:
        leaves = first_exit(high, side, near)
        up = leaves < tau
        tau = min(tau, leaves)
    return tau, up


@njit(cache=True, nogil=True)
def releases(
    c0: Array, c: Array, rows: Rows, bernstein: Array, near: float, far: float, scale: float
) -> tuple[Array, Array, NDArray[Any]]:
    """First time (P,) in the step at which each sliding weight leaves [0, 1]; 2.0 if it stays.

    A weight leaves if ``rho_i`` or ``c_i - rho_i`` passes zero by ``far`` times the forces that
    make it up, or times ``scale`` if that is larger, for they are known no better; the time is that
    at which it is outside by ``near`` of its force (P,), the second result. The third says whether
    it leaves at 1.
    """
    stages, n = c.shape
    tau = np.full(len(rows.point), 2.0)
    top = np.zeros(len(rows.point))
    up = np.zeros(len(rows.point), np.bool_)
    rho = np.empty(stages + 1)
    force = np.empty(stages + 1)
    for p in range(len(rows.point)):
        unit = scale
        for s in range(stages + 1):
            rho[s] = 0.0
            size = 0.0
            for i in range(n):
                part = rows.lift[p, i] * (c0[i] if s == 0 else c[s - 1, i])
                rho[s] += part
                size += abs(part)
            force[s] = c0[rows.point[p]] if s == 0 else c[s - 1, rows.point[p]]
            top[p] = max(top[p], abs(force[s]))
            unit = max(unit, size, abs(force[s]))
        tau[p], up[p] = leaves_box(rho, force, bernstein, near * top[p], far * unit)
    return tau, top, up


@njit(cache=True, nogil=True)
def first_release(
    start: float,
    rho: Array,
    forces: Array,
    held: NDArray[Any],
    normal: Array,
    row: Array,
    gram: Array,
    nodes: Array,
    scale: Array,
    table_nodes: Array,
    bernstein: Array,
    near: float,
    far: float,
    unit: float,
) -> tuple[float, int, bool]:
    """The first of one neuron's slides that ends after ``start``: ``(moment, point, up)``.

    The moment is a share of the step, 2.0 if none ends. ``rho`` (K, h) and ``forces`` (K, n) are
    known at ``nodes``, with denominators ``scale``; ``normal`` inverts the Gram matrix of the
    points ``held``; ``near, far, unit`` are those of `releases`.
    """
    knots, n = forces.shape
    count = len(table_nodes)
    mix, balance, force = np.empty((count, knots)), np.empty(count), np.empty(count)
    if len(held):
        for k in range(count):
            weights_at(nodes, scale, start + table_nodes[k] * (1.0 - start), mix, k)
    first, where, active = 2.0, -1, False
    for p in range(len(held)):
        top = 0.0
        for k in range(count):
            balance[k], force[k] = 0.0, 0.0
            for r in range(knots):
                balance[k] += mix[k, r] * rho[r, p]
                force[k] += mix[k, r] * forces[r, held[p]]
            top = max(top, abs(force[k]))
        tau, up = leaves_box(balance, force, bernstein, near * top, far * max(unit, top))
        if tau > 1.0:
            continue
        size = np.zeros(knots)  # of the forces that make it up: only now, for it takes longer
        for i in range(n):
            if row[i] == 1:
                lift = 0.0
                for q in range(len(held)):
                    lift += normal[p, q] * gram[held[q], i]
                for r in range(knots):
                    size[r] += abs(lift * forces[r, i])
        tau, up = leaves_box(
            balance, force, bernstein, near * top, far * max(unit, top, size.max())
        )
        if tau <= 1.0 and start + tau * (1.0 - start) < first:
            first, where, active = start + tau * (1.0 - start), int(held[p]), up
    return first, where, active


@njit(cache=True, nogil=True)
def let_go(
    a: float, c: Array, gram: Array, row: Array, point: int, up: bool, slack: float, scale: float
) -> bool:
    """End the slide of one neuron on the plane of ``point``; ``row`` changes.

    Its other planes hold it as before if they can, with weights in [0, 1] as far as forces are
    known (to ``slack`` times their size or ``scale``); otherwise the box rule decides anew. False
    if by the forces ``c`` the weight is still inside: the slide goes on.
    """
    n = len(row)
    alone = row.copy()
    rho, away = np.empty(n), np.zeros(n)
    slide_forces(c, gram, row, rho)
    for i in range(n):
        if row[i] >= 2:  # velocities off the plane, if those on its two sides agree
            away[i] = max(-a * rho[i], 0.0) + min(a * (c[i] - rho[i]), 0.0)
    alone[point] = int(away[point] > 0.0 if away[point] != 0.0 else up)
    settle(a, c, gram, row, row >= 2, away)
    if row[point] >= 2:
        return False
    slide_forces(c, gram, alone, rho)
    holds = (alone == 1).any()
    for i in range(n):
        if alone[i] >= 2:
            side = 1.0 if c[i] > 0.0 else -1.0
            inside = min(side * rho[i], side * (c[i] - rho[i]))
            holds = holds and inside >= -slack * max(abs(c[i]), scale)
    if holds:
        row[:] = alone
    return True


@njit(cache=True, nogil=True)
def released(
    a: float,
    w: Array,
    row: Array,
    c: Array,
    X: Array,
    gram: Array,
    point: int,
    up: bool,
    slack: float,
    scale: float,
) -> None:
    """`let_go` for a neuron at the end of a step; ``w`` and ``row`` change."""
    let_go(a, c, gram, row, point, up, slack, scale)
    bury(row)
    land(w, row >= 2, X, gram)
