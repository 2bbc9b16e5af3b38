r"""Classes of neurons, and what a step knows before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.layout import Rows

LN2 = float(np.log(2.0))


@njit(cache=True, nogil=True)
def group(mode: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``(cid, first)``: the class of each living neuron and the first member of each class.

    Modes 2 and 3 (sliding, from either side) count as one. Classes are numbered as they appear.
    """
    m, n = mode.shape
    cid = np.full(m, -1)
    first = np.empty(m, np.int64)
    slots = 2
    while slots < 2 * m:
        slots *= 2
    table = np.full(slots, -1)
    count = 0
    for j in range(m):
        alive = False
        key = 0
        for i in range(n):
            plain = min(mode[j, i], 2)
            alive = alive or plain == 1
            key = (key * 1000003 + plain + 1) & 0x3FFFFFFFFFF
        if not alive:
            continue
        slot = (key ^ (key >> 17)) & (slots - 1)
        while table[slot] >= 0:
            other = first[table[slot]]
            equal = True
            for i in range(n):
                if min(mode[j, i], 2) != min(mode[other, i], 2):
                    equal = False
                    break
            if equal:
                break
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot] = count
            first[count] = j
            count += 1
        cid[j] = table[slot]
    return cid, first[:count].copy()


@njit(cache=True, nogil=True)
def duals(own: Array) -> NDArray[Any]:
    """Inverse of the Gram matrix of some points; of full rank on their span if they depend."""
    if own.shape[0] == 1:
        return 1.0 / own
    return np.linalg.pinv(own, 1e-12)


@njit(cache=True, nogil=True)
def rows_of(mode: Array, X: Array, gram: Array) -> Rows:
    """Group neurons into classes and prepare the projections of those that slide."""
    n, d = X.shape
    cid, first = group(mode)
    count = len(first)
    active = np.empty((count, n), np.bool_)
    begin = np.zeros(count + 1, np.int64)
    for c in range(count):
        begin[c + 1] = begin[c]
        for i in range(n):
            active[c, i] = mode[first[c], i] == 1
            if mode[first[c], i] >= 2:
                begin[c + 1] += 1
    point = np.empty(begin[count], np.int64)
    dual = np.zeros((begin[count], d))
    lift = np.zeros((begin[count], n))
    for c in range(count):
        start, stop = begin[c], begin[c + 1]
        if start == stop:
            continue
        place = start
        for i in range(n):
            if mode[first[c], i] >= 2:
                point[place] = i
                place += 1
        own = np.empty((stop - start, stop - start))
        for p in range(start, stop):
            for q in range(start, stop):
                own[p - start, q - start] = gram[point[p], point[q]]
        normal = duals(own)
        for p in range(start, stop):
            for q in range(start, stop):
                f = normal[p - start, q - start]
                for r in range(d):
                    dual[p, r] += f * X[point[q], r]
                for i in range(n):
                    if active[c, i]:
                        lift[p, i] -= f * gram[point[q], i]
    return Rows(cid, active, begin, point, dual, lift)


@njit(cache=True, nogil=True)
def spread(c: Array, rows: Rows) -> Array:
    """Multipliers (C, S, n) of forces ``c`` (S, n): c where active, the lift where sliding."""
    classes, n = rows.active.shape
    stages = c.shape[0]
    rho = np.zeros((classes, stages, n))
    for k in range(classes):
        for s in range(stages):
            for i in range(n):
                if rows.active[k, i]:
                    rho[k, s, i] = c[s, i]
            for p in range(rows.begin[k], rows.begin[k + 1]):
                total = 0.0
                for i in range(n):
                    total += rows.lift[p, i] * c[s, i]
                rho[k, s, rows.point[p]] = total
    return rho


@njit(cache=True, nogil=True)
def pulls(rho: Array, rows: Rows, X: Array) -> tuple[Array, Array]:
    """The vectors ``g`` (C, S, d) of multipliers and their products with the points, (C, S, n)."""
    classes, stages, n = rho.shape
    d = X.shape[1]
    flat = np.dot(rho.reshape(classes * stages, n), X)
    gam = np.dot(flat, X.T).reshape(classes, stages, n)
    for k in range(classes):
        for p in range(rows.begin[k], rows.begin[k + 1]):
            for s in range(stages):
                gam[k, s, rows.point[p]] = 0.0
    return flat.reshape(classes, stages, d), gam


@njit(cache=True, nogil=True)
def speeds(c: Array, rows: Rows, X: Array) -> Array:
    """``|g|`` of each class in forces ``c`` (n,)."""
    rho = spread(c.reshape(1, len(c)), rows)
    g = np.dot(rho[:, 0].copy(), X)
    lengths: Array = np.sqrt((g * g).sum(axis=1))
    return lengths


@njit(cache=True, nogil=True)
def tangent_kernel(
    a: Array, z: Array, weight: Array, rows: Rows, gram: Array, hidden: bool
) -> Array:
    r"""The matrix with :math:`\dot h = \hat K c`, positive semidefinite.

    :math:`\hat K_{ik} = \sum_j e_j [z_{ji} z_{jk} + a_j^2 x_i^T P_j x_k]` over neurons active on
    both points, ``P_j`` the projection of a sliding neuron. The first term drops when only the
    hidden layer is trained.
    """
    m, n = z.shape
    classes = rows.active.shape[0]
    mass = np.zeros(classes)
    inner = np.zeros((m, n))
    for j in range(m):
        k = rows.cid[j]
        if k < 0 or weight[j] == 0.0:
            continue
        mass[k] += weight[j] * a[j] * a[j]
        root = np.sqrt(weight[j])
        for i in range(n):
            if rows.active[k, i]:
                inner[j, i] = root * z[j, i]
    seen = np.zeros((classes, n))
    heavy = np.zeros((classes, n))
    for k in range(classes):
        for i in range(n):
            if rows.active[k, i]:
                seen[k, i] = 1.0
                heavy[k, i] = mass[k]
    kernel = gram * np.dot(heavy.T, seen)
    for k in range(classes):
        for p in range(rows.begin[k], rows.begin[k + 1]):
            for i in range(n):
                if rows.active[k, i]:
                    f = mass[k] * gram[rows.point[p], i]
                    for q in range(n):
                        kernel[i, q] += f * rows.lift[p, q]
    if not hidden:
        kernel += np.dot(inner.T, inner)
    even: Array = 0.5 * (kernel + kernel.T)
    return even


@njit(cache=True, nogil=True)
def rescale(a: Array, w: Array, sigma: Array) -> None:
    """Move powers of two between weights and log scales, which is exact; all arrays change."""
    m, d = w.shape
    for j in range(m):
        top = abs(a[j])
        for q in range(d):
            top = max(top, abs(w[j, q]))
        if top == 0.0 or 0.25 <= top < 8.0:
            continue
        exponent = np.floor(np.log2(top))
        factor = 2.0**-exponent
        a[j] *= factor
        for q in range(d):
            w[j, q] *= factor
        sigma[j] += exponent * LN2


@njit(cache=True, nogil=True)
def outputs(
    a: Array, w: Array, sigma: Array, mode: Array, X: Array
) -> tuple[Array, Array, Array, float]:
    """Return ``(z, weight, h, sizes)`` of a state of the neurons.

    ``z`` is exactly zero on sliding pairs; ``sizes`` is the largest sum of the sizes that make up
    an output, the unit of its rounding.
    """
    m, n = mode.shape
    z = np.dot(w, X.T)
    weight = np.exp(2.0 * sigma)
    h = np.zeros(n)
    total = np.zeros(n)
    for j in range(m):
        f = weight[j] * a[j]
        for i in range(n):
            if mode[j, i] == 1:
                h[i] += f * z[j, i]
                total[i] += abs(f * z[j, i])
            elif mode[j, i] >= 2:
                z[j, i] = 0.0
    return z, weight, h, total.max()
