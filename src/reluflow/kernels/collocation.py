r"""Inner loops of the collocation step: outputs at the nodes, end states, boundary crossings.

Neuron j obeys ``a' = w.g, w' = a g`` with ``g(t) = sum_i rho_i(t) x_i``. Neurons of one class
share ``rho``. With ``z_i = w.x_i`` and ``gam_l = X g_l`` a collocation method with matrix ``A``
reduces to S unknowns per neuron, the output weights ``a_l`` at the nodes:

    a_k = a_0 + H sum_l A_kl (rho_l.z_0 + H sum_q A_lq (g_l.g_q) a_q)

so the S x S matrix ``I - H^2 A (A o (g g^T))`` is inverted once per class. The products come from
the vectors ``g``, not from ``rho`` and the Gram matrix: near a limit ``g`` vanishes while ``rho``
does not, and a long step multiplies what cancellation would leave by ``H^2``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.boundaries import EDGE


@njit(cache=True, nogil=True)
def invert(matrix: Array) -> None:
    """Invert a small matrix in place (Gauss-Jordan, partial pivoting)."""
    size = matrix.shape[0]
    work = np.empty((size, 2 * size))
    for p in range(size):
        for q in range(size):
            work[p, q] = matrix[p, q]
            work[p, size + q] = 1.0 if p == q else 0.0
    for p in range(size):
        pivot = p
        for q in range(p + 1, size):
            if abs(work[q, p]) > abs(work[pivot, p]):
                pivot = q
        if pivot != p:
            for q in range(2 * size):
                work[p, q], work[pivot, q] = work[pivot, q], work[p, q]
        scale = 1.0 / work[p, p]
        for q in range(2 * size):
            work[p, q] *= scale
        for r in range(size):
            if r != p:
                factor = work[r, p]
                if factor != 0.0:
                    for q in range(2 * size):
                        work[r, q] -= factor * work[p, q]
    for p in range(size):
        for q in range(size):
            matrix[p, q] = work[p, size + q]


@njit(cache=True, nogil=True)
def class_matrices(g: Array, step: float, A: Array, hidden: bool) -> tuple[Array, Array]:
    """Return ``(gg, inverse)``: products ``g_l.g_q`` and the inverted S x S matrix, per class."""
    classes, stages, d = g.shape
    gg = np.zeros((classes, stages, stages))
    inverse = np.zeros((classes, stages, stages))
    for c in range(classes):
        for k in range(stages):
            inverse[c, k, k] = 1.0
        if hidden:
            continue
        for k in range(stages):
            for q in range(k, stages):
                total = 0.0
                for i in range(d):
                    total += g[c, k, i] * g[c, q, i]
                gg[c, k, q] = total
                gg[c, q, k] = total
        for k in range(stages):
            for q in range(stages):
                total = 0.0
                for r in range(stages):
                    total += A[k, r] * A[r, q] * gg[c, r, q]
                inverse[c, k, q] -= step * step * total
        invert(inverse[c])
    return gg, inverse


@njit(cache=True, nogil=True)
def node_outputs(
    a: Array,
    z: Array,
    weight: Array,
    cid: Array,
    active: Array,
    rho: Array,
    gx: Array,
    gam: Array,
    step: float,
    A: Array,
    hidden: bool,
) -> Array:
    """Network outputs (S, n) at the nodes, for neurons that keep their class during the step."""
    m, n = z.shape
    classes, stages, _ = rho.shape
    _, inverse = class_matrices(gx, step, A, hidden)
    first = np.zeros((classes, stages, n))
    second = np.zeros((classes, stages, stages))
    b = np.empty(stages)
    rhs = np.empty(stages)
    out = np.empty(stages)
    for j in range(m):
        e = weight[j]
        c = cid[j]
        if e == 0.0 or c < 0:
            continue
        if hidden:
            for k in range(stages):
                out[k] = a[j]
        else:
            for k in range(stages):
                total = 0.0
                for i in range(n):
                    total += rho[c, k, i] * z[j, i]
                b[k] = total
            for k in range(stages):
                total = 0.0
                for r in range(stages):
                    total += A[k, r] * b[r]
                rhs[k] = a[j] + step * total
            for k in range(stages):
                total = 0.0
                for r in range(stages):
                    total += inverse[c, k, r] * rhs[r]
                out[k] = total
        for k in range(stages):
            f = e * out[k]
            for i in range(n):
                first[c, k, i] += f * z[j, i]
            for r in range(stages):
                second[c, k, r] += f * out[r]
    h = np.zeros((stages, n))
    for c in range(classes):
        for k in range(stages):
            for r in range(stages):
                f = step * A[k, r] * second[c, k, r]
                for i in range(n):
                    first[c, k, i] += f * gam[c, r, i]
            for i in range(n):
                if active[c, i]:
                    h[k, i] += first[c, k, i]
    return h


@njit(cache=True, nogil=True)
def _halves(coefficients: Array, left: Array, right: Array) -> None:
    """Bernstein coefficients of the two halves of the interval (de Casteljau at 1/2)."""
    size = len(coefficients)
    for k in range(size):
        right[k] = coefficients[k]
    left[0] = right[0]
    for r in range(1, size):
        for k in range(size - r):
            right[k] = 0.5 * (right[k] + right[k + 1])
        left[r] = right[0]


@njit(cache=True, nogil=True)
def _bernstein_value(coefficients: Array, tau: float, work: Array) -> float:
    """Value of a Bernstein polynomial on [0, 1] (de Casteljau)."""
    size = len(coefficients)
    for k in range(size):
        work[k] = coefficients[k]
    for r in range(1, size):
        for k in range(size - r):
            work[k] = (1.0 - tau) * work[k] + tau * work[k + 1]
    return float(work[0])


@njit(cache=True, nogil=True)
def first_exit(coefficients: Array, sign: float, tiny: float) -> float:
    """First point in (0, 1] where a Bernstein polynomial leaves the side ``sign``; 2.0 if none.

    Subdivision, leftmost half first, until the coefficients change sign once: no root is missed,
    double ones included. Then bisection and secant by turns. Values within ``tiny`` of zero count
    as the right side.
    """
    size = len(coefficients)
    inside = True
    for k in range(size):
        if sign * coefficients[k] < -tiny:
            inside = False
    if inside:
        return 2.0
    stack = np.empty((56, size))
    left = np.empty(56)
    width = np.empty(56)
    lower = np.empty(size)
    upper = np.empty(size)
    for k in range(size):
        stack[0, k] = sign * coefficients[k] + tiny
    left[0] = 0.0
    width[0] = 1.0
    top = 1
    while top > 0:
        top -= 1
        changes = 0
        for k in range(1, size):
            if (stack[top, k] < 0.0) != (stack[top, k - 1] < 0.0):
                changes += 1
        if stack[top, 0] < 0.0:
            return float(left[top])
        if changes == 0:
            continue
        if changes == 1 or width[top] < 1e-14:
            low, high = 0.0, 1.0
            f_low, f_high = stack[top, 0], stack[top, size - 1]
            for turn in range(100):
                if high - low <= 1e-15 * (1.0 + left[top] / width[top] + high) or f_low == f_high:
                    break
                tau = low + (high - low) * (f_low / (f_low - f_high) if turn % 3 else 0.5)
                tau = min(max(tau, low + 0.01 * (high - low)), high - 0.01 * (high - low))
                value = _bernstein_value(stack[top], tau, lower)
                if value < 0.0:
                    high, f_high = tau, value
                else:
                    low, f_low = tau, value
            return float(left[top] + width[top] * high)
        _halves(stack[top], lower, upper)
        half = 0.5 * width[top]
        for k in range(size):
            stack[top, k] = upper[k]
            stack[top + 1, k] = lower[k]
        left[top + 1] = left[top]
        left[top] += half
        width[top] = half
        width[top + 1] = half
        top += 2
    return 2.0


@njit(cache=True, nogil=True)
def _combine(values: Array, nodes: Array, tau: float, out: Array) -> None:
    """Value at ``tau`` of the polynomial through the rows of ``values`` at ``nodes``."""
    out[:] = 0.0
    for k in range(len(nodes)):
        weight = 1.0
        for r in range(len(nodes)):
            if r != k:
                weight *= (tau - nodes[r]) / (nodes[k] - nodes[r])
        for i in range(len(out)):
            out[i] += weight * values[k, i]


@njit(cache=True, nogil=True)
def _slopes(
    a: float, b: Array, gg: Array, inverse: Array, step: float, A: Array, hidden: bool
) -> tuple[Array, Array]:
    """Output weights and their time derivatives at the nodes of one neuron; ``b_k = w_0.g_k``."""
    stages = len(b)
    value = np.empty(stages)
    slope = np.zeros(stages)
    if hidden:
        value[:] = a
        return value, slope
    for k in range(stages):
        total = a
        for r in range(stages):
            total += step * A[k, r] * b[r]
        slope[k] = total
    for k in range(stages):
        total = 0.0
        for r in range(stages):
            total += inverse[k, r] * slope[r]
        value[k] = total
    for k in range(stages):
        total = b[k]
        for r in range(stages):
            total += step * A[k, r] * gg[k, r] * value[r]
        slope[k] = total
    return value, slope


@njit(cache=True, nogil=True)
def _first_boundary(
    z: Array,
    row: Array,
    speed: Array,
    step: float,
    path: Array,
    slack: Array,
) -> tuple[float, int]:
    """Earliest exit (tau, point) of one neuron from its activation row; (2.0, -1) if none.

    ``speed`` (S + 1, n) holds the time derivatives of its pre-activations at the start and at the
    Gauss nodes.
    """
    nodes, n = speed.shape
    best = 2.0
    where = -1
    coefficients = np.empty(path.shape[0])
    for i in range(n):
        if row[i] >= 2:
            continue
        reach = 0.0
        for r in range(nodes):
            reach += abs(speed[r, i])
        sign = 1.0 if row[i] == 1 else -1.0
        # every Bernstein coefficient of an integrated basis polynomial is below 1.1 in size
        if sign * z[i] > 1.1 * step * reach:
            continue
        start = z[i]
        if abs(start) <= slack[i]:
            start = 0.0
        for k in range(path.shape[0]):
            total = start
            for r in range(nodes):
                total += path[k, r] * step * speed[r, i]
            coefficients[k] = total
        tau = first_exit(coefficients, sign, slack[i])
        if tau < best:
            best = tau
            where = i
    return best, where


@njit(cache=True, nogil=True)
def _flip(a: float, slope: Array, step: float, path: Array) -> float:
    """First zero in (0, 1] of the output weight; 2.0 if none."""
    if a == 0.0:
        return 2.0
    coefficients = np.empty(path.shape[0])
    for k in range(path.shape[0]):
        total = a
        for r in range(len(slope)):
            total += path[k, r] * step * slope[r]
        coefficients[k] = total
    return float(first_exit(coefficients, 1.0 if a > 0 else -1.0, 0.0))


@njit(cache=True, nogil=True)
def _speeds(a: float, value: Array, gam0: Array, gam: Array, out: Array) -> None:
    """Time derivatives of the pre-activations at the start and at the nodes."""
    stages, n = gam.shape
    for i in range(n):
        out[0, i] = a * gam0[i]
    for r in range(stages):
        for i in range(n):
            out[r + 1, i] = value[r] * gam[r, i]


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
def _walk(
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

    ``rho``, ``pull`` and ``push`` hold its multipliers, ``g`` and ``X g`` at the nodes of the force
    polynomial; a crossing adds or removes one point, a slide projects one out, in O(n + d).
    Returns ``(a, used, tau, point)``; ``tau <= 1`` is an event the caller must handle (a second
    slide, or one that would end within the step); the returned state is then void.
    """
    stages, n, d = len(gauss), len(z), len(w)
    g = np.empty((1, stages, d))
    gam = np.empty((stages, n))
    gam0 = np.empty(n)
    b = np.empty(stages)
    speed = np.empty((stages + 1, n))
    here = np.empty(n)
    held = -1  # the point whose plane it slides on
    bare = np.zeros(len(nodes))
    for i in range(n):
        if row[i] >= 2:
            held = i
            for k in range(len(nodes)):
                bare[k] = -rho[k, i] * gram[i, i]
    start = 0.0
    where = -1
    for _ in range(4 * n + 8):
        alive = False
        for i in range(n):
            if row[i] == 1:
                alive = True
        if not alive or start >= 1.0:
            return a, used, 2.0, -1
        end = 1.0
        where = -1
        for attempt in range(2):
            sub = (end - start) * step
            for k in range(stages):
                _combine(pull, nodes, start + gauss[k] * (end - start), g[0, k])
                _combine(push, nodes, start + gauss[k] * (end - start), gam[k])
                b[k] = 0.0
                for q in range(d):
                    b[k] += g[0, k, q] * w[q]
            gg, inverse = class_matrices(g, sub, A, hidden)
            value, slope = _slopes(a, b, gg[0], inverse[0], sub, A, hidden)
            if attempt == 0:
                _combine(push, nodes, start, gam0)
                _speeds(a, value, gam0, gam, speed)
                tau, where = _first_boundary(z, row, speed, sub, path, slack)
                if where < 0:
                    break
                end = start + tau * (1.0 - start)
        for k in range(stages):
            f = sub * B[k] * value[k]
            for i in range(n):
                z[i] += f * gam[k, i]
            for q in range(d):
                w[q] += f * g[0, k, q]
            a += sub * B[k] * slope[k]
        if where < 0:
            return a, used, 2.0, -1
        if used >= len(log):
            return a, used, end, where
        _combine(forces, nodes, end, here)
        _combine(push, nodes, end, gam0)
        # the plane's own weight: its square length, less what the plane held takes away
        own = gram[where, where]
        if held >= 0:
            own -= gram[where, held] ** 2 / gram[held, held]
        slides = False
        if a * here[where] < 0.0:
            inside = gam0[where]
            outside = inside
            if row[where] == 1:
                outside -= here[where] * own
            else:
                inside += here[where] * own
            # a weight within EDGE of 0 or 1 is a crossing: points that do not pull on each other
            edge = EDGE * abs(a * here[where]) * own
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


@njit(cache=True, nogil=True)
def advance(
    a: Array,
    w: Array,
    z: Array,
    cid: Array,
    mode: Array,
    light: Array,
    can_flip: Array,
    slack: Array,
    forces: Array,
    nodes: Array,
    hold: Array,
    pull: Array,
    push: Array,
    rho: Array,
    gam: Array,
    gx: Array,
    X: Array,
    gram: Array,
    step: float,
    gauss: Array,
    A: Array,
    B: Array,
    path: Array,
    hidden: bool,
    log: Array,
) -> tuple[Array, Array, Array, Array, Array, int]:
    """End states of all neurons and the first boundary each of them meets.

    Returns ``(a1, w1, mode1, tau, point, used)``. ``tau[j] <= 1`` marks the first event of neuron j
    that the caller must handle (``point -1``: its output weight changes sign); plain crossings of
    light neurons are carried out here and listed in the first ``used`` rows of ``log``. ``forces``
    holds c at ``nodes`` (start and Radau nodes), ``hold, pull, push`` the multipliers, ``g``
    and ``X g`` of each class there; ``rho, gam, gx`` belong to the Gauss nodes.
    """
    m, n = z.shape
    d = w.shape[1]
    stages = rho.shape[1]
    a1 = a.copy()
    w1 = w.copy()
    mode1 = mode.copy()
    tau = np.full(m, 2.0)
    point = np.full(m, -1)
    used = 0
    speed = np.empty((stages + 1, n))
    slopes = np.empty(stages + 1)
    b = np.empty(stages)
    gg, inverse = class_matrices(gx, step, A, hidden)
    for j in range(m):
        c = cid[j]
        if c < 0:
            continue
        for k in range(stages):
            b[k] = 0.0
            for i in range(n):
                b[k] += rho[c, k, i] * z[j, i]
        value, slope = _slopes(a[j], b, gg[c], inverse[c], step, A, hidden)
        _speeds(a[j], value, push[c, 0], gam[c], speed)
        tau[j], point[j] = _first_boundary(z[j], mode[j], speed, step, path, slack[j])
        if can_flip[j]:
            slopes[0] = 0.0
            for q in range(d):
                slopes[0] += pull[c, 0, q] * w[j, q]
            slopes[1:] = slope
            flip = _flip(a[j], slopes, step, path)
            if flip < tau[j]:
                tau[j] = flip
                point[j] = -1
        if tau[j] <= 1.0 and light[j] and point[j] >= 0:
            zj = z[j].copy()
            a1[j], used, tau[j], point[j] = _walk(
                j,
                a[j],
                w1[j],
                zj,
                mode1[j],
                forces,
                hold[c],
                pull[c].copy(),
                push[c].copy(),
                nodes,
                X,
                gram,
                step,
                gauss,
                A,
                B,
                path,
                slack[j],
                hidden,
                log,
                used,
            )
            continue
        for k in range(stages):
            f = step * B[k] * value[k]
            for q in range(d):
                w1[j, q] += f * gx[c, k, q]
            a1[j] += step * B[k] * slope[k]
    return a1, w1, mode1, tau, point, used
