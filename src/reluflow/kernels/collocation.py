r"""The collocation equations of a step, solved for the forces at the Radau nodes.

Given forces at the nodes, `node_outputs` carries all neurons there and returns the outputs. The
step is solved when these outputs give back the forces; `solve_square` and `solve_margin` find such
forces by Newton's method with the tangent kernel of the start of the step.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.classes import (
    outputs,
    pulls,
    rescale,
    rows_of,
    speeds,
    spread,
    tangent_kernel,
)
from reluflow.kernels.layout import Neurons, Points, Rows, Tables
from reluflow.kernels.transport import class_matrices, invert

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
                total = 0.0
                for i in range(n):
                    total += rho[k, s, i] * neurons.z[j, i]
                b[s] = total
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
def _settled(size: float, previous: float, goal: float, rounding: float) -> bool:
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
) -> tuple[int, Array, Array, Array]:
    r"""Iterate on the forces at the nodes: ``c - kappa (y - out(c)) = 0``.

    ``values, vectors`` are the eigenpairs of kappa times the kernel (empty: plain iteration). With
    the forces as unknowns the rounding of the outputs enters divided by :math:`1 + H\lambda`;
    recomputed from the outputs they would be multiplied by it when the step is carried out. The
    iteration starts from a linear forecast plus ``bend``, what it missed in a step ``1 / ratio``
    times as long. Returns ``(iterations, outputs, forces, bend)``, 0 iterations on failure.
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
        out = node_outputs(c, neurons, rows, points.X, step, tables.radau_a, hidden)
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
        if _settled(size, previous, goal, rounding):
            return iteration, out, c, c - forecast
        if size > 2.0 * previous and iteration > 2:
            return 0, out, c, bend
        previous = size
    return 0, out, c, bend


@njit(cache=True, nogil=True)
def shares(h: Array, y: Array, logistic: bool) -> Array:
    """Forces ``y_i p_i`` (S, n) of a classification loss in its own clock; the p sum to one."""
    c = np.empty(h.shape)
    stages, n = h.shape
    for k in range(stages):
        top = -np.inf
        for i in range(n):
            q = y[i] * h[k, i]
            slope = -q
            if logistic:
                slope = -max(q, 0.0) - np.log1p(np.exp(-abs(q)))
            c[k, i] = slope
            top = max(top, slope)
        total = 0.0
        for i in range(n):
            c[k, i] = np.exp(c[k, i] - top)
            total += c[k, i]
        for i in range(n):
            c[k, i] *= y[i] / total
    return c


@njit(cache=True, nogil=True)
def share_jacobian(h: Array, c: Array, y: Array, logistic: bool) -> Array:
    """The matrix ``-dc/dh`` (n, n) at outputs ``h`` (n,) with forces ``c``."""
    n = len(h)
    jacobian = np.empty((n, n))
    for k in range(n):
        # d log(-l')/dq is -1 for the exponential and -sigmoid(q) for the logistic loss
        bend = 1.0
        if logistic:
            q = y[k] * h[k]
            bend = 1.0 / (1.0 + np.exp(-q)) if q >= 0 else np.exp(q) / (1.0 + np.exp(q))
        for i in range(n):
            jacobian[i, k] = -c[i] * abs(c[k]) * bend * y[k]
        jacobian[k, k] += abs(c[k]) * bend
    return jacobian


@njit(cache=True, nogil=True)
def solve_margin(
    neurons: Neurons,
    rows: Rows,
    points: Points,
    tables: Tables,
    h0: Array,
    c0: Array,
    kernel: Array,
    stiff: bool,
    logistic: bool,
    step: float,
    bend: Array,
    ratio: float,
    goal: float,
    rounding: float,
    hidden: bool,
) -> tuple[int, Array, Array, Array]:
    """Iterate on the outputs at the nodes: ``h - out(c(h)) = 0``.

    The shares have their own Jacobian at each node. Otherwise as `solve_square`.
    """
    n = len(h0)
    stages = len(tables.radau)
    slope = np.dot(kernel, c0)
    forecast = np.empty((stages, n))
    for k in range(stages):
        for i in range(n):
            forecast[k, i] = h0[i] + step * tables.radau[k] * slope[i]
    h = forecast + rebent(bend, tables.nodes, ratio)
    c = h
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        c = shares(h, points.y, logistic)
        change = node_outputs(c, neurons, rows, points.X, step, tables.radau_a, hidden) - h
        if not np.all(np.isfinite(change)):
            return 0, h, c, bend
        if stiff:
            matrix = np.empty((stages * n, stages * n))
            for q in range(stages):
                block = np.dot(kernel, share_jacobian(h[q], c[q], points.y, logistic))
                for k in range(stages):
                    f = step * tables.radau_a[k, q]
                    for i in range(n):
                        for r in range(n):
                            matrix[k * n + i, q * n + r] = f * block[i, r]
            for k in range(stages * n):
                matrix[k, k] += 1.0
            change = np.linalg.solve(matrix, change.reshape(stages * n)).reshape(stages, n)
        h += change
        size = np.abs(change).max()
        if _settled(size, previous, goal, rounding):
            return iteration, h, shares(h, points.y, logistic), h - forecast
        if size > 2.0 * previous and iteration > 2:
            return 0, h, c, bend
        previous = size
    return 0, h, c, bend


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


@njit(cache=True, nogil=True)
def prepare(
    a: Array,
    w: Array,
    sigma: Array,
    mode: Array,
    points: Points,
    square: bool,
    logistic: bool,
    kappa: float,
    hidden: bool,
) -> tuple[Array, ...]:
    """Everything known at the start of a step: the arrays of `Rows`, then those of the state.

    These are ``z, weight, h, c, kernel, speeds`` and, in one array, the largest sum of sizes in an
    output, the largest row sum of kappa times the kernel and the largest speed. Weights are
    rescaled in place.
    """
    if not hidden:
        rescale(a, w, sigma)
    rows = rows_of(mode, points.X, points.gram)
    z, weight, h, sizes = outputs(a, w, sigma, mode, points.X)
    kernel = tangent_kernel(a, z, weight, rows, points.gram, hidden)
    c = kappa * (points.y - h)
    if not square:
        c = shares(h.reshape(1, len(h)), points.y, logistic)[0]
    moving = speeds(c, rows, points.X)
    fastest = moving.max() if len(moving) else 0.0
    scales = np.array([sizes, kappa * np.abs(kernel).sum(axis=1).max(), fastest])
    return (
        rows.cid, rows.active, rows.begin, rows.point, rows.dual, rows.lift,
        z, weight, h, c, kernel, moving, scales,
    )  # fmt: skip
