"""Small systems of linear equations, in place.

Written out: numba's own solvers would be compiled into every kernel that calls them, with their
messages of errors, which takes longer than all else in it.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.kernel import kernel

# squared distance of a unit vector from the span of others below which it is in it: products have
# rounding errors of 1e-16, and their errors must not be a pivot
DEPENDENT = 1e-13


@kernel
def invert(matrix: Array) -> None:
    """Invert a small matrix in place (Gauss-Jordan, partial pivoting); nan if it is singular.

    It is where forces overflow: such a step is rejected.
    """
    size = matrix.shape[0]
    work = np.empty((size, 2 * size))
    for p in range(size):
        for q in range(size):
            work[p, q] = matrix[p, q]
            work[p, size + q] = 1.0 if p == q else 0.0
    for p in range(size):
        pivot = p
        for q in range(p + 1, size):
            if abs(work[q, p]) > abs(work[pivot, p]):
                pivot = q
        if pivot != p:
            for q in range(2 * size):
                work[p, q], work[pivot, q] = work[pivot, q], work[p, q]
        scale = 1.0 / work[p, p] if work[p, p] != 0.0 else np.nan
        for q in range(2 * size):
            work[p, q] *= scale
        for r in range(size):
            if r != p:
                factor = work[r, p]
                if factor != 0.0:
                    for q in range(2 * size):
                        work[r, q] -= factor * work[p, q]
    for p in range(size):
        for q in range(size):
            matrix[p, q] = work[p, size + q]


@kernel
def eliminate(matrix: Array, x: Array) -> None:
    """Solve a small system in place (Gauss, partial pivoting); ``x`` is right side and solution.

    It is nan if the matrix is singular.
    """
    size = len(x)
    for p in range(size):
        pivot = p
        for q in range(p + 1, size):
            if abs(matrix[q, p]) > abs(matrix[pivot, p]):
                pivot = q
        if pivot != p:
            x[p], x[pivot] = x[pivot], x[p]
            for q in range(p, size):
                matrix[p, q], matrix[pivot, q] = matrix[pivot, q], matrix[p, q]
        scale = 1.0 / matrix[p, p] if matrix[p, p] != 0.0 else np.nan
        for r in range(p + 1, size):
            factor = matrix[r, p] * scale
            if factor != 0.0:
                x[r] -= factor * x[p]
                for q in range(p + 1, size):
                    matrix[r, q] -= factor * matrix[p, q]
    for p in range(size - 1, -1, -1):
        for q in range(p + 1, size):
            x[p] -= matrix[p, q] * x[q]
        x[p] = x[p] / matrix[p, p] if matrix[p, p] != 0.0 else np.nan


@kernel
def solve_products(gram: Array, x: Array) -> None:
    """Solve with the products of unit vectors, in place (Cholesky); ``x`` becomes the solution.

    Where a vector depends on those before it, its part is 0: one of many solutions.
    """
    size = len(x)
    for p in range(size):
        if gram[p, p] > DEPENDENT:
            for r in range(p + 1, size):
                factor = gram[r, p] / gram[p, p]
                x[r] -= factor * x[p]
                for q in range(p + 1, size):
                    gram[r, q] -= factor * gram[p, q]
    for p in range(size - 1, -1, -1):
        if gram[p, p] > DEPENDENT:
            for q in range(p + 1, size):
                x[p] -= gram[p, q] * x[q]
            x[p] /= gram[p, p]
        else:
            x[p] = 0.0
