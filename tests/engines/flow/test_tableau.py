"""The tables of the collocation methods, as tables."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import polynomial

from reluflow.engines.flow import tableau

S = tableau.STAGES


def bernstein_value(coefficients, t):
    """De Casteljau, vectorised."""
    rows = [np.full(np.shape(t), c, dtype=float) for c in coefficients]
    while len(rows) > 1:
        rows = [(1 - t) * u + t * v for u, v in pairwise(rows)]
    return rows[0]


def test_tables_integrate_polynomials_exactly():
    # collocation with S nodes integrates degree S - 1 exactly; quadrature more
    for nodes, A in ((tableau.RADAU, tableau.RADAU_A), (tableau.GAUSS, tableau.GAUSS_A)):
        for degree in range(S):
            np.testing.assert_allclose(A @ nodes**degree, nodes ** (degree + 1) / (degree + 1))
    for degree in range(2 * S):
        assert tableau.GAUSS_B @ tableau.GAUSS**degree == pytest.approx(1.0 / (degree + 1))
    for degree in range(2 * S - 1):
        last = tableau.RADAU_A[-1]
        assert last @ tableau.RADAU**degree == pytest.approx(1.0 / (degree + 1))
    assert tableau.RADAU[-1] == 1.0


def test_all_tables_are_real():
    for name, table in tableau.TABLES._asdict().items():
        assert table.dtype == np.float64, name


def test_interpolation_tables_reproduce_polynomials():
    rng = np.random.default_rng(0)
    p = rng.normal(size=S)
    at_radau = polynomial.polyval(tableau.RADAU, p)
    assert tableau.RADAU_TO_START @ at_radau == pytest.approx(p[0])
    np.testing.assert_allclose(
        tableau.RADAU_TO_GAUSS @ at_radau, polynomial.polyval(tableau.GAUSS, p)
    )
    longer = rng.normal(size=S + 1)
    values = polynomial.polyval(tableau.START_RADAU, longer)
    np.testing.assert_allclose(tableau.START_RADAU_MONOMIALS @ values, longer, atol=1e-12)
    t = np.linspace(0, 1, 7)
    bernstein = tableau.FORCE_BERNSTEIN @ values
    np.testing.assert_allclose(bernstein_value(bernstein, t), polynomial.polyval(t, longer))
    slopes = polynomial.polyval(tableau.START_GAUSS, longer)
    path = tableau.PATH_BERNSTEIN @ slopes
    np.testing.assert_allclose(
        bernstein_value(path, t), polynomial.polyval(t, polynomial.polyint(longer)), atol=1e-14
    )
