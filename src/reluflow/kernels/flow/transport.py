r"""One neuron in a given force: collocation of its linear equation, S unknowns at a time.

Neuron j obeys ``a' = w.g, w' = a g`` with ``g(t) = sum_p f_p(t) u_p``. Neurons of one class
share ``f``. With ``b_l = w_0.g_l`` a collocation method with matrix ``A`` reduces to S unknowns
per neuron, the output weights ``a_l`` at the nodes:

    a_k = a_0 + H sum_l A_kl (b_l + H sum_q A_lq (g_l.g_q) a_q)

so the S x S matrix ``I - H^2 A (A o (g g^T))`` is inverted once per class. The products come from
the vectors ``g``, not from ``f`` and the Gram matrix: near a limit ``g`` vanishes while ``f`` does
not, and a long step multiplies what cancellation would leave by ``H^2``.

With weight decay, ``a' = w.g - mu a, w' = a g - mu w``, the same holds with ``E A`` in place of A,
``E = (I + H mu A)^-1``, and the start multiplied by ``E 1`` at the nodes. A neuron at rest stays
there whatever the step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.flow.small import eliminate, invert
from reluflow.kernels.kernel import kernel

# a difference below this share of its terms is rounding
ROUNDED = 1e-15
# dot products may be summed in any order: with it they use the vector unit
REORDER = {"reassoc", "contract"}


@kernel(fastmath=REORDER)
def dot2(u: Array, j: int, v: Array, k: int) -> float:
    """``u[j] . v[k]``."""
    total = 0.0
    for i in range(u.shape[1]):
        total += u[j, i] * v[k, i]
    return total


@kernel(fastmath=REORDER)
def dot3(u: Array, c: int, s: int, v: Array, j: int) -> float:
    """``u[c, s] . v[j]``."""
    total = 0.0
    for i in range(u.shape[2]):
        total += u[c, s, i] * v[j, i]
    return total


@kernel(fastmath=REORDER)
def dot33(u: Array, c: int, s: int, r: int) -> float:
    """``u[c, s] . u[c, r]``."""
    total = 0.0
    for i in range(u.shape[2]):
        total += u[c, s, i] * u[c, r, i]
    return total


class Matrices(NamedTuple):
    """Products ``g_l.g_q`` (C, S, S) and the inverted matrices (C, S, S) of the classes."""

    gg: Array
    inverse: Array


class Method(NamedTuple):
    """A collocation method on a step, decay included.

    ``A`` (S, S) is its matrix, ``start`` (S,) what is left of the start at its nodes.
    """

    step: float
    A: Array
    start: Array


@kernel
def damped(A: Array, step: float, decay: float) -> Method:
    """The method with matrix ``A`` where all weights decay."""
    stages = len(A)
    if decay == 0.0:
        return Method(step, A, np.ones(stages))
    inverse = np.empty((stages, stages))
    for k in range(stages):
        for q in range(stages):
            inverse[k, q] = step * decay * A[k, q]
        inverse[k, k] += 1.0
    invert(inverse)
    start, product = np.zeros(stages), np.zeros((stages, stages))
    for k in range(stages):
        for r in range(stages):
            start[k] += inverse[k, r]
            for q in range(stages):
                product[k, q] += inverse[k, r] * A[r, q]
    return Method(step, product, start)


@kernel
def damped_end(method: Method, b: Array, decay: float) -> tuple[float, Array]:
    """What is left of the start at the end of a step, and the weights (S,) of the slopes.

    ``b`` are those of the method without decay. Both in units of what decay leaves of a weight.
    """
    stages, rate = len(b), method.step * decay
    keep, weights = 1.0, b.copy()
    if decay == 0.0:
        return keep, weights
    growth = np.exp(rate)
    for q in range(stages):
        keep -= rate * b[q] * method.start[q]
        for k in range(stages):
            weights[q] -= rate * b[k] * method.A[k, q]
    for q in range(stages):
        weights[q] *= growth
    return keep * growth, weights


@kernel
def class_matrices(g: Array, method: Method, hidden: bool) -> Matrices:
    """The matrices of the classes with pulls ``g`` (C, S, d) at the nodes."""
    step, A = method.step, method.A
    classes, stages, _ = g.shape
    gg = np.zeros((classes, stages, stages))
    inverse = np.zeros((classes, stages, stages))
    for c in range(classes):
        for k in range(stages):
            inverse[c, k, k] = 1.0
        if hidden:
            continue
        for k in range(stages):
            for q in range(k, stages):
                gg[c, k, q] = dot33(g, c, k, q)
                gg[c, q, k] = gg[c, k, q]
        for k in range(stages):
            for q in range(stages):
                total = 0.0
                for r in range(stages):
                    total += A[k, r] * A[r, q] * gg[c, r, q]
                inverse[c, k, q] -= step * step * total
        invert(inverse[c])
    return Matrices(gg, inverse)


@kernel
def slopes(
    a: float,
    b: Array,
    matrices: Matrices,
    c: int,
    method: Method,
    hidden: bool,
    out: Array,
) -> None:
    """Output weights and their time derivatives, but for decay, at the nodes of one neuron.

    It is of class c; ``b_k = w_0.g_k``; the results are the rows of ``out`` (2, S). (Indices
    instead of slices: a slice counts references, which costs more than the arithmetic of a neuron.)
    """
    step, A, start = method.step, method.A, method.start
    stages = len(b)
    gg, inverse = matrices.gg, matrices.inverse
    if hidden:
        for k in range(stages):
            out[0, k] = a
            out[1, k] = 0.0
        return
    for k in range(stages):
        total = start[k] * a
        for r in range(stages):
            total += step * A[k, r] * (start[r] * b[r])
        out[1, k] = total
    for k in range(stages):
        total = 0.0
        for r in range(stages):
            total += inverse[c, k, r] * out[1, r]
        out[0, k] = total
    for k in range(stages):
        total = start[k] * b[k]
        for r in range(stages):
            total += step * A[k, r] * gg[c, k, r] * out[0, r]
        out[1, k] = total


@kernel
def slopes_alone(
    a: float,
    b: Array,
    gg: Array,
    step: float,
    A: Array,
    hidden: bool,
    value: Array,
    slope: Array,
) -> None:
    """As `slopes`, for a neuron with its own ``gg`` (S, S): one system is solved, none inverted."""
    stages = len(b)
    if hidden:
        for k in range(stages):
            value[k] = a
            slope[k] = 0.0
        return
    matrix = np.empty((stages, stages))
    for k in range(stages):
        value[k] = a
        for q in range(stages):
            value[k] += step * A[k, q] * b[q]
            total = 0.0
            for r in range(stages):
                total += A[k, r] * A[r, q] * gg[r, q]
            matrix[k, q] = -step * step * total
        matrix[k, k] += 1.0
    eliminate(matrix, value)
    for k in range(stages):
        slope[k] = b[k]
        for r in range(stages):
            slope[k] += step * A[k, r] * gg[k, r] * value[r]


@kernel
def across_of(weight: float, along: float) -> float:
    """What is left of a weight without its part along a pull; nothing if that is rounding.

    It would be all that is left of the neuron when that has shrunk.
    """
    part = weight - along
    return part if abs(part) > ROUNDED * (abs(weight) + abs(along)) else 0.0


@kernel
def balance_of(sign: float, log_balance: float, sigma: float) -> float:
    """``a^2 - |w|^2`` of a neuron at log scale ``sigma``."""
    return 0.0 if sign == 0.0 else sign * np.exp(min(log_balance - 2.0 * sigma, 700.0))


@kernel
def hold(a: float, w: Array, balance: float) -> float:
    """Restore ``a^2 - |w|^2 = balance`` without cancellation; returns ``a``, changes ``w``.

    The larger of the two is recomputed from the smaller. After a neuron was large its balance is
    far below the rounding of its weights, and would be lost when it shrinks again.
    """
    square = np.dot(w, w)
    if balance >= 0.0:
        return np.copysign(np.sqrt(square + balance), a)
    if square > 0.0:
        factor = np.sqrt((a * a - balance) / square)
        for q in range(len(w)):
            w[q] *= factor
    return a
