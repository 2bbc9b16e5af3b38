r"""One neuron between two moments of a step, from the products of its pulls.

In a step the pull ``g`` on a neuron is a polynomial, known at K nodes. Whatever part of the step a
neuron passes, its equation asks for ``g.w`` and ``g.g`` only: K and K x K products, computed once,
tell its output weight at any moment without another look at a vector.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.checks import Array
from reluflow.kernels.layout import Tables
from reluflow.kernels.transport import dot2, slopes_alone


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
def weights_at(nodes: Array, scale: Array, tau: float, out: Array, row: int) -> None:
    """``out[row]``: Lagrange polynomials of ``nodes`` at ``tau``; ``scale`` their denominators."""
    size = len(nodes)
    for k in range(size):
        product = scale[k]
        for r in range(size):
            if r != k:
                product *= tau - nodes[r]
        out[row, k] = product


@njit(cache=True, nogil=True)
def combine(weights: Array, row: int, values: Array, out: Array, place: int) -> None:
    """``out[place] = weights[row] @ values``."""
    for i in range(out.shape[1]):
        out[place, i] = weights[row, 0] * values[0, i]
    for k in range(1, weights.shape[1]):
        for i in range(out.shape[1]):
            out[place, i] += weights[row, k] * values[k, i]


@njit(cache=True, nogil=True)
def products_of(pull: Array, w: Array) -> tuple[Array, Array]:
    """``g_r.w`` (K,) and ``g_r.g_q`` (K, K) of the pulls (K, d) on the weights ``w`` (1, d)."""
    knots = len(pull)
    only = np.int64(0)  # a literal would compile another version of the product
    along, products = np.empty(knots), np.empty((knots, knots))
    for r in range(knots):
        along[r] = dot2(pull, r, w, only)
        for q in range(r, knots):
            products[r, q] = dot2(pull, r, pull, q)
            products[q, r] = products[r, q]
    return along, products


@njit(cache=True, nogil=True)
def passage(
    start: float,
    end: float,
    a: float,
    along: Array,
    products: Array,
    nodes: Array,
    scale: Array,
    step: float,
    tables: Tables,
    hidden: bool,
    mix: Array,
    value: Array,
    slope: Array,
) -> tuple[float, Array]:
    """Carry an output weight from ``start`` to ``end``, shares of the step, by Gauss collocation.

    ``along`` belongs to the weights at ``start``. Returns the output weight at the end and the
    multiples (K,) of the pulls to add to the hidden weights. ``value`` and ``slope`` get the output
    weight and its derivative at the Gauss nodes, ``mix`` (S, K) their Lagrange weights.
    """
    stages, knots = mix.shape
    sub = (end - start) * step
    b, gg = np.empty(stages), np.empty((stages, stages))
    half = np.empty((stages, knots))
    for k in range(stages):
        weights_at(nodes, scale, start + tables.gauss[k] * (end - start), mix, k)
        b[k] = 0.0
        for r in range(knots):
            b[k] += mix[k, r] * along[r]
            half[k, r] = 0.0
            for q in range(knots):
                half[k, r] += mix[k, q] * products[q, r]
    for k in range(stages):
        for q in range(stages):
            gg[k, q] = 0.0
            for r in range(knots):
                gg[k, q] += half[k, r] * mix[q, r]
    slopes_alone(a, b, gg, sub, tables.gauss_a, hidden, value, slope)
    share = np.zeros(knots)
    for k in range(stages):
        a += sub * tables.gauss_b[k] * slope[k]
        for r in range(knots):
            share[r] += sub * tables.gauss_b[k] * value[k] * mix[k, r]
    return a, share


@njit(cache=True, nogil=True)
def moment_of_flip(
    tau: float,
    start: float,
    a: float,
    along: Array,
    products: Array,
    nodes: Array,
    scale: Array,
    step: float,
    tables: Tables,
) -> float:
    """When in the step an output weight is zero, from a moment near it, by Newton's method.

    ``a`` and ``along`` belong to ``start``.
    """
    stages, knots = len(tables.gauss), len(nodes)
    mix, value, slope = np.empty((stages, knots)), np.empty(stages), np.empty(stages)
    for _ in range(4):
        output, share = passage(
            start, tau, a, along, products, nodes, scale, step, tables, False, mix, value, slope
        )
        weights_at(nodes, scale, tau, mix, 0)
        pace = 0.0
        for r in range(knots):
            pace += step * mix[0, r] * (along[r] + np.dot(products[r], share))
        better = tau - output / pace if pace != 0.0 else tau
        if not start < better <= 1.0 or abs(better - tau) > 0.1 * (tau - start):
            break
        done = abs(better - tau) <= 1e-14
        tau = better
        if done:
            break
    return tau
