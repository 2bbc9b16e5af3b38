"""Compilation as it is told: who is wanted, who is ready, and whose time it is."""

import pytest
from numba.core import event

from reluflow.kernels import compiling
from reluflow.kernels.flow import wanted
from reluflow.kernels.flow.roots import _bernstein_value, _curve, _halves, first_exit, first_flip
from reluflow.kernels.flow.step import carry
from reluflow.kernels.flow.walk import walk


def test_reachable_kernels_are_those_called_directly_or_not():
    found = compiling.reachable([first_flip])
    assert {first_flip, first_exit, _bernstein_value, _curve, _halves} == found


def test_a_run_wants_what_its_loss_needs_and_nothing_of_the_others():
    square, margin = (compiling.reachable(wanted.wanted(is_square)) for is_square in (True, False))
    assert {carry, walk} <= square & margin
    assert {kernel.py_func.__name__ for kernel in square - margin} >= {"solve_square"}
    assert {kernel.py_func.__name__ for kernel in margin - square} >= {"solve_margin"}


def test_a_tally_is_told_for_our_kernels_and_none_at_the_end():
    heard = []
    with compiling.counted([first_flip], heard.append):
        with (
            event.trigger_event("numba:compile", data={"dispatcher": first_exit}),
            event.trigger_event("numba:compile", data={"dispatcher": sum}),
        ):
            pass
        assert {tally.wanted for tally in heard[:-1]} == {5}
        assert len(heard) == 2  # numba's own functions are not counted
        assert heard[-1] is None
        with event.trigger_event("numba:compile", data={"dispatcher": carry}):
            pass
    assert heard[2].wanted > 20  # what was not foreseen is added
    count = len(heard)
    with event.trigger_event("numba:compile", data={"dispatcher": carry}):
        pass
    assert len(heard) == count


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [100.0]
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: now[0])
    return now


def test_a_stopwatch_stands_still_while_numba_compiles(clock):
    watch = compiling.Stopwatch()
    clock[0] += 1.0
    with event.trigger_event("numba:compile", data={"dispatcher": carry}):
        clock[0] += 50.0
        with event.trigger_event("numba:compile", data={"dispatcher": walk}):
            clock[0] += 10.0
            assert watch.seconds() == pytest.approx(1.0)
    clock[0] += 2.0
    assert watch.seconds() == pytest.approx(3.0)
