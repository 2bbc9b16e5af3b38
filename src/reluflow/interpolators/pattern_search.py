r"""Exact minimum over activation patterns of several neurons, point by point.

A node fixes the pattern of the neurons on some points; its bound is the shortest weight vector
under the constraints of these points alone. Neurons of one sign are interchangeable, so only
patterns whose columns are in lexicographic order are visited.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.interpolators.fixed_signs import GAP
from reluflow.interpolators.least_norm import Polyhedron, shortest

Rows = tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class PatternSearch:
    """Best weights (None if no pattern is feasible), lower bound, convex problems solved."""

    W: Array | None
    bound: float
    nodes: int


def best_pattern(U: Array, z: Array, signs: Array, start: Array | None) -> PatternSearch:
    r"""Search all patterns, best bound first, from the value of ``start`` if given.

    Numerics
    --------
    Bounds are dual values. At most :math:`\sum_k 2^{mk}` problems of m r variables; pruning
    leaves far fewer.
    """
    order = np.argsort(-np.abs(z), kind="stable")
    best, value = start, np.inf if start is None else float(np.einsum("ij,ij->", start, start))
    heap: list[tuple[float, int, Rows]] = [(0.0, 0, ())]
    nodes, closed = 0, np.inf
    while heap and heap[0][0] < value * (1 - GAP / 2):
        bound, _, rows = heapq.heappop(heap)
        point = order[len(rows)]
        for row in _rows_for(float(z[point]), signs):
            after = (*rows, row)
            if not _is_ordered(after, signs):
                continue
            nodes += 1
            answer = shortest(_region(U[order], z[order], signs, after))
            if answer.status == "infeasible":
                continue
            below = max(bound, answer.lower_bound)
            if len(after) < len(z):
                heapq.heappush(heap, (below, nodes, after))
                continue
            closed = min(closed, below)
            if answer.is_feasible and answer.w @ answer.w < value:
                best, value = answer.w.reshape(len(signs), -1), float(answer.w @ answer.w)
    open_bound = heap[0][0] if heap else np.inf
    return PatternSearch(best, min(open_bound, closed, value), nodes)


def _rows_for(z: float, signs: Array) -> list[tuple[bool, ...]]:
    """Patterns of one point that can give its label; silent ones stand for all boundaries."""
    rows = []
    for row in product((True, False), repeat=len(signs)):
        up = any(on and s > 0 for on, s in zip(row, signs, strict=True))
        down = any(on and s < 0 for on, s in zip(row, signs, strict=True))
        if (z > 0 and up) or (z < 0 and down) or (z == 0 and up == down):
            rows.append(row)
    return rows


def _is_ordered(rows: Rows, signs: Array) -> bool:
    columns = list(zip(*rows, strict=True))
    for sign in (1.0, -1.0):
        mine = [column for column, s in zip(columns, signs, strict=True) if s == sign]
        if any(one < two for one, two in pairwise(mine)):
            return False
    return True


def _region(U: Array, z: Array, signs: Array, rows: Rows) -> Polyhedron:
    """Constraints on the stacked weights from the first ``len(rows)`` points."""
    on: NDArray[np.bool_] = np.array(rows)
    k, m = on.shape
    r = U.shape[1]
    E = ((on * signs)[:, :, None] * U[:k, None, :]).reshape(k, m * r)
    A = np.zeros((k, m, m, r))
    side = np.where(on, 1.0, -1.0)
    for j in range(m):
        A[:, j, j] = side[:, j, None] * U[:k]
    return Polyhedron(E, z[:k], A.reshape(k * m, m * r), np.zeros(k * m))
