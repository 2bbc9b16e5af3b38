r"""The end of a step for neurons without events: by Gauss collocation, and back on their planes.

Steps that are long against weight decay end by the Radau method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.collocation import System
from reluflow.kernels.flow.layout import Law, Tables
from reluflow.kernels.flow.transport import (
    Matrices,
    Method,
    balance_of,
    class_matrices,
    damped,
    dot3,
    hold,
    slopes,
)
from reluflow.kernels.kernel import kernel

# e-folds of weight decay from which on a step is long
LONG = 0.5


class LastNode(NamedTuple):
    """What carries neurons to the last Radau node: pulls (C, S, d), the method, its matrices."""

    g: Array
    method: Method
    matrices: Matrices


@kernel
def last_node(g: Array, step: float, tables: Tables, law: Law) -> LastNode:
    """The Radau method for steps that are long against the decay; no pulls: not needed.

    ``g`` (C, S + 1, d) are the pulls of the classes at the start and the Radau nodes.
    Outputs that react fast are at rest at the Radau nodes. In a long step only the same method
    takes the weights there: another one, with its own idea of the decay, leaves them where they
    were.
    """
    _, knots, d = g.shape
    method = damped(tables.radau_a, step, law.decay)
    if step * law.decay <= LONG:
        none = np.zeros((0, knots - 1, knots - 1))
        return LastNode(np.zeros((0, knots - 1, d)), method, Matrices(none, none))
    nodes = g[:, 1:].copy()
    return LastNode(nodes, method, class_matrices(nodes, method, law.hidden))


@kernel
def to_last_node(a: Array, w: Array, system: System, j: int, last: LastNode, slope: Array) -> None:
    """Carry neuron j to the end of the step by the Radau method, in units of what decay leaves."""
    k, method = system.rows.cid[j], last.method
    stages = len(method.start)
    end, b = stages - 1, np.empty(stages)
    for s in range(stages):
        b[s] = dot3(last.g, k, s, w, j)
    slopes(a[j], b, last.matrices, k, method, system.law.hidden, slope)
    growth = np.exp(method.step * system.law.decay)
    a[j] = growth * slope[0, end]
    for q in range(w.shape[1]):
        total = method.start[end] * w[j, q]
        for s in range(stages):
            total += method.step * method.A[end, s] * slope[0, s] * last.g[k, s, q]
        w[j, q] = growth * total


@kernel
def decaying(z: Array, speed: Array, method: Method, decay: float) -> None:
    """Take decay into the ``speed`` (S + 1, P) of pre-activations at the start and the nodes."""
    stages, size = len(method.start), len(z)
    there = np.empty((stages, size))
    for s in range(stages):
        for p in range(size):
            there[s, p] = method.start[s] * z[p]
            for r in range(stages):
                there[s, p] += method.step * method.A[s, r] * speed[r + 1, p]
    for p in range(size):
        speed[0, p] -= decay * z[p]
        for s in range(stages):
            speed[s + 1, p] -= decay * there[s, p]


@kernel
def gauss_end(
    a: Array, w: Array, j: int, keep: float, weights: Array, slope: Array, g: Array, k: int
) -> None:
    """Carry neuron j of class k to the end by the Gauss method.

    ``keep`` is what is left of the start and ``weights`` (S,) belong to the output weights and
    slopes (2, S) at the Gauss nodes, where pulls are ``g`` (C, S, d).
    """
    a[j] *= keep
    for q in range(w.shape[1]):
        w[j, q] *= keep
    for s in range(len(weights)):
        f = weights[s] * slope[0, s]
        for q in range(w.shape[1]):
            w[j, q] += f * g[k, s, q]
        a[j] += weights[s] * slope[1, s]


@kernel
def fade(values: Array, efolds: Array) -> None:
    """What weight decay leaves of outputs (S, n) after so many e-folds (S,)."""
    if efolds[-1] > 0.0:
        for s in range(len(values)):
            for i in range(values.shape[1]):
                values[s, i] *= np.exp(-2.0 * efolds[s])


@kernel
def put_back(a: Array, w: Array, system: System, j: int) -> None:
    """Put a neuron back on its planes and hold it to its invariants: rounding takes it off them."""
    neurons, rows = system.neurons, system.rows
    k = rows.cid[j]
    first, last = rows.begin[k], rows.begin[k + 1]
    if first < last:
        off = np.empty(last - first)
        for q in range(first, last):
            off[q - first] = np.dot(system.planes.U[rows.plane[q]], w[j])
        for q in range(first, last):
            for r in range(w.shape[1]):
                w[j, r] -= off[q - first] * rows.dual[q, r]
    if not system.law.hidden:
        balance = balance_of(neurons.sign[j], neurons.log_balance[j], neurons.sigma[j])
        a[j] = hold(a[j], w[j], balance)
