r"""Classes of neurons that lie alike to all planes, and what a step knows before it begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE, Planes, Rows
from reluflow.kernels.flow.planes import inverse_gram, is_alive, ray_of
from reluflow.kernels.kernel import kernel

LN2 = float(np.log(2.0))
# the golden ratio times 2^32; its multiples are spread evenly (Knuth, TAOCP 3, 6.4), their products
# with their own upper halves have no pattern
MIX = 2654435769


@kernel
def group(
    mode: NDArray[Any], both: NDArray[Any], fixed: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``(cid, first)``: the class of each living neuron and the first member of each class.

    ``fixed`` (m,) marks neurons that cannot move. Classes are numbered as they appear.
    """
    m, size = mode.shape
    cid = np.full(m, -1)
    first = np.empty(m, np.int64)
    slots = 2
    while slots < 2 * m:
        slots *= 2
    table = np.full(slots, -1)
    count = 0
    for j in range(m):
        if fixed[j] or not is_alive(mode[j], both):
            continue
        key = 0
        for p in range(size):  # a sum of multiples: no term waits for the one before
            factor = (p + 1) * MIX
            key += (int(min(mode[j, p], SLIDE)) + 1) * (factor * (factor >> 11))
        slot = (key ^ (key >> 29)) & (slots - 1)
        while table[slot] >= 0:
            other = first[table[slot]]
            equal = True
            for p in range(size):
                if min(mode[j, p], SLIDE) != min(mode[other, p], SLIDE):
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


@kernel
def rows_of(mode: NDArray[Any], planes: Planes, fixed: NDArray[Any]) -> Rows:
    """Group neurons into classes and prepare the projections of those that slide."""
    size, d = planes.U.shape
    cid, first = group(mode, planes.both, fixed)
    count = len(first)
    face = np.empty((count, size), np.int8)
    begin = np.zeros(count + 1, np.int64)
    for k in range(count):
        begin[k + 1] = begin[k]
        for p in range(size):
            face[k, p] = min(mode[first[k], p], SLIDE)
            begin[k + 1] += face[k, p] == SLIDE
    plane = np.empty(begin[count], np.int64)
    dual = np.zeros((begin[count], d))
    lift = np.zeros((begin[count], size))
    free, ray = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    axis = np.zeros((count, d))
    for k in range(count):
        start, stop = begin[k], begin[k + 1]
        held = np.flatnonzero(face[k] == SLIDE)
        for p in range(start, stop):
            plane[p] = held[p - start]
        if start < stop:
            normal, free[k] = inverse_gram(planes.gram, held)
            for p in range(start, stop):
                for q in range(start, stop):
                    f = normal[p - start, q - start]
                    for r in range(d):
                        dual[p, r] += f * planes.U[plane[q], r]
                    for r in range(size):
                        lift[p, r] -= f * planes.gram[plane[q], r]
                for q in range(start, stop):
                    lift[p, plane[q]] = 0.0
        ray[k] = ray_of(face[k], planes, held, dual[start:stop], axis[k])
    return Rows(cid, face, begin, plane, dual, lift, free, ray, axis)


@kernel
def tangent_kernel(
    a: Array, z: Array, weight: Array, rows: Rows, planes: Planes, hidden: bool
) -> Array:
    r"""The matrix with :math:`\dot h = \hat K c`, positive semidefinite.

    :math:`\hat K_{ik} = \sum_j e_j [z_{ji} z_{jk} + a_j^2 x_i^T P_j x_k]` over neurons active on
    both points, ``P_j`` the projection of a sliding neuron. The first term drops when only the
    hidden layer is trained.
    """
    m = len(a)
    n = len(planes.owner)
    classes = rows.face.shape[0]
    seen = np.zeros((classes, n))
    for k in range(classes):
        for i in range(n):
            side = ABOVE if planes.length[i] > 0.0 else BELOW
            if rows.face[k, planes.owner[i]] == side:
                seen[k, i] = planes.length[i]
            elif rows.face[k, planes.owner[i]] != SLIDE:
                seen[k, i] = planes.slope * planes.length[i]
    mass = np.zeros(classes)
    inner = np.zeros((m, n))
    for j in range(m):
        k = rows.cid[j]
        if k < 0 or weight[j] == 0.0:
            continue
        mass[k] += weight[j] * a[j] * a[j]
        root = np.sqrt(weight[j])
        for i in range(n):
            inner[j, i] = root * seen[k, i] * z[j, planes.owner[i]]
    own = planes.gram[planes.owner][:, planes.owner]
    kernel = own * np.dot(seen.T, seen * mass.reshape(classes, 1))
    for k in range(classes):
        for q in range(rows.begin[k], rows.begin[k + 1]):
            for i in range(n):
                f = mass[k] * seen[k, i] * planes.gram[rows.plane[q], planes.owner[i]]
                if f != 0.0:
                    for r in range(n):
                        kernel[i, r] += f * rows.lift[q, planes.owner[r]] * seen[k, r]
    if not hidden:
        kernel += np.dot(inner.T, inner)
    even: Array = 0.5 * (kernel + kernel.T)
    return even


@kernel
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


@kernel
def outputs(
    a: Array, w: Array, sigma: Array, mode: NDArray[Any], planes: Planes
) -> tuple[Array, Array, Array, float]:
    """Return ``(z, weight, h, sizes)`` of a state of the neurons.

    ``z`` is exactly zero on slides; ``sizes`` is the largest sum of the sizes that make up an
    output, the unit of its rounding.
    """
    m, size = mode.shape
    n = len(planes.owner)
    z = np.dot(w, planes.U.T)
    weight = np.exp(2.0 * sigma)
    side = np.zeros((2, size))
    total = np.zeros((2, size))
    for j in range(m):
        f = weight[j] * a[j]
        for p in range(size):
            if mode[j, p] >= SLIDE:
                z[j, p] = 0.0
            else:
                side[mode[j, p], p] += f * z[j, p]
                total[mode[j, p], p] += abs(f * z[j, p])
    h, most = np.empty(n), 0.0
    for i in range(n):
        above = ABOVE if planes.length[i] > 0.0 else BELOW
        p, leak = planes.owner[i], planes.slope
        h[i] = planes.length[i] * (side[above, p] + leak * side[1 - above, p])
        most = max(most, abs(planes.length[i]) * (total[above, p] + leak * total[1 - above, p]))
    return z, weight, h, most
