r"""The collocation equations of a step, solved for the forces at the Radau nodes.

Given forces at the nodes, `node_outputs` carries all neurons there and returns the outputs. The
step is solved when these outputs give back the forces; `solve_square` finds such forces by Newton's
method with the tangent kernel of the start of the step, `solve_margin` for classification losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.forces import on_planes, pulls, share_jacobian, shares, speeds, spread
from reluflow.kernels.flow.forecast import linear_forces, rebent
from reluflow.kernels.flow.layout import ABOVE, BELOW, Law, Neurons, Planes, Rows, Tables
from reluflow.kernels.flow.small import invert
from reluflow.kernels.flow.transport import class_matrices, damped, dot3
from reluflow.kernels.kernel import kernel

MAX_ITERATIONS = 12
# points whose shares answer a change of the outputs by less are no part of Newton's matrix
SOFT = 0.01


class System(NamedTuple):
    """The equations of a step: everything known at its start.

    ``h`` and ``c`` (n,) are outputs and forces, ``kernel`` the tangent kernel, ``values`` and
    ``vectors`` its eigenpairs times kappa (empty: plain iteration), ``rounding`` that of outputs.
    """

    neurons: Neurons
    rows: Rows
    planes: Planes
    law: Law
    h: Array
    c: Array
    kernel: Array
    values: Array
    vectors: Array
    rounding: float


class Guess(NamedTuple):
    """Where the iteration starts: ``bend`` (S, n) is what a linear forecast missed in a step
    ``1 / ratio`` times as long; ``kinks`` (S, n) is what neurons that leave their rows add to the
    outputs; changes below ``goal`` end it.
    """

    bend: Array
    ratio: float
    kinks: Array
    goal: float


class Solved(NamedTuple):
    """Outputs and forces (S, n) at the nodes, and what the forecast missed; 0 iterations: none.

    The force polynomial misses the known start value by ``defect``; ``largest`` is the largest
    force, both times the lengths of the points; ``fastest`` is the largest ``|g|`` at the end.
    """

    iterations: int
    h: Array
    c: Array
    bend: Array
    defect: float
    largest: float
    fastest: float


@kernel
def node_outputs(c: Array, system: System, step: float, A: Array) -> Array:
    """Outputs (S, n) at the nodes of neurons carried by forces ``c`` (S, n) at the nodes.

    Sums over the neurons of a class come first, products with the planes once a class.
    """
    neurons, rows, planes = system.neurons, system.rows, system.planes
    m, size = neurons.z.shape
    hidden = system.law.hidden
    low, high = on_planes(c, planes)
    f = spread(low, high, rows)
    gx, gam = pulls(f, rows, planes.U)
    classes, stages, _ = f.shape
    method = damped(A, step, system.law.decay)
    A, start = method.A, method.start
    inverse = class_matrices(gx, method, hidden).inverse
    first = np.zeros((classes, stages, size))
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
                b[s] = dot3(f, k, s, neurons.z, j)
            for s in range(stages):
                total = 0.0
                for r in range(stages):
                    total += A[s, r] * (start[r] * b[r])
                rhs[s] = start[s] * neurons.a[j] + step * total
            for s in range(stages):
                total = 0.0
                for r in range(stages):
                    total += inverse[k, s, r] * rhs[r]
                out[s] = total
        for s in range(stages):
            weight = e * out[s]
            left = weight * start[s]
            for p in range(size):
                first[k, s, p] += left * neurons.z[j, p]
            for r in range(stages):
                second[k, s, r] += weight * out[r]
    side = np.zeros((stages, 2, size))
    for k in range(classes):
        for s in range(stages):
            for r in range(stages):
                weight = step * A[s, r] * second[k, s, r]
                for p in range(size):
                    first[k, s, p] += weight * gam[k, r, p]
            for p in range(size):
                if rows.face[k, p] <= ABOVE:
                    side[s, rows.face[k, p], p] += first[k, s, p]
    return at_points(side, planes)


@kernel
def at_points(side: Array, planes: Planes) -> Array:
    """Outputs (S, n) of the points from sums (S, 2, P) by side and plane."""
    stages, n = len(side), len(planes.owner)
    h = np.empty((stages, n))
    for s in range(stages):
        for i in range(n):
            above = ABOVE if planes.length[i] > 0.0 else BELOW
            p = planes.owner[i]
            h[s, i] = planes.length[i] * (side[s, above, p] + planes.slope * side[s, 1 - above, p])
    return h


@kernel
def settled(size: float, previous: float, goal: float, rounding: float) -> bool:
    """Whether the residual that this change leaves is below the goal, or down to rounding.

    The iteration contracts by about ``size / previous``, so it leaves ``size^2 / previous``.
    """
    if size <= goal:
        return True
    if previous < np.inf and size <= 0.3 * previous and size * size <= goal * previous:
        return True
    return size > 0.5 * previous and size <= 100.0 * rounding


@kernel
def _blocks(values: Array, step: float, A: Array) -> Array:
    """Newton's matrix of each eigenvector, ``(I + H lambda A)^-1``."""
    stages = len(A)
    blocks = np.zeros((len(values), stages, stages))
    for e in range(len(values)):
        for k in range(stages):
            blocks[e, k, k] = 1.0
            for q in range(stages):
                blocks[e, k, q] += step * values[e] * A[k, q]
        invert(blocks[e])
    return blocks


@kernel
def defects(system: System, c: Array, to_start: Array) -> tuple[float, float, float]:
    """Return ``(defect, largest, fastest)`` of forces ``c`` at the nodes; see `Solved`."""
    c0, planes = system.c, system.planes
    largest = 0.0
    defect = 0.0
    for i in range(len(c0)):
        top = abs(c0[i])
        start = 0.0
        for k in range(len(c)):
            top = max(top, abs(c[k, i]))
            start += to_start[k] * c[k, i]
        largest = max(largest, top * abs(planes.length[i]))
        defect = max(defect, abs(start - c0[i]) * abs(planes.length[i]))
    fastest = 0.0
    if len(system.rows.face):
        fastest = speeds(c[len(c) - 1], system.rows, planes).max()
    return defect, largest, fastest


@kernel
def solve_square(system: System, step: float, guess: Guess, tables: Tables) -> Solved:
    r"""Iterate on the forces at the nodes: ``c - kappa (y - out(c) - kinks) = 0``.

    With the forces as unknowns the rounding of the outputs enters divided by :math:`1 + H\lambda`;
    recomputed from the outputs they would be multiplied by it when the step is carried out. The
    iteration starts from a linear forecast.
    """
    c0, kappa = system.c, system.law.kappa
    values, vectors = system.values, system.vectors
    n, stages = len(c0), len(tables.radau)
    stiff = len(values) > 0
    if stiff:
        drain = (2.0 * system.law.decay * kappa) * system.h
        forecast = linear_forces(c0, values, vectors, step * tables.radau, drain)
    else:
        slope = kappa * (np.dot(system.kernel, c0) - 2.0 * system.law.decay * system.h)
        forecast = np.empty((stages, n))
        for k in range(stages):
            for i in range(n):
                forecast[k, i] = c0[i] - step * tables.radau[k] * slope[i]
    c = forecast + rebent(guess.bend, tables.nodes, guess.ratio)
    blocks = _blocks(values, step, damped(tables.radau_a, step, system.law.decay).A)
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        out = node_outputs(c, system, step, tables.radau_a) + guess.kinks
        change = kappa * (system.planes.y - out) - c
        size = np.abs(change).max() / kappa
        if not np.isfinite(size):
            break
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
        if settled(size, previous, guess.goal, system.rounding):
            defect, largest, fastest = defects(system, c, tables.to_start)
            h = system.planes.y - c / kappa
            return Solved(iteration, h, c, c - forecast, defect, largest, fastest)
        if size > 2.0 * previous and iteration > 2:
            break
        previous = size
    return Solved(0, c, c, guess.bend, 0.0, 0.0, 0.0)


@kernel
def solve_margin(system: System, step: float, stiff: bool, guess: Guess, tables: Tables) -> Solved:
    """Iterate on the outputs at the nodes: ``h - out(c(h)) - kinks = 0``.

    The shares have their own Jacobian at each node. Otherwise as `solve_square`. Where it is stiff
    the forecast is linearly implicit: late in training the slopes of the outputs at the start are
    noise, and a step along them would leave the region in which Newton's method converges.
    """
    y, law = system.planes.y, system.law
    n, stages = len(system.h), len(tables.radau)
    slope = np.dot(system.kernel, system.c) - 2.0 * law.decay * system.h
    A = damped(tables.radau_a, step, law.decay).A
    forecast = np.empty((stages, n))
    for k in range(stages):
        ahead = step * tables.radau[k]
        rise = (ahead * slope).reshape(1, n)
        if stiff:
            here = np.full((1, 1), 1.0)
            at, c0 = system.h.reshape(1, n), system.c.reshape(1, n)
            rise = _newton(system, ahead, at, c0, here, rise)
        for i in range(n):
            forecast[k, i] = system.h[i] + rise[0, i]
    h = forecast + rebent(guess.bend, tables.nodes, guess.ratio)
    c = h
    previous = np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        c = shares(h, y, law)
        change = node_outputs(c, system, step, tables.radau_a) + guess.kinks - h
        if not np.all(np.isfinite(change)):
            break
        if stiff:
            change = _newton(system, step, h, c, A, change)
        h += change
        size = np.abs(change).max()
        if settled(size, previous, guess.goal, system.rounding):
            c = shares(h, y, law)
            defect, largest, fastest = defects(system, c, tables.to_start)
            return Solved(iteration, h, c, h - forecast, defect, largest, fastest)
        if size > 2.0 * previous and iteration > 2:
            break
        previous = size
    return Solved(0, h, c, guess.bend, 0.0, 0.0, 0.0)


@kernel
def _newton(system: System, step: float, h: Array, c: Array, A: Array, rhs: Array) -> Array:
    r"""Solve ``(I + H A (x) K J) x = rhs`` (S, n) with the Jacobian J of the shares at each node.

    With :math:`u_k = J_k x_k` it is ``(I + H A (x) J K) u = J rhs``, in which points with a small
    share have no part: late in training few are left. What is left out is at most `SOFT` of a
    change, and the iteration mends it.
    """
    stages, n = h.shape
    y, law = system.planes.y, system.law
    part = np.zeros(n, np.bool_)
    for i in range(n):
        rate = step * np.abs(system.kernel[i]).sum()
        for k in range(stages):
            part[i] = part[i] or rate * abs(c[k, i]) > SOFT
    held = np.flatnonzero(part)
    count = len(held)
    if count == 0:
        return rhs
    own = system.kernel[held][:, held]
    matrix, right = np.empty((stages * count, stages * count)), np.empty(stages * count)
    for k in range(stages):
        jacobian = share_jacobian(h[k][held], c[k][held], y[held], law)
        block = np.dot(jacobian, own)
        own_rhs = np.dot(jacobian, rhs[k][held])
        for i in range(count):
            right[k * count + i] = own_rhs[i]
        for q in range(stages):
            f = step * A[k, q]
            for i in range(count):
                for r in range(count):
                    matrix[k * count + i, q * count + r] = f * block[i, r]
    for k in range(stages * count):
        matrix[k, k] += 1.0
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.full((stages, n), np.nan)  # forces that overflow: the step is rejected
    u = np.linalg.solve(matrix, right).reshape(stages, count)
    answer: Array = rhs - step * np.dot(A, np.dot(u, system.kernel[held]))
    return answer
