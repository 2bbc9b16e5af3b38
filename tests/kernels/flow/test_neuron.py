"""The events of a neuron: what it meets, how slides end, what is written down."""

import numpy as np
import pytest

from kernels.flow.scene import (
    empty_log,
    one_neuron,
    planes_at,
    planes_with,
    pulls_on,
    rows_in,
)
from reluflow.kernels.flow.layout import ABOVE, BELOW, BRANCH, DIE, FLIP, SLIDE
from reluflow.kernels.flow.neuron import (
    RISES,
    SINKS,
    Event,
    end_slide,
    meet,
    note,
    planes_met,
    turn,
)


def arrived(a, w, planes, row, c, where, speed):
    """Meet the plane ``where``; the neuron and the events."""
    neuron, log = one_neuron(a, w, planes, row=row), empty_log()
    low, high = pulls_on(np.array(c, dtype=float), planes)
    speed = np.array(speed, dtype=float)
    on = planes_met(neuron, where, speed, 1e-13)
    assert meet(neuron, on, speed, low, high, planes, log, 0.25)
    return neuron, rows_in(log)


def test_arrival_on_a_repelling_plane_crosses_it():
    planes = planes_at(np.eye(2))
    neuron, log = arrived(1.0, [1.0, 1e-12], planes, [1, 0], [1.0, 1.0], 1, [0.0, 0.3])
    assert neuron.row.tolist() == [1, 1]
    assert neuron.z[1] == 0.0
    assert log.tolist() == [[0.25, 7.0, 1.0, BELOW, ABOVE]]


def test_a_neuron_without_active_points_dies_on_arrival():
    planes = planes_at(np.eye(2))
    neuron, log = arrived(1.0, [-1.0, 1e-9], planes, [0, 1], [1.0, -1.0], 1, [0.0, -1.0])
    assert neuron.row.tolist() == [0, 0]
    assert log[:, 2:].astype(int).tolist() == [[1, ABOVE, BELOW], [-1, 0, DIE]]


def test_a_neuron_below_a_shared_plane_does_not_die():
    planes = planes_with(np.eye(2), owner=[0, 1, 1], length=[1.0, 1.0, -1.0])
    neuron, log = arrived(
        1.0, [-1.0, 1e-9], planes, [0, 1], [1.0, -1.0, 1.0], 1, [0.0, -1.0]
    )  # fmt: skip
    assert neuron.row.tolist() == [0, 0]
    assert DIE not in log[:, 4]


def test_planes_met_are_those_within_the_error_of_arrival():
    planes = planes_at(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    down = -np.array([1.0, 1.0, np.sqrt(2.0)])

    def met(w, speed, row=None):
        return planes_met(one_neuron(1.0, w, planes, row=row), 0, speed, 1e-13).tolist()

    assert met([1e-9, 1.0], down) == [True, False, False]
    assert met([1e-9, 5e-9], down) == [True, True, True]
    # the error is one of time: planes that are crossed faster are off by more
    assert met([1e-9, 1e-6], down) == [True, False, False]
    assert met([1e-9, 1e-6], -np.array([1.0, 1e3, 1.0])) == [True, True, False]
    assert met([1e-9, 1.0], down, row=[1, 1, 2]) == [True, False, True]


def test_a_plane_towards_which_a_neuron_does_not_move_is_not_met():
    planes = planes_at(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    for away in (1.0, 0.0):
        speed = np.array([-1.0, away, away])
        on = planes_met(one_neuron(1.0, [1e-9, 5e-9], planes), 0, speed, 1e-13)
        assert on.tolist() == [True, False, False]


def test_a_neuron_at_the_origin_is_on_all_planes():
    planes = planes_at(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    neuron = one_neuron(1.0, [1e-14, -1e-14], planes)
    assert planes_met(neuron, 0, np.array([-1.0, 0.0, 0.0]), 1e-13).all()


def test_a_crossroads_is_left_undecided():
    planes = planes_at(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    neuron, log = one_neuron(1.0, [0.0, 0.0], planes, row=[1, 1, 0]), empty_log()
    low, high = pulls_on(-np.ones(3), planes)
    on = np.ones(3, dtype=bool)
    assert not meet(neuron, on, np.zeros(3), low, high, planes, log, 0.5)
    assert neuron.row.tolist() == [1, 1, 0]
    assert log.used[0] == 0


def test_a_start_from_which_both_sides_push_away_is_a_branch():
    planes = planes_at(np.array([[1.0, 0.0], [0.5, 1.0]]))
    neuron, log = one_neuron(1.0, [0.0, 1.0], planes, row=[0, 1]), empty_log()
    low, high = pulls_on(np.array([1.0, -1.0]), planes)  # velocities -1/2 below, 1/2 above
    assert meet(neuron, np.array([True, False]), np.zeros(2), low, high, planes, log, 0.0)
    assert rows_in(log)[:, 2:].astype(int).tolist() == [[0, BRANCH, BRANCH]]


@pytest.mark.parametrize(("pull", "kind", "side"), [(3.0, RISES, ABOVE), (-1.0, SINKS, BELOW)])
def test_the_end_of_a_slide_is_listed_once(pull, kind, side):
    planes = planes_at(np.array([[1.0, 0.0], [0.5, 1.0]]))
    low, high = pulls_on(np.array([-1.0, pull]), planes)
    neuron, log = one_neuron(1.0, [0.0, 1.0], planes, row=[2, 1]), empty_log()
    assert end_slide(neuron, Event(kind, 0.5, 0), low, high, planes, 1e-9, log)
    assert rows_in(log).tolist() == [[0.5, 7.0, 0.0, SLIDE, side]]
    # forces that still hold it: nothing happens
    low, high = pulls_on(np.array([-1.0, 1.0]), planes)
    neuron, log = one_neuron(1.0, [0.0, 1.0], planes, row=[2, 1]), empty_log()
    assert not end_slide(neuron, Event(kind, 0.5, 0), low, high, planes, 1e-9, log)
    assert log.used[0] == 0
    assert neuron.row.tolist() == [2, 1]


@pytest.mark.parametrize(("pull", "side"), [(1.2, ABOVE), (0.8, BELOW)])
def test_a_flip_in_a_slide_is_a_branch_and_leaves_by_the_larger_share(pull, side):
    planes = planes_at(np.array([[1.0, 0.0], [0.5, 1.0]]))
    low, high = pulls_on(np.array([-1.0, pull]), planes)  # theta = pull / 2
    neuron, log = one_neuron(0.0, [0.0, 1.0], planes, row=[2, 1]), empty_log()
    turn(neuron, low, high, planes, log, 0.5)
    assert neuron.row.tolist() == [side, 1]
    assert rows_in(log)[:, 2:].astype(int).tolist() == [
        [-1, 0, FLIP], [0, BRANCH, BRANCH], [0, SLIDE, side],
    ]  # fmt: skip


def test_a_full_list_counts_on():
    log = empty_log(2)
    for k in range(4):
        note(log, 0.1 * k, k, 0, BELOW, ABOVE)
    assert log.used[0] == 4
    assert log.rows[:, 1].tolist() == [0.0, 1.0]
