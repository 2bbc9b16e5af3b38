"""The flow where planes coincide, meet or are started on, against descent with small steps."""

import numpy as np
import pytest

import reluflow as rf
from numerics import hull, small_steps, survey
from numerics.degenerate import Problem

BLOCK = 50
SQUARE = rf.losses.Square("1/2")


def found(generator, seeds):
    """What is wrong with the flow on these problems; saying `branch` excuses one in fifty."""
    lines = [survey.examine(generator, seed) for seed in seeds]
    excused = [line for line in lines if line["verdict"] == "excused"]
    return [line for line in lines if not line["good"]] + excused[1:]


@pytest.mark.parametrize("block", range(10))
def test_degenerate_problems_follow_descent(block):
    assert found("problem", range(10 * block, 10 * block + 10)) == []


@pytest.mark.long
@pytest.mark.parametrize("block", range(5000 // BLOCK))
def test_many_degenerate_problems_follow_descent(block):
    assert found("problem", range(BLOCK * block, BLOCK * block + BLOCK)) == []


@pytest.mark.parametrize("block", range(4))
def test_no_neuron_stays_at_the_origin_against_its_pulls(block):
    assert found("origin", range(10 * block, 10 * block + 10)) == []


@pytest.mark.long
@pytest.mark.parametrize("block", range(500 // BLOCK))
def test_of_many_neurons_none_stays_at_the_origin_against_its_pulls(block):
    assert found("origin", range(BLOCK * block, BLOCK * block + BLOCK)) == []


# ---------------------------------------------------------------- named after their symptoms


def confirm(problem):
    """The run, after descent has confirmed where it ends, without other ends to choose from."""
    run = problem.flow()
    verdict = small_steps.judge(problem, small_steps.weights(run.final))
    assert verdict.outcome == "agrees", verdict
    return run


def test_copies_with_other_labels_let_go_what_their_sum_lets_go():
    """Point by point one copy attracts and holds the neuron; together they let it cross."""
    data = rf.Dataset([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [1.0, -5.0, 2.0])
    net = rf.Network([0.3, -1.0], [[0.001, 1.0], [1.0, -4.0]])
    run = confirm(Problem(data, net, rf.losses.Square(), "hidden", 8.0, "copies"))
    assert run.final.flat().W[0] == pytest.approx([0.7812, 2.1319], abs=1e-4)
    both = run.events[(run.events["neuron"] == 0) & (run.events["point"] < 2)]
    times = [both[both["point"] == point]["t"].tolist() for point in (0, 1)]
    assert times[0] == times[1], "points of one plane change together"


def test_two_copies_act_as_the_one_point_they_add_up_to():
    """Labels y + s and y - s: (h - y)^2 and a constant, the loss of (sqrt(2) x, sqrt(2) y)."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        X, W = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
        y, a = rng.normal(size=3), rng.normal(size=2)
        spread = rng.normal(size=3) * 3
        copies = rf.Dataset(np.vstack([X, X]), np.concatenate([y + spread, y - spread]))
        once = rf.Dataset(np.sqrt(2) * X, np.sqrt(2) * y)
        ends = [
            small_steps.weights(rf.flow(data, rf.Network(a, W), loss=SQUARE, t_end=4.0).final)
            for data in (copies, once)
        ]
        assert ends[0] == pytest.approx(ends[1], abs=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "a", "w"),
    [
        (
            [[1.8, 1.7], [0.1, -0.7], [-1.5, 0.4], [1.1, 0.5]],
            [1.7, 2.4, 1.4, 1.8],
            [-0.3, 0.6],
            [0.7, 0.3],
        ),
        (
            [[-2.0, 0.1], [-0.8, 1.0], [2.0, -0.6], [1.5, 0.1]],
            [-0.5, -0.8, -2.4, -2.2],
            [1.1, -1.8],
            [-0.1, -0.6],
        ),
        ([[-2.0, -1.2], [-2.0, 0.4], [1.5, 0.5]], [0.6, 0.9, -0.6], [0.8, 0.8], [-1.0, 0.6]),
    ],
)
def test_a_neuron_that_rests_at_zero_is_not_buried_when_the_pulls_let_it_go(X, y, a, w):
    """No direction is without active points, so nothing dies: it leaves when 0 leaves the hull."""
    problem = Problem(
        rf.Dataset(X, y), rf.Network(a, [[0.0, 0.0], w]), SQUARE, "hidden", 4.0, "rest"
    )
    cells = hull.cells(problem.data.X)
    assert cells.any(axis=1).all()
    run = confirm(problem)
    outside = [
        hull.zero_is_outside(
            hull.pulls(cells, SQUARE.forces(net.predict(X), problem.data.y), problem.data.X)
        )
        for net in (problem.net, run.final)
    ]
    assert outside[0] is False
    assert np.linalg.norm(run.final.flat().W[0]) > 0.1
    assert not (run.events["kind"] == "die").any()


def test_a_neuron_on_the_common_plane_of_opposite_points_is_not_buried():
    """Both pull it to the same side; no side is without active points.

    Hidden layer, w = (0, 1), a = 1: above only x acts, w_1' = 1 - w_1 for label 1; below only -x,
    which pulls up too for label -1.
    """
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    run = rf.flow(data, rf.Network([1.0], [[0.0, 1.0]]), loss=SQUARE, train="hidden", t_end=1.0)
    assert run.final.flat().W[0] == pytest.approx([1.0 - np.exp(-1.0), 1.0], abs=1e-7)


@pytest.mark.parametrize(
    ("X", "y", "a", "w"),
    [
        (
            [[-2.0, -1.0], [0.3, -1.2], [1.9, 1.0], [-1.1, 1.2], [1.1, -1.9]],
            [1.5, -2.7, -0.2, -0.9, 2.0],
            -0.9,
            [-0.9, -1.0],
        ),
        (
            [[0.2, 0.8], [-0.8, -1.8], [-0.4, -0.8], [0.2, -1.9], [-0.3, 1.1]],
            [-0.7, 1.4, 2.1, 2.6, 2.8],
            -0.6,
            [-0.9, -0.3],
        ),
    ],
)
def test_a_neuron_that_arrives_at_zero_on_generic_points_goes_on(X, y, a, w):
    problem = Problem(rf.Dataset(X, y), rf.Network([a], [w]), SQUARE, "hidden", 4.0, "arrives")
    nearest = small_steps.path(problem, small_steps.start(problem), 1e-5)[2][0, 0]
    assert nearest < 5e-5, "descent passes the origin"
    run = problem.flow()
    # past the origin, starts at a comparable distance may lead to different rays: a branch
    branched = bool((run.events["kind"] == "branch").any())
    verdict = small_steps.judge(problem, small_steps.weights(run.final), branched)
    assert verdict.good, verdict
    leaves = np.flatnonzero(np.linalg.norm(run.kept["W"][:, 0], axis=1) <= 1e-9)
    assert not len(leaves) or leaves[-1] < len(run.t) - 1, "it stays at the origin"


def test_a_slide_that_flips_is_left_to_the_side_of_the_larger_share():
    """Descent leaves to the inactive side at each of 24 step sizes; the run calls it a branch."""
    data = rf.Dataset([[1.0, -0.2], [-0.3, 1.0], [-0.3, -2.0]], [-0.1, -1.4, -0.8])
    net = rf.Network([0.22, 1.0], [[0.9, 0.3], [-0.9, -0.1]])
    problem = Problem(data, net, SQUARE, "both", 4.0, "flip")
    begin = small_steps.start(problem)
    steps = 1e-4 * 0.9 ** np.arange(24)
    sides = [(small_steps.end(problem, begin, h)[0, 1:] @ data.X[1]) < 0 for h in steps]
    assert all(sides)
    run = confirm(problem)
    assert (run.events["kind"] == "flip").any()
    assert (run.events["kind"] == "branch").any()


def attempt(X, y, a, W):
    """The run to its limit, or None and the sentences with which it is refused."""
    try:
        return rf.flow(rf.Dataset(X, y), rf.Network(a, W), max_seconds=60.0), None
    except rf.errors.InputError as error:
        return None, str(error)


@pytest.mark.parametrize("power", [-660, -530, -300, -40, 40, 300])
def test_tiny_and_huge_labels_are_fitted_like_ordinary_ones_or_refused(power):
    """(X, 4^k y) from weights 2^k w: the same run in other units, whatever k."""
    X, y = [[1.0, 0.0], [0.3, 1.0]], np.array([1.0, 0.5])
    a, W = np.array([0.3, 0.2]), np.array([[0.2, 0.1], [0.1, 0.3]])
    ordinary = rf.flow(rf.Dataset(X, y), rf.Network(a, W))
    assert ordinary.status == "converged"
    unit = 2.0 ** (power // 2)
    run, refusal = attempt(X, y * unit**2, a * unit, W * unit)
    if refusal:
        assert abs(power) > 500, "refused although all squares are ordinary floats"
        assert "finite" not in refusal
        return
    assert run.status == "converged"
    assert run.final.predict(X) / unit**2 == pytest.approx(y, abs=1e-6)
    assert small_steps.weights(run.final) / unit == pytest.approx(
        small_steps.weights(ordinary.final), abs=1e-6
    )


def test_weights_below_normal_floats_run_or_are_refused_by_their_size():
    X, y = [[1.0, 0.0], [0.3, 1.0]], [1.0, 0.5]
    run, refusal = attempt(X, y, [1e-310], [[1e-310, 2e-310]])
    assert "finite" not in (refusal or "")
    assert refusal or run.status in ("converged", "stationary")


def test_output_weights_of_zero_with_the_hidden_layer_trained_end_at_once():
    data = rf.Dataset([[1.0, 0.0], [0.3, 1.0]], [1.0, -0.5])
    net = rf.Network([0.0, 0.0], [[1.0, 2.0], [-1.0, 0.5]])
    run = rf.flow(data, net, train="hidden", max_seconds=20.0)
    assert run.status == "stationary"
    assert run.limit_error == 0.0
    assert small_steps.weights(run.final) == pytest.approx(small_steps.weights(net), abs=0.0)


@pytest.mark.parametrize("seed", range(30))
def test_stationary_limits_on_a_line_are_at_rest(seed):
    """d = 1, hidden layer, logistic: all planes coincide at w = 0, where some neurons end."""
    rng = np.random.default_rng([seed, 890])
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    x, y = rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    a, w = rng.normal(size=m), rng.normal(size=m)
    loss = rf.losses.Logistic()
    run = rf.flow(
        rf.Dataset(x[:, None], y), rf.Network(a, w[:, None]), loss=loss, train="hidden",
        stop_log_loss=-30.0, max_seconds=60.0,
    )  # fmt: skip
    assert run.status in ("stationary", "stop_loss"), run.status
    if run.status == "stationary" and np.isfinite(run.limit_error):
        final = run.final.flat()
        c = loss.forces(final.predict(x[:, None]), y)
        pulls = [c[x > 0] @ x[x > 0], c[x < 0] @ x[x < 0]]
        for out, hidden in zip(final.a, final.W[:, 0], strict=True):
            if abs(hidden) > 1e-7:
                speed = abs(out * pulls[0 if hidden > 0 else 1])
            else:  # it may stay if 0 lies between the two, and nowhere else
                speed = abs(out) * max(0.0, min(pulls), -max(pulls))
            assert speed <= 1e-6


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-12])
def test_a_neuron_without_output_that_nothing_pulls_along_its_weights_stays(rtol):
    """It lies on the only plane, to rounding: that grew a million million times, to 0.05."""
    data = rf.Dataset([[-2.0, -2.25]] + 6 * [[2.0, 2.25]], [2.0, -5.0, 0.0, -2.0, -4.0, 4.0, -3.0])
    net = rf.Network([0.0, 0.42], [[0.5625, -0.5], [0.09, 0.41]])
    run = rf.flow(data, net, loss=rf.losses.Square("1/n"), t_end=4.0, rtol=rtol)
    end = run.final.flat()
    assert end.a[0] == 0.0
    assert end.W[0] == pytest.approx([0.5625, -0.5], abs=1e-15)
    assert (run.events[run.events["neuron"] == 0]["kind"][:1] == "branch").all()
    assert run.events["neuron"][0] == 0


def test_a_rest_beside_a_plane_that_would_carry_it_off_is_a_branch():
    """It starts at w = 0, held by opposite points; were it active on the third, it would leave."""
    data = rf.Dataset([[2.0, 1.0, 1.0], [-2.0, -1.0, -1.0], [-1.0, 1.0, -3.0]], [3.0, 4.0, -0.5])
    run = rf.flow(data, rf.Network([-2.0], [[0.0, 0.0, 0.0]]), t_end=2.0)
    assert run.final.flat().W.tolist() == [[0.0, 0.0, 0.0]]
    assert run.events["kind"][0] == "branch"
