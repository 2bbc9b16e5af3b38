r"""Coefficients of the collocation step, apart from the logic that uses them.

On the unit step a force is the polynomial through its values at S Radau nodes
:math:`c_1 < \dots < c_S = 1`. Neurons are carried through the step by Gauss collocation, which
keeps every quadratic invariant of the linear neuron equation (Hairer, Lubich & Wanner, Geometric
Numerical Integration, IV.2): the balance and all Minkowski products.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.kernels.flow.layout import Tables
from reluflow.quadrature import GAUSS_4, GAUSS_6, GAUSS_12, GAUSS_12_WEIGHTS, RADAU_4, RADAU_6


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
    # from monomial coefficients they would be off by some 1e-15, and so the size of all that grows
    return np.array(
        [end * GAUSS_12_WEIGHTS @ lagrange_matrix(nodes, end * GAUSS_12) for end in ends]
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


@dataclass(frozen=True, eq=False)
class Tableau:
    """A collocation method of S stages, and what is asked of a step solved by it.

    ``tables`` is for the kernels. ``monomials`` (S + 1, S + 1) takes values at the start and the
    Radau nodes to the coefficients of their polynomial, ``derivatives`` to its slopes there. The
    errors of the two methods on ``exp(q)`` are ``gauss_error q^(2S+1)`` and ``radau_error q^(2S)``.
    """

    tables: Tables
    monomials: Array
    derivatives: Array
    gauss_error: float
    radau_error: float

    @property
    def stages(self) -> int:
        """The number S of its nodes."""
        return len(self.tables.radau)

    @property
    def order(self) -> int:
        """The power of the step in the error of the forces at its end."""
        return 2 * self.stages - 1

    @property
    def weights(self) -> Array:
        """Those (S,) of the quadrature with the Radau nodes."""
        return np.asarray(self.tables.radau_a[-1])


def _tableau(radau: Array, gauss: Array) -> Tableau:
    stages = len(radau)
    # for events the known start value is a node too: a path leaves a plane in the true direction
    from_start, of_path = np.append(0.0, radau), np.append(0.0, gauss)
    monomials = np.stack(_lagrange(from_start), axis=1)
    powers = [[k * node ** max(k - 1, 0) for k in range(stages + 1)] for node in from_start]
    # a path is start + sum_l (integral of basis l) * slope_l
    integrals = [_bernstein(polynomial.polyint(p), stages + 1) for p in _lagrange(of_path)]
    path = np.stack(integrals, axis=1)
    tables = Tables(
        radau=radau,
        radau_a=_integrals(radau, radau),
        to_start=lagrange_matrix(radau, np.array([0.0]))[0],
        to_gauss=lagrange_matrix(radau, gauss),
        nodes=from_start,
        gauss=gauss,
        gauss_a=_integrals(gauss, gauss),
        gauss_b=_integrals(gauss, np.array([1.0]))[0],
        path=path,
        force=np.stack([_bernstein(p, stages) for p in _lagrange(from_start)], axis=1),
        bound=np.abs(path).max(axis=0),
        spread=np.abs(lagrange_matrix(of_path, FINE)).max(axis=0) * (1.0 + MISSED),
    )
    whole, half = factorial(2 * stages), factorial(stages)
    return Tableau(
        tables, monomials, np.array(powers) @ monomials,
        half**2 / (whole * factorial(2 * stages + 1)),
        half * factorial(stages - 1) / (factorial(2 * stages - 1) * whole),
    )  # fmt: skip


# where the largest values of basis polynomials are looked for, and what that misses of them
FINE, MISSED = np.linspace(0.0, 1.0, 1001), 1e-4
FOUR = _tableau(RADAU_4, GAUSS_4)
SIX = _tableau(RADAU_6, GAUSS_6)
