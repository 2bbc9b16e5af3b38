"""Tables of quadrature against mpmath: each number is the float nearest to the true one."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest

from reluflow import quadrature

DIGITS = 60
GAUSS = [
    (quadrature.GAUSS_4, None),
    (quadrature.GAUSS_6, None),
    (quadrature.GAUSS_12, quadrature.GAUSS_12_WEIGHTS),
    (quadrature.GAUSS_16, quadrature.GAUSS_16_WEIGHTS),
]
SIZES = ["4", "6", "12", "16"]


def legendre_coefficients(stages):
    """Coefficients of ``P_S(2t - 1)``, constant first: whole numbers, by Rodrigues."""
    return [
        (-1) ** (stages + k) * mpmath.binomial(stages, k) * mpmath.binomial(stages + k, k)
        for k in range(stages + 1)
    ]


def roots_near(coefficients, guesses):
    """Roots by Newton in 60 digits, one from each guess."""
    roots = []
    for guess in guesses:
        x = mpmath.mpf(float(guess))
        for _ in range(6):
            value = mpmath.fsum(c * x**k for k, c in enumerate(coefficients))
            slope = mpmath.fsum(k * c * x ** (k - 1) for k, c in enumerate(coefficients) if k)
            x -= value / slope
        roots.append(x)
    return roots


@pytest.mark.parametrize(("nodes", "weights"), GAUSS, ids=SIZES)
def test_gauss_nodes_are_the_roots_of_the_legendre_polynomial(nodes, weights):
    with mpmath.workdps(DIGITS):
        roots = roots_near(legendre_coefficients(len(nodes)), nodes)
        assert [float(root) for root in roots] == nodes.tolist()
        # as many different roots as the degree: none is missing
        assert min(b - a for a, b in pairwise(roots)) > 0.01


@pytest.mark.parametrize("nodes", [quadrature.RADAU_4, quadrature.RADAU_6], ids=["4", "6"])
def test_radau_nodes_are_the_roots_of_their_polynomial(nodes):
    stages = len(nodes)
    with mpmath.workdps(DIGITS):
        higher, lower = legendre_coefficients(stages), legendre_coefficients(stages - 1)
        difference = [a - b for a, b in zip(higher, [*lower, 0], strict=True)]
        roots = roots_near(difference, nodes)
        assert [float(root) for root in roots] == nodes.tolist()
        assert min(b - a for a, b in pairwise(roots)) > 0.05


@pytest.mark.parametrize(("nodes", "weights"), GAUSS[2:], ids=SIZES[2:])
def test_gauss_weights_integrate_the_basis_of_lagrange(nodes, weights):
    with mpmath.workdps(DIGITS):
        roots = roots_near(legendre_coefficients(len(nodes)), nodes)
        moments = mpmath.matrix([mpmath.mpf(1) / (k + 1) for k in range(len(nodes))])
        powers = mpmath.matrix(len(nodes), len(nodes))
        for k in range(len(nodes)):
            for j, root in enumerate(roots):
                powers[k, j] = root**k
        exact = mpmath.lu_solve(powers, moments)
        assert [float(weight) for weight in exact] == weights.tolist()


@pytest.mark.parametrize(("nodes", "weights"), GAUSS[2:], ids=SIZES[2:])
def test_quadrature_is_exact_up_to_its_degree(nodes, weights):
    S = len(nodes)
    with mpmath.workdps(DIGITS):
        t, w = [mpmath.mpf(x) for x in nodes.tolist()], [mpmath.mpf(x) for x in weights.tolist()]
        for degree in range(2 * S):
            sum_ = mpmath.fsum(b * a**degree for a, b in zip(t, w, strict=True))
            assert abs(sum_ * (degree + 1) - 1) < 1e-15


@pytest.mark.parametrize(
    "table", [name for name in vars(quadrature) if name.startswith(("GAUSS", "RADAU"))]
)
def test_tables_are_real_floats(table):
    assert getattr(quadrature, table).dtype == np.float64
