"""Balanced neurons along one line, far below the tolerance: exact in steps of any length."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reluflow as rf
from numerics.decided import problem
from reluflow.engines.flow import lag, riders
from reluflow.engines.flow import step as coupled
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.engines.flow.tableau import FOUR, SIX

X = np.array([[-1.0], [1.0], [2.0]])
LEFT = -1.0  # the label of the point that only neurons below zero see


def network(log_scale):
    """One neuron for each side that counts, and one for each far below any tolerance.

    The small one on the left shrinks while the point there wants less than nothing of it.
    """
    return rf.Network([-1.0, 1.0, 1.0, 1.0], [[-1.0], [1.0], [-1.0], [1.0]], log_scale)


def run(labels, t_end, **options):
    net = network([-1.0, -1.0, -300.0, -300.0])
    return rf.flow(rf.Dataset(X, labels), net, loss="exponential", t_end=t_end, **options)


@pytest.mark.parametrize("t_end", [5.0, 60.0])
def test_riders_go_where_they_go_in_short_steps(monkeypatch, t_end):
    labels = np.array([LEFT, 1.0, -1.0])
    ride = run(labels, t_end)
    monkeypatch.setattr(riders, "FAR", np.inf)
    walk = run(labels, t_end)
    assert ride.stats["steps"] <= walk.stats["steps"]
    np.testing.assert_allclose(ride.final.a, walk.final.a, rtol=1e-6, atol=1e-12)
    sizes = [end.log_scale + np.log(np.abs(end.mantissa.a)) for end in (ride.final, walk.final)]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=1e-7)
    assert sizes[0][2] < -300.0  # it has shrunk


def test_a_rider_changes_by_the_integral_of_its_pull():
    """On the left one point with margin q pulls at exp(-q): both neurons there change by log a."""
    data = rf.Dataset([[-1.0]], [LEFT])
    net = rf.Network([-1.0, 1.0], [[-1.0], [-1.0]], [0.0, -300.0])
    end = rf.flow(data, net, loss="exponential", t_end=1e6).final
    grown = np.log(np.abs(end.a[0]))
    shrunk = end.log_scale[1] + np.log(end.mantissa.a[1]) + 300.0
    assert grown > 0.5
    assert shrunk == pytest.approx(-grown, rel=1e-7)


def test_a_rider_that_grows_keeps_pace_and_counts_again(monkeypatch):
    """Two balanced neurons on one point grow by one factor: the small one is a copy of the other.

    It rides until it comes near the tolerance, if it may be as slow as the other.
    """
    monkeypatch.setattr(riders, "FAR", 0.1)
    monkeypatch.setattr(riders, "FASTER", 0.0)
    rides, carried = [], riders.carried
    monkeypatch.setattr(riders, "carried", lambda *given: rides.append(1) or carried(*given))
    data = rf.Dataset([[0.6, 0.8]], [2.0])
    net = rf.Network([1.0, 1.0], [[0.6, 0.8], [0.6, 0.8]], [-2.0, -11.6])
    run = rf.flow(data, net, rtol=1e-9)
    grown = run.final.log_scale + np.log(run.final.mantissa.a) - net.log_scale
    assert grown[0] > 1.0
    assert grown[1] == pytest.approx(grown[0], rel=1e-7)
    assert 0 < len(rides) < run.stats["steps"]


def test_a_rider_in_a_plane_feels_the_pull_along_its_line():
    """It slides on one plane of two: what pulls across is balanced, the rest is along a line."""
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [-1.0, -1.0])
    net = rf.Network([-1.0, 1.0], [[1.0, 0.0], [1.0, 0.0]], [0.0, -300.0])
    ended = rf.flow(data, net, loss="exponential", t_end=1e3)
    end = ended.final
    grown = np.log(-end.a[0])
    shrunk = end.log_scale[1] + np.log(end.mantissa.a[1]) + 300.0
    assert grown > 0.5
    assert shrunk == pytest.approx(-grown, rel=1e-7)


def test_a_loss_that_tends_to_a_positive_value_is_followed_to_the_end():
    """The class on the left is fitted better and better, the right cannot be."""
    data = rf.Dataset([[-1.0], [1.0], [1.5]], [LEFT, 1.0, -1.0])
    net = rf.Network([-1.0, 1.0, 1.0], [[-1.0], [1.0], [-1.0]], [-1.0, -1.0, -900.0])
    ended = rf.flow(data, net, loss="exponential", max_seconds=60.0)
    assert ended.status == "stationary"
    assert np.isinf(ended.limit_error)  # the weights have no limit
    assert ended.stats["steps"] < 300


@pytest.mark.parametrize("seed", [6, 9])
def test_riders_leave_their_slides_when_others_do(monkeypatch, seed):
    """Every slide of a small neuron ends as it does in a run in which none rides."""
    given = problem("line", seed, 50, -100.0)
    ride = given.flow(1e-7, max_seconds=60.0)
    monkeypatch.setattr(riders, "FAR", np.inf)
    walk = given.flow(1e-7, max_seconds=60.0)
    assert len(ride.events) == len(walk.events)
    for neuron in range(50):
        ways = [
            run.events[run.events["neuron"] == neuron][["point", "kind"]].tolist()
            for run in (ride, walk)
        ]
        assert ways[0] == ways[1]


@pytest.mark.parametrize("kind", ["line", "plane", "line-exponential", "plane-logistic"])
@pytest.mark.parametrize("seed", [2, 3])
def test_aligned_neurons_grow_as_they_do_in_short_steps(monkeypatch, kind, seed):
    """Dormant ones that follow their pull, beside others that move: the same ways, the same end."""
    given = problem(kind, seed, 20, -100.0)
    ride = given.flow(1e-7, max_seconds=60.0)
    monkeypatch.setattr(riders, "FAR", np.inf)
    walk = given.flow(1e-7, max_seconds=60.0)
    assert ride.stats["steps"] <= 1.2 * walk.stats["steps"]
    assert given.gap(ride.final.predict(given.grid), walk.final.predict(given.grid)) <= 1e-5
    for neuron in range(20):
        ways = [
            run.events[run.events["neuron"] == neuron][["point", "kind"]].tolist()
            for run in (ride, walk)
        ]
        assert ways[0] == ways[1]


def test_the_depth_of_a_start_costs_no_steps_where_the_loss_never_rests():
    """Classes on a line: one half is fitted better and better while the other half sleeps."""
    X = [[x, 1.0] for x in (-2.2, -1.4, -0.5, 0.4, 1.2, 2.0)]
    data = rf.Dataset(X, [-1.0, -1.0, 1.0, 1.0, -1.0, -1.0])

    def run(log_scale):
        net = rf.networks.balanced(2, 30, log_scale=log_scale, seed=4)
        return rf.flow(data, net, loss="exponential", stop_log_loss=-50.0, rtol=1e-6)

    shallow, deep = run(-100.0), run(-1e6)
    assert shallow.status == deep.status == "stop_loss"
    assert deep.stats["steps"] <= 4 * shallow.stats["steps"]


def test_riders_that_fade_away_do_not_hide_a_limit():
    """The point on the right is fitted; that on the left wants less than a neuron there can give.

    Until a time that is asked for the one on the left shrinks: at kappa |c| x, the force on it.
    """
    data = rf.Dataset([[1.0], [-1.0]], [1.0, -1.0])
    net = rf.Network([1.0, 1.0], [[1.0], [-1.0]], [0.5, -300.0])
    run = rf.flow(data, net, rtol=1e-6)
    assert run.status == "stationary"
    assert run.t[-1] < 1e3
    np.testing.assert_allclose(run.final.predict(data.X), [1.0, 0.0], atol=1e-6)
    end = rf.flow(data, net, rtol=1e-6, t_end=1e6).final
    assert end.log_outputs[1] == pytest.approx(-300.0 - 5e5, rel=1e-9)


@pytest.mark.parametrize("depth", [-200.0, -1e6])
def test_many_points_do_not_hide_one_that_sleeps(depth):
    """Two opposite quadrants, of which the second cannot be fitted by the neuron that is awake.

    Each of the many shares is small; together they are all there is, and one neuron grows in them.
    """
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(240, 2))) + 0.2
    X[120:] *= -1.0
    y = np.ones(240)
    y[120:] = np.where(rng.random(120) < 0.8, -1.0, 1.0)
    W = np.array([[1.0, 0.9], [-1.0, -0.8]])
    a = np.array([1.0, -1.0]) * np.linalg.norm(W, axis=1)
    run = rf.flow(rf.Dataset(X, y), rf.Network(a, W, [1.2, depth]), loss="logistic", rtol=1e-4)
    assert run.status == "stationary"
    assert run.log_loss[-1] == pytest.approx(-1.4430, abs=1e-3)
    assert run.final.log_norms[1] > -1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_aligned_neurons_are_those_of_another_solver(monkeypatch, sign):
    """A large neuron fits one point; a small one sees both, and its pull turns to the other.

    DOP853 on the logarithm of its size and its direction, in the forces of the large one.
    """
    X, y, start = np.array([[1.0, 0.2], [-0.5, 1.0]]), sign * np.array([1.0, 0.8]), -1000.0
    heavy, small = np.array([0.6, 0.12]), np.array([0.6, 0.8])
    a = sign * np.array([np.linalg.norm(heavy), 1.0])
    rides, carried = [], riders.carried
    monkeypatch.setattr(riders, "carried", lambda *given: rides.append(1) or carried(*given))
    net = rf.Network(a, np.stack([heavy, small]), [0.0, start])
    end = rf.flow(rf.Dataset(X, y), net, t_end=400.0, rtol=1e-10).final

    def slopes(_, state):
        b, w, u = state[0], state[1:3], state[4:]
        c = (y - b * np.maximum(X @ w, 0.0)) / 2.0
        own = ((X @ w > 0.0) * c) @ X
        pull = ((X @ u > 0.0) * c) @ X
        along = sign * pull @ u
        return [w @ own, *(b * own), along, *(sign * pull - along * u)]

    first = [a[0], *heavy, start, *small]
    reference = solve_ivp(slopes, (0.0, 400.0), first, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert rides
    assert reference[3] > start + 50.0
    assert end.log_norms[1] == pytest.approx(reference[3], abs=1e-8 * 400.0)
    direction = end.mantissa.W[1] / np.linalg.norm(end.mantissa.W[1])
    np.testing.assert_allclose(direction, reference[4:], atol=1e-8)


def test_angles_do_not_need_a_record_of_the_start():
    X = np.array([[1.0, 0.2], [0.3, 1.0]])
    W = np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]])
    data, net = rf.Dataset(X, [1.0, 0.8]), rf.Network(np.linalg.norm(W, axis=1), W, -40.0)
    whole = rf.flow(data, net, t_end=150.0)
    late = rf.flow(data, net, t_end=150.0, record=[135.0, 150.0])
    assert whole.log_max_angle(150.0) == pytest.approx(-39.7, abs=0.1)
    assert late.log_max_angle(150.0) == pytest.approx(whole.log_max_angle(150.0), abs=1e-6)


@pytest.mark.parametrize("rate", [-0.5, 0.0, 0.7, 2.0])
@pytest.mark.parametrize("boost", [0.3, 3.0, 40.0])
@pytest.mark.parametrize("method", [FOUR, SIX], ids=["four", "six"])
def test_the_lag_is_that_of_the_equation_of_a_direction(rate, boost, method):
    """Forces that grow while a neuron follows them: its lag is not that of slow ones."""
    rng = np.random.default_rng(5)
    base, side = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    step = min(boost, 0.2 / max(abs(rate), 0.1))  # a polynomial is near the exponential
    speed = boost / step

    def pull(t):
        return speed * (base + 1e-4 * np.exp(rate * t) * side)

    pulls = np.array([pull(step * node) for node in method.tables.nodes])
    sizes = np.linalg.norm(pulls, axis=1)
    heading = pulls / sizes[:, None]
    lagged = -1e-4 * rate / (speed + rate) * side
    beside = lagged + 1e-4 * rng.normal(size=3) * [0.0, 1.0, 1.0]
    start = heading[0] + beside
    start /= np.linalg.norm(start)

    def law(t, u):
        along = pull(t) @ u[:3]
        return np.append(pull(t) - along * u[:3], along)

    exact = solve_ivp(
        law, (0.0, step), np.append(start, 0.0), method="DOP853", rtol=1e-12, atol=1e-14
    )
    only = np.zeros(1, np.int64)
    found = lag.follow(heading[None], sizes[None], step, (start - heading[0])[None], only, method)
    direction = heading[-1] + found.end[0]
    direction /= np.linalg.norm(direction)
    np.testing.assert_allclose(direction, exact.y[:3, -1], atol=1e-10)
    grown = step * method.weights @ sizes[1:] - found.missed[0]
    assert grown == pytest.approx(exact.y[3, -1], abs=1e-9)


def test_classes_lag_together_as_each_alone():
    rng = np.random.default_rng(6)
    drift = np.cumsum(rng.normal(size=(4, 5, 3)), axis=1)
    pulls = np.array([0.1, 3.0, 40.0, 900.0])[:, None, None] * (rng.normal(size=3) + 1e-3 * drift)
    speed = np.linalg.norm(pulls, axis=2)
    heading = pulls / speed[:, :, None]
    which, beside = np.array([2, 0, 3, 1, 1, 2]), 1e-3 * rng.normal(size=(6, 3))
    found = lag.follow(heading, speed, 0.7, beside, which, FOUR)
    for k in range(4):
        own = which == k
        zero = np.zeros(own.sum(), np.int64)
        alone = lag.follow(heading[k : k + 1], speed[k : k + 1], 0.7, beside[own], zero, FOUR)
        np.testing.assert_allclose(found.end[own], alone.end, rtol=1e-10, atol=1e-16)
        np.testing.assert_allclose(found.missed[own], alone.missed, rtol=1e-10, atol=1e-18)
        assert found.size[k] == pytest.approx(alone.size[0])


@pytest.mark.parametrize("seed", [20, 30, 60])
def test_what_dormant_neurons_do_beside_others_at_rest_takes_no_steps(seed):
    """They ride near a plane; others rest beside one, which rounding would have them cross."""
    rng = np.random.default_rng([seed, len("exponential")])
    n, d, m = rng.integers(2, 9), rng.integers(2, 5), rng.integers(4, 11)
    y = rng.choice([-1.0, 1.0], size=n)
    data = rf.Dataset(rng.normal(size=(n, d)), y)
    net = rf.networks.balanced(int(d), int(m), log_scale=-1e6, seed=seed)
    run = rf.flow(data, net, loss="exponential", stop_log_loss=-20.0)
    assert run.status in ("stationary", "stop_loss")
    assert run.stats["steps"] < 900  # 23,000 and more, 7,111 and 2,418 once


def begun(loss, points=5):
    """Three large neurons and three at log scale -200, each of these in a class of its own."""
    rng = np.random.default_rng(8)
    data = rf.Dataset(rng.normal(size=(points, 3)), rng.choice([-1.0, 1.0], size=points))
    net = rf.networks.balanced(3, 6, log_scale=0.0, seed=9)
    net = rf.Network(net.a, net.W, [0.0, -200.0, 0.0, -200.0, -200.0, 0.0])
    problem = Problem(data, net, loss, "both")
    return problem, start(problem), np.array([1, 3, 4])


@pytest.mark.parametrize("loss", [rf.losses.Square(), rf.losses.Exponential()])
@pytest.mark.parametrize("left", [[1, 3, 4], [3], [0, 1, 2, 3, 4, 5]])
def test_what_is_left_out_of_a_step_is_as_if_it_were_nothing(loss, left):
    problem, state, small = begun(loss)
    at = begin_at(problem, state)
    some, nothing = riders.without(at, np.array(left)), state.copy()
    nothing.a[left], nothing.w[left] = 0.0, 0.0
    bare = begin_at(problem, nothing)
    np.testing.assert_array_equal(some.classes.cid, bare.classes.cid)
    for one, other in zip(some.classes[1:], bare.classes[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    if not set(left) <= set(small):
        return
    np.testing.assert_array_equal(some.speeds, bare.speeds)
    limits = coupled.limits_of(at, 1e-8, 1e-8, 1.0, 1e-8, 1e-8)
    sure = np.zeros(len(some.classes.face), np.bool_)
    ends = [coupled.attempt(it, 0.01, 1e-8, SIX, None, limits, sure, True) for it in (some, bare)]
    others = np.setdiff1d(np.arange(6), left)
    np.testing.assert_array_equal(ends[0].stretch.h, ends[1].stretch.h)
    np.testing.assert_array_equal(ends[0].moved.w[others], ends[1].moved.w[others])
    np.testing.assert_array_equal(ends[0].moved.w[left], state.w[left])
    np.testing.assert_array_equal(ends[0].moved.mode[left], state.mode[left])


def test_what_is_left_out_stays_out_where_points_are_many():
    """Their kernel is formed only when it is asked for."""
    problem, state, small = begun(rf.losses.Square(), points=400)
    at = begin_at(problem, state)
    assert problem.is_crowd
    left = riders.without(at, small).whole
    assert left.kernel.shape == (400, 400)
    assert (left.classes.cid[small] == -1).all()
    assert len(left.speeds) == len(left.classes.face) < len(at.whole.classes.face)


def test_neurons_ride_only_where_they_limit_the_step():
    """Both follow the same pull: the large one limits the step as much as the small one would."""
    data = rf.Dataset([[0.6, 0.8]], [2.0])
    net = rf.Network([1.0, 1.0], [[0.6, 0.8], [0.6, 0.8]], [-2.0, -300.0])
    problem = Problem(data, net, rf.losses.Square(), "both")
    at = begin_at(problem, start(problem))
    assert not len(riders.riders(at, 1e-8, 0.1 * at.fastest))
    alone = rf.Network([1.0, 1.0], [[-0.6, -0.8], [0.6, 0.8]], [-2.0, -300.0])
    problem = Problem(data, alone, rf.losses.Square(), "both")
    at = begin_at(problem, start(problem))
    for pace, found in ((0.1, [1]), (10.0, [])):
        assert riders.riders(at, 1e-8, pace * at.fastest).tolist() == found
