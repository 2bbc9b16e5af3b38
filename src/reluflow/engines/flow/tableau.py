r"""Coefficients of the collocation step, apart from the logic that uses them.

On the unit step a force is the polynomial through its values at the ``STAGES`` Radau nodes
:math:`c_1 < \dots < c_S = 1`. Neurons are carried through the step by Gauss collocation, which
keeps every quadratic invariant of the linear neuron equation (Hairer, Lubich & Wanner, Geometric
Numerical Integration, IV.2): the balance and all Minkowski products.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import Tables
from reluflow.quadrature import GAUSS_4, RADAU_4

STAGES = 4


def _lagrange(nodes: Array) -> list[Array]:
    """Monomial coefficients of the Lagrange basis polynomials of ``nodes``."""
    basis = []
    for k, node in enumerate(nodes):
        others = np.delete(nodes, k)
        basis.append(polynomial.polyfromroots(others) / np.prod(node - others))
    return basis


def lagrange_matrix(nodes: Array, at: Array) -> Array:
    """Matrix that takes values at ``nodes`` to values at ``at`` (barycentric products)."""
    gaps = at[:, None, None] - nodes[None, None, :]
    scale = nodes[:, None] - nodes[None, :]
    same = np.eye(len(nodes), dtype=bool)
    return np.asarray(np.prod(np.where(same, 1.0, gaps) / np.where(same, 1.0, scale), axis=2))


def _integrals(nodes: Array, ends: Array) -> Array:
    r"""``M[k, l]`` = integral of the l-th basis polynomial from 0 to ``ends[k]``."""
    return np.array(
        [[polynomial.polyval(end, polynomial.polyint(p)) for p in _lagrange(nodes)] for end in ends]
    )


def _bernstein(coefficients: NDArray[Any], degree: int) -> Array:
    """Bernstein coefficients on [0, 1] of a polynomial given by monomial coefficients."""
    padded = np.zeros(degree + 1)
    padded[: len(coefficients)] = coefficients
    return np.array(
        [
            sum(comb(b, k) / comb(degree, k) * padded[k] for k in range(b + 1))
            for b in range(degree + 1)
        ]
    )


RADAU = RADAU_4
RADAU_A = _integrals(RADAU, RADAU)
GAUSS = GAUSS_4
GAUSS_A = _integrals(GAUSS, GAUSS)
GAUSS_B = _integrals(GAUSS, np.array([1.0]))[0]
# forces at 0 and at the Gauss nodes from their values at the Radau nodes
RADAU_TO_START = lagrange_matrix(RADAU, np.array([0.0]))[0]
RADAU_TO_GAUSS = lagrange_matrix(RADAU, GAUSS)
# For events the known start value is a node too: a path then leaves a plane in the true direction.
START_RADAU = np.concatenate([[0.0], RADAU])
# monomial coefficients of the polynomial through values at the start and the Radau nodes
START_RADAU_MONOMIALS = np.stack(_lagrange(START_RADAU), axis=1)
START_GAUSS = np.concatenate([[0.0], GAUSS])
# a path is start + sum_l (integral of basis l) * slope_l: its Bernstein form
PATH_BERNSTEIN = np.stack(
    [_bernstein(polynomial.polyint(p), STAGES + 1) for p in _lagrange(START_GAUSS)], axis=1
)
# a force through its values at the start and the Radau nodes: its Bernstein form
FORCE_BERNSTEIN = np.stack([_bernstein(p, STAGES) for p in _lagrange(START_RADAU)], axis=1)
TABLES = Tables(
    RADAU, RADAU_A, RADAU_TO_START, RADAU_TO_GAUSS, START_RADAU, GAUSS, GAUSS_A, GAUSS_B,
    PATH_BERNSTEIN, FORCE_BERNSTEIN,
)  # fmt: skip
