"""Problems on which a campaign once found the flow slow, stuck or raising: each is kept."""

import pytest

from . import many

FOUND = {
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
}


@pytest.mark.parametrize("number", FOUND)
def test_a_problem_that_went_wrong_once_is_confirmed(number):
    assert many.quick(number)["verdict"] == "confirmed"
