"""Forces inside a step: the polynomial through their values at the nodes."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array


@njit(cache=True, nogil=True)
def denominators(nodes: Array) -> Array:
    """What `weights_at` needs to know of the nodes."""
    scale = np.ones(len(nodes))
    for k in range(len(nodes)):
        for r in range(len(nodes)):
            if r != k:
                scale[k] /= nodes[k] - nodes[r]
    return scale


@njit(cache=True, nogil=True)
def weights_at(nodes: Array, scale: Array, tau: float, out: Array) -> None:
    """Values at ``tau`` of the Lagrange polynomials of ``nodes``; ``scale`` their denominators."""
    size = len(nodes)
    for k in range(size):
        product = scale[k]
        for r in range(size):
            if r != k:
                product *= tau - nodes[r]
        out[k] = product


@njit(cache=True, nogil=True)
def combine(weights: Array, values: Array, out: Array, row: int) -> None:
    """``out[row] = weights @ values``."""
    for i in range(out.shape[1]):
        out[row, i] = weights[0] * values[0, i]
    for k in range(1, len(weights)):
        for i in range(out.shape[1]):
            out[row, i] += weights[k] * values[k, i]
