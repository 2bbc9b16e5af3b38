"""The weights of the least pull over a box, against enumeration and bounded least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from numerics.reference import box_by_enumeration
from reluflow.kernels.flow.box import box_weights


def weights_in_box(base, force, gram, seed=None):
    """Box weights, from zeros or from some ends of the box and inner points."""
    theta = np.zeros(len(force))
    if seed is not None:
        theta = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], len(force))
    box_weights(base, force, gram, theta)
    return theta


def box_problem(seed, size, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, d))
    force = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 1)
    base = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 1)
    return X, force, base


def objective(theta, X, force, base):
    return np.linalg.norm(base + (theta * force) @ X)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_box_weights_minimise_the_pull(seed, size):
    X, force, base = box_problem(seed, size)
    theta = weights_in_box(X @ base, force, X @ X.T, seed)
    assert ((theta >= 0) & (theta <= 1)).all()
    bounded = lsq_linear((force[:, None] * X).T, -base, bounds=(0, 1), method="bvls").x
    best = objective(bounded, X, force, base)
    assert objective(theta, X, force, base) <= best + 1e-9 * np.linalg.norm(base)
    if size <= 3:  # independent points: the minimiser is unique
        np.testing.assert_allclose(theta, box_by_enumeration(base, force, X), atol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_box_weights_with_more_planes_than_dimensions(seed):
    X, force, base = box_problem(seed, 5, d=2)
    theta = weights_in_box(X @ base, force, X @ X.T, seed)
    assert ((theta >= 0) & (theta <= 1)).all()
    bounded = lsq_linear((force[:, None] * X).T, -base, bounds=(0, 1), method="bvls").x
    gap = objective(theta, X, force, base) - objective(bounded, X, force, base)
    assert gap <= 1e-7 * np.linalg.norm(base)


@pytest.mark.parametrize("seed", range(40))
def test_box_weights_of_forces_of_very_different_size(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 5))
    X = rng.normal(size=(size, 5))
    force = rng.normal(size=size) * 10.0 ** rng.integers(-12, 3, size=size)
    g = rng.normal(size=5)
    theta = weights_in_box(X @ g, force, X @ X.T, seed)
    assert np.all((theta >= 0.0) & (theta <= 1.0))
    best = lsq_linear((force[:, None] * X).T, -g, bounds=(0, 1), tol=1e-14)
    assert objective(theta, X, force, g) <= objective(best.x, X, force, g) * (1 + 1e-9) + 1e-14


def test_box_weights_at_the_ends():
    one = np.eye(1)
    assert weights_in_box(np.array([0.5]), np.array([-1.0]), one)[0] == pytest.approx(0.5)
    assert weights_in_box(np.array([2.0]), np.array([-1.0]), one)[0] == 1.0
    assert weights_in_box(np.array([-2.0]), np.array([-1.0]), one)[0] == 0.0
    assert weights_in_box(np.array([0.0]), np.array([-1.0]), one)[0] == 0.0


def test_box_weights_of_forces_at_the_end_of_floats():
    tiny = np.array([-2.5e-321, 1e-310])
    np.testing.assert_array_equal(weights_in_box(np.array([0.3, 0.2]), tiny, np.eye(2)), [1.0, 0.0])
    np.testing.assert_array_equal(
        weights_in_box(np.array([0.3, -0.2]), tiny, np.eye(2)), [1.0, 1.0]
    )
