"""Boundary events: found once, in order, with the right branch taken at each of them."""

import numpy as np
import pytest

import reluflow as rf
from numerics.problems import Small, draw, kinds, weights


def small_descent(data, net, lr, t_end, smear=0.0):
    """Plain descent, relu'(0) = 0; the limit lr -> 0 is the flow's branch."""
    a, W = net.flat().a.copy(), net.flat().W.copy() + smear
    for _ in range(round(t_end / lr)):
        z = W @ data.X.T
        active = z > 0
        c = (data.y - a @ np.where(active, z, 0.0)) / data.n
        g = (active * c) @ data.X
        a, W = a + lr * np.where(active, z, 0.0) @ c, W + lr * a[:, None] * g
    return np.column_stack([a, W])


# ---------------------------------------------------------------------- starts on a boundary


def start_modes(X, y, a, w):
    """Modes of one neuron right after the start."""
    run = rf.flow(rf.Dataset(X, y), rf.Network([a], [w]), t_end=1e-9)
    return run.kept["mode"][0][0].tolist(), kinds(run.events)


def test_start_on_a_repelling_plane_is_inactive():
    # a c > 0 on the point of the plane: relu'(0) = 0 keeps it out
    modes, events = start_modes([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 1.0, [0.0, 1.0])
    assert modes == [0, 1]
    assert events == []


def test_start_on_an_attracting_plane_with_an_inward_pull_slides():
    # x0 pulls out (a c < 0), x1 pulls in with less: theta = 0.5 holds the plane
    X, y = [[1.0, 0.0], [0.5, 1.0]], [-1.0, 1.0 + 1.0]
    modes, events = start_modes(X, y, 1.0, [0.0, 1.0])
    assert modes[0] >= 2
    assert modes[1] == 1
    assert events == [(0, 0, "slide")]


def test_start_on_an_attracting_plane_with_a_strong_inward_pull_activates():
    X, y = [[1.0, 0.0], [3.0, 1.0]], [-1.0, 5.0]
    modes, events = start_modes(X, y, 1.0, [0.0, 1.0])
    assert modes == [1, 1]
    assert events == [(0, 0, "activate")]


def test_start_on_an_attracting_plane_with_an_outward_pull_is_inactive():
    X, y = [[1.0, 0.0], [-0.5, 1.0]], [-1.0, 2.0]
    modes, events = start_modes(X, y, 1.0, [0.0, 1.0])
    assert modes == [0, 1]
    assert events == []


def test_start_at_the_origin_stays_dead():
    # all planes at once and no force: w = 0 with relu'(0) = 0
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    run = rf.flow(data, rf.Network([1.0], [[0.0, 0.0]]))
    assert run.status == "stationary"
    assert run.final == run.net
    assert run.events["kind"].tolist() == ["branch"]  # any other start would move


def test_neuron_with_all_weights_zero_never_moves():
    data = rf.Dataset([[1.0, 0.5], [0.3, 1.0]], [1.0, 0.5])
    run = rf.flow(data, rf.Network([1.0, 0.0], [[1.0, 1.0], [0.0, 0.0]]))
    assert run.status == "converged"
    assert run.final.flat().a[1] == 0.0
    assert not run.final.W[1].any()


def test_start_on_a_repelling_plane_with_an_inward_pull_crosses_at_once():
    X, y = [[1.0, 0.0], [0.5, 1.0]], [1.0, 3.0]
    run = rf.flow(rf.Dataset(X, y), rf.Network([1.0], [[0.0, 1.0]]), t_end=0.5)
    assert kinds(run.events) == [(0, 0, "activate")]
    assert run.events["t"][0] <= 1e-12
    exact = small_descent(run.data, run.net, 1e-4, 0.5)
    np.testing.assert_allclose(weights(run.final), exact, atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_start_on_a_plane_follows_the_reference(seed):
    rng = np.random.default_rng(seed)
    d, m = 2 + seed % 2, 4
    X, y, W = rng.normal(size=(3, d)), rng.normal(size=3), rng.normal(size=(m, d))
    W -= np.outer(W @ X[0] / (X[0] @ X[0]), X[0])
    problem = Small(X, y, rng.normal(size=m), W, "square", 5.0)
    exact, run = problem.reference(), problem.flow(rtol=1e-10)
    for j in range(m):  # crossings at the very start may be dated a rounding apart
        mine = run.events[run.events["neuron"] == j]
        assert kinds(mine) == [event[1:] for event in exact.events if event[1] == j]
    np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-8)


# ---------------------------------------------------------------------- crossings


@pytest.mark.parametrize("seed", [1444, 1016, 1407])
def test_double_crossing_inside_one_step_is_found(seed):
    # found by search: the same plane is crossed twice within 0.005 to 0.02
    rng = np.random.default_rng(seed)
    problem = Small(rng.normal(size=(4, 2)), 2.0 * rng.normal(size=4), 1.5 * rng.normal(size=2),
                    0.7 * rng.normal(size=(2, 2)), "square", 10.0)  # fmt: skip
    exact = problem.reference()
    for rtol in (1e-3, 1e-4, 1e-8):
        run = problem.flow(rtol=rtol)
        assert kinds(run.events) == [event[1:] for event in exact.events]
    last, gaps = {}, []
    for event in run.events[np.isin(run.events["kind"], ["activate", "deactivate"])]:
        pair = int(event["neuron"]), int(event["point"])
        gaps.append(event["t"] - last.get(pair, -np.inf))
        last[pair] = event["t"]
    assert min(gaps) < 0.02


def grazing(depth):
    """One neuron whose pre-activation on point 1 dips to ``depth`` and comes back, n = 2.

    Orthonormal points with frozen forces would not turn; here the force of point 0 changes sign
    when it is overfitted, which turns the neuron around.
    """
    X = np.array([[1.0, 0.0], [-0.6, 0.8]])
    return Small(X, np.array([1.0, 0.0]), np.array([1.0]), np.array([[0.1, depth]]), "square", 8.0)


def test_grazing_contact_takes_the_branch_of_the_reference():
    branches = set()
    for depth in np.linspace(0.4, 1.2, 17):
        problem = grazing(depth)
        exact = problem.reference()
        run = problem.flow(rtol=1e-9)
        assert kinds(run.events) == [event[1:] for event in exact.events]
        np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-6)
        branches.add(tuple(kinds(run.events)))
    assert len(branches) >= 2


def test_neurons_that_cross_at_the_same_instant_are_all_listed():
    problem = draw(17)
    parts = np.repeat(np.arange(len(problem.a)), 4)
    scale = np.tile([1.0, 2.0, 0.5, 1e-3], len(problem.a))
    net = rf.Network(
        problem.a[parts] * scale * 0.1, problem.W[parts] * scale[:, None] * 0.1, log_scale=0.0
    )
    run = rf.flow(rf.Dataset(problem.X, problem.y), net, t_end=problem.t_end)
    for copy in range(1, 4):
        first = run.events[run.events["neuron"] % 4 == 0]
        other = run.events[run.events["neuron"] % 4 == copy]
        assert first["kind"].tolist() == other["kind"].tolist()
        assert first["point"].tolist() == other["point"].tolist()
        np.testing.assert_allclose(other["t"], first["t"], rtol=1e-7)


def test_two_planes_met_at_once_by_a_symmetric_neuron():
    # w on the bisector of two mirrored points: both are crossed at the same instant
    X = np.array([[1.0, -0.4], [-1.0, -0.4], [0.0, 1.0]])
    data = rf.Dataset(X, [0.5, 0.5, 1.0])
    net = rf.Network([-1.5], [[0.0, -1.0]])
    run = rf.flow(data, net, t_end=5.0)
    # at the origin, and the third point pushes back: there it rests
    assert kinds(run.events) == [(0, 0, "slide"), (0, 1, "slide"), (0, 2, "slide")]
    assert run.events["t"][0] == run.events["t"][1]
    assert run.final.flat().W[0, 0] == 0.0


def test_neuron_that_comes_to_rest_at_the_origin_is_not_buried():
    # no direction is inactive on all points, and all push back: it rests, ready to leave
    rng = np.random.default_rng(856)
    problem = Small(rng.normal(size=(4, 2)), 2.0 * rng.normal(size=4), 1.5 * rng.normal(size=2),
                    0.7 * rng.normal(size=(2, 2)), "square", 10.0)  # fmt: skip
    run = problem.flow()
    assert (run.kept["mode"][-1][1] == 2).all()
    assert not (run.events["kind"] == "die").any()
    assert not run.final.flat().W[1].any()
    path = small_descent(run.data, run.at(0.25), 2e-5, 1.0)
    np.testing.assert_allclose(weights(run.at(1.25)), path, atol=2e-4)


def test_neuron_turned_round_where_all_planes_meet_takes_the_branch_of_descent():
    # found by search: at w = 0 one slide ends, another begins, and a plane just left is re-entered
    rng = np.random.default_rng(388)
    problem = Small(rng.normal(size=(4, 2)), 2.0 * rng.normal(size=4), 1.5 * rng.normal(size=2),
                    0.7 * rng.normal(size=(2, 2)), "square", 10.0)  # fmt: skip
    exact, run = problem.reference(), problem.flow(rtol=1e-10)
    np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-7)
    path = small_descent(run.data, run.at(5.0), 1e-4, 1.0)
    np.testing.assert_allclose(weights(run.at(6.0)), path, atol=2e-5)


def test_neuron_that_slides_through_the_origin_goes_on_to_the_other_side():
    # d = 2: sliding on a plane is motion on a line through w = 0, where all planes meet
    problem = draw(5)
    exact = problem.reference()
    together = {}
    for t, j, _, _ in exact.events:
        together.setdefault((t, j), []).append(1)
    assert max(map(len, together.values())) == 3
    run = problem.flow(rtol=1e-10)
    assert kinds(run.events) == [event[1:] for event in exact.events]
    np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-8)
    data, net = rf.Dataset(problem.X, problem.y), rf.Network(problem.a, problem.W)
    gaps = [
        np.abs(small_descent(data, net, lr, 3.0) - weights(run.at(3.0))).max()
        for lr in (4e-3, 1e-3, 2.5e-4)
    ]
    assert gaps[2] < 1e-3
    assert gaps[2] < 0.2 * gaps[0]  # the same branch: the gap falls with the step


# ---------------------------------------------------------------------- slides


def sliding_pair():
    """One neuron that slides on point 0, then is released to one side: found by search."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        problem = Small(rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2),
                        rng.normal(size=(2, 2)), "square", 12.0)  # fmt: skip
        yield seed, problem


@pytest.mark.parametrize("side", ["activate", "deactivate"])
def test_release_is_followed_by_its_side_at_the_same_time(side):
    for _, problem in sliding_pair():
        run = problem.flow(rtol=1e-9)
        where = np.flatnonzero(run.events["kind"] == "release")
        hits = [k for k in where if run.events["kind"][k + 1] == side]
        if hits:
            break
    k = hits[0]
    assert run.events["t"][k] == run.events["t"][k + 1]
    assert run.events["neuron"][k] == run.events["neuron"][k + 1]
    assert run.events["point"][k] == run.events["point"][k + 1]
    exact = problem.reference()
    assert kinds(run.events) == [event[1:] for event in exact.events]
    np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-7)


def test_sliding_neuron_stays_on_its_plane_and_its_weight_in_the_box():
    data = rf.datasets.centred(d=4, seed=0)
    run = rf.flow(data, rf.networks.balanced(4, 60, log_scale=-2.0, seed=1), t_end=20.0)
    held = run.kept["mode"] >= 2
    assert held.any()
    W = run.kept["W"]
    z = np.abs(W @ data.X.T) / np.linalg.norm(W, axis=2)[..., None]
    assert z[held].max() <= 1e-12
    for k in (len(run.t) // 2, len(run.t) - 1):
        net = run.network(k).flat()
        c = (data.y - net.predict(data.X)) / data.n
        for j in np.flatnonzero(held[k].any(axis=1)):
            on, active = held[k, j], run.kept["mode"][k, j] == 1
            pull = (active * c) @ data.X
            theta = np.linalg.lstsq((c[on, None] * data.X[on]).T, -pull, rcond=None)[0]
            assert (theta >= -1e-6).all()
            assert (theta <= 1 + 1e-6).all()
            assert (net.a[j] * c[on] <= 1e-12).all()  # the plane attracts


def test_flip_of_a_sliding_neuron_leaves_to_the_side_of_the_larger_share():
    problem = draw(21)
    exact = problem.reference()
    run = problem.flow(rtol=1e-10)
    flips = run.events[(run.events["kind"] == "flip") & (run.events["neuron"] == 2)]
    together = run.events[run.events["t"] == flips["t"][0]]
    assert together["kind"].tolist()[:3] == ["flip", "branch", "release"]
    assert kinds(run.events) == [event[1:] for event in exact.events]
    np.testing.assert_allclose(weights(run.final), exact.state, atol=1e-8)


def test_flip_at_an_exactly_zero_start_is_no_event():
    # an output weight that starts at 0 takes the sign of its slope at once
    data = rf.Dataset([[1.0]], [1.0])
    run = rf.flow(data, rf.Network([0.0], [[0.5]]))
    assert run.status == "converged"
    assert run.final.signs[0] == 1.0
    assert run.events["kind"].tolist() in ([], ["flip"])


def test_death_follows_the_last_deactivation_and_is_final():
    for seed in range(24):
        problem = draw(seed)
        run = problem.flow()
        for k in np.flatnonzero(run.events["kind"] == "die"):
            die = run.events[k]
            mine = run.events[run.events["neuron"] == die["neuron"]]
            assert mine[-1] == die
            assert die["point"] == -1
            assert mine[-2]["kind"] == "deactivate"
            assert mine[-2]["t"] == die["t"]
            modes = run.kept["mode"][run.t >= die["t"], die["neuron"]]
            assert not modes.any()


# ---------------------------------------------------------------------- the list


@pytest.mark.parametrize("seed", range(8))
def test_event_list_is_sorted_and_explains_every_mode(seed):
    rng = np.random.default_rng(seed)
    loss = (rf.losses.Square(), rf.losses.Exponential(), rf.losses.Logistic())[seed % 3]
    X = rng.normal(size=(7, 3))
    y = rng.normal(size=7) if seed % 3 == 0 else rng.choice([-1.0, 1.0], 7)
    net = rf.Network(rng.normal(size=15), rng.normal(size=(15, 3)), float(rng.choice([0, -3, -40])))
    run = rf.flow(rf.Dataset(X, y), net, loss=loss, stop_log_loss=-8.0, max_seconds=30)
    assert run.status != "budget"
    events = run.events
    assert (np.diff(events["t"]) >= 0).all()
    same = np.diff(events["t"]) == 0
    assert (np.diff(events["neuron"])[same] >= 0).all()
    modes = (net.W @ X.T > 0).astype(int)
    for event in events:
        j, i, kind = event["neuron"], event["point"], event["kind"]
        if kind == "activate":
            assert modes[j, i] in (0, 3)  # 3: just released
            modes[j, i] = 1
        elif kind == "deactivate":
            assert modes[j, i] in (1, 3)
            modes[j, i] = 0
        elif kind == "slide":
            assert modes[j, i] < 2
            modes[j, i] = 2
        elif kind == "release":
            assert modes[j, i] == 2
            modes[j, i] = 3
        elif kind == "die":
            assert not modes[j].any()
    final = np.minimum(run.kept["mode"][-1], 2)
    np.testing.assert_array_equal(modes, final)
    counts = {kind: int((events["kind"] == kind).sum()) for kind in np.unique(events["kind"])}
    assert run.stats["events"] == counts


@pytest.mark.parametrize("seed", range(6))
def test_events_do_not_depend_on_the_tolerance(seed):
    rng = np.random.default_rng(seed + 50)
    data = rf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    net = rf.Network(rng.normal(size=10), rng.normal(size=(10, 3)), -2.0)
    loose, tight = (rf.flow(data, net, t_end=20.0, rtol=rtol) for rtol in (1e-6, 1e-10))
    for j in range(10):
        mine = [run.events[run.events["neuron"] == j] for run in (loose, tight)]
        assert kinds(mine[0]) == kinds(mine[1])
        np.testing.assert_allclose(mine[0]["t"], mine[1]["t"], rtol=1e-4)


@pytest.mark.parametrize("log_scale", [-20.0, -2000.0])
def test_alignment_events_are_those_of_the_yardsticks(log_scale):
    data = rf.datasets.cone(4, 6, half_angle=0.7, seed=2)
    net = rf.networks.balanced(4, 20, log_scale=log_scale, seed=5)
    lines = rf.limits.yardsticks(data, net)
    run = rf.flow(data, net)
    for j in range(20):
        mine = run.events[(run.events["neuron"] == j) & (run.events["point"] >= 0)]
        assert mine["point"].tolist() == list(lines.order[j])
        np.testing.assert_allclose(mine["t"], lines.times[j], rtol=1e-9)


# ---------------------------------------------------------------------- slides that end, or not


def test_a_light_slide_is_not_released_by_a_loose_tolerance():
    rng = np.random.default_rng(5033)
    n, d, m = 4, 3, 3
    X, y = rng.normal(size=(n, d)), 2.0 * rng.normal(size=n)
    W = rng.normal(size=(m, d))
    a = rng.choice([-1, 1], m) * np.linalg.norm(W, axis=1)
    size = 0.5 * np.array([1.0, 1e-7, 1e-7])
    problem = Small(X, y, a * size, W * size[:, None], "square", 6.0)
    found = [kinds(problem.flow(rtol=rtol).events) for rtol in (1e-4, 1e-6, 1e-8, 1e-10)]
    assert len(found[0]) == 11
    assert all(one == found[0] for one in found)


def test_a_weight_that_settles_at_an_end_of_the_box_is_not_released():
    rng = np.random.default_rng(3)
    data = rf.Dataset(rng.normal(size=(5, 3)), rng.normal(size=5))
    net = rf.Network(rng.normal(size=8), rng.normal(size=(8, 3)), -1000.0)
    assert {len(rf.flow(data, net, rtol=r).events) for r in (1e-8, 1e-9, 1e-10, 1e-11)} == {23}


def test_all_planes_that_meet_at_zero_are_crossed_at_once_at_any_tolerance():
    # a neuron of two inputs that slides reaches w = 0; at 1e-3 it is light when it gets there
    rng = np.random.default_rng(1444)
    problem = Small(rng.normal(size=(4, 2)), 2.0 * rng.normal(size=4), 1.5 * rng.normal(size=2),
                    0.7 * rng.normal(size=(2, 2)), "square", 10.0)  # fmt: skip
    for rtol in (1e-3, 1e-8):
        last = problem.flow(rtol=rtol).events[-3:]
        assert kinds(last) == [(0, 0, "deactivate"), (0, 2, "activate"), (0, 3, "deactivate")]
        assert len(set(last["t"])) == 1


@pytest.mark.parametrize("spread", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(3))
def test_near_parallel_points_have_as_many_events_at_every_tolerance(seed, spread):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(4, 3))
    near = base * (1.0 + 0.5 * rng.random((4, 1))) + spread * rng.normal(size=(4, 3))
    data = rf.Dataset(np.vstack([base, near]), np.sign(rng.normal(size=8)))
    net = rf.Network(0.1 * rng.choice([-1.0, 1.0], 20), 0.05 * rng.normal(size=(20, 3)))
    loss = rf.losses.Logistic()
    counts = [
        len(rf.flow(data, net, loss=loss, t_end=300.0, rtol=rtol).events) for rtol in (1e-8, 1e-10)
    ]
    assert counts[1] > 20
    assert abs(counts[0] - counts[1]) <= 0.2 * counts[1]
