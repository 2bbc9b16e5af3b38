r"""All neurons through a solved step: end states, first exits, ends of slides.

Gauss collocation keeps every quadratic invariant of a linear equation: the transformation of a
class is a Lorentz transformation to rounding, whatever the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.classes import pulls, spread
from reluflow.kernels.exits import first_boundary, first_exit, first_flip
from reluflow.kernels.flips import moment_of_flip
from reluflow.kernels.layout import Neurons, Points, Rows, Tables
from reluflow.kernels.transport import class_matrices, dot2, dot3, node_speeds, slopes
from reluflow.kernels.walking import walk

# the code of a change of sign in a list of crossings, beside the modes
FLIP = 6
# an event before this share of a step will shorten it
WELL_INSIDE = 1.0 - 1e-6


@njit(cache=True, nogil=True)
def advance(
    neurons: Neurons,
    rows: Rows,
    points: Points,
    tables: Tables,
    c0: Array,
    c: Array,
    step: float,
    light: NDArray[Any],
    heavy: NDArray[Any],
    late: float,
    tail: float,
    hidden: bool,
    on_plane: float,
    cut: float,
    patient: bool,
    log: Array,
) -> tuple[Array, Array, NDArray[Any], Array, NDArray[Any], NDArray[Any], np.int64, bool]:
    """End states of all neurons and the first boundary each of them meets.

    ``c0`` and ``c`` are the forces at the start and at the Radau nodes; a pre-activation below
    ``on_plane`` times the size of the neuron and the length of the point is zero. Plain crossings
    of ``light`` neurons are carried out here and listed in the first ``used`` rows of ``log`` (tau,
    neuron, point, new mode). Returns ``(a1, w1, mode1, tau, point, met, used, whole)``.
    ``tau[j] <= 1`` marks the first event of neuron j that the caller must handle (``point -1``: its
    output weight changes sign, possible only if ``|a| < |w|``); ``met`` lists these neurons. A
    change of sign away from all planes has no consequences and is listed with the crossings.

    The others go first. If one of them meets an event well inside the step, or ``cut`` lies there,
    the step will be shortened: the light neurons are then left alone, and ``whole`` is false;
    not if the caller is ``patient``. A neuron that meets its plane so late in the step that its
    kink is below the tolerance, ``size (1 - tau)^2 < late``, becomes light if it is not ``heavy``
    and what follows is at most the share ``tail`` of the step, in which the outputs do not react.
    """
    z, w, mode, path = neurons.z, neurons.w, neurons.mode, tables.path
    m, n = z.shape
    d = w.shape[1]
    stages = len(c)
    forces = np.empty((stages + 1, n))
    forces[0] = c0
    forces[1:] = c
    rho = spread(np.dot(tables.to_gauss, c), rows)
    gx, gam = pulls(rho, rows, points.X)
    hold = spread(forces, rows)
    pull, push = pulls(hold, rows, points.X)
    gg, inverse = class_matrices(gx, step, tables.gauss_a, hidden)
    a1 = neurons.a.copy()
    w1 = neurons.w.copy()
    mode1 = neurons.mode.copy()
    tau = np.full(m, 2.0)
    point = np.full(m, -1)
    used = np.int64(0)  # not a literal, of which the kernels would have versions of their own
    speed = np.empty((stages + 1, n))
    turn = np.empty(stages + 1)
    b = np.empty(stages)
    value = np.empty(stages)
    slope = np.empty(stages)
    near = np.empty(n)
    work = np.empty(path.shape[0])
    swing = np.zeros(len(rows.active))
    for k in range(len(rows.active)):
        for p in range(rows.begin[k], rows.begin[k + 1]):
            swing[k] += step * points.lengths[rows.point[p]] * abs(hold[k, 0, rows.point[p]])
    first = np.int64(0)
    # inside the step the force of the start helps, unless the outputs forget it at once
    known = 0 if tail == 1.0 else 1
    nodes, seen = tables.nodes[known:].copy(), forces[known:].copy()
    whole = True
    for last in (False, True):
        whole = not last or patient or cut > WELL_INSIDE
        for j in range(m if whole else 0):
            k = rows.cid[j]
            if k < 0 or light[j] != last:
                continue
            a = neurons.a[j]
            square = dot2(w, j, w, j)
            size = on_plane * np.sqrt(square if hidden else a * a + square)
            if hidden:  # a neuron held at the origin moves by the rounding of forces that cancel
                size += on_plane * abs(a) * swing[k]
            for i in range(n):
                near[i] = size * points.lengths[i]
            for s in range(stages):
                b[s] = dot3(rho, k, s, z, j)
            slopes(a, b, gg, inverse, k, step, tables.gauss_a, hidden, value, slope)
            node_speeds(a, value, push, gam, k, speed)
            tau[j], point[j] = first_boundary(z, mode, j, speed, step, path, near, work)
            if not hidden and a * a < square * (1.0 - 1e-12):
                turn[0] = dot3(pull, k, first, w, j)
                turn[1:] = slope
                flip = first_flip(a, turn, step, path, work)
                free = tau[j] > 1.0 and rows.begin[k] == rows.begin[k + 1]
                if flip <= 1.0 and free and used < len(log):
                    log[used, 0] = moment_of_flip(
                        flip, a, w[j : j + 1], pull[k, known:].copy(), nodes, step,
                        tables.gauss, tables.gauss_a, tables.gauss_b,
                    )  # fmt: skip
                    log[used, 1] = j
                    log[used, 2] = -1
                    log[used, 3] = FLIP
                    used += 1
                elif flip < tau[j]:
                    tau[j] = flip
                    point[j] = -1
            if not last:
                late_one = _comes_late(neurons, rows, j, tau[j], point[j], square, late)
                if late_one and not heavy[j] and 1.0 - tau[j] <= tail:
                    light[j] = True
                    tau[j] = 2.0
                    continue
                cut = min(cut, tau[j])
            if tau[j] <= 1.0 and light[j] and point[j] >= 0:
                a1[j], used, tau[j], point[j] = walk(
                    j, tau[j], point[j], a, w1[j], z[j].copy(), mode1[j], seen,
                    hold[k, known:].copy(), pull[k, known:].copy(), push[k, known:].copy(), nodes,
                    points.X, points.gram, step, tables.gauss, tables.gauss_a, tables.gauss_b,
                    path, near, hidden, log, used,
                )  # fmt: skip
            else:
                for s in range(stages):
                    f = step * tables.gauss_b[s] * value[s]
                    for q in range(d):
                        w1[j, q] += f * gx[k, s, q]
                    a1[j] += step * tables.gauss_b[s] * slope[s]
            if rows.begin[k] < rows.begin[k + 1]:
                _back_on_planes(w1[j], rows, k, points.X)

    return a1, w1, mode1, tau, point, np.flatnonzero(tau <= 1.0), used, whole


@njit(cache=True, nogil=True)
def _comes_late(
    neurons: Neurons, rows: Rows, j: int, tau: float, point: int, square: float, late: float
) -> bool:
    k = rows.cid[j]
    if tau > 1.0 or point < 0 or rows.begin[k + 1] - rows.begin[k] > 1:
        return False
    size = neurons.weight[j] * (neurons.a[j] * neurons.a[j] + square)
    return bool(size * (1.0 - tau) ** 2 < late)


@njit(cache=True, nogil=True)
def light_ones(neurons: Neurons, rows: Rows, heavy: NDArray[Any], bound: float) -> NDArray[Any]:
    """Neurons of size below ``bound`` that slide on at most one plane, without the ``heavy``."""
    m, d = neurons.w.shape
    light = np.zeros(m, np.bool_)
    for j in range(m):
        size = neurons.a[j] * neurons.a[j]
        for q in range(d):
            size += neurons.w[j, q] * neurons.w[j, q]
        k = rows.cid[j]
        if k >= 0 and neurons.weight[j] * size < bound and not heavy[j]:
            light[j] = rows.begin[k + 1] - rows.begin[k] <= 1
    return light


@njit(cache=True, nogil=True)
def _back_on_planes(w: Array, rows: Rows, k: int, X: Array) -> None:
    """Project one neuron of class k on the planes it slides on: rounding would take it off them."""
    first, last = rows.begin[k], rows.begin[k + 1]
    off = np.empty(last - first)
    for p in range(first, last):
        off[p - first] = np.dot(X[rows.point[p]], w)
    for p in range(first, last):
        for q in range(len(w)):
            w[q] -= off[p - first] * rows.dual[p, q]


@njit(cache=True, nogil=True)
def releases(
    c0: Array, c: Array, rows: Rows, bernstein: Array, near: float, far: float, scale: float
) -> tuple[Array, Array, NDArray[Any]]:
    """First time (P,) in the step at which each sliding weight leaves [0, 1]; 2.0 if it stays.

    The weight is ``rho_i / c_i``; ``rho_i`` and ``c_i - rho_i`` keep the sign of ``c_i`` while it
    lies inside. A weight leaves if one of them passes zero by ``far`` times the forces that make it
    up, or times ``scale`` if that is larger, for they are known no better; the time is that at
    which it is outside by ``near`` of its force (P,), the second result. The third says whether it
    leaves at 1 (to the active side).
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
        side = 1.0 if force[0] > 0.0 else -1.0
        low, high = np.dot(bernstein, rho), np.dot(bernstein, force - rho)
        if first_exit(low, side, far * unit) <= 1.0:
            tau[p] = first_exit(low, side, near * top[p])
        if first_exit(high, side, far * unit) <= 1.0:
            leaves = first_exit(high, side, near * top[p])
            up[p] = leaves < tau[p]
            tau[p] = min(tau[p], leaves)
    return tau, top, up
