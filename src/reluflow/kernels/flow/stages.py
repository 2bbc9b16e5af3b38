r"""Stages of an explicit step: the slopes of all neurons, by two products of matrices each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.forces import forces, on_planes
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Law, Planes
from reluflow.kernels.kernel import kernel


class Held(NamedTuple):
    """What is the same in all stages: sizes ``exp(2 sigma)``, neurons that are dead, and slides.

    Slides are pairs of a ``neuron`` and a ``plane``, in the order of the neurons, with the ``dual``
    vector of the plane among those the neuron slides on.
    """

    weight: Array
    dead: NDArray[Any]
    neuron: NDArray[Any]
    plane: NDArray[Any]
    dual: Array


class Stages(NamedTuple):
    """K evaluations: weights, sides (K, m, P), outputs, forces, jumps of the planes and slopes.

    ``theta`` (K, Q) are the weights in [0, 1] of the slides.
    """

    a: Array
    w: Array
    above: NDArray[Any]
    h: Array
    c: Array
    jump: Array
    da: Array
    dw: Array
    theta: Array


@kernel
def outputs(a: Array, w: Array, above: NDArray[Any], held: Held, planes: Planes) -> Array:
    """Outputs (n,) at weights; their sides go to ``above``. On its slides a neuron has none."""
    m, size, n = len(a), len(planes.U), len(planes.owner)
    z = np.dot(w, planes.U.T)
    for q in range(len(held.neuron)):
        z[held.neuron[q], held.plane[q]] = 0.0
    up, down = np.zeros(size), np.zeros(size)
    for j in range(m):
        if held.dead[j]:
            above[j] = False
            continue
        f = held.weight[j] * a[j]
        for p in range(size):
            high = max(z[j, p], 0.0)
            above[j, p] = z[j, p] > 0.0
            up[p] += f * high
            down[p] += f * (z[j, p] - high)
    h = np.empty(n)
    for i in range(n):
        p = planes.owner[i]
        own, other = (up[p], down[p]) if planes.length[i] > 0.0 else (down[p], up[p])
        h[i] = planes.length[i] * (own + planes.slope * other)
    return h


@kernel
def pulls(above: NDArray[Any], low: Array, high: Array, held: Held, planes: Planes) -> Array:
    """Pulls (m, d) on neurons that are above planes or not, without those of their slides."""
    m, size = above.shape
    f = np.empty((m, size))
    for j in range(m):
        for p in range(size):
            f[j, p] = high[p] if above[j, p] else low[p]
        if held.dead[j]:
            f[j] = 0.0
    for q in range(len(held.neuron)):
        f[held.neuron[q], held.plane[q]] = 0.0
    return np.dot(f, planes.U)


@kernel
def evaluate(k: int, out: Stages, held: Held, planes: Planes, law: Law) -> None:
    """Fill in stage k at its weights; slides are held by their projections."""
    a, w, dw = out.a[k], out.w[k], out.dw[k]
    h = outputs(a, w, out.above[k], held, planes)
    c = forces(h.reshape(1, len(h)), planes, law)
    low, high = on_planes(c, planes)
    g = pulls(out.above[k], low[0], high[0], held, planes)
    _project(g, out.theta[k], low[0], high[0], held, planes)
    for j in range(len(a)):
        along = 0.0
        for r in range(g.shape[1]):
            along += w[j, r] * g[j, r]
            dw[j, r] = a[j] * g[j, r]
        out.da[k, j] = 0.0 if law.hidden else along
    for i in range(len(h)):
        out.h[k, i], out.c[k, i] = h[i], c[0, i]
    for p in range(len(planes.U)):
        out.jump[k, p] = high[0, p] - low[0, p]


@kernel
def _project(
    g: Array, theta: Array, low: Array, high: Array, held: Held, planes: Planes
) -> None:  # fmt: skip
    """Take from pulls what leads off the slides; with which weights of the planes."""
    d, begin = g.shape[1], 0
    off = np.empty(d)
    while begin < len(held.neuron):
        j, end = held.neuron[begin], begin
        off[:] = 0.0
        while end < len(held.neuron) and held.neuron[end] == j:
            part = 0.0
            for r in range(d):
                part += g[j, r] * planes.U[held.plane[end], r]
            for r in range(d):
                off[r] += part * held.dual[end, r]
            end += 1
        for q in range(begin, end):
            p, f = held.plane[q], 0.0
            for r in range(d):
                f -= off[r] * held.dual[q, r]
            jump = high[p] - low[p]
            theta[q] = (f - low[p]) / jump if jump != 0.0 else np.nan
        for r in range(d):
            g[j, r] -= off[r]
        begin = end


@kernel
def advance(
    out: Stages, first: int, table: Array, step: float, held: Held, planes: Planes, law: Law
) -> None:  # fmt: skip
    """Fill in the stages from ``first`` on by the rows of a Runge-Kutta table (K - 1, K - 1).

    The weights of stage 0 are given (and copied to themselves, if it is the first).
    """
    m, d = out.w.shape[1:]
    for k in range(first, len(out.a)):
        for j in range(m):
            out.a[k, j] = out.a[0, j]
            for r in range(d):
                out.w[k, j, r] = out.w[0, j, r]
        for s in range(k):
            f = step * table[k - 1, s]
            for j in range(m):
                out.a[k, j] += f * out.da[s, j]
                for r in range(d):
                    out.w[k, j, r] += f * out.dw[s, j, r]
        evaluate(k, out, held, planes, law)


@kernel
def left(
    above: NDArray[Any], mode: NDArray[Any], dead: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pairs of a neuron and a plane that some of the stages ``above`` find on another side."""
    stages, m, size = above.shape
    neuron, plane = np.empty(m * size, np.int64), np.empty(m * size, np.int64)
    moved, count = np.empty(size, np.bool_), 0
    for j in range(m):
        if dead[j]:
            continue
        moved[:] = False
        for k in range(stages):
            for p in range(size):
                moved[p] |= above[k, j, p] != (mode[j, p] == ABOVE)
        for p in range(size):
            if moved[p] and mode[j, p] != SLIDE:
                neuron[count], plane[count] = j, p
                count += 1
    return neuron[:count].copy(), plane[:count].copy()
