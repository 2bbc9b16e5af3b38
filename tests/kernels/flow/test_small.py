"""Small systems of linear equations, against NumPy and by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow.kernels.flow.small import eliminate, invert, solve_products


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_invert_equals_the_inverse(size, seed):
    matrix = np.random.default_rng(seed).normal(size=(size, size))
    inverse = matrix.copy()
    invert(inverse)
    bound = 1e-13 * np.linalg.cond(matrix)
    np.testing.assert_allclose(inverse @ matrix, np.eye(size), rtol=0, atol=max(bound, 1e-12))


def test_invert_pivots_where_the_diagonal_vanishes():
    matrix = np.array([[0.0, 2.0], [4.0, 0.0]])
    invert(matrix)
    np.testing.assert_allclose(matrix, [[0.0, 0.25], [0.5, 0.0]])


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_eliminate_solves_the_system(size, seed):
    rng = np.random.default_rng(seed)
    matrix, x = rng.normal(size=(size, size)), rng.normal(size=size)
    solution = x.copy()
    eliminate(matrix.copy(), solution)
    bound = 1e-14 * np.linalg.cond(matrix) * (1.0 + np.abs(solution).max())
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, x), rtol=0, atol=bound)


def test_eliminate_pivots_where_the_diagonal_vanishes():
    x = np.array([2.0, 4.0])
    eliminate(np.array([[0.0, 2.0], [4.0, 0.0]]), x)
    np.testing.assert_allclose(x, [1.0, 1.0])


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_products_of_unit_vectors_are_solved_with_dependent_ones_too(size, d, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, d))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    gram, right = vectors @ vectors.T, vectors @ rng.normal(size=d)
    x = right.copy()
    solve_products(gram.copy(), x)
    assert (x != 0.0).sum() <= np.linalg.matrix_rank(vectors)
    np.testing.assert_allclose(gram @ x, right, rtol=0, atol=1e-9 * (1.0 + np.abs(x).max()))
