"""Problems on which a campaign once found the flow slow, stuck or raising: each is kept."""

import pytest

from . import degenerate, many, small_steps

FOUND = {
    1915: "rests at the origin until it does not, to rounding: the clock stood still",
    2476: "a neuron leaves a rest at the origin too early, and is back at once",
    3365: "slides into the origin beside a plane, on the wrong side of it by rounding",
    5919: "a balanced neuron that shrinks limits the steps of the others",
    10098: "at the origin with no pull of first order",
    11743: "the loss tends to a positive value, the weights to no limit",
    13758: "hidden weights reach zero in finite time",
    14015: "forces at the start of a step, told by a polynomial that does not know them",
    16703: "shrinks far below its part outside the span of the points",
    17317: "hidden weights reach zero in finite time, along a plane",
    17708: "on the plane of all points, with an output weight of zero",
    18175: "the same part, with the square loss",
    22262: "at the origin, where two points cancel to rounding: nothing moves it but that",
    31448: "the same, on a plane",
    67646: "the same, with the logistic loss",
    67797: "goes along where three planes meet, on which it cannot stay",
    76379: "points that cancel to rounding, beside others",
    82015: "shrinks for ever beside one that has come to rest: a plateau without end",
    89075: "two points cancel to rounding below the plane, and one pulls off above it",
    9071: "passes the origin far below all others, in a step in which it then grows by e^60",
    23807: "hidden weights come to the origin in finite time and stay: nothing pulls them on",
    73551: "rests at the origin, in a step as long as the reaction of the outputs",
    93823: "the same, with the logistic loss",
    8175: "margins that grow for ever beside points at rest hide that the loss has a limit",
}


# followed to the end; the others for a time
LIMITS = (5919, 8175, 9071, 11743, 14015, 16703, 18175, 23807, 73551, 82015, 93823)


@pytest.mark.parametrize("number", sorted(FOUND.keys() - set(LIMITS)))
def test_the_way_of_a_problem_that_went_wrong_once_is_that_of_descent(number):
    names = 5 * [*many.DRAWN] + ["limit"]
    problem = many.DRAWN[names[number % len(names)]](number)
    run = problem.flow(max_seconds=60.0)
    branches = "branch" in run.events["kind"].tolist()
    assert small_steps.judge(problem, small_steps.weights(run.final), branches).good


@pytest.mark.parametrize("seed", [875, 910, 3166, 3252, 3407, 4217, 4855])
def test_a_rest_that_seemed_to_end_at_the_start_of_a_stiff_step_let_no_time_pass(seed):
    problem = degenerate.problem(seed)
    run = problem.flow(max_seconds=60.0)
    assert run.status == "t_end"
    branches = "branch" in run.events["kind"].tolist()
    assert small_steps.judge(problem, small_steps.weights(run.final), branches).good


def test_a_neuron_that_comes_to_rest_is_not_taken_off_the_planes_that_repel_it():
    problem = degenerate.problem(508)
    run = problem.flow(max_seconds=60.0)
    assert small_steps.judge(problem, small_steps.weights(run.final), False).good


@pytest.mark.parametrize("number", FOUND)
def test_a_problem_that_went_wrong_once_is_confirmed(number):
    assert many.quick(number)["verdict"] == "confirmed"


def test_a_point_that_fades_slowly_beside_two_that_balance_does_not_hide_the_limit():
    """Its share falls like one over the clock, and steps are short: the forces are rounding."""
    assert many.confirmed(286, 20.0, many.SMALL)["verdict"] == "confirmed"


@pytest.mark.parametrize("number", [2218, 3388, 3769, 4188, 4690])
def test_with_decay_forces_that_overflow_in_a_tried_step_do_not_raise(number):
    assert many.decayed(number)["verdict"] == "confirmed"


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_problems_with_decay_are_confirmed(first):
    found = [many.decayed(number) for number in range(first, first + 12)]
    assert [line for line in found if line["verdict"] != "confirmed"] == []
