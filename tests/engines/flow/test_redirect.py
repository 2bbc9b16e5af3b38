"""Neurons that slide on planes which have come to repel them."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.flow.controller import Controller, Counters
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE


def parted(a, c):
    """The modes of a neuron that slides on the first of three planes and is above the others, at
    the end of a step with forces ``c``; and how many branches are written down.
    """
    data = rf.Dataset([[1.0, 0.0], [-0.6, 0.8], [0.8, 0.6]], [1.0, 1.0, 1.0])
    problem = Problem(data, rf.Network([a], [[0.0, 1.0]]), rf.losses.Square(), "both")
    state, log = start(problem), EventLog()
    assert state.mode[0].tolist() == [BELOW, ABOVE, ABOVE]
    state.mode[0, 0] = SLIDE
    controller = Controller(problem, 1e-8, Counters(), log)
    controller._part(begin_at(problem, state), state, np.array(c))
    log.date(lambda clocks: (clocks, clocks))
    return state.mode[0].tolist(), log.grazes


# the others pull along the first normal by 0.8 c_2 - 0.6 c_1: theta = (0.6 c_1 - 0.8 c_2) / c_0
@pytest.mark.parametrize(("other", "side"), [(0.25, BELOW), (1.0, ABOVE)])
def test_a_plane_that_repels_is_left_to_the_side_where_descent_is_for_longer(other, side):
    modes, branches = parted(1.0, [1.0, other, 0.0])
    assert modes == [side, ABOVE, ABOVE]
    assert branches == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_plane_that_attracts_holds(sign):
    modes, branches = parted(sign, [-sign, -0.5 * sign, 0.0])
    assert modes == [SLIDE, ABOVE, ABOVE]
    assert branches == 0


def test_what_repels_by_less_than_the_error_of_forces_holds():
    modes, branches = parted(1.0, [1e-10, 1e-10, 0.0])
    assert modes == [SLIDE, ABOVE, ABOVE]
    assert branches == 0
