"""The tables of the collocation methods, as tables."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import polynomial

from reluflow.engines.flow.tableau import FOUR, SIX

pytestmark = pytest.mark.parametrize("method", [FOUR, SIX], ids=["four", "six"])


def bernstein_value(coefficients, t):
    """De Casteljau, vectorised."""
    rows = [np.full(np.shape(t), c, dtype=float) for c in coefficients]
    while len(rows) > 1:
        rows = [(1 - t) * u + t * v for u, v in pairwise(rows)]
    return rows[0]


def test_tables_integrate_polynomials_exactly(method):
    # collocation with S nodes integrates degree S - 1 exactly; quadrature more
    tables, S = method.tables, method.stages
    for nodes, A in ((tables.radau, tables.radau_a), (tables.gauss, tables.gauss_a)):
        for degree in range(S):
            np.testing.assert_allclose(
                A @ nodes**degree, nodes ** (degree + 1) / (degree + 1), atol=1e-14
            )
    for degree in range(2 * S):
        assert tables.gauss_b @ tables.gauss**degree == pytest.approx(1.0 / (degree + 1))
    for degree in range(2 * S - 1):
        assert method.weights @ tables.radau**degree == pytest.approx(1.0 / (degree + 1))
    assert tables.radau[-1] == 1.0


def test_all_tables_are_real(method):
    for name, table in method.tables._asdict().items():
        assert table.dtype == np.float64, name


def test_interpolation_tables_reproduce_polynomials(method):
    rng, tables, S = np.random.default_rng(0), method.tables, method.stages
    p = rng.normal(size=S)
    at_radau = polynomial.polyval(tables.radau, p)
    assert tables.to_start @ at_radau == pytest.approx(p[0])
    np.testing.assert_allclose(tables.to_gauss @ at_radau, polynomial.polyval(tables.gauss, p))
    longer = rng.normal(size=S + 1)
    values = polynomial.polyval(tables.nodes, longer)
    np.testing.assert_allclose(method.monomials @ values, longer, atol=1e-11)
    slopes = polynomial.polyval(tables.nodes, polynomial.polyder(longer))
    np.testing.assert_allclose(method.derivatives @ values, slopes, atol=1e-10)
    t = np.linspace(0, 1, 7)
    np.testing.assert_allclose(
        bernstein_value(tables.force @ values, t), polynomial.polyval(t, longer), atol=1e-12
    )
    path = tables.path @ polynomial.polyval(np.append(0.0, tables.gauss), longer)
    np.testing.assert_allclose(
        bernstein_value(path, t), polynomial.polyval(t, polynomial.polyint(longer)), atol=1e-13
    )


def test_methods_miss_of_an_exponential_what_they_say(method):
    """The error of ``y' = q y`` in one step of a method of order p: a constant times q^(p + 1)."""
    tables, q, one = method.tables, 1.0, np.ones(method.stages)
    for A, weights, constant, power in (
        (tables.gauss_a, tables.gauss_b, method.gauss_error, 2 * method.stages + 1),
        (tables.radau_a, method.weights, method.radau_error, 2 * method.stages),
    ):
        stage = np.linalg.solve(np.eye(method.stages) - q * A, one)
        share = abs((1.0 + q * weights @ stage) / np.exp(q) - 1.0)
        assert share == pytest.approx(constant * q**power, rel=0.2, abs=1e-15)


def test_gauss_tables_keep_quadratic_invariants_to_rounding(method):
    """``b_i a_ij + b_j a_ji = b_i b_j`` (Cooper)."""
    b, A = method.tables.gauss_b, method.tables.gauss_a
    gap = b[:, None] * A + (b[:, None] * A).T - np.outer(b, b)
    assert np.abs(gap).max() < 2e-16
