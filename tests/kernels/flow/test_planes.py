"""What a neuron does at planes, against enumeration and linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.flow.scene import planes_at, planes_with
from numerics.reference import box_by_enumeration
from reluflow.kernels.flow.hover import HOVER, LOOKS, hover
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE
from reluflow.kernels.flow.planes import (
    CROSSROADS,
    PLAIN,
    TIE,
    decide,
    independent,
    inverse_gram,
    is_alive,
    land,
    let_go,
    multipliers,
    part_ways,
    ray_of,
)

# ---------------------------------------------------------------------- decide, single points


def decided(a, c, X, row, on, arrival=None):
    """``(row, outcome)`` after `decide`, for single points."""
    planes = planes_at(np.array(X, dtype=float))
    c = np.array(c, dtype=float)
    out = np.array(row, dtype=np.int8)
    where = np.zeros(len(c), dtype=bool)
    where[list(on)] = True
    speeds = np.zeros(len(c)) if arrival is None else np.array(arrival, dtype=float)
    outcome = decide(
        float(a), out, where, speeds, np.zeros(len(c)), planes.length * c, planes.gram
    )  # fmt: skip
    return out.tolist(), outcome


PLANE = [[1.0, 0.0], [0.5, 1.0]]  # point 0 on its plane, point 1 pulls along x0 by c_1 / 2


@pytest.mark.parametrize(
    ("row", "c", "expected"),
    [
        # attracting (a c_0 < 0), the other pull is c_1 / 2: theta = c_1 / 2 in the box slides
        ([0, 1], [-1.0, 1.0], [2, 1]),
        ([1, 1], [-1.0, 1.0], [2, 1]),
        ([0, 1], [-1.0, 4.0], [1, 1]),
        ([1, 1], [-1.0, 4.0], [1, 1]),
        ([0, 1], [-1.0, -1.0], [0, 1]),
        ([1, 1], [-1.0, -1.0], [0, 1]),
        ([2, 1], [-1.0, 1.0], [2, 1]),
        ([2, 1], [-1.0, -1.0], [0, 1]),
        ([2, 1], [-1.0, 4.0], [1, 1]),
    ],
)
def test_attracting_plane_is_decided_by_the_box(row, c, expected):
    assert decided(1.0, c, PLANE, row, [0]) == (expected, PLAIN)
    # both signs turned: the same
    assert decided(-1.0, [-v for v in c], PLANE, row, [0]) == (expected, PLAIN)


@pytest.mark.parametrize(("speed", "expected"), [(1.0, ABOVE), (-1.0, BELOW)])
@pytest.mark.parametrize("before", [BELOW, ABOVE])
@pytest.mark.parametrize("a", [1.0, -1.0])
def test_repelling_plane_is_crossed_in_the_direction_of_arrival(a, before, speed, expected):
    after = decided(a, [a, a], PLANE, [before, 1], [0], [speed, 0.0])
    assert after == ([expected, 1], PLAIN)


@pytest.mark.parametrize(
    ("pull", "side", "outcome"), [(1.0, ABOVE, PLAIN), (-3.0, BELOW, PLAIN), (-1.0, BELOW, TIE)]
)
@pytest.mark.parametrize("before", [BELOW, ABOVE, SLIDE])
def test_without_arrival_a_repelling_plane_is_left_where_both_sides_push(
    pull, side, outcome, before
):
    # velocities c_1 / 2 below and c_1 / 2 + 1 above: agree, agree, point apart
    assert decided(1.0, [1.0, pull], PLANE, [before, 1], [0]) == ([side, 1], outcome)
    assert decided(-1.0, [-1.0, -pull], PLANE, [before, 1], [0]) == ([side, 1], outcome)


def test_planes_it_is_not_on_are_left_alone():
    assert decided(1.0, [-1.0, 1.0], PLANE, [1, 1], []) == ([1, 1], PLAIN)


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
    after, _ = decided(1.0, c, X, row, [0, 1])
    for i in range(2):
        if 1e-9 < theta[i] < 1 - 1e-9:
            assert after[i] == SLIDE
        else:
            assert after[i] == round(theta[i])


def test_dependent_planes_are_a_crossroads_and_nothing_changes():
    three = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    row = [1, 0, 2]
    assert decided(1.0, [-1.0, -1.0, -1.0], three, row, [0, 1, 2]) == (row, CROSSROADS)
    assert decided(1.0, [-1.0, -1.0, -1.0], three, [1, 0, 1], [0, 1])[1] == PLAIN


# ---------------------------------------------------------------------- decide, two-sided planes


def two_sided(seed, size=4, d=3):
    """Independent planes with pulls on both sides, a row, and which of the planes it is on."""
    rng = np.random.default_rng(seed)
    planes = planes_with(rng.normal(size=(size, d)))
    low, high = rng.normal(size=(2, size))
    on = np.zeros(size, dtype=bool)
    on[: int(rng.integers(1, d + 1))] = True
    row = rng.integers(0, 2, size=size).astype(np.int8)
    return rng, planes, low, high, on, row


@settings(max_examples=150)
@given(st.integers(0, 10**6))
def test_two_sided_planes_follow_the_least_element_over_theta(seed):
    rng, planes, low, high, on, row = two_sided(seed)
    a = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 3.0))
    arrival = rng.normal(size=len(row))
    attracts = on & (a * (high - low) < 0)
    side = np.where(on & ~attracts, arrival > 0, row == ABOVE)
    base = np.where(attracts, low, np.where(side, high, low)) @ planes.U
    held = np.flatnonzero(attracts)
    theta = box_by_enumeration(base, (high - low)[held], planes.U[held])
    expected = side.astype(int)
    expected[held] = [SLIDE if 1e-9 < v < 1 - 1e-9 else round(v) for v in theta]
    # it stops at a plane while it passes one whose two sides push apart: more than one way
    g = base + (theta * (high - low)[held]) @ planes.U[held]
    unclear = False
    for p in np.flatnonzero(on & ~attracts & (a * (high - low) > 0)):
        others = g @ planes.U[p] - (high if side[p] else low)[p]
        unclear = unclear or a * (others + high[p]) > 0 > a * (others + low[p])
    outcome = TIE if unclear and (expected[held] == SLIDE).any() else PLAIN
    assert decide(a, row, on, arrival, low, high, planes.gram) == outcome
    np.testing.assert_array_equal(row, expected)


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_one_two_sided_plane_crosses_slides_or_parts_by_its_two_velocities(seed):
    rng, planes, low, high, on, row = two_sided(seed)
    on[1:] = False
    a = float(rng.choice([-1.0, 1.0]))
    others = np.where(row[1:] == ABOVE, high[1:], low[1:]) @ planes.U[1:] @ planes.U[0]
    above, below = a * (others + high[0]), a * (others + low[0])
    if above < 0.0 < below:
        expected = SLIDE, PLAIN
    elif below < 0.0 < above:
        expected = BELOW, TIE
    else:
        expected = (ABOVE if above > 0.0 else BELOW), PLAIN
    outcome = decide(a, row, on, np.zeros(len(row)), low, high, planes.gram)
    assert (row[0], outcome) == expected


def test_points_of_opposite_sides_never_bury_a_neuron():
    # x and -x with labels that pull both ways: the neuron slides with the share that balances them
    planes = planes_with([[1.0, 0.0], [0.6, 0.8]], owner=[0, 0, 1], length=[1.0, -1.0, 1.0])
    low, high = np.array([1.0, 0.0]), np.array([-2.0, 1.0])
    row = np.array([1, 1], dtype=np.int8)
    decide(1.0, row, np.array([True, False]), np.zeros(2), low, high, planes.gram)
    assert row.tolist() == [SLIDE, ABOVE]
    f = multipliers(low, high, row, planes.gram)
    assert (f @ planes.U)[0] == pytest.approx(0.0, abs=1e-16)
    assert (f[0] - low[0]) / (high[0] - low[0]) == pytest.approx(1.6 / 3.0)
    assert is_alive(row, planes.both)


# ---------------------------------------------------------------------- multipliers


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_multipliers_keep_the_neuron_on_its_planes(seed, held):
    rng = np.random.default_rng(seed)
    planes = planes_with(rng.normal(size=(6, 4)))
    low, high = rng.normal(size=(2, 6))
    row = rng.integers(0, 2, size=6).astype(np.int8)
    row[:held] = SLIDE
    f = multipliers(low, high, row, planes.gram)
    g = f @ planes.U
    np.testing.assert_allclose(planes.U[:held] @ g, 0.0, atol=1e-9)
    free = np.where(row == ABOVE, high, low)
    np.testing.assert_array_equal(f[held:], free[held:])
    # the projection of the pull of the others on the complement of the planes
    active = free[held:] @ planes.U[held:]
    Q = np.linalg.qr(planes.U[:held].T)[0]
    np.testing.assert_allclose(g, active - Q @ (Q.T @ active), atol=1e-9)


def test_multipliers_on_dependent_planes_project_on_what_they_share():
    planes = planes_with([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.3, 1]])
    low, high = np.zeros(4), np.array([-1.0, -1.0, -1.0, 1.0])
    row = np.array([2, 2, 2, 1], np.int8)
    g = multipliers(low, high, row, planes.gram) @ planes.U
    np.testing.assert_allclose(g, [0.0, 0.0, planes.U[3, 2]], atol=1e-14)


# ---------------------------------------------------------------------- ends of slides


def released(a, c, X, row, plane, up, far=1e-9):
    planes = planes_at(np.array(X, dtype=float))
    row = np.array(row, dtype=np.int8)
    high = planes.length * np.array(c, dtype=float)
    goes = let_go(a, row, plane, up, np.zeros(len(c)), high, planes.gram, far)
    return goes, row.tolist()


def test_a_weight_outside_the_box_lets_go_on_its_side():
    # the weight of point 0 is c_1 / 2: inside, beyond 1, below 0
    for pull, goes, side in ((1.0, False, SLIDE), (3.0, True, ABOVE), (-1.0, True, BELOW)):
        assert released(1.0, [-1.0, pull], PLANE, [2, 1], 0, side == ABOVE) == (goes, [side, 1])


@pytest.mark.parametrize("up", [False, True])
def test_a_repelling_plane_lets_go_where_both_sides_push(up):
    for pull, side in ((-3.0, BELOW), (3.0, ABOVE)):  # velocities -1.5 and -1, 1.5 and 2
        assert released(1.0, [0.5, pull], PLANE, [2, 1], 0, up) == (True, [side, 1])


CORNER = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0]]


def test_the_other_plane_holds_a_neuron_that_leaves_one():
    # both weights are 1.5: the box rule ends both slides
    assert released(1.0, [-1.0, -1.0, 3.0], CORNER, [2, 2, 1], 0, True) == (True, [1, 1, 1])
    assert released(1.0, [-1.0, -4.0, 3.0], CORNER, [2, 2, 1], 0, True) == (True, [1, 2, 1])


def test_a_slide_on_dependent_planes_is_not_ended_plane_by_plane():
    three = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    assert released(1.0, [-1.0, -1.0, -1.0], three, [2, 2, 2], 0, True) == (False, [2, 2, 2])


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_a_two_sided_slide_ends_on_the_side_its_weight_leaves(seed):
    rng, planes, low, high, on, row = two_sided(seed)
    a = float(rng.choice([-1.0, 1.0]))
    on[1:] = False
    if a * (high[0] - low[0]) > 0:
        low[0], high[0] = high[0], low[0]
    row[0] = SLIDE
    others = np.where(row[1:] == ABOVE, high[1:], low[1:]) @ planes.U[1:] @ planes.U[0]
    theta = (-others - low[0]) / (high[0] - low[0])
    goes = let_go(a, row, 0, theta > 0.5, low, high, planes.gram, 0.0)
    assert goes == (not 0.0 < theta < 1.0)
    assert row[0] == (SLIDE if 0.0 < theta < 1.0 else int(theta >= 1.0))


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_ways_part_above_where_descent_spends_more_than_half_its_time(seed):
    _, planes, low, high, on, row = two_sided(seed)
    row[on] = SLIDE
    held = np.flatnonzero(on)
    base = np.where(row == ABOVE, high, low)
    base[held] = low[held]
    # theta with  U_held (g_base + sum theta D u) = 0
    system = (planes.U[held] @ planes.U[held].T) * (high - low)[held]
    theta = np.linalg.solve(system, -planes.U[held] @ (base @ planes.U))
    after = row.copy()
    part_ways(after, low, high, planes.gram)
    np.testing.assert_array_equal(after[held], (theta > 0.5).astype(int))
    np.testing.assert_array_equal(after[~on], row[~on])


# ---------------------------------------------------------------------- linear algebra of normals


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_independence_is_that_of_the_rank(seed, size, d):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(size + 2, d))
    if size > 2 and rng.random() < 0.5:
        U[size - 1] = U[0] - 2.0 * U[1]
    planes = planes_with(U)
    held = rng.permutation(size)
    sizes = np.linalg.svd(planes.U[held], compute_uv=False)
    if len(sizes) == size and 1e-9 < sizes[-1] < 1e-5:
        return  # between rounding and a clear answer
    expected = len(sizes) == size and sizes[-1] > 1e-5
    assert independent(planes.gram, held) == expected
    inverse, free = inverse_gram(planes.gram, held)
    assert free == expected
    own = planes.U[held] @ planes.U[held].T
    np.testing.assert_allclose(own @ inverse @ own, own, atol=1e-9)
    if not expected:
        np.testing.assert_allclose(inverse, np.linalg.pinv(own, 1e-12), atol=1e-8)


def test_near_parallel_normals_are_independent_down_to_the_rounding_of_products():
    for angle, expected in ((1e-3, True), (1e-6, True), (1e-8, False)):
        planes = planes_with([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
        assert independent(planes.gram, np.array([0, 1])) == expected
    assert independent(np.eye(2), np.array([], dtype=np.int64))


def dual_of(planes, held):
    """The dual basis of some normals."""
    return np.ascontiguousarray(np.linalg.pinv(planes.U[held]).T)


@settings(max_examples=80)
@given(st.integers(0, 10**6))
def test_a_ray_is_where_all_projected_pulls_have_one_direction(seed):
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 4)), 4
    # two-sided planes pull from both sides; few slides or active points in many of the rows
    owner, length = [0, 1, 2, 3, 3], [1.0, 2.0, 0.5, 1.0, -1.0]
    if rng.random() < 0.5:
        owner, length = owner[:-1], length[:-1]
    planes = planes_with(rng.normal(size=(size, d)), owner=owner, length=length)
    face = rng.choice([0, 0, 1, 2], size=size).astype(np.int8)
    held = np.flatnonzero(face == SLIDE)
    axis = np.zeros(d)
    found = ray_of(face, planes, held, dual_of(planes, held), axis)
    felt = (face == ABOVE) | ((face == BELOW) & planes.both)
    parts = planes.U[felt] - planes.U[felt] @ np.linalg.pinv(planes.U[held]) @ planes.U[held]
    sizes = np.linalg.svd(parts, compute_uv=False) if len(parts) else np.zeros(1)
    rank = int((sizes > 1e-10).sum())
    assert found == (rank == 1)
    if found:
        assert np.linalg.norm(axis) == pytest.approx(1.0)
        np.testing.assert_allclose(parts, np.outer(parts @ axis, axis), atol=1e-10)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-8, 1e-10])
def test_nearly_parallel_pulls_make_no_ray(angle):
    planes = planes_with([[1.0, 0.0], [np.cos(angle), np.sin(angle)], [0.0, 1.0]])
    nothing, axis = np.empty(0, np.int64), np.zeros(2)
    both = np.array([ABOVE, ABOVE, BELOW], np.int8)
    assert not ray_of(both, planes, nothing, np.empty((0, 2)), axis)
    one = np.array([BELOW, ABOVE, BELOW], np.int8)
    assert ray_of(one, planes, nothing, np.empty((0, 2)), axis)
    np.testing.assert_allclose(axis, planes.U[1], rtol=1e-15)


@pytest.mark.parametrize("held", [[1], [0, 2], [0, 1, 2]])
def test_landing_is_the_orthogonal_projection(held):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3))
    X[2] = X[0] - 3.0 * X[1]  # the three planes share a line
    planes, w = planes_at(X), rng.normal(size=3)
    on = np.isin(np.arange(4), held)
    expected = w - np.linalg.pinv(X[on]) @ (X[on] @ w)
    land(w, on, planes)
    np.testing.assert_allclose(w, expected, rtol=0, atol=1e-13)
    before = w.copy()
    land(w, np.zeros(4, dtype=bool), planes)
    np.testing.assert_array_equal(w, before)


def test_landing_where_planes_meet_in_the_origin_is_exactly_there():
    rng = np.random.default_rng(4)
    planes, w = planes_at(rng.normal(size=(3, 3))), rng.normal(size=3)
    land(w, np.ones(3, dtype=bool), planes)
    np.testing.assert_array_equal(w, np.zeros(3))


# ---------------------------------------------------------------------- life


def test_a_neuron_lives_while_some_force_can_act_on_it():
    one_sided, two = np.zeros(3, dtype=bool), np.array([False, True, False])
    assert not is_alive(np.array([0, 0, 0], np.int8), one_sided)
    assert is_alive(np.array([0, 1, 0], np.int8), one_sided)
    assert is_alive(np.array([0, 0, 2], np.int8), one_sided)
    # below a plane with points on either side some of them are active
    assert is_alive(np.array([0, 0, 0], np.int8), two)


# ---------------------------------------------------------------------- hovering


@pytest.mark.parametrize("seed", range(4))
def test_hovering_is_plain_descent_with_steps_of_one(seed):
    rng = np.random.default_rng(seed)
    U, (low, high) = rng.normal(size=(5, 3)), 0.3 * rng.normal(size=(2, 5))
    start, base = rng.normal(size=3), 0.1 * rng.normal(size=3)
    found = hover(start, base, low, high, U)
    w, looks = start.copy(), []
    for step in range(1, LOOKS * HOVER + 1):
        w = w + base + np.where(U @ w > 0.0, high, low) @ U
        if step % HOVER == 0:
            looks.append(w)
    np.testing.assert_allclose(found, looks, rtol=1e-9, atol=1e-9)
