r"""One neuron between two moments of a step, from the products of its pulls.

In a step the pull ``g`` on a neuron is a polynomial, known at K nodes. Whatever part of the step a
neuron passes, its equation asks for ``g.w`` and ``g.g`` only: K and K x K products, computed once,
tell its output weight at any moment without another look at a vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.layout import Limits, Path, Tables
from reluflow.kernels.flow.transport import dot2, slopes_alone
from reluflow.kernels.kernel import kernel


class Pull(NamedTuple):
    """The pull on one neuron at the nodes of a path: ``g`` (K, d) and ``U g`` (K, P).

    ``along`` (K,) are its products with the weights at the moment, ``products`` (K, K) its own.
    """

    g: Array
    push: Array
    along: Array
    products: Array


class Passage(NamedTuple):
    """A part of a step: the output weight at its end, and multiples (K,) of the pulls to add to w.

    ``value`` and ``slope`` (S,) are the output weight and its derivative at the Gauss nodes,
    ``mix`` (S, K) the Lagrange weights of these nodes.
    """

    a: float
    share: Array
    value: Array
    slope: Array
    mix: Array


@kernel
def denominators(nodes: Array) -> Array:
    """What `weights_at` needs to know of the nodes."""
    scale = np.ones(len(nodes))
    for k in range(len(nodes)):
        for r in range(len(nodes)):
            if r != k:
                scale[k] /= nodes[k] - nodes[r]
    return scale


@kernel
def weights_at(path: Path, tau: float, out: Array) -> None:
    """``out`` (K,): Lagrange polynomials of the nodes at ``tau``."""
    nodes = path.nodes
    for k in range(len(nodes)):
        product = path.scale[k]
        for r in range(len(nodes)):
            if r != k:
                product *= tau - nodes[r]
        out[k] = product


@kernel
def slopes_at(path: Path, tau: float, out: Array) -> None:
    """``out`` (K,): the derivatives of these polynomials at ``tau``."""
    nodes = path.nodes
    for k in range(len(nodes)):
        value, slope = path.scale[k], 0.0
        for r in range(len(nodes)):
            if r != k:
                slope = slope * (tau - nodes[r]) + value
                value *= tau - nodes[r]
        out[k] = slope


@kernel
def combine(weights: Array, values: Array, out: Array) -> None:
    """``out = weights @ values``, values (K, .)."""
    for i in range(len(out)):
        out[i] = weights[0] * values[0, i]
    for k in range(1, len(weights)):
        for i in range(len(out)):
            out[i] += weights[k] * values[k, i]


@kernel
def pull_on(w: Array, g: Array, push: Array) -> Pull:
    """Bundle the pulls (K, d) and their products on the weights ``w``."""
    knots = len(g)
    along, products = np.empty(knots), np.empty((knots, knots))
    for r in range(knots):
        along[r] = np.dot(g[r], w)
        for q in range(r, knots):
            products[r, q] = dot2(g, r, g, q)
            products[q, r] = products[r, q]
    return Pull(g, push, along, products)


@kernel
def passage(start: float, end: float, a: float, pull: Pull, path: Path, tables: Tables) -> Passage:
    """Carry an output weight from ``start`` to ``end``, shares of the step, by Gauss collocation.

    ``pull.along`` belongs to the weights at ``start``.
    """
    stages, knots = len(tables.gauss), len(path.nodes)
    sub = (end - start) * path.step
    mix, half = np.empty((stages, knots)), np.empty((stages, knots))
    b, gg = np.empty(stages), np.empty((stages, stages))
    for k in range(stages):
        weights_at(path, start + tables.gauss[k] * (end - start), mix[k])
        b[k] = 0.0
        for r in range(knots):
            b[k] += mix[k, r] * pull.along[r]
            half[k, r] = 0.0
            for q in range(knots):
                half[k, r] += mix[k, q] * pull.products[q, r]
    for k in range(stages):
        for q in range(stages):
            gg[k, q] = 0.0
            for r in range(knots):
                gg[k, q] += half[k, r] * mix[q, r]
    value, slope, share = np.empty(stages), np.empty(stages), np.zeros(knots)
    slopes_alone(a, b, gg, sub, tables.gauss_a, path.hidden, value, slope)
    for k in range(stages):
        a += sub * tables.gauss_b[k] * slope[k]
        for r in range(knots):
            share[r] += sub * tables.gauss_b[k] * value[k] * mix[k, r]
    return Passage(a, share, value, slope, mix)


@kernel
def moment_of_flip(
    tau: float, start: float, a: float, pull: Pull, path: Path, tables: Tables
) -> float:
    """When in the step an output weight is zero, from a moment near it, by Newton's method.

    ``a`` and ``pull.along`` belong to ``start``.
    """
    mix = np.empty(len(path.nodes))
    for _ in range(4):
        moved = passage(start, tau, a, pull, path, tables)
        weights_at(path, tau, mix)
        pace = 0.0
        for r in range(len(mix)):
            pace += path.step * mix[r] * (pull.along[r] + np.dot(pull.products[r], moved.share))
        better = tau - moved.a / pace if pace != 0.0 else tau
        if not start < better <= 1.0 or abs(better - tau) > 0.1 * (tau - start):
            break
        done = abs(better - tau) <= 1e-14
        tau = better
        if done:
            break
    return tau


@kernel
def reach_of(start: float, pull: Pull, path: Path, limits: Limits) -> float:
    """How far the collocation of one part goes: in another row a pull may be much larger."""
    if path.hidden:
        return 1.0
    square = 0.0
    for k in range(len(pull.products)):
        square = max(square, pull.products[k, k])
    boost = (1.0 - start) * path.step * np.sqrt(square)
    parts = np.ceil(boost / limits.turn)
    return start + (1.0 - start) / parts if parts > 1.0 else 1.0


@kernel
def glances(
    moment: float, where: int, moved: Passage, pull: Pull, path: Path, depth: float
) -> bool:
    """Whether a neuron that crosses plane ``where`` would have turned back within ``depth``.

    With the speed v and the deceleration b of its row it would go on by ``v^2 / 2b``.
    """
    knots = len(path.nodes)
    now, change = np.empty(knots), np.empty(knots)
    weights_at(path, moment, now)
    slopes_at(path, moment, change)
    rise, push, bend = 0.0, 0.0, 0.0
    for k in range(knots):
        along = pull.along[k]
        for r in range(knots):
            along += pull.products[k, r] * moved.share[r]
        rise += now[k] * along
        push += now[k] * pull.push[k, where]
        bend += change[k] * pull.push[k, where] / path.step
    v, b = moved.a * push, moved.a * bend
    if not path.hidden:
        b += rise * push
    return v * b < 0.0 and v * v < 2.0 * depth * abs(b)
