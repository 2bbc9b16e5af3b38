r"""The collocation equations of a step, solved for the forces at the Radau nodes.

Given forces at the nodes, `node_outputs` carries all neurons there and returns the outputs. The
step is solved when these outputs give back the forces; `solve_square` finds such forces by Newton's
method with the tangent kernel of the start of the step (`margins` for classification losses).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.classes import pulls, speeds, spread
from reluflow.kernels.layout import Neurons, Points, Rows, Tables
from reluflow.kernels.transport import class_matrices, dot3, invert

MAX_ITERATIONS = 12


@njit(cache=True, nogil=True)
def node_outputs(
    c: Array, neurons: Neurons, rows: Rows, X: Array, step: float, A: Array, hidden: bool
) -> Array:
    """Outputs (S, n) at the nodes of neurons carried by forces ``c`` (S, n) at the nodes.

    Sums over the neurons of a class come first, products with the points once a class.
    """
    m, n = neurons.z.shape
    rho = spread(c, rows)
    gx, gam = pulls(rho, rows, X)
    classes, stages, _ = rho.shape
    _, inverse = class_matrices(gx, step, A, hidden)
    first = np.zeros((classes, stages, n))
    second = np.zeros((classes, stages, stages))
    b = np.empty(stages)
    rhs = np.empty(stages)
    out = np.empty(stages)
    for j in range(m):
        e = neurons.weight[j]
        k = rows.cid[j]
        if e == 0.0 or k < 0:
            continue
        if hidden:
            out[:] = neurons.a[j]
        else:
            for s in range(stages):
                b[s] = dot3(rho, k, s, neurons.z, j)
            for s in range(stages):
                total = 0.0
                for r in range(stages):
                    total += A[s, r] * b[r]
                rhs[s] = neurons.a[j] + step * total
            for s in range(stages):
                total = 0.0
                for r in range(stages):
                    total += inverse[k, s, r] * rhs[r]
                out[s] = total
        for s in range(stages):
            f = e * out[s]
            for i in range(n):
                first[k, s, i] += f * neurons.z[j, i]
            for r in range(stages):
                second[k, s, r] += f * out[r]
    h = np.zeros((stages, n))
    for k in range(classes):
        for s in range(stages):
            for r in range(stages):
                f = step * A[s, r] * second[k, s, r]
                for i in range(n):
                    first[k, s, i] += f * gam[k, r, i]
            for i in range(n):
                if rows.active[k, i]:
                    h[s, i] += first[k, s, i]
    return h


@njit(cache=True, nogil=True)
def settled(size: float, previous: float, goal: float, rounding: float) -> bool:
    """Whether the residual that this change leaves is below the goal, or down to rounding.

    The iteration contracts by about ``size / previous``, so it leaves ``size^2 / previous``.
    """
    if size <= goal:
        return True
    if previous < np.inf and size <= 0.3 * previous and size * size <= goal * previous:
        return True
    return size > 0.5 * previous and size <= 100.0 * rounding


@njit(cache=True, nogil=True)
def eigen(kernel: Array, kappa: float) -> tuple[Array, Array]:
    """Eigenvalues (never negative) and eigenvectors of kappa times the kernel."""
    values, vectors = np.linalg.eigh(kappa * kernel)
    return np.maximum(values, 0.0), np.ascontiguousarray(vectors)


@njit(cache=True, nogil=True)
def linear_forces(c0: Array, values: Array, vectors: Array, times: Array) -> Array:
    """Forces at ``times`` if the kernel stayed as it is: exact for the last, linear phase."""
    n = len(c0)
    part = np.dot(c0, vectors)
    modes = np.empty((len(times), n))
    for k in range(len(times)):
        for e in range(n):
            modes[k, e] = np.exp(-times[k] * values[e]) * part[e]
    forces: Array = np.dot(modes, vectors.T)
    return forces


@njit(cache=True, nogil=True)
def rebent(bend: Array, nodes: Array, ratio: float) -> Array:
    """What the forecast misses in a step ``ratio`` times as long as one that missed ``bend``.

    The polynomial through 0 at the start and the rows of ``bend`` at the other ``nodes``.
    """
    stages, n = bend.shape
    out = np.zeros((stages, n))
    for k in range(stages):
        tau = ratio * nodes[k + 1]
        for q in range(stages):
            weight = 1.0
            for r in range(stages + 1):
                if r != q + 1:
                    weight *= (tau - nodes[r]) / (nodes[q + 1] - nodes[r])
            for i in range(n):
                out[k, i] += weight * bend[q, i]
    return out


@njit(cache=True, nogil=True)
def solve_square(
    neurons: Neurons,
    rows: Rows,
    points: Points,
    tables: Tables,
    c0: Array,
    values: Array,
    vectors: Array,
    kernel: Array,
    kappa: float,
    step: float,
    bend: Array,
    ratio: float,
    goal: float,
    rounding: float,
    hidden: bool,
    kinks: Array,
) -> tuple[int, Array, Array, Array]:
    r"""Iterate on the forces at the nodes: ``c - kappa (y - out(c) - kinks) = 0``.

    ``values, vectors`` are the eigenpairs of kappa times the kernel (empty: plain iteration). With
    the forces as unknowns the rounding of the outputs enters divided by :math:`1 + H\lambda`;
    recomputed from the outputs they would be multiplied by it when the step is carried out. The
    iteration starts from a linear forecast plus ``bend``, what it missed in a step ``1 / ratio``
    times as long. ``kinks`` (S, n) is what neurons that leave their rows add to the outputs.
    Returns ``(iterations, outputs, forces, bend)``, 0 iterations on failure.
    """
    n = len(c0)
    stages = len(tables.radau)
    stiff = len(values) > 0
    if stiff:
        forecast = linear_forces(c0, values, vectors, step * tables.radau)
    else:
        slope = kappa * np.dot(kernel, c0)
        forecast = np.empty((stages, n))
        for k in range(stages):
            for i in range(n):
                forecast[k, i] = c0[i] - step * tables.radau[k] * slope[i]
    c = forecast + rebent(bend, tables.nodes, ratio)
    blocks = np.zeros((len(values), stages, stages))
    for e in range(len(values)):
        for k in range(stages):
            blocks[e, k, k] = 1.0
            for q in range(stages):
                blocks[e, k, q] += step * values[e] * tables.radau_a[k, q]
        invert(blocks[e])
    out = c
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        out = node_outputs(c, neurons, rows, points.X, step, tables.radau_a, hidden) + kinks
        change = kappa * (points.y - out) - c
        size = np.abs(change).max() / kappa
        if not np.isfinite(size):
            return 0, out, c, bend
        if stiff:
            turned = np.dot(change, vectors)
            solved = np.empty((stages, n))
            for e in range(n):
                for k in range(stages):
                    total = 0.0
                    for q in range(stages):
                        total += blocks[e, k, q] * turned[q, e]
                    solved[k, e] = total
            change = np.dot(solved, vectors.T)
        c += change
        if settled(size, previous, goal, rounding):
            return iteration, out, c, c - forecast
        if size > 2.0 * previous and iteration > 2:
            return 0, out, c, bend
        previous = size
    return 0, out, c, bend


@njit(cache=True, nogil=True)
def defects(
    c0: Array, c: Array, rows: Rows, points: Points, to_start: Array
) -> tuple[float, float, float]:
    """Return ``(defect, largest, fastest)`` of a solved step.

    The force polynomial misses the known start value by ``defect``; ``largest`` is the largest
    force, both times the lengths of the points; ``fastest`` the largest ``|g|`` at the end.
    """
    largest = 0.0
    defect = 0.0
    for i in range(len(c0)):
        top = abs(c0[i])
        start = 0.0
        for k in range(len(c)):
            top = max(top, abs(c[k, i]))
            start += to_start[k] * c[k, i]
        largest = max(largest, top * points.lengths[i])
        defect = max(defect, abs(start - c0[i]) * points.lengths[i])
    fastest = 0.0
    if len(rows.active):
        fastest = speeds(c[len(c) - 1], rows, points.X).max()
    return defect, largest, fastest
