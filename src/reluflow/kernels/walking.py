r"""A light neuron inside a step: across its planes, one after the other, for that neuron alone."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.boundaries import EDGE
from reluflow.kernels.exits import first_boundary
from reluflow.kernels.interpolation import combine, denominators, weights_at
from reluflow.kernels.transport import dot2, node_speeds, slopes_alone


@njit(cache=True, nogil=True)
def _holds(forces: Array, nodes: Array, bare: Array, held: int, own: float, start: float) -> bool:
    """Whether the weight of a sliding point stays in [0, 1] at every node after ``start``.

    ``bare`` is ``x.g`` of the other points at the nodes; the weight is ``-bare / (c own)``.
    """
    for k in range(len(nodes)):
        if nodes[k] > start:
            weight = -bare[k] / (forces[k, held] * own)
            if not 0.0 <= weight <= 1.0:
                return False
    return True


@njit(cache=True, nogil=True)
def _meets_another(z: Array, row: Array, where: int, slack: Array, gram: Array) -> bool:
    """Whether the neuron reaches other planes with that of ``where``: several meet at ``w = 0``.

    It has gone there with an error: ``z[where]``, over the length of the point.
    """
    error = 10.0 * abs(z[0, where]) / np.sqrt(gram[where, where])
    found = False
    for i in range(z.shape[1]):
        near = max(slack[i], error * np.sqrt(gram[i, i]))
        if i != where and row[0, i] < 2 and abs(z[0, i]) <= near:
            found = True
    return found


@njit(cache=True, nogil=True)
def walk(
    j: int,
    end: float,
    where: int,
    a: float,
    w: Array,
    z: Array,
    row: Array,
    forces: Array,
    rho: Array,
    pull: Array,
    push: Array,
    nodes: Array,
    X: Array,
    gram: Array,
    step: float,
    gauss: Array,
    A: Array,
    B: Array,
    path: Array,
    slack: Array,
    hidden: bool,
    log: Array,
    used: int,
) -> tuple[float, int, float, int]:
    """Carry one light neuron through the step across its events; ``w, z, row`` change.

    The first is known: at ``end`` it meets the plane of point ``where``.
    ``rho``, ``pull`` and ``push`` hold its multipliers, ``g`` and ``X g`` at the nodes of the force
    polynomial; a crossing adds or removes one point, a slide projects one out, in O(n + d).
    Returns ``(a, used, tau, point)``; ``tau <= 1`` is an event the caller must handle (a second
    slide, one that would end within the step, several planes at once); the returned state is then
    void.
    """
    stages, n, d = len(gauss), len(z), len(w)
    only = np.int64(0)  # the one row; a literal would compile other versions of the kernels
    g = np.empty((stages, d))
    gg = np.empty((stages, stages))
    matrix = np.empty((stages, stages))
    gam = np.empty((1, stages, n))
    gam0 = np.empty((1, 1, n))
    mix = np.empty(len(nodes))
    scale = denominators(nodes)
    zs = z.reshape(1, n)
    ws = w.reshape(1, d)
    rows = row.reshape(1, n)
    b = np.empty(stages)
    value = np.empty(stages)
    work = np.empty(path.shape[0])
    slope = np.empty(stages)
    speed = np.empty((stages + 1, n))
    here = np.empty((1, n))
    held = -1  # the point whose plane it slides on
    bare = np.zeros(len(nodes))
    for i in range(n):
        if row[i] >= 2:
            held = i
            for k in range(len(nodes)):
                bare[k] = -rho[k, i] * gram[i, i]
    start = 0.0
    for turn in range(4 * n + 8):
        alive = False
        for i in range(n):
            if row[i] == 1:
                alive = True
        if not alive or start >= 1.0:
            return a, used, 2.0, -1
        sub = 0.0
        # look at all that is left of the step for the next plane; then go there, and correct the
        # time until the neuron is there: what is left is projected out, and changes the balance
        for go in range(0 if turn else 1, 5):
            if go == 0:
                end, where = 1.0, -1
            sub = (end - start) * step
            for k in range(stages):
                weights_at(nodes, scale, start + gauss[k] * (end - start), mix)
                combine(mix, pull, g, k)
                combine(mix, push, gam[0], k)
                b[k] = dot2(g, k, ws, only)
            slopes_alone(a, b, g, sub, A, hidden, value, slope, gg, matrix)
            if go == 0:
                weights_at(nodes, scale, start, mix)
                combine(mix, push, gam0[0], only)
                node_speeds(a, value, gam0, gam, only, speed)
                tau, where = first_boundary(zs, rows, only, speed, sub, path, slack, work)
                if where < 0:
                    break
                end = start + tau * (1.0 - start)
                continue
            off = z[where]
            output = a
            for k in range(stages):
                off += sub * B[k] * value[k] * gam[0, k, where]
                output += sub * B[k] * slope[k]
            if abs(off) <= 10.0 * slack[where]:
                break
            weights_at(nodes, scale, end, mix)
            pace = 0.0
            for k in range(len(nodes)):
                pace += mix[k] * push[k, where]
            moment = end - off / (output * pace * step) if output * pace != 0.0 else end
            if go == 4 or not (start < moment <= 1.0 and abs(moment - end) < 0.1 * (end - start)):
                break
            end = moment
        for k in range(stages):
            f = sub * B[k] * value[k]
            for i in range(n):
                z[i] += f * gam[0, k, i]
            for q in range(d):
                w[q] += f * g[k, q]
            a += sub * B[k] * slope[k]
        if where < 0:
            return a, used, 2.0, -1
        if used >= len(log) or _meets_another(zs, rows, where, slack, gram):
            return a, used, end, where
        weights_at(nodes, scale, end, mix)
        combine(mix, forces, here, only)
        combine(mix, push, gam0[0], only)
        # the plane's own weight: its square length, less what the plane held takes away
        own = gram[where, where]
        if held >= 0:
            own -= gram[where, held] ** 2 / gram[held, held]
        slides = False
        if a * here[0, where] < 0.0:
            inside = gam0[0, 0, where]
            outside = inside
            if row[where] == 1:
                outside -= here[0, where] * own
            else:
                inside += here[0, where] * own
            # a weight within EDGE of 0 or 1 is a crossing: points that do not pull on each other
            edge = EDGE * abs(a * here[0, where]) * own
            slides = a * outside > edge if row[where] == 1 else a * inside < -edge
            others = False  # without another active point no force is left: the neuron dies
            for i in range(n):
                if row[i] == 1 and i != where:
                    others = True
            slides = slides and others
            if slides and held >= 0:
                return a, used, end, where
        # put it exactly on the plane: the next step must not find the same crossing again
        off = 0.0
        for q in range(d):
            off += w[q] * X[where, q]
        for q in range(d):
            w[q] -= off / gram[where, where] * X[where, q]
        z[where] = 0.0
        was = row[where]
        row[where] = was + 2 if slides else 1 - was
        for k in range(len(nodes)):
            f = 0.0
            if was == 1:
                f = -forces[k, where]
            elif not slides:
                f = forces[k, where]
            part = gram[where, held] / gram[held, held] if held >= 0 else 0.0
            for q in range(d):
                pull[k, q] += f * (X[where, q] - (part * X[held, q] if held >= 0 else 0.0))
            for i in range(n):
                push[k, i] += f * (gram[where, i] - (part * gram[held, i] if held >= 0 else 0.0))
            if held >= 0:
                bare[k] += f * gram[where, held]
            if slides:
                bare[k] = push[k, where]
                f = push[k, where] / gram[where, where]
                for q in range(d):
                    pull[k, q] -= f * X[where, q]
                for i in range(n):
                    push[k, i] -= f * gram[where, i]
                push[k, where] = 0.0
            elif held >= 0:
                push[k, held] = 0.0
        if slides:
            held = where
        alive = False
        for i in range(n):
            if row[i] == 1:
                alive = True
        if held >= 0 and not alive:
            row[held] = 0
        elif held >= 0 and not _holds(forces, nodes, bare, held, gram[held, held], end):
            return a, used, end, where
        log[used, 0] = end
        log[used, 1] = j
        log[used, 2] = where
        log[used, 3] = row[where]
        used += 1
        start = end
    return a, used, start, where
