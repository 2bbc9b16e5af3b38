r"""A light neuron inside a step: across and along its planes, one event after the other, alone.

The forces on it are those of the solved step, whatever it does. So ``g`` and ``X g`` of its active
points are polynomials known at the nodes; a point more or less changes them in O(n + d), and what
the planes it slides on balance is projected out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.boundaries import bury, settle
from reluflow.kernels.classes import duals
from reluflow.kernels.exits import first_boundary, first_flip
from reluflow.kernels.layout import FLIP, RELEASE, Points, Tables
from reluflow.kernels.passage import (
    combine,
    denominators,
    moment_of_flip,
    passage,
    products_of,
    weights_at,
)
from reluflow.kernels.releases import first_release, let_go


@njit(cache=True, nogil=True)
def _balance(
    bare: Array, feel: Array, held: NDArray[Any], X: Array, gram: Array, pull: Array, push: Array
) -> tuple[Array, Array]:
    """Project ``g = bare`` and ``X g = feel`` on the planes held, into ``pull`` and ``push``.

    Returns the inverse Gram matrix of the points held and their multipliers (K, h).
    """
    knots, h = len(bare), len(held)
    own, rho = np.empty((h, h)), np.zeros((knots, h))
    pull[:] = bare
    push[:] = feel
    for p in range(h):
        for q in range(h):
            own[p, q] = gram[held[p], held[q]]
    normal = duals(own) if h else own
    for k in range(knots):
        for p in range(h):
            for q in range(h):
                rho[k, p] -= normal[p, q] * feel[k, held[q]]
            _add(pull, push, k, rho[k, p], held[p], X, gram)
        for p in range(h):
            push[k, held[p]] = 0.0
    return normal, rho


@njit(cache=True, nogil=True)
def _add(pull: Array, push: Array, k: int, f: float, i: int, X: Array, gram: Array) -> None:
    """Add ``f x_i`` to ``g`` at node k."""
    for q in range(X.shape[1]):
        pull[k, q] += f * X[i, q]
    for r in range(X.shape[0]):
        push[k, r] += f * gram[i, r]


@njit(cache=True, nogil=True)
def _onto(w: Array, held: NDArray[Any], normal: Array, X: Array) -> None:
    """Put a neuron on its planes: rounding took it off them."""
    off = np.empty(len(held))
    for p in range(len(held)):
        off[p] = np.dot(X[held[p]], w)
    for p in range(len(held)):
        part = 0.0
        for q in range(len(held)):
            part += normal[p, q] * off[q]
        for r in range(len(w)):
            w[r] -= part * X[held[p], r]


@njit(cache=True, nogil=True)
def _planes_met(z: Array, row: Array, where: int, slack: Array, gram: Array) -> NDArray[Any]:
    """The planes the neuron is on when it reaches that of ``where``: those it slides on, too.

    It has gone there with an error: ``z[where]``, over the length of the point.
    """
    on = row >= 2
    error = 10.0 * abs(z[where]) / np.sqrt(gram[where, where])
    for i in range(len(z)):
        if i == where or abs(z[i]) <= max(slack[i], error * np.sqrt(gram[i, i])):
            on[i] = True
    return on


@njit(cache=True, nogil=True)
def note(log: Array, used: int, moment: float, j: int, point: int, code: int) -> int:
    """Write one row of a list of crossings; returns how many rows are used."""
    log[used, 0] = moment
    log[used, 1] = j
    log[used, 2] = point
    log[used, 3] = code
    return used + 1


@njit(cache=True, nogil=True)
def _write(log: Array, used: int, moment: float, j: int, before: Array, row: Array) -> int:
    """List the changes of a row; the end of a slide is a release and what follows."""
    for i in range(len(row)):
        if before[i] == row[i] or (before[i] >= 2 and row[i] >= 2):
            continue
        if before[i] >= 2:
            used = note(log, used, moment, j, i, RELEASE)
        used = note(log, used, moment, j, i, row[i])
    return used


@njit(cache=True, nogil=True)
def walk(
    j: int,
    a: float,
    w: Array,
    z: Array,
    row: Array,
    forces: Array,
    rho: Array,
    pull: Array,
    push: Array,
    nodes: Array,
    points: Points,
    tables: Tables,
    step: float,
    slack: Array,
    near: float,
    far: float,
    unit: float,
    hidden: bool,
    log: Array,
    used: int,
    weight: float,
    kinks: Array,
) -> tuple[float, int, float, int]:
    """Carry one light neuron through the step across its events; ``w, z, row`` change.

    ``forces`` (K, n), and for its row at the start the multipliers ``rho``, ``g`` in ``pull`` and
    ``X g`` in ``push``, are values at the ``nodes``; the last two are used as scratch. A
    pre-activation below ``slack`` is zero; ``near, far, unit`` are those of `releases`. Events go
    to rows of ``log`` from ``used`` on: moment, j, point, new mode or code. ``kinks`` (S, n) gains
    ``weight`` times what its outputs at the Radau nodes differ from those in its first row. Returns
    ``(a, used, tau, point)``; ``tau <= 1`` is an event the caller must handle (at ``w = 0`` all
    planes meet; a change of sign in a slide); the returned state is then void.
    """
    X, gram = points.X, points.gram
    n, d = X.shape
    stages, knots = len(tables.gauss), len(nodes)
    only = np.int64(0)  # the one row; a literal would compile other versions of the kernels
    zs, ws, rows = z.reshape(1, n), w.reshape(1, d), row.reshape(1, n)
    scale = denominators(nodes)
    mix, now = np.empty((stages, knots)), np.empty((1, knots))
    value, slope, turn = np.empty(stages), np.empty(stages), np.empty(stages + 1)
    speed, here = np.empty((stages + 1, n)), np.empty((1, n))
    work = np.empty(tables.path.shape[0])
    bare, feel = pull.copy(), push.copy()
    held = np.flatnonzero(row >= 2)
    for p in range(len(held)):
        for k in range(knots):
            _add(bare, feel, k, -rho[k, held[p]], held[p], X, gram)
    start, where = 0.0, -1
    for turns in range(4 * n + 8):
        if start >= 1.0 or not (row == 1).any():
            return a, used, 2.0, -1
        normal, balance = _balance(bare, feel, held, X, gram, pull, push)
        _onto(w, held, normal, X)
        along, products = products_of(pull, ws)
        # look at all that is left of the step for the next event
        output, share = passage(
            start, 1.0, a, along, products, nodes, scale, step, tables, hidden, mix, value, slope
        )
        weights_at(nodes, scale, start, now, only)
        combine(now, only, push, speed, only)
        for i in range(n):
            speed[0, i] *= a
        for k in range(stages):
            combine(mix, k, push, speed, k + 1)
            for i in range(n):
                speed[k + 1, i] *= value[k]
        left = 1.0 - start
        tau, where = first_boundary(zs, rows, only, speed, left * step, tables.path, slack, work)
        end = start + tau * left if where >= 0 else 1.0
        moment, leaving, up = first_release(
            start, balance, forces, held, normal, row, gram, nodes, scale, tables.nodes,
            tables.force, near, far, unit,
        )  # fmt: skip
        release = leaving >= 0 and moment <= end
        if release:
            end, where = moment, leaving
        if not hidden and a * a < np.dot(w, w) * (1.0 - 1e-12):
            turn[0] = np.dot(now[0], along)
            turn[1:] = slope
            flip = start + left * first_flip(a, turn, left * step, tables.path, work)
            if flip <= end:
                if len(held) or used >= len(log):
                    return a, used, flip, -1
                flip = moment_of_flip(flip, start, a, along, products, nodes, scale, step, tables)
                used = note(log, used, flip, j, -1, FLIP)
        if where >= 0:
            end, output, share = _go(
                start, end, where, release, a, z[where], along, products, push, nodes, scale, step,
                tables, hidden, slack[where], mix, value, slope,
            )  # fmt: skip
        for k in range(stages if weight != 0.0 else 0):
            at = tables.radau[k]
            if at > end if turns == 0 else start < at <= end:
                _contribute(
                    kinks, k, -weight if turns == 0 else weight, start, a, z, along, products, push,
                    row, nodes, scale, step, tables, hidden,
                )  # fmt: skip
        for k in range(knots):
            for i in range(n):
                z[i] += share[k] * push[k, i]
            for q in range(d):
                w[q] += share[k] * pull[k, q]
        a = output
        if where < 0:
            _onto(w, held, normal, X)
            return a, used, 2.0, -1
        on = _planes_met(z, row, where, slack, gram)
        if used + 2 * n > len(log) or (not release and on.all()):
            return a, used, end, where
        weights_at(nodes, scale, end, now, only)
        combine(now, only, forces, here, only)
        before = row.copy()
        if release:
            if not let_go(a, here[0], gram, row, where, up, far, unit):
                return a, used, end, where
        else:
            combine(now, only, push, speed, only)
            settle(a, here[0], gram, row, on, a * speed[0])
            # put it exactly on the plane: the next step must not find the same crossing again
            off = np.dot(X[where], w) / gram[where, where]
            for q in range(d):
                w[q] -= off * X[where, q]
            for i in range(n):
                if on[i]:
                    z[i] = 0.0
        z[where] = 0.0
        bury(row)
        used = _write(log, used, end, j, before, row)
        for i in range(n):
            change = int(row[i] == 1) - int(before[i] == 1)
            if change != 0:
                for k in range(knots):
                    _add(bare, feel, k, change * forces[k, i], i, X, gram)
        held = np.flatnonzero(row >= 2)
        start = end
    return a, used, start, where


@njit(cache=True, nogil=True)
def _go(
    start: float,
    end: float,
    where: int,
    release: bool,
    a: float,
    z: float,
    along: Array,
    products: Array,
    push: Array,
    nodes: Array,
    scale: Array,
    step: float,
    tables: Tables,
    hidden: bool,
    slack: float,
    mix: Array,
    value: Array,
    slope: Array,
) -> tuple[float, float, Array]:
    """Go to an event; correct the time of a plane until the neuron is there.

    What is left is projected out, and would change the balance.
    """
    knots = len(nodes)
    now = np.empty((1, knots))
    output, share = a, np.zeros(knots)
    for go in range(4):
        output, share = passage(
            start, end, a, along, products, nodes, scale, step, tables, hidden, mix, value, slope
        )
        if release:
            break
        off = z
        for k in range(knots):
            off += share[k] * push[k, where]
        if abs(off) <= 10.0 * slack or go == 3:
            break
        weights_at(nodes, scale, end, now, 0)
        pace = 0.0
        for k in range(knots):
            pace += now[0, k] * push[k, where]
        moment = end - off / (output * pace * step) if output * pace != 0.0 else end
        if not (start < moment <= 1.0 and abs(moment - end) < 0.1 * (end - start)):
            break
        end = moment
    return end, output, share


@njit(cache=True, nogil=True)
def _contribute(
    kinks: Array,
    k: int,
    weight: float,
    start: float,
    a: float,
    z: Array,
    along: Array,
    products: Array,
    push: Array,
    row: Array,
    nodes: Array,
    scale: Array,
    step: float,
    tables: Tables,
    hidden: bool,
) -> None:
    """Add the output at Radau node k of a neuron that goes on from ``start`` in its row."""
    stages, knots = len(tables.gauss), len(nodes)
    mix, value, slope = np.empty((stages, knots)), np.empty(stages), np.empty(stages)
    output, share = passage(
        start, tables.radau[k], a, along, products, nodes, scale, step, tables, hidden, mix, value,
        slope,
    )  # fmt: skip
    for i in range(len(z)):
        if row[i] == 1:
            there = z[i]
            for r in range(knots):
                there += share[r] * push[r, i]
            kinks[k, i] += weight * output * there
