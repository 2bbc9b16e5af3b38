r"""Compiled gradient descent of the hidden layer in Gram form, at a cost independent of d.

Hidden weights are ``w_j = w_j(0) + X^T b_j``: the part of ``w_j(0)`` orthogonal to the points is
never touched. With ``K = X X^T`` (n, n), pre-activations ``p_j = X w_j``, forces
``c_i = -dL/dh_i`` and ``A_j`` the pattern, 1 where ``p_j > 0`` and the slope of the activation (0
for ReLU) elsewhere,

.. math:: b_j \leftarrow b_j + \eta a_j (A_j \circ c), \qquad
          p_j \leftarrow p_j + \eta a_j K (A_j \circ c).

Neurons of one pattern share the product ``K (A_j o c)``. The sums ``p_j`` are compensated: what an
addition rounds away is kept in ``rest`` and added next time, or steps too small for ``p_j`` would
still move ``b_j``. At multiples of ``RESYNC`` iterations the pre-activations are rebuilt from the
duals, ``p_j = p_j(0) + K b_j``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.descent.forces import forces
from reluflow.kernels.descent.patterns import Indices, label_classes
from reluflow.kernels.descent.weights import DIVERGED, DONE, LARGEST, STOPPED, UNCHANGED
from reluflow.kernels.kernel import kernel

Array = NDArray[np.float64]

RESYNC = 1024


class Problem(NamedTuple):
    """What is minimised, and how."""

    K: Array
    y: Array
    a: Array
    start: Array
    keys: NDArray[np.uint64]
    loss: int
    shares: bool
    kappa: float
    lr: float
    slope: float = 0.0


class Work(NamedTuple):
    """Pre-activations ``P`` with ``rest``, duals ``B`` (m, n), and scratch memory."""

    P: Array
    rest: Array
    B: Array
    code: NDArray[np.uint64]
    table: Indices
    first: Indices
    label: Indices
    masked: Array
    pulls: Array
    h: Array
    c: Array


def workspace(P: Array, rest: Array, B: Array) -> Work:
    """Memory for `run`, holding a state."""
    m, n = P.shape
    return Work(
        P=P.copy(),
        rest=rest.copy(),
        B=B.copy(),
        code=np.zeros(m, np.uint64),
        table=np.zeros(1 << (2 * m).bit_length(), np.int64),
        first=np.zeros(m, np.int64),
        label=np.zeros(m, np.int64),
        masked=np.zeros((m, n)),
        pulls=np.zeros((m, n)),
        h=np.zeros(n),
        c=np.zeros(n),
    )


@kernel
def outputs(problem: Problem, work: Work) -> None:
    """Fill ``h`` and the hash of each neuron's pattern."""
    P, h, slope = work.P, work.h, problem.slope
    h.fill(0.0)
    for j in range(P.shape[0]):
        code = np.uint64(0)
        for i in range(P.shape[1]):
            p = problem.a[j] * P[j, i]
            h[i] += p if P[j, i] > 0.0 else slope * p + 0.0
            code ^= problem.keys[i] if P[j, i] > 0.0 else np.uint64(0)
        work.code[j] = code


@kernel
def pull(problem: Problem, work: Work) -> None:
    """Fill ``masked`` with ``A_r o c`` and ``pulls`` with ``K (A_r o c)``, one row a class."""
    count = label_classes(work.code, work.table, work.first, work.label)
    masked, n, slope = work.masked, len(problem.y), problem.slope
    for r in range(count):
        for i in range(n):
            active = work.P[work.first[r], i] > 0.0
            masked[r, i] = work.c[i] if active else slope * work.c[i] + 0.0
    np.dot(masked[:count], problem.K, work.pulls[:count])


@kernel
def advance(problem: Problem, work: Work) -> int:
    """Update all neurons; return the outcome: done, diverged (overflow) or unchanged."""
    P, B, rest = work.P, work.B, work.rest
    changed = False
    for j in range(P.shape[0]):
        r, factor, largest = work.label[j], problem.lr * problem.a[j], 0.0
        for i in range(P.shape[1]):
            step = factor * work.pulls[r, i] + rest[j, i]
            p = P[j, i] + step
            b = B[j, i] + factor * work.masked[r, i]
            changed |= (p != P[j, i]) | (b != B[j, i])
            largest += abs(p) + abs(b)
            rest[j, i] = step - (p - P[j, i])
            P[j, i] = p
            B[j, i] = b
        if not largest < LARGEST:
            return DIVERGED
    return DONE if changed else UNCHANGED


@kernel
def resync(problem: Problem, work: Work) -> None:
    """``P = P(0) + B K``."""
    fresh = np.dot(work.B, problem.K)
    for j in range(fresh.shape[0]):
        for i in range(fresh.shape[1]):
            work.P[j, i] = problem.start[j, i] + fresh[j, i]
            work.rest[j, i] = 0.0


@kernel
def run(
    problem: Problem, work: Work, iteration: int, steps: int, stop: float, ceiling: float
) -> tuple[int, int, float, float]:
    """Do at most ``steps`` steps in place; arguments and result as `weights.run`."""
    least, end = np.inf, iteration + steps
    while True:
        if iteration % RESYNC == 0:
            resync(problem, work)
        outputs(problem, work)
        log_loss = forces(problem.loss, problem.shares, problem.kappa, work.h, problem.y, work.c)
        if not log_loss <= ceiling:
            return DIVERGED, iteration, log_loss, least
        least = min(least, log_loss)
        if log_loss <= stop:
            return STOPPED, iteration, log_loss, least
        if iteration == end:
            return DONE, iteration, log_loss, least
        pull(problem, work)
        outcome = advance(problem, work)
        if outcome != DONE:
            return outcome, iteration, log_loss, least
        iteration += 1


@kernel
def watch(
    problem: Problem,
    work: Work,
    iteration: int,
    steps: int,
    stop: float,
    ceiling: float,
    active: NDArray[np.bool_],
    log: Indices,
) -> tuple[int, int, float, float, int]:
    """Do as `run` and write each change of the pattern ``active`` (m, n) into ``log``.

    A row of ``log`` is (iteration, neuron, point). The last number returned counts all changes,
    those that found no room in ``log`` too; ``active`` ends as the pattern reached.
    """
    count, least, end = 0, np.inf, iteration + steps
    while True:
        done = min(iteration + 1, end) - iteration
        outcome, iteration, log_loss, low = run(problem, work, iteration, done, stop, ceiling)
        least = min(least, low)
        for j in range(active.shape[0]):
            for i in range(active.shape[1]):
                now = work.P[j, i] > 0.0
                if now != active[j, i]:
                    if count < len(log):
                        log[count, 0], log[count, 1], log[count, 2] = iteration, j, i
                    active[j, i] = now
                    count += 1
        if outcome != DONE or iteration == end:
            return outcome, iteration, log_loss, least, count
