"""Neurons that slide on planes which have come to repel them."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.flow.controller import Controller, Counters
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.riders import without
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE

POINTS = [[1.0, 0.0], [-0.6, 0.8], [0.8, 0.6]]


def parted(a, c, points=POINTS, y=(1.0, 1.0, 1.0), loss=None, rides=False):
    """The modes of a neuron that slides on the first of three planes and is above the others, at
    the end of a step with forces ``c``; and how many branches are written down.
    """
    loss = loss or rf.losses.Square()
    problem = Problem(rf.Dataset(points, y), rf.Network([a], [[0.0, 1.0]]), loss, "both")
    state, log = start(problem), EventLog()
    assert state.mode[0].tolist() == [BELOW, ABOVE, ABOVE]
    state.mode[0, 0] = SLIDE
    controller = Controller(problem, 1e-8, Counters(), log)
    at = begin_at(problem, state)
    controller._part(without(at, np.array([0])) if rides else at, state, np.array(c))
    log.date(lambda clocks: (clocks, clocks))
    return state.mode[0].tolist(), log.grazes


# the others pull along the first normal by 0.8 c_2 - 0.6 c_1: theta = (0.6 c_1 - 0.8 c_2) / c_0
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("other", "side"), [(0.25, BELOW), (1.0, ABOVE)])
def test_a_plane_that_repels_is_left_to_the_side_where_descent_is_for_longer(other, side, sign):
    modes, branches = parted(sign, [sign, sign * other, 0.0])
    assert modes == [side, ABOVE, ABOVE]
    assert branches == 1


def test_one_that_rides_is_let_go_as_well():
    assert parted(1.0, [1.0, 1.0, 0.0], rides=True) == ([ABOVE, ABOVE, ABOVE], 1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_plane_that_attracts_holds(sign):
    modes, branches = parted(sign, [-sign, -0.5 * sign, 0.0])
    assert modes == [SLIDE, ABOVE, ABOVE]
    assert branches == 0


def test_what_repels_by_less_than_the_error_of_forces_holds():
    modes, branches = parted(1.0, [1e-10, 1e-10, 0.0])
    assert modes == [SLIDE, ABOVE, ABOVE]
    assert branches == 0


@pytest.mark.parametrize("loss", [rf.losses.Exponential(), rf.losses.Logistic()])
def test_a_plane_of_both_labels_may_come_to_repel_with_shares_too(loss):
    """Points x and 2x of labels +-1 pull along x by p_1 - 2 p_2, which may change its sign."""
    points, c = [[2.0, 0.0], *POINTS], [-0.1, 0.5, 0.2, 0.2]
    modes, branches = parted(1.0, c, points, (-1.0, 1.0, 1.0, 1.0), loss)
    assert modes[0] != SLIDE
    assert branches == 1
    modes, branches = parted(1.0, [-0.4, 0.3, 0.2, 0.1], points, (-1.0, 1.0, 1.0, 1.0), loss)
    assert modes[0] == SLIDE
    assert branches == 0


@pytest.mark.parametrize(
    ("loss", "y", "turn"),
    [
        (rf.losses.Square(), (1.0, 1.0, 1.0), True),
        (rf.losses.Exponential(), (1.0, -1.0, 1.0), False),
        (rf.losses.Logistic(), (1.0, -1.0, 1.0), False),
        (rf.losses.Logistic(), (1.0, -1.0, -1.0), True),
    ],
)
def test_which_jumps_of_planes_may_change_their_sign(loss, y, turn):
    """The first and the last point are on one line through the origin, on both its sides."""
    data = rf.Dataset([[1.0, 2.0], [3.0, -1.0], [-2.0, -4.0]], y)
    net = rf.networks.balanced(2, 3, log_scale=0.0, seed=0)
    assert Problem(data, net, loss, "both").jumps_turn == turn
