"""What a neuron does at data hyperplanes, against enumeration and bounded least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from numerics.reference import box_by_enumeration
from reluflow.kernels.boundaries import box_weights, settle, slide_forces
from reluflow.kernels.releases import let_go


def weights_in_box(base, c, gram, seed=None):
    """Box weights, from zeros or from some ends of the box and inner points."""
    theta = np.zeros(len(c))
    if seed is not None:
        theta = np.random.default_rng(seed).choice([0.0, 0.3, 1.0], len(c))
    box_weights(base, c, gram, theta)
    return theta


def box_problem(seed, size, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, d))
    c = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 1)
    base = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 1)
    return X, c, base


def objective(theta, X, c, base):
    return np.linalg.norm(base + (theta * c) @ X)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_box_weights_minimise_the_pull(seed, size):
    X, c, base = box_problem(seed, size)
    theta = weights_in_box(X @ base, c, X @ X.T, seed)
    assert ((theta >= 0) & (theta <= 1)).all()
    bounded = lsq_linear((c[:, None] * X).T, -base, bounds=(0, 1), method="bvls").x
    best = objective(bounded, X, c, base)
    assert objective(theta, X, c, base) <= best + 1e-9 * np.linalg.norm(base)
    if size <= 3:  # independent points: the minimiser is unique
        np.testing.assert_allclose(theta, box_by_enumeration(base, c, X), atol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_box_weights_with_more_points_than_dimensions(seed):
    X, c, base = box_problem(seed, 5, d=2)
    theta = weights_in_box(X @ base, c, X @ X.T, seed)
    assert ((theta >= 0) & (theta <= 1)).all()
    bounded = lsq_linear((c[:, None] * X).T, -base, bounds=(0, 1), method="bvls").x
    gap = objective(theta, X, c, base) - objective(bounded, X, c, base)
    assert gap <= 1e-7 * np.linalg.norm(base)


def test_box_weights_of_a_duplicated_point():
    X = np.array([[1.0, 0.0], [1.0, 0.0]])
    c, base = np.array([-1.0, -1.0]), np.array([1.2, 0.0])
    theta = weights_in_box(X @ base, c, X @ X.T)
    assert theta.sum() == pytest.approx(1.2)


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


# ---------------------------------------------------------------------- settle


def settled(a, c, X, row, on, arrival=None):
    """Row after `settle`, for lists."""
    X, c = np.array(X, dtype=float), np.array(c, dtype=float)
    out = np.array(row, dtype=np.int8)
    where = np.zeros(len(c), dtype=bool)
    where[list(on)] = True
    speeds = np.zeros(len(c)) if arrival is None else np.array(arrival, dtype=float)
    settle(float(a), c, X @ X.T, out, where, speeds)
    return out.tolist()


PLANE = [[1.0, 0.0], [0.5, 1.0]]  # point 0 on the boundary, point 1 pulls along x0 by c_1 / 2


@pytest.mark.parametrize(
    ("row", "c", "expected"),
    [
        # attracting (a c_0 < 0), the other pull is c_1 / 2: theta = c_1 / 2 in the box slides
        ([0, 1], [-1.0, 1.0], [2, 1]),
        ([1, 1], [-1.0, 1.0], [3, 1]),
        ([0, 1], [-1.0, 4.0], [1, 1]),
        ([1, 1], [-1.0, 4.0], [1, 1]),
        ([0, 1], [-1.0, -1.0], [0, 1]),
        ([1, 1], [-1.0, -1.0], [0, 1]),
        ([2, 1], [-1.0, 1.0], [2, 1]),
        ([3, 1], [-1.0, -1.0], [0, 1]),
        ([3, 1], [-1.0, 4.0], [1, 1]),
    ],
)
def test_attracting_plane_is_decided_by_the_box(row, c, expected):
    assert settled(1.0, c, PLANE, row, [0]) == expected
    # both signs turned: the same
    assert settled(-1.0, [-v for v in c], PLANE, row, [0]) == expected


@pytest.mark.parametrize(("speed", "expected"), [(1.0, 1), (-1.0, 0), (0.0, 0)])
@pytest.mark.parametrize("before", [0, 1])
def test_repelling_plane_is_crossed_in_the_direction_of_arrival(before, speed, expected):
    after = settled(1.0, [1.0, 1.0], PLANE, [before, 1], [0], [speed, 0.0])
    assert after == [expected, 1]


@pytest.mark.parametrize(("mode", "expected"), [(2, 0), (3, 1)])
def test_slide_whose_plane_turned_repelling_ends_where_it_came_from(mode, expected):
    assert settled(1.0, [1.0, 1.0], PLANE, [mode, 1], [0]) == [expected, 1]


def test_points_off_the_boundary_are_left_alone():
    assert settled(1.0, [-1.0, 1.0], PLANE, [1, 1], []) == [1, 1]


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_two_attracting_planes_at_once_follow_the_enumeration(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3))
    c = rng.normal(size=4)
    c[:2] = -np.abs(c[:2])
    row = np.array([0, 1, 1, int(rng.random() < 0.5)])
    base = sum((c[i] * X[i] for i in (2, 3) if row[i] == 1), np.zeros(3))
    theta = box_by_enumeration(base, c[:2], X[:2])
    after = settled(1.0, c, X, row, [0, 1])
    for i in range(2):
        if 1e-9 < theta[i] < 1 - 1e-9:
            assert after[i] == 2 + row[i]
        else:
            assert after[i] == round(theta[i])


# ---------------------------------------------------------------------- slide forces


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_slide_forces_keep_the_neuron_on_its_planes(seed, held):
    rng = np.random.default_rng(seed)
    X, c = rng.normal(size=(6, 4)), rng.normal(size=6)
    row = rng.integers(0, 2, size=6).astype(np.int8)
    row[:held] = rng.integers(2, 4, size=held)
    rho = np.empty(6)
    slide_forces(c, X @ X.T, row, rho)
    g = rho @ X
    np.testing.assert_allclose(X[:held] @ g, 0.0, atol=1e-9)
    np.testing.assert_array_equal(rho[held:], np.where(row[held:] == 1, c[held:], 0.0))
    # the projection of the active pull on the complement of the planes
    active = np.where(row == 1, c, 0.0) @ X
    Q = np.linalg.qr(X[:held].T)[0]
    np.testing.assert_allclose(g, active - Q @ (Q.T @ active), atol=1e-9)


def test_slide_forces_on_a_duplicated_point_share_the_weight():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 1.0]])
    rho = np.empty(3)
    slide_forces(np.array([-1.0, -1.0, 1.0]), X @ X.T, np.array([2, 2, 1], np.int8), rho)
    np.testing.assert_allclose(rho @ X, [0.0, 1.0], atol=1e-14)


def test_a_slide_whose_plane_turned_repelling_leaves_where_it_is_pushed():
    for came_from in (2, 3):
        row = [came_from, 1]
        for arrival, side in ((-1.0, 0), (1.0, 1), (0.0, came_from - 2)):
            assert settled(1.0, [0.5, 1.0], PLANE, row, [0], [arrival, 0.0]) == [side, 1]


# ---------------------------------------------------------------------- ends of slides


@pytest.mark.parametrize("came_from", [2, 3])
def test_a_weight_outside_the_box_lets_go_on_its_side(came_from):
    X = np.array(PLANE)
    # the weight of point 0 is c_1 / 2: inside, beyond 1, below 0
    for pull, goes, side in ((1.0, False, came_from), (3.0, True, 1), (-1.0, True, 0)):
        row = np.array([came_from, 1], dtype=np.int8)
        c = np.array([-1.0, pull])
        assert let_go(1.0, c, X @ X.T, row, 0, side == 1, 1e-9, 0.0) == goes
        assert row.tolist() == [side, 1]


@pytest.mark.parametrize("up", [False, True])
def test_a_repelling_plane_lets_go_where_both_sides_push(up):
    X = np.array(PLANE)
    for pull, side in ((-3.0, 0), (3.0, 1)):  # velocities -1.5 and -1, 1.5 and 2
        row = np.array([3 - side, 1], dtype=np.int8)  # it came from the other side
        assert let_go(1.0, np.array([0.5, pull]), X @ X.T, row, 0, up, 1e-9, 0.0)
        assert row.tolist() == [side, 1]


def test_the_other_plane_holds_a_neuron_that_leaves_one():
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0]])
    c = np.array([-1.0, -1.0, 3.0])
    row = np.array([3, 2, 1], dtype=np.int8)
    assert let_go(1.0, c, X @ X.T, row, 0, True, 1e-9, 0.0)
    assert row.tolist() == [1, 1, 1]  # both weights are 1.5: the box rule ends both slides
    c = np.array([-1.0, -4.0, 3.0])
    row = np.array([3, 2, 1], dtype=np.int8)
    assert let_go(1.0, c, X @ X.T, row, 0, True, 1e-9, 0.0)
    assert row.tolist() == [1, 2, 1]
