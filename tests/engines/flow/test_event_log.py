"""Events written down by plane and clock, told by point and time."""

import numpy as np
import pytest

from kernels.flow.scene import planes_with
from reluflow.engines.flow.events import EventLog
from reluflow.kernels.flow.layout import ABOVE, BELOW, BRANCH, DIE, FLIP, SLIDE

# plane 0: x, 2x and a copy of x; plane 1: one point; plane 2: z and -z
PLANES = planes_with(np.eye(3), owner=[0, 0, 1, 2, 2, 0], length=[1.0, 2.0, 1.0, 1.0, -0.5, 1.0])


def told(*rows, planes=PLANES):
    """Events (t, neuron, point, kind) of rows (clock, neuron, plane, before, after)."""
    log = EventLog()
    log.extend(0.0, 1.0, np.array(rows, dtype=float).reshape(-1, 5))
    log.date(lambda clock: (2.0 * clock, np.log(2.0 * clock)))
    out = log.array(planes)
    np.testing.assert_allclose(out["log_t"], np.log(out["t"]))
    return [(float(e["t"]), int(e["neuron"]), int(e["point"]), str(e["kind"])) for e in out]


def kinds(*rows):
    return [(point, kind) for _, _, point, kind in told(*rows)]


def test_points_on_one_plane_change_together():
    assert told([0.5, 3, 0, BELOW, ABOVE]) == [
        (1.0, 3, 0, "activate"), (1.0, 3, 1, "activate"), (1.0, 3, 5, "activate"),
    ]  # fmt: skip
    assert kinds([0.5, 3, 0, ABOVE, BELOW]) == [
        (0, "deactivate"), (1, "deactivate"), (5, "deactivate"),
    ]  # fmt: skip


def test_opposite_points_change_in_opposite_ways():
    assert kinds([1.0, 0, 2, BELOW, ABOVE]) == [(3, "activate"), (4, "deactivate")]
    assert kinds([1.0, 0, 2, ABOVE, BELOW]) == [(3, "deactivate"), (4, "activate")]


@pytest.mark.parametrize("before", [BELOW, ABOVE])
def test_a_slide_is_told_for_every_point_of_its_plane(before):
    assert kinds([1.0, 0, 2, before, SLIDE]) == [(3, "slide"), (4, "slide")]
    assert kinds([1.0, 0, 1, before, SLIDE]) == [(2, "slide")]


def test_a_slide_that_ends_is_a_release_and_what_follows():
    assert kinds([1.0, 0, 1, SLIDE, ABOVE]) == [(2, "release"), (2, "activate")]
    assert kinds([1.0, 0, 1, SLIDE, BELOW]) == [(2, "release"), (2, "deactivate")]
    assert kinds([1.0, 0, 2, SLIDE, BELOW]) == [
        (3, "release"), (3, "deactivate"), (4, "release"), (4, "activate"),
    ]  # fmt: skip


def test_events_without_a_change_of_mode():
    assert kinds([1.0, 0, -1, 0, FLIP]) == [(-1, "flip")]
    assert kinds([1.0, 0, 2, BRANCH, BRANCH]) == [(3, "branch")]
    assert kinds([1.0, 0, 0, BRANCH, BRANCH]) == [(0, "branch")]


def test_a_death_comes_last_at_its_moment():
    assert told(
        [1.0, 0, -1, 0, DIE], [1.0, 0, 1, ABOVE, BELOW], [0.5, 1, -1, 0, DIE],
        [1.0, 0, 0, SLIDE, BELOW],
    ) == [
        (1.0, 1, -1, "die"),
        (2.0, 0, 0, "release"), (2.0, 0, 0, "deactivate"), (2.0, 0, 1, "release"),
        (2.0, 0, 1, "deactivate"), (2.0, 0, 2, "deactivate"), (2.0, 0, 5, "release"),
        (2.0, 0, 5, "deactivate"),
        (2.0, 0, -1, "die"),
    ]  # fmt: skip


def test_events_are_ordered_by_time_then_neuron():
    rows = [[2.0, 1, 1, BELOW, ABOVE], [1.0, 2, 1, BELOW, ABOVE], [1.0, 0, 1, BELOW, ABOVE]]
    assert [(t, j) for t, j, _, _ in told(*rows)] == [(2.0, 0), (2.0, 2), (4.0, 1)]


def test_comparing_two_rows_writes_changes_and_death():
    log = EventLog()
    both = PLANES.both
    row = np.array([1, 0, 1], dtype=np.int8)
    log.compare(3.0, 2, row, row, both)
    assert len(log) == 0
    log.compare(3.0, 2, row, np.array([0, 0, 2], dtype=np.int8), both)
    assert len(log) == 2
    # below the third plane -z is active: nobody dies while points lie on both sides
    log.compare(4.0, 2, row, np.zeros(3, dtype=np.int8), both)
    log.date(lambda clock: (clock, np.log(clock)))
    events = log.array(PLANES)
    assert "die" not in events["kind"]
    other = EventLog()
    other.compare(4.0, 2, row, np.zeros(3, dtype=np.int8), np.zeros(3, dtype=bool))
    other.date(lambda clock: (clock, np.log(clock)))
    assert other.array(PLANES)["kind"][-1] == "die"


def test_moments_are_counted_from_the_start_of_their_step():
    log = EventLog()
    log.extend(10.0, 0.5, np.array([[0.2, 0, 1, BELOW, ABOVE]]))
    log.add(10.25, 1, 2, BRANCH)
    log.date(lambda clock: (clock, np.log(clock)))
    assert log.array(PLANES)["t"].tolist() == [10.1, 10.25]


def test_events_of_a_step_that_is_not_kept_are_forgotten():
    log = EventLog()
    log.add(1.0, 0, -1, FLIP)
    log.date(lambda clock: (clock, np.log(clock)))
    log.add(2.0, 0, -1, FLIP)
    assert len(log) == 2
    log.drop()
    assert len(log) == 1
    log.date(lambda clock: (clock, np.log(clock)))
    assert len(log.array(PLANES)) == 1


def test_what_another_log_has_is_taken_undated():
    log, other = EventLog(), EventLog()
    other.add(1.0, 0, -1, FLIP)
    log.take(other)
    assert len(log) == 1
    assert len(log.array(PLANES)) == 0
    log.date(lambda clock: (5.0 * clock, np.log(5.0 * clock)))
    assert log.array(PLANES)["t"].tolist() == [5.0]


def test_no_events_make_an_empty_array():
    log = EventLog()
    assert len(log.array(PLANES)) == 0
    log.extend(0.0, 1.0, np.empty((0, 5)))
    assert len(log) == 0
