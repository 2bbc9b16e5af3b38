"""The judge is judged: closed forms, order of convergence, the hull by three ways, the verdicts."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from numerics import degenerate, faults, hull, small_steps
from numerics.degenerate import Problem


def one_neuron(a, w, y, train="both", loss=None, t_end=1.0):
    """One point x = 1, one neuron."""
    loss = loss or rf.losses.Square()
    return Problem(rf.Dataset([[1.0]], [y]), rf.Network([a], [[w]]), loss, train, t_end, "one")


def test_descent_follows_the_closed_form_of_one_neuron():
    """Hidden layer: w' = a (y - a w). Both, balanced: h = w^2 obeys the logistic equation."""
    a, w, y, t = 0.8, 0.3, 2.0, 1.5
    hidden = one_neuron(a, w, y, train="hidden", t_end=t)
    exact = y / a + (w - y / a) * np.exp(-a * a * t)
    assert small_steps.end(hidden, small_steps.start(hidden), 1e-5)[0, 1] == pytest.approx(
        exact, abs=2e-5
    )
    both = one_neuron(w, w, y, t_end=t)
    h = y / (1 + (y / w**2 - 1) * np.exp(-2 * y * t))
    assert small_steps.end(both, small_steps.start(both), 1e-5)[0] == pytest.approx(
        np.sqrt([h, h]), abs=5e-5
    )


def test_descent_follows_the_closed_form_of_the_exponential_loss():
    """Hidden layer: w' = a exp(-a w) gives exp(a w) = exp(a w_0) + a^2 t."""
    problem = one_neuron(0.7, 0.2, 1.0, "hidden", rf.losses.Exponential(), 3.0)
    exact = np.log(np.exp(0.14) + 0.49 * 3.0) / 0.7
    assert small_steps.end(problem, small_steps.start(problem), 1e-5)[0, 1] == pytest.approx(
        exact, abs=1e-5
    )


def test_descent_is_of_first_order():
    """Regression over step sizes, on problems whose neurons meet no plane."""
    steps = np.array([8e-4, 4e-4, 2e-4, 1e-4, 5e-5])
    quiet = 0
    for seed in range(60):
        problem = degenerate.generic(seed)
        begin = small_steps.start(problem)
        a, W, _, changes = small_steps.path(problem, begin, 1e-3)
        moved = small_steps.distance(np.column_stack([a, W]), small_steps.weights(problem.net))
        if changes.any() or moved < 1e-3:
            continue
        ends = [small_steps.end(problem, begin, h) for h in steps]
        moves = [small_steps.distance(*pair) for pair in itertools.pairwise(ends)]
        slope = np.polyfit(np.log(steps[:-1]), np.log(moves), 1)[0]
        assert slope == pytest.approx(1.0, abs=0.1)
        quiet += 1
    assert quiet >= 5


def test_graded_first_steps_end_where_plain_ones_do():
    problem = degenerate.generic(5)
    begin = small_steps.start(problem)
    graded = small_steps.Start(begin.a, begin.W, small_steps.NUDGE, (), ())
    ends = [small_steps.end(problem, start, 1e-5) for start in (begin, graded)]
    assert small_steps.distance(*ends) < 1e-4


def test_descent_that_keeps_the_balance_keeps_it_and_ends_where_plain_descent_does():
    """Its steps restore ``a^2 - |w|^2``; the two differ by an amount in proportion to the step."""
    apart = 0
    for seed in range(12):
        problem = degenerate.generic(seed)
        if problem.train == "hidden":
            continue
        plain = small_steps.start(problem)
        keeping = replace(plain, keep=True)
        gaps = []
        for h in (4e-4, 1e-4):
            ends = [small_steps.end(problem, start, h) for start in (plain, keeping)]
            before, after = (
                e[:, 0] ** 2 - np.square(e[:, 1:]).sum(axis=1)
                for e in (np.column_stack([plain.a, plain.W]), ends[1])
            )
            sizes = np.square(ends[1]).sum(axis=1) + np.abs(before)
            assert (np.abs(after - before) <= 1e-11 * sizes).all()
            gaps.append(small_steps.distance(*ends))
        assert gaps[1] <= 0.5 * gaps[0] + 1e-9
        apart += gaps[0] > 1e-6
    assert apart >= 3


@pytest.mark.parametrize("seed", range(12))
def test_cells_by_angles_are_those_by_programs_and_by_sampling(seed):
    rng = np.random.default_rng(seed)
    X = degenerate.points(rng, str(rng.choice(degenerate.DATA[:5])), int(rng.integers(2, 8)), 2)
    angles = {row.tobytes() for row in hull.cells_by_angles(X)}
    programs = {row.tobytes() for row in hull.cells_by_programs(X)}
    samples = {row.tobytes() for row in rng.normal(size=(20000, 2)) @ X.T > 0}
    assert angles == programs
    assert samples <= angles


@pytest.mark.parametrize("seed", range(8))
def test_cells_in_space_are_found_by_sampling(seed):
    """n planes in general position cut space into 2 sum_k C(n - 1, k) cells."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(3, 5))
    X = rng.normal(size=(n, d))
    cells = {row.tobytes() for row in hull.cells(X)}
    samples = {row.tobytes() for row in rng.normal(size=(20000, d)) @ X.T > 0}
    assert len(cells) == 2 * sum(math.comb(n - 1, k) for k in range(d))
    assert samples <= cells


@pytest.mark.parametrize("seed", range(30))
def test_zero_is_outside_where_the_least_element_is_not_zero(seed):
    """The decision by angles or a program agrees with the least element, and that is least."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(int(rng.integers(2, 9)), int(rng.integers(1, 5))))
    points += rng.normal(size=points.shape[1])
    least = hull.least_element(points)
    assert hull.zero_is_outside(points) == (np.linalg.norm(least) > 1e-7)
    # every point of the hull lies beyond the plane through the least element
    assert (points @ least >= least @ least - 1e-9).all()
    weights = rng.dirichlet(np.ones(len(points)), 2000)
    assert np.linalg.norm(weights @ points, axis=1).min() >= np.linalg.norm(least) - 1e-9


def test_starts_on_planes_begin_inactive_and_starts_at_zero_along_the_least_pull():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 1.0])
    net = rf.Network([1.0, -2.0], [[0.0, 1.0], [0.0, 0.0]])
    problem = Problem(data, net, rf.losses.Square(), "both", 1.0, "start")
    begin = small_steps.start(problem)
    assert begin.W[0, 0] < 0 < begin.W[0, 1]
    # labels of one sign around the origin: 0 is among the mixtures, so no rule fixes neuron 1
    assert begin.moved == (0, 1)
    assert begin.free == (1,)


def test_generator_draws_the_same_problem_again_and_all_kinds():
    first, second = degenerate.problem(7), degenerate.problem(7)
    assert first.data == second.data
    assert first.net == second.net
    kinds = {tuple(degenerate.problem(seed).kind.split()[:2]) for seed in range(60)}
    assert {data for data, _ in kinds} == set(degenerate.DATA)
    assert {start for _, start in kinds} == set(degenerate.STARTS)


# ---------------------------------------------------------------- verdicts


def test_the_flow_is_right_on_generic_problems_and_a_shifted_one_is_wrong():
    for seed in range(10):
        problem = degenerate.generic(seed)
        end = small_steps.weights(problem.flow().final)
        assert small_steps.judge(problem, end).outcome == "agrees"
        assert (
            small_steps.judge(problem, end + 3e-4 * max(1.0, np.abs(end).max())).outcome == "wrong"
        )


@pytest.mark.long
def test_a_neuron_that_all_but_dies_needs_descent_that_keeps_the_balance():
    problem = degenerate.problem(1866)
    end = small_steps.weights(problem.flow().final)
    assert not small_steps.nearing(problem, small_steps.start(problem), end)[-1]
    assert small_steps.judge(problem, end).outcome == "agrees"


def unnoticed(seeds):
    """Faults planted in these problems that pass though they are off by more than 1e-4."""
    found = [(seed, *fault) for seed in seeds for fault in faults.examine(seed)]
    assert sum(off > small_steps.NOTICED for _, _, off, _ in found) >= len(seeds) // 2
    return [fault for fault in found if fault[2] > small_steps.NOTICED and fault[3]]


def test_faults_of_every_size_are_noticed():
    """The side of a plane, a stay on it or a label is wrong; one passed with an error of 6e-4."""
    assert unnoticed([6005, 6036, 6134, *range(6)]) == []


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_many_faults_are_noticed(block):
    assert unnoticed(range(6000 + 30 * block, 6030 + 30 * block)) == []


def test_a_repelling_plane_of_opposite_points_has_two_ends():
    """x and -x both pull outward: either side is right, staying between them is not."""
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0])
    problem = Problem(data, rf.Network([1.0], [[0.0, 1.0]]), rf.losses.Square(), "hidden", 1.0, "")
    side = 1.0 - np.exp(-0.5)  # w' = (1 - w) / 2
    for w in (side, -side):
        assert small_steps.judge(problem, np.array([[1.0, w, 1.0]])).good
    stays = np.array([[1.0, 0.0, 1.0]])
    assert small_steps.judge(problem, stays).outcome == "unsettled"
    assert small_steps.judge(problem, stays, branches=True).outcome == "branch"
