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
from reluflow.kernels.exits import first_boundary, first_flip
from reluflow.kernels.layout import FLIP, Neurons, Points, Rows, Tables
from reluflow.kernels.passage import denominators, moment_of_flip, products_of
from reluflow.kernels.transport import class_matrices, dot2, dot3, node_speeds, slopes
from reluflow.kernels.walking import note, walk

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
    leaving: Array,
    near: float,
    far: float,
    unit: float,
    patient: bool,
    log: Array,
    kinks: Array,
) -> tuple[Array, Array, NDArray[Any], Array, NDArray[Any], NDArray[Any], np.int64, bool]:
    """End states of all neurons and the first boundary each of them meets.

    ``c0`` and ``c`` are the forces at the start and at the Radau nodes; a pre-activation below
    ``on_plane`` times the size of the neuron and the length of the point is zero; ``leaving`` and
    its ``near, far, unit`` belong to `releases`. Events of ``light`` neurons are carried out here
    and listed in the first ``used`` rows of ``log`` (tau, neuron, point, new mode or code); what
    they add to the outputs at the Radau nodes by leaving their rows goes to ``kinks`` (not so late
    in the step that it would spoil the forces before). Returns
    ``(a1, w1, mode1, tau, point, met, used, whole)``. ``tau[j] <= 1`` marks the first event of
    neuron j that the caller must handle (``point -1``: its output weight changes sign, possible
    only if ``|a| < |w|``); ``met`` lists these neurons. A change of sign away from all planes has
    no consequences and is listed with the crossings. Ends of slides the caller finds in
    ``leaving``, where they matter to a neuron that is not light.

    The others go first. If one of them meets an event well inside the step, the step will be
    shortened: the light neurons are then left alone, and ``whole`` is false; not if the caller is
    ``patient``. A neuron whose first event comes so late in the step that its kink is below the
    tolerance, ``size (1 - tau)^2 < late``, becomes light if it is not ``heavy`` and what follows is
    at most the share ``tail`` of the step, in which the outputs do not react.
    """
    z, w, mode, path = neurons.z, neurons.w, neurons.mode, tables.path
    m, n = z.shape
    d = w.shape[1]
    classes, stages = len(rows.active), len(c)
    forces = np.empty((stages + 1, n))
    forces[0] = c0
    forces[1:] = c
    hold = spread(forces, rows)
    pull, push = pulls(hold, rows, points.X)
    rho, gx = _at_gauss(hold, tables.to_gauss), _at_gauss(pull, tables.to_gauss)
    gam = _at_gauss(push, tables.to_gauss)
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
    slack = np.empty(n)
    work = np.empty(path.shape[0])
    swing, leaves = np.zeros(classes), np.full(classes, 2.0)
    for k in range(classes):
        for p in range(rows.begin[k], rows.begin[k + 1]):
            swing[k] += step * points.lengths[rows.point[p]] * abs(hold[k, 0, rows.point[p]])
            leaves[k] = min(leaves[k], leaving[p])
    first = np.int64(0)
    # inside the step the force of the start helps, unless the outputs forget it at once
    known = 0 if tail == 1.0 else 1
    nodes, seen = tables.nodes[known:].copy(), forces[known:].copy()
    scale = denominators(nodes)
    comes_late = np.zeros(m, np.bool_)
    cut, whole = 2.0, True
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
                slack[i] = size * points.lengths[i]
            for s in range(stages):
                b[s] = dot3(rho, k, s, z, j)
            slopes(a, b, gg, inverse, k, step, tables.gauss_a, hidden, value, slope)
            node_speeds(a, value, push, gam, k, speed)
            tau[j], point[j] = first_boundary(z, mode, j, speed, step, path, slack, work)
            slides = rows.begin[k] < rows.begin[k + 1]
            if not hidden and a * a < square * (1.0 - 1e-12):
                turn[0] = dot3(pull, k, first, w, j)
                turn[1:] = slope
                flip = first_flip(a, turn, step, path, work)
                if flip <= 1.0 and tau[j] > 1.0 and not slides and used < len(log):
                    along, products = products_of(pull[k, known:], w[j : j + 1])
                    flip = moment_of_flip(flip, 0.0, a, along, products, nodes, scale, step, tables)
                    used = note(log, used, flip, j, -1, FLIP)
                elif flip < min(tau[j], leaves[k]) and (slides or not last):
                    tau[j] = flip
                    point[j] = -1
            soon = min(tau[j], leaves[k])
            if not last:
                changes_sign = tau[j] <= 1.0 and point[j] < 0
                if soon <= 1.0 and 1.0 - soon <= tail and not (heavy[j] or changes_sign):
                    size = neurons.weight[j] * (a * a + square)
                    if size * (1.0 - soon) ** 2 < late:
                        light[j] = comes_late[j] = True
                        tau[j] = 2.0
                        continue
                cut = min(cut, soon)
            if light[j] and soon <= 1.0 and (point[j] >= 0 or leaves[k] < tau[j]):
                a1[j], used, tau[j], point[j] = walk(
                    j, a, w1[j], z[j].copy(), mode1[j], seen, hold[k, known:].copy(),
                    pull[k, known:].copy(), push[k, known:].copy(), nodes, points, tables, step,
                    slack, near, far, unit, hidden, log, used,
                    0.0 if comes_late[j] else neurons.weight[j], kinks,
                )  # fmt: skip
                continue
            for s in range(stages):
                f = step * tables.gauss_b[s] * value[s]
                for q in range(d):
                    w1[j, q] += f * gx[k, s, q]
                a1[j] += step * tables.gauss_b[s] * slope[s]
            if slides:
                _back_on_planes(w1[j], rows, k, points.X)
    _only_heavy(leaving, rows, light)
    return a1, w1, mode1, tau, point, np.flatnonzero(tau <= 1.0), used, whole


@njit(cache=True, nogil=True)
def _at_gauss(values: Array, to_gauss: Array) -> Array:
    """Values (C, S, n) at the Gauss nodes of what is known at the start and the Radau nodes."""
    classes, knots, n = values.shape
    out = np.zeros((classes, knots - 1, n))
    for k in range(classes):
        for s in range(knots - 1):
            for r in range(knots - 1):
                for i in range(n):
                    out[k, s, i] += to_gauss[s, r] * values[k, r + 1, i]
    return out


@njit(cache=True, nogil=True)
def _only_heavy(leaving: Array, rows: Rows, light: NDArray[Any]) -> None:
    """Forget the ends of slides of classes that have light neurons only; ``leaving`` changes."""
    matters = np.zeros(len(rows.active), np.bool_)
    for j in range(len(light)):
        if rows.cid[j] >= 0 and not light[j]:
            matters[rows.cid[j]] = True
    for k in range(len(matters)):
        if not matters[k]:
            leaving[rows.begin[k] : rows.begin[k + 1]] = 2.0


@njit(cache=True, nogil=True)
def light_ones(neurons: Neurons, rows: Rows, heavy: NDArray[Any], bound: float) -> NDArray[Any]:
    """Living neurons of size below ``bound``, without the ``heavy``."""
    m, d = neurons.w.shape
    light = np.zeros(m, np.bool_)
    for j in range(m):
        size = neurons.a[j] * neurons.a[j]
        for q in range(d):
            size += neurons.w[j, q] * neurons.w[j, q]
        light[j] = rows.cid[j] >= 0 and neurons.weight[j] * size < bound and not heavy[j]
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
