r"""Activation patterns of a descent on weights: which neurons are active where, and for how long.

Neurons are kept sorted by pattern, weights transposed, so that loops run over the members of a
class. A neuron's signs are examined again only when it may have moved far enough for one to
change; what is found depends on the weights alone, not on when one looks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.kernels.kernel import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EPS = 2.0**-52

# Sums may be reordered (that is what vector registers do); NaN and infinity keep their meaning.
SUMS = {"reassoc", "contract", "nsz"}


class Problem(NamedTuple):
    """What is minimised, and how."""

    X: Array
    XT: Array
    y: Array
    inverse_lengths: Array
    keys: NDArray[np.uint64]
    loss: int
    shares: bool
    kappa: float
    lr: float
    hidden: bool
    slope: float = 0.0


class Work(NamedTuple):
    """The neurons, sorted by class (``order`` says which is where), and what saves work.

    ``known`` is the log-loss if ``h`` and ``c`` are those of the present weights, else nan.
    ``slack`` is how far a neuron may still move before a sign can change, ``tick`` what a step
    takes off it for rounding. ``signs`` (1 active, -1 not) and ``code``, their hash, go by the
    number of a neuron, all else by its place.
    """

    a: Array
    WT: Array
    e: Indices
    power: Array
    slack: Array
    tick: Array
    order: Indices
    signs: Array
    code: NDArray[np.uint64]
    first: Indices
    start: Indices
    classes: Indices
    table: Indices
    label: Indices
    source: Indices
    place: Indices
    stale: Indices
    spent: Array
    known: Array
    rows: Array
    products: Array
    V: Array
    G: Array
    h: Array
    c: Array
    t: Array
    f: Array
    old_outputs: Array
    old_weights: Array


def workspace(problem: Problem, a: Array, W: Array, e: Indices) -> Work:
    """Memory for `run`, holding the neurons; all patterns count as unknown."""
    (m, d), n = W.shape, len(problem.y)
    return Work(
        a=a.copy(),
        WT=np.ascontiguousarray(W.T.copy()),
        e=e.copy(),
        power=np.array([fourth_power(int(k)) for k in e]),
        slack=np.full(m, -1.0),
        tick=np.zeros(m),
        order=np.arange(m),
        signs=np.full((m, n), -1.0),
        code=np.zeros(m, np.uint64),
        first=np.zeros(m, np.int64),
        start=np.zeros(m + 1, np.int64),
        classes=np.zeros(1, np.int64),
        table=np.zeros(1 << (2 * m).bit_length(), np.int64),
        label=np.zeros(m, np.int64),
        source=np.zeros(m, np.int64),
        place=np.zeros(m, np.int64),
        stale=np.array([m]),
        spent=np.full(1, np.inf),
        known=np.full(1, np.nan),
        rows=np.zeros((m, d)),
        products=np.zeros((m, n)),
        V=np.zeros((m, d)),
        G=np.zeros((m, d)),
        h=np.zeros(n),
        c=np.zeros(n),
        t=np.zeros(m),
        f=np.zeros(m),
        old_outputs=np.zeros(m),
        old_weights=np.zeros((d, m)),
    )


def neurons(work: Work) -> tuple[Array, Array, Indices]:
    """Copies of ``a, W, e`` in the order they were given."""
    place = np.argsort(work.order)
    return work.a[place], np.ascontiguousarray(work.WT[:, place].T), work.e[place]


@kernel
def fourth_power(e: int) -> float:
    """``4^e``; zero below 2^-1060, infinite above the range."""
    if 2 * e < -1060:
        return 0.0
    return math.ldexp(1.0, 2 * e) if 2 * e < 1024 else np.inf


@kernel(fastmath=SUMS)
def row_dot(A: Array, i: int, B: Array, j: int) -> float:
    """``A[i] . B[j]``."""
    total = 0.0
    for q in range(A.shape[1]):
        total += A[i, q] * B[j, q]
    return total


@kernel
def row_length(A: Array, i: int) -> float:
    """``|A[i]|``, also where the squares leave the range of floats."""
    square = row_dot(A, i, A, i)
    if 1e-280 < square < 1e300:
        return math.sqrt(square)
    top = 0.0
    for q in range(A.shape[1]):
        top = max(top, abs(A[i, q]))
    if top == 0.0 or not math.isfinite(top):
        return top
    square = 0.0
    for q in range(A.shape[1]):
        square += (A[i, q] / top) ** 2
    return top * math.sqrt(square)


@kernel(fastmath={"nnan", "reassoc", "nsz"})
def least_margin(problem: Problem, work: Work, j: int, u: int) -> float:
    """Least distance to a boundary on the side of the known pattern; negative if one is crossed."""
    least = np.inf
    for i in range(work.products.shape[1]):
        least = min(least, work.products[u, i] * work.signs[j, i] * problem.inverse_lengths[i])
    return least


@kernel
def read_signs(problem: Problem, work: Work, j: int, u: int, guard: float) -> float:
    """Set the pattern of neuron j, given as row u of ``rows``; return its least distance.

    A product too close to zero to be sure of its sign is summed again by `row_dot`, so the pattern
    depends on the weights alone.
    """
    least, code = np.inf, np.uint64(0)
    for i in range(problem.X.shape[0]):
        p = work.products[u, i]
        distance = abs(p) * problem.inverse_lengths[i]
        least = min(least, distance)
        if distance <= guard:
            p = row_dot(problem.X, i, work.rows, u)
        work.signs[j, i] = 1.0 if p > 0.0 else -1.0
        if p > 0.0:
            code ^= problem.keys[i]
    work.code[j] = code
    return least


@kernel
def examine(problem: Problem, work: Work, s: int, u: int) -> bool:
    """Examine the signs of the neuron at s, given as row u of ``rows``; has one changed?

    Its slack becomes its least distance to a boundary, less the rounding error of a product; a
    ReLU neuron active nowhere never moves again.
    """
    j, old = work.order[s], work.code[work.order[s]]
    norm = row_length(work.rows, u)
    guard = (problem.X.shape[1] + 8) * EPS * norm
    least = least_margin(problem, work, j, u)
    if not least > guard:
        least = read_signs(problem, work, j, u, guard)
    still = work.code[j] == 0 and problem.slope == 0.0
    work.slack[s] = np.inf if still else least - guard
    work.tick[s] = 4 * EPS * (norm + least)
    return bool(work.code[j] != old)


@kernel
def update_patterns(problem: Problem, work: Work) -> None:
    """Examine the neurons whose signs may have changed, and regroup if one did."""
    rows, stale, count = work.rows, work.label, 0
    for s in range(len(work.a)):
        if work.slack[s] <= 0.0:
            stale[count] = s
            for q in range(rows.shape[1]):
                rows[count, q] = work.WT[q, s]
            count += 1
    np.dot(rows[:count], problem.XT, work.products[:count])
    changed = work.classes[0] == 0
    for u in range(count):
        if examine(problem, work, stale[u], u):
            changed = True
    work.stale[0] = 0
    if changed:
        regroup(work)


@kernel
def label_classes(code: NDArray[np.uint64], table: Indices, first: Indices, label: Indices) -> int:
    """Label the neurons by class, number classes by their first neuron, return how many.

    Rows count as equal when their 64-bit hashes are; ``table`` is an open hash table whose length
    is a power of two.
    """
    mask, count = len(table) - 1, 0
    table.fill(-1)
    for j in range(len(code)):
        slot = np.int64(code[j] & np.uint64(mask))
        while table[slot] >= 0 and code[first[table[slot]]] != code[j]:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            first[count] = j
            count += 1
        label[j] = table[slot]
    return count


@kernel
def reorder(values: Array, source: Indices, spare: Array) -> None:
    """``values <- values[source]``."""
    for s in range(len(source)):
        spare[s] = values[source[s]]
    for s in range(len(source)):
        values[s] = spare[s]


@kernel
def regroup(work: Work) -> None:
    """Sort the neurons by class, members in rising order."""
    m, start, source, place = len(work.a), work.start, work.source, work.place
    for s in range(m):
        place[work.order[s]] = s
    count = label_classes(work.code, work.table, work.first, work.label)
    start.fill(0)
    for j in range(m):
        start[work.label[j] + 1] += 1
    for r in range(count):
        start[r + 1] += start[r]
    for j in range(m):  # start[r] runs through the places of class r ...
        s = start[work.label[j]]
        start[work.label[j]] += 1
        work.order[s], source[s] = j, place[j]
    for r in range(count, 0, -1):  # ... and ends as the start of the next
        start[r] = start[r - 1]
    start[0] = 0
    for values in (work.a, work.power, work.slack, work.tick):
        reorder(values, source, work.t)
    for q in range(work.WT.shape[0]):
        reorder(work.WT[q], source, work.t)
    for s in range(m):
        place[s] = work.e[source[s]]
    for s in range(m):
        work.e[s] = place[s]
    work.classes[0] = count
