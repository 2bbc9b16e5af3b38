"""Deep starts end where 200 digits say they end, at a loose tolerance as at a tight one.

The problems are those on which tolerances disagreed: neurons that shrink by tens or hundreds of
e-folds along a slide and must not lose their balance to rounding. `numerics.ends` has the ends.
"""

import json

import numpy as np
import pytest

import reluflow as rf
from engines.flow.test_robustness import random_problem
from numerics import ends
from numerics.decided import SAME, problem

STORED = ends.load()
# one that dormant neurons decide, one that shrunk ones decide, and a late saddle
QUICK = ends.CHOSEN[:3]
LONG = [key for key in ends.CHOSEN[3:] if key in STORED]


def end(stored, given):
    """The stored end as a function on the grid."""
    weights = np.array(stored["end"])
    return np.maximum(given.grid @ weights[:, 1:].T, 0.0) @ weights[:, 0]


def check(key, rtol):
    kind, log_scale, neurons, seed = key
    given = problem(kind, seed, neurons, log_scale)
    run = given.flow(rtol, max_seconds=120.0)
    assert run.status in ("converged", "stationary")
    assert given.gap(run.final.predict(given.grid), end(STORED[key], given)) <= SAME


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
@pytest.mark.parametrize("key", QUICK, ids=str)
def test_a_deep_start_ends_where_200_digits_say(key, rtol):
    check(key, rtol)


@pytest.mark.parametrize("seed", [6, 9, 13, 17, 18, 25, 80])
def test_tolerances_agree_where_shrunken_neurons_leave_their_slides(seed):
    """Some of fifty shrink far below the tolerance along a slide, which then ends.

    At a slow saddle of seed 80 forces of 1e-9, out of the box for 1e4 units of time, end slides.
    """
    given = problem("line", seed, 50, -100.0)
    runs = [given.flow(rtol, max_seconds=60.0) for rtol in (1e-6, 1e-9)]
    ends = [run.final.predict(given.grid) for run in runs]
    assert all(run.status in ("converged", "stationary") for run in runs)
    assert given.gap(*ends) <= SAME


def test_tolerances_agree_where_a_dormant_neuron_crosses_into_a_strong_pull():
    """It is e^-90000 of what outputs notice, turns by 38 e-folds in a step, and decides the end."""
    given = problem("plane", 57, 50, -1e5)
    ends = [given.flow(rtol, max_seconds=60.0).final.predict(given.grid) for rtol in (1e-6, 1e-10)]
    assert given.gap(*ends) <= SAME


def test_a_slide_of_a_classification_ends_when_small_forces_at_a_saddle_say_so():
    """Eighteen leave a plane for 7e4 units of time and come back; held there they miss 2e-4."""
    given = problem("plane-exponential", 54, 50, -1e5)
    runs = [given.flow(rtol, max_seconds=60.0) for rtol in (1e-6, 1e-8)]
    assert given.gap(*(run.final.predict(given.grid) for run in runs)) <= 0.1 * SAME
    assert runs[0].stats["events"] == runs[1].stats["events"]


@pytest.mark.parametrize("log_scale", [-1000.0, -1e5])
def test_a_plane_that_comes_to_repel_while_forces_are_rounding_is_left(log_scale):
    """At a saddle that lasts for 1e4 units the force of a point falls by e^-200 and turns its sign.

    Ten neurons slide on its plane and were held there, where any descent would leave, to a wrong
    end. At 1e-6 they seem to be let go before. Where the moment is lost, the run says so.
    """
    given = problem("plane", 35, 50, log_scale)
    runs = [given.flow(rtol, max_seconds=60.0) for rtol in (1e-6, 1e-8, 1e-10)]
    ends = [run.final.predict(given.grid) for run in runs]
    assert max(given.gap(ends[0], ends[1]), given.gap(ends[1], ends[2])) <= SAME
    for run in runs[1:]:
        assert len(run.branches) == 10
        assert run.limit_error == np.inf


@pytest.mark.parametrize(
    ("kind", "seed", "log_scale", "rtol"),
    [
        ("plane", 3, -100.0, 1e-8),
        ("line-exponential", 78, -1e5, 1e-6),
        ("line-exponential", 78, -1e5, 1e-10),
    ],
)
def test_a_slide_about_to_end_to_rounding_lets_time_pass(kind, seed, log_scale, rtol):
    run = problem(kind, seed, 50, log_scale).flow(rtol)
    assert str(run.status) in ("converged", "t_end")
    assert run.stats["steps"] < 500


def test_a_graze_within_the_tolerance_is_undecided_and_says_so():
    """A neuron comes to 1.1e-7 of its size near a plane that repels it, and turns back.

    At rtol 1e-7 the error decides whether it goes on across the plane, to another end: that is a
    `branch`, without a bound.
    """
    given = problem("plane", 65, 50, -10.0)
    loose, tight = (given.flow(rtol, max_seconds=60.0) for rtol in (1e-7, 1e-9))
    assert (9, 4) in [(int(event["neuron"]), int(event["point"])) for event in loose.branches]
    assert loose.limit_error == np.inf
    begun = given.flow(1e-7, t_end=600.0)  # past the graze: it is not forgotten
    assert rf.flow(begun).limit_error == np.inf
    assert len(tight.branches) == 0
    assert tight.limit_error < 1e-8


@pytest.mark.parametrize(
    ("seed", "neuron", "point", "train", "rtol", "shift"),
    [
        (6, 6, 6, "both", 5e-7, 0.0999465275),
        (2, 7, 8, "hidden", 5e-7, 0.0163720060),
    ],
)
def test_a_graze_that_two_steps_share_is_seen(seed, neuron, point, train, rtol, shift):
    """A step ends where the neuron is nearest to the plane; at 1e-9 it goes on on the other side.

    The shifts of its start were found by bisection.
    """
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(10, 3)), rng.normal(size=10))
    W = 0.5 * rng.normal(size=(30, 3))
    a = np.linalg.norm(W, axis=1) * rng.choice([-1, 1], 30)
    normal = data.X[point] / np.linalg.norm(data.X[point])
    W[neuron] -= shift * np.sign(W[neuron] @ normal) * normal
    run = rf.flow(data, rf.Network(a, W), rtol=rtol, train=train)
    assert (neuron, point) in [(int(e["neuron"]), int(e["point"])) for e in run.branches]
    assert run.limit_error == np.inf


@pytest.mark.parametrize("seed", [151, 255, 264, 702, 732])
def test_neurons_that_rest_at_planes_or_fade_do_not_graze_them(seed):
    """Starts on planes and at the origin: what stays near a plane is not decided by the error."""
    data, net, loss, options = random_problem(seed)
    run = rf.flow(data, net, loss=loss, **options)
    assert run.limit_error < 1e-7


@pytest.mark.long
@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
@pytest.mark.parametrize("key", LONG, ids=str)
def test_deep_starts_end_where_200_digits_say(key, rtol):
    check(key, rtol)


def test_the_stored_ends_are_those_of_the_generated_problems():
    assert set(STORED) <= set(ends.CHOSEN)
    assert len(STORED) >= 12
    for (kind, log_scale, neurons, seed), row in STORED.items():
        given = problem(kind, seed, neurons, log_scale)
        np.testing.assert_array_equal(given.data.X, row["X"])
        np.testing.assert_array_equal(given.data.y, row["y"])
        mantissa = getattr(given.net, "mantissa", given.net)
        np.testing.assert_array_equal(mantissa.a, row["a"])
        np.testing.assert_array_equal(mantissa.W, row["W"])
        assert row["digits"] == ends.DIGITS
        assert row["status"] == "settled"


@pytest.mark.parametrize("key", [ends.CHOSEN[0]], ids=str)
def test_fewer_digits_compute_a_stored_end_again(key):
    recomputes(key, digits=60)


@pytest.mark.long
@pytest.mark.parametrize("key", ends.CHOSEN[1:4], ids=str)
def test_other_digits_compute_stored_ends_again(key):
    recomputes(key, digits=120)


def recomputes(key, digits):
    """An entry from scratch: the same events, and weights to 1e-9 of the largest."""
    row = json.loads(json.dumps(ends.entry(*key, digits=digits)))
    stored = STORED[key]
    assert [e[1:] for e in row["events"]] == [e[1:] for e in stored["events"]]
    assert row["status"] == stored["status"]
    want = np.array(stored["end"])
    np.testing.assert_allclose(row["end"], want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("seed", [31, 42])
def test_one_that_shrinks_for_ever_does_not_keep_others_waiting(seed):
    """One neuron shrinks along its pull, another stands in forces that are rounding."""
    data = rf.datasets.orthonormal(3, labels="positive", seed=seed)
    net = rf.networks.balanced(3, 8, log_scale=-20.0, seed=seed)
    run = rf.flow(data, net, max_seconds=60.0)
    assert run.status == "stationary"
    assert run.stats["plateaus"] < 20


@pytest.mark.parametrize("seed", [1, 85, 88])
@pytest.mark.parametrize("log_scale", [-1.0, -1e5])
def test_the_end_does_not_depend_on_the_tolerance(seed, log_scale):
    """Neurons at rest move by rounding only, and slides end when their weights leave [0, 1]."""
    given = problem("line", seed, 50, log_scale)
    found = []
    for rtol in (1e-6, 1e-8, 1e-10):
        run = given.flow(rtol, max_seconds=120.0)
        assert run.status in ("converged", "stationary")
        found.append(run.final.predict(given.grid))
    assert max(given.gap(one, found[-1]) for one in found[:-1]) <= SAME
