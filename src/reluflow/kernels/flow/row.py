"""The pull on one neuron in its row: of all planes, on those it slides on, after a change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Path, Planes
from reluflow.kernels.kernel import kernel

# from so many planes on products with the Gram matrix cost more than with the normals
MANY = 100


@kernel
def _add(g: Array, push: Array, k: int, f: float, p: int, planes: Planes) -> None:
    """Add ``f u_p`` to the pull at node k."""
    for r in range(g.shape[1]):
        g[k, r] += f * planes.U[p, r]
    for r in range(push.shape[1]):
        push[k, r] += f * planes.gram[p, r]


@kernel
def bare(row: NDArray[Any], path: Path, planes: Planes) -> tuple[Array, Array]:
    """Pull and push of the planes that a neuron does not slide on."""
    f = np.zeros(path.low.shape)
    for p in range(len(row)):
        if row[p] < SLIDE:
            for k in range(len(f)):
                f[k, p] = path.high[k, p] if row[p] == ABOVE else path.low[k, p]
    g = np.dot(f, planes.U)
    if len(row) >= MANY and len(row) > 2 * planes.U.shape[1]:
        return g, np.dot(g, planes.U.T)
    return g, np.dot(f, planes.gram)


@kernel
def balanced(
    g: Array, push: Array, held: NDArray[Any], normal: Array, planes: Planes
) -> tuple[Array, Array, Array]:
    """Project a pull and its push on the planes held: also the multipliers (K, h) that do it."""
    knots, h = len(g), len(held)
    g, push, rho = g.copy(), push.copy(), np.zeros((knots, h))
    for k in range(knots):
        for p in range(h):
            for q in range(h):
                rho[k, p] -= normal[p, q] * push[k, held[q]]
        for p in range(h):
            _add(g, push, k, rho[k, p], held[p], planes)
        for p in range(h):
            push[k, held[p]] = 0.0
    return g, push, rho


@kernel
def replace(
    g: Array, push: Array, before: int, after: int, p: int, path: Path, planes: Planes
) -> None:
    """Account for a plane whose mode has changed."""
    if before == after:
        return
    for k in range(len(g)):
        change = 0.0
        if after < SLIDE:
            change += path.high[k, p] if after == ABOVE else path.low[k, p]
        if before < SLIDE:
            change -= path.high[k, p] if before == ABOVE else path.low[k, p]
        _add(g, push, k, change, p, planes)
