"""Where dependent planes meet: hulls against other solvers, the cone flow against small steps."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy.optimize import minimize

from kernels.flow.scene import planes_with, points_of, pulls_on
from numerics import hull
from reluflow.engines.flow.cells import least_element, sectors
from reluflow.engines.flow.crossroads import Crossroads
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE

# ---------------------------------------------------------------------- hulls


def least_by_slsqp(points):
    k = len(points)
    answer = minimize(
        lambda s: ((s @ points) ** 2).sum(),
        np.full(k, 1.0 / k),
        jac=lambda s: 2.0 * points @ (s @ points),
        bounds=[(0.0, 1.0)] * k,
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1.0, "jac": lambda s: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return answer.x @ points


@pytest.mark.parametrize("seed", range(40))
def test_the_least_element_is_that_of_other_solvers(seed):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    points = rng.normal(size=(k, d)) + 2.0 * rng.random() * rng.normal(size=d)
    if seed % 3 == 0:
        points = np.concatenate([points, points[:2]])  # copies
    scale = np.abs(points).max()
    found = least_element(points)
    np.testing.assert_allclose(found, least_by_slsqp(points), atol=1e-5 * scale)
    np.testing.assert_allclose(found, hull.least_element(points), atol=1e-8 * scale)
    # no point of the hull is nearer to the origin along it
    assert (points @ found).min() >= found @ found - 1e-10 * scale**2


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_the_least_element_of_a_hull_around_the_origin_is_zero(size):
    square = size * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -1.0]])
    np.testing.assert_allclose(least_element(square), 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(least_element(square + size * 5.0)[0], 4.5 * size, rtol=0.2)
    np.testing.assert_array_equal(least_element(np.zeros((3, 2))), [0.0, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_sectors_have_every_pattern_of_the_plane_once(seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(int(rng.integers(1, 7)), 2))
    if seed % 2:
        normals = np.concatenate([normals, -2.0 * normals[:1]])  # a line twice
    found = sectors(normals) @ normals.T > 0
    assert len(np.unique(found, axis=0)) == len(found)
    turns = 2 * np.pi * (np.arange(20000) + 0.5) / 20000
    dense = np.column_stack([np.cos(turns), np.sin(turns)]) @ normals.T > 0
    assert {tuple(row) for row in dense} <= {tuple(row) for row in found}
    assert {tuple(row) for row in found} == {tuple(row) for row in hull.cells_by_angles(normals)}


def test_sectors_of_a_line_are_its_two_sides():
    assert sorted(sectors(np.array([[2.0], [-1.0]])).ravel().tolist()) == [-1.0, 1.0]


# ---------------------------------------------------------------------- places


def place(X, c, a=1.0):
    """A neuron in the forces ``c`` at the origin, one plane for each of the points."""
    planes = planes_with(X, length=np.linalg.norm(X, axis=1))
    low, high = pulls_on(np.asarray(c, dtype=float), planes)
    return Crossroads(SimpleNamespace(planes=planes, cells={}), float(a), low, high)


def shared_place(rng, d, a):
    """As `place`, some planes with points on both sides; the points and forces with it."""
    U = rng.normal(size=(d + 2, d))
    owner = np.concatenate([np.arange(d + 2), rng.integers(d + 2, size=2)])
    length = np.concatenate([rng.uniform(0.5, 2.0, d + 2), -rng.uniform(0.5, 2.0, 2)])
    planes = planes_with(U, owner=owner, length=length)
    c = rng.normal(size=len(owner))
    low, high = pulls_on(c, planes)
    spot = Crossroads(SimpleNamespace(planes=planes, cells={}), a, low, high)
    return spot, points_of(planes), c


def everywhere(spot):
    size = len(spot.low)
    return np.zeros(size, dtype=np.int8), np.ones(size, dtype=bool)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_least_pull_at_the_origin_is_that_over_all_realised_patterns(seed, d):
    rng = np.random.default_rng([seed, d])
    spot, X, c = shared_place(rng, d, 1.0)
    expected = hull.least_element(hull.pulls(hull.cells(X), c, X))
    np.testing.assert_allclose(spot.least(*everywhere(spot)), expected, atol=1e-8)


def test_the_pull_along_an_edge_does_not_count():
    # three planes share the line e_3, along which a fourth point pulls
    turns = 2.0 * np.pi * np.arange(3) / 3
    around = np.column_stack([np.cos(turns), np.sin(turns), np.zeros(3)])
    spot = place(np.vstack([around, [0.0, 0.0, 1.0]]), [-1.0, -1.0, -1.0, 1.0])
    on = np.array([True, True, True, False])
    row = np.array([0, 0, 0, 1], dtype=np.int8)
    np.testing.assert_allclose(spot.least(row, on), 0.0, atol=1e-14)
    row[:3] = SLIDE
    assert spot.rests(row)


def test_without_an_output_weight_every_place_is_a_rest():
    spot = place(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [1.0, 1.0, 1.0], 0.0)
    assert spot.rests(np.full(3, SLIDE, dtype=np.int8))


def test_a_neuron_does_not_rest_beside_a_cell_where_nothing_is_active():
    spot = place(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [-1.0, -1.0, -1.0])
    row = np.full(3, SLIDE, dtype=np.int8)
    assert not spot.rests(row)
    assert spot.choose(row, row == SLIDE, None).row.tolist() == [BELOW] * 3


def test_a_neuron_does_not_rest_where_one_direction_leaves_for_good():
    # no direction is without active points, and 0 is a mixture of pulls; along -e_1 it goes away
    X = np.array([[-1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, -1.0]])
    spot = place(X, np.array([0.1, 0.1, -0.1, -1.0]))
    row = np.full(4, SLIDE, dtype=np.int8)
    np.testing.assert_allclose(spot.least(row, row == SLIDE), 0.0, atol=1e-14)
    assert not spot.rests(row)
    left = spot.choose(row, row == SLIDE, None).row
    assert left[0] == ABOVE
    assert (left[1:] != ABOVE).all()


# ---------------------------------------------------------------------- the cone flow


@numba.njit(cache=True)
def euler(w, X, c, a, step, turns):
    """Small steps of ``w' = a g(w)`` in units of the distance from the origin."""
    n, d = X.shape
    begun = np.sqrt((w * w).sum())
    for _ in range(turns):
        size = np.sqrt((w * w).sum())
        if size < 1e-4 * begun or size > 1e5 * begun:
            break
        g = np.zeros(d)
        for i in range(n):
            z = 0.0
            for k in range(d):
                z += X[i, k] * w[k]
            if z > 0.0:
                for k in range(d):
                    g[k] += c[i] * X[i, k]
        if not g.any():
            break
        w = w + step * size * a * g
    return w


def compare(spot, X, c, direction):
    """Follow the cone flow and small steps; what became of the neuron, or None where it is a tie.

    Other starts may lead elsewhere (`choose` then says that the way is not the only one); the way
    from this one is compared.
    """
    row, on = everywhere(spot)
    start = direction / np.linalg.norm(direction)
    way = spot._follow(row, on, start)
    np.testing.assert_array_equal(spot._turn(row, on, direction).row, way.row)
    if not way.unique:
        return None
    scale = np.abs(c) @ np.linalg.norm(X, axis=1)
    end = euler(start, X, c, spot.a, 1e-3 / scale, 4_000_000)
    size = np.linalg.norm(end)
    if (way.row == SLIDE).all():
        assert size < 0.1  # from one; some come back slowly
        return "rests"
    velocity = spot.a * spot._pull(way.row)
    if np.linalg.norm(velocity) <= 1e-12 * scale:  # nothing is active there
        assert not (c * (X @ end > 0)).any()
        return "dead"
    assert size > 30.0
    if way.offset is not None:
        return "spiral"
    along = velocity / np.linalg.norm(velocity)
    np.testing.assert_allclose(end / size, along, atol=0.02)
    # it keeps to its cone or face for good: the velocity lies there
    z = spot.problem.planes.U @ velocity
    assert (z[way.row == ABOVE] > -1e-9 * scale).all()
    assert (z[way.row == BELOW] < 1e-9 * scale).all()
    np.testing.assert_allclose(z[way.row == SLIDE], 0.0, atol=1e-9 * scale)
    return "slides" if (way.row == SLIDE).any() else "leaves"


@pytest.mark.parametrize("d", [2, 3])
def test_the_cone_flow_is_the_limit_of_small_steps(d):
    seen = []
    for seed in range(80):
        rng = np.random.default_rng([seed, d])
        X = rng.normal(size=(int(rng.integers(d + 1, d + 5)), d))
        c = rng.normal(size=len(X))
        spot = place(X, c, rng.choice([-1.0, 1.0]))
        seen.append(compare(spot, X, c, rng.normal(size=d)))
    assert seen.count(None) <= 4, seen
    for outcome in ("leaves", "slides", "rests", "dead"):
        assert seen.count(outcome) >= 3, seen


@pytest.mark.parametrize("d", [3])
def test_the_cone_flow_of_shared_planes_is_the_limit_of_small_steps(d):
    seen = []
    for seed in range(80):
        rng = np.random.default_rng([seed, d, 1])
        spot, X, c = shared_place(rng, d, float(rng.choice([-1.0, 1.0])))
        seen.append(compare(spot, X, c, rng.normal(size=d)))
    assert seen.count(None) <= 4, seen
    assert seen.count("leaves") >= 3, seen


def all_come_back(spot, X, c, rng):
    """Whether small steps from many directions all come back."""
    step = 1e-3 / (np.abs(c) @ np.linalg.norm(X, axis=1))
    starts = rng.normal(size=(60, X.shape[1]))
    starts /= np.linalg.norm(starts, axis=1)[:, None]
    for start in starts:
        end = euler(start, X, c, spot.a, step, 20_000)
        if np.linalg.norm(end) > 0.1:  # some come back slowly
            end = euler(end, X, c, spot.a, step, 4_000_000)
        if np.linalg.norm(end) > 0.1:
            return False
    return True


@pytest.mark.parametrize("d", [2, 3])
def test_a_start_at_the_origin_leaves_along_the_least_pull(d):
    seen = []
    for seed in range(30):
        rng = np.random.default_rng([seed, d, 2])
        X = rng.normal(size=(d + 2, d))
        c = rng.normal(size=d + 2)
        a = float(rng.choice([-1.0, 1.0]))
        spot = place(X, c, a)
        pulls = hull.pulls(hull.cells(X), c, X)
        row, on = everywhere(spot)
        if not hull.zero_is_outside(pulls, 1e-3):
            if not hull.zero_is_outside(pulls):
                rests = (spot.choose(row, on, None).row == SLIDE).all()
                assert rests == all_come_back(spot, X, c, rng)
            continue
        least = a * spot.least(row, on)
        np.testing.assert_allclose(least, a * hull.least_element(pulls), atol=1e-8)
        along, alone = spot.choose(row, on, least), spot.choose(row, on, None)
        np.testing.assert_array_equal(alone.row, along.row)
        assert alone.unique == along.unique
        assert not (alone.row == SLIDE).all()
        seen.append(compare(spot, X, c, least))
    assert len(seen) >= 5, seen
    assert "rests" not in seen


def test_a_way_is_the_only_one_if_starts_beside_it_lead_there_too():
    found = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 3])
        X, c, direction = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2)
        spot = place(X, c)
        row, on = everywhere(spot)
        # from all around: in the plane every way there is
        turns = 2 * np.pi * np.arange(720) / 720
        around = np.column_stack([np.cos(turns), np.sin(turns)])
        ends = {tuple(spot._follow(row, on, v).row) for v in around}
        way = spot.choose(row, on, direction)
        assert tuple(way.row) in ends
        if len(ends) == 1:
            assert way.unique
        found.append((len(ends) == 1, bool(way.unique)))
    assert (True, True) in found
    assert (False, False) in found


# ---------------------------------------------------------------------- rest


CROSS = np.array([[1.0, 0.0], [-0.6, 0.8], [-0.6, -0.8]])


def test_a_neuron_pushed_back_from_all_sides_rests_at_the_origin():
    for a in (1.0, -1.0):
        spot = place(CROSS, -a * np.ones(3), a)
        row, on = everywhere(spot)
        for direction in (None, np.array([0.3, 0.1]), np.array([-1.0, 0.2])):
            way = spot.choose(row, on, direction)
            assert way.row.tolist() == [SLIDE] * 3
            assert way.unique
        assert spot.rests(np.full(3, SLIDE, dtype=np.int8))


def test_the_rest_ends_when_a_direction_leaves_for_good():
    rested = []
    for pull in np.linspace(-1.0, 2.0, 13) + 0.03:  # at 0 itself nothing pulls along one ray
        c = np.array([pull, -1.0, -1.0])
        spot = place(CROSS, c)
        rests = spot.rests(np.full(3, SLIDE, dtype=np.int8))
        assert rests == all_come_back(spot, CROSS, c, np.random.default_rng(0))
        if hull.zero_is_outside(hull.pulls(hull.cells(CROSS), c, CROSS)):
            assert not rests
        rested.append(rests)
    assert rested[0]
    assert not rested[-1]


def test_planes_that_span_the_others_meet_at_the_place_only():
    lines = place([[1.0, 0.0], [1.0, 1e-7], [1.0, 1e-11], [0.0, 1.0]], np.ones(4))
    on = np.ones(4, bool)
    assert lines._only_there(np.array([True, True, False, False]), on)
    assert not lines._only_there(np.array([True, False, True, False]), on)  # one, to rounding
    assert not lines._only_there(np.array([False, True, False, False]), on)
    solid = place([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], np.ones(4))
    assert not solid._only_there(np.array([True, True, True, False]), on)  # they share an edge
    assert solid._only_there(np.array([True, True, False, True]), on)


@pytest.mark.parametrize("seed", range(10))
def test_bundles_of_lines_are_looked_at_a_few_times(monkeypatch, seed):
    """Not a number of times that grows with the lines: some would make it grow without end."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0.0, 2.0 * np.pi, 6)[:, None] + 10.0 ** -rng.uniform(3.0, 11.0, (6, 10))
    X = np.column_stack([np.cos(angles.ravel()), np.sin(angles.ravel())])
    spot = place(X, rng.normal(size=len(X)), a=rng.choice([-1.0, 1.0]))
    calls, follow = [], Crossroads._follow
    monkeypatch.setattr(Crossroads, "_follow", lambda *given: calls.append(1) or follow(*given))
    row, on = everywhere(spot)
    spot.choose(row, on, rng.normal(size=2))
    spot.rests(np.full(len(X), SLIDE, dtype=np.int8))
    assert len(calls) <= 60


def test_a_way_that_stands_at_a_plane_is_not_followed(monkeypatch):
    """Nearly all the force is of one point: beside its plane weights are below rounding."""
    rng = np.random.default_rng(3)
    turns, turn = [], Crossroads._turn
    monkeypatch.setattr(Crossroads, "_turn", lambda *given: turns.append(1) or turn(*given))
    for _ in range(20):
        X = rng.normal(size=(8, 3))
        c = np.where(np.arange(8) == 0, 1.0, 1e-22 * rng.uniform(size=8)) * rng.choice([-1, 1], 8)
        place(X, c, a=rng.choice([-1.0, 1.0])).rests(np.full(8, SLIDE, dtype=np.int8))
    assert 0 < len(turns) < 1000  # 1,800 in one of those that stand


def test_a_start_that_nothing_moves_off_its_planes_has_two_ways():
    """The active point is orthogonal to the two others; to be active on these is a way off."""
    X = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    row, on = np.array([ABOVE, BELOW, BELOW], np.int8), np.array([False, True, True])
    for c in ([1.0, 1.0, 1.0], [1.0, 1.0, -0.2]):
        assert not place(X, c).choose(row, on, None).unique
    leaning = place([[0.1, 0.0, 1.0], *X[1:]], [1.0, 1.0, 1.0]).choose(row, on, None)
    assert leaning.unique  # the active point pulls it up
    down = place(X, [1.0, -1.0, -1.0]).choose(row, on, None)
    assert down.unique  # nothing leads off: it stays
