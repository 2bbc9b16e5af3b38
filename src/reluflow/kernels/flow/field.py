"""Pulls on all classes along a solved step, and when their slides end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.collocation import System
from reluflow.kernels.flow.forces import pulls, spread
from reluflow.kernels.flow.layout import Limits, Rows, Tables
from reluflow.kernels.flow.roots import bound_outside, leaves_box
from reluflow.kernels.flow.transport import Matrices, Method, class_matrices, damped
from reluflow.kernels.kernel import kernel


@kernel
def _leaving(
    f: Array, low: Array, high: Array, rows: Rows, tables: Tables, limits: Limits,
    sure: NDArray[Any],
) -> Array:  # fmt: skip
    """First time (C,) at which a slide of each class ends; 2.0 if none does.

    ``f`` (C, S + 1, P) are the multipliers at the start and the nodes; of a class that is ``sure``
    to leave it is enough that a weight is outside at all.
    """
    knots = len(low)
    leaves = np.full(len(rows.face), 2.0)
    share, force = np.empty(knots), np.empty(knots)
    for k in range(len(leaves)):
        if not rows.free[k]:
            continue
        for q in range(rows.begin[k], rows.begin[k + 1]):
            p = rows.plane[q]
            top, unit = 0.0, limits.unit
            for s in range(knots):
                share[s] = f[k, s, p] - low[s, p]
                force[s] = high[s, p] - low[s, p]
                top = max(top, abs(force[s]))
                unit = max(unit, abs(f[k, s, p]), abs(low[s, p]))
            far = limits.near * top
            if not sure[k]:
                far = limits.far * max(unit, top)
                far = bound_outside(share, force, tables.radau_a[-1], far, limits.most)
            tau, _ = leaves_box(share, force, tables.force, limits.near * top, far)
            leaves[k] = min(leaves[k], tau)
    return leaves


@kernel
def _at_gauss(values: Array, to_gauss: Array) -> Array:
    """Values (C, S, .) at the Gauss nodes of what is known at the start and the Radau nodes."""
    classes, knots, n = values.shape
    out = np.zeros((classes, knots - 1, n))
    for k in range(classes):
        for s in range(knots - 1):
            for r in range(knots - 1):
                for i in range(n):
                    out[k, s, i] += to_gauss[s, r] * values[k, r + 1, i]
    return out


@kernel
def _forget_start(values: Array, to_start: Array) -> None:
    """Values (C, S + 1, .) at the start from those at the Radau nodes."""
    classes, knots, n = values.shape
    for k in range(classes):
        for i in range(n):
            values[k, 0, i] = 0.0
            for r in range(knots - 1):
                values[k, 0, i] += to_start[r] * values[k, r + 1, i]


class Field(NamedTuple):
    """Pulls of a solved step: multipliers, ``g`` and ``U g`` of each class.

    At the start and the Radau nodes (S + 1), and at the Gauss nodes (S); and what the collocation
    of a class needs. ``now`` (C, P) is ``U g`` at the start, also where a stiff step forgets it:
    outputs react after the share ``tail`` of the step.
    """

    now: Array
    tail: float
    f: Array
    g: Array
    push: Array
    f_gauss: Array
    g_gauss: Array
    push_gauss: Array
    method: Method
    matrices: Matrices
    leaves: Array


@kernel
def field_of(
    system: System, low: Array, high: Array, step: float, tables: Tables, limits: Limits,
    sure: NDArray[Any],
) -> Field:  # fmt: skip
    """The pulls of all classes in the forces of the planes at the start and the Radau nodes."""
    f = spread(low, high, system.rows)
    g, push = pulls(f, system.rows, system.planes.U)
    now = push[:, 0].copy()
    if limits.tail < 1.0:  # outputs forget the force of the start at once, and so do neurons
        _forget_start(g, tables.to_start)
        _forget_start(push, tables.to_start)
    f_gauss, g_gauss = _at_gauss(f, tables.to_gauss), _at_gauss(g, tables.to_gauss)
    method = damped(tables.gauss_a, step, system.law.decay)
    matrices = class_matrices(g_gauss, method, system.law.hidden)
    leaves = _leaving(f, low, high, system.rows, tables, limits, sure)
    push_gauss = _at_gauss(push, tables.to_gauss)
    return Field(
        now, limits.tail, f, g, push, f_gauss, g_gauss, push_gauss, method, matrices, leaves
    )
