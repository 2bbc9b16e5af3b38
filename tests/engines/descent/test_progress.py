"""The progress bar: silent at first, then drawn, then gone."""

import sys

import numpy as np
import pytest
from numba.core import event

import reluflow as rf
from reluflow.engines import progress
from reluflow.kernels.flow.roots import first_exit, first_flip

from .reference import problem


class Drawn:
    """Stands in for the bar of rich and remembers what it was told."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **fields: self.calls.append((name, args, fields)) or 0


@pytest.fixture
def drawn(monkeypatch):
    stand_in = Drawn()
    monkeypatch.setattr(progress, "_draw", lambda: stand_in)
    return stand_in


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "DELAY_S", 0.0)


def test_nothing_is_drawn_in_the_first_seconds(drawn):
    with progress.bar(True, "work", 10) as update:
        update(5)
    assert drawn.calls == []


def test_a_bar_not_asked_for_is_not_drawn(drawn, at_once):
    with progress.bar(False, "work", 10) as update:
        update(5)
    assert drawn.calls == []


def test_a_late_bar_shows_what_is_done_and_goes_when_the_work_fails(drawn, at_once):
    def work():
        with progress.bar(True, "work", 10) as update:
            update(5, note="half")
            update(6)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    names = [name for name, *_ in drawn.calls]
    assert names == ["start", "add_task", "update", "update", "stop"]
    assert drawn.calls[1][1:] == (("work",), {"total": 10, "note": "half"})
    assert drawn.calls[3][2] == {"completed": 6, "note": ""}


def test_the_real_bar_writes_nothing_to_standard_output(capsys, at_once):
    with progress.bar(True, "work", 10) as update:
        update(5)
    assert capsys.readouterr().out == ""


def test_descent_reports_iterations(drawn, at_once):
    data, net = problem(8, 8, 30, rf.losses.Square(), seed=0)
    rf.descend(data, net, lr=0.1, steps=2000, record=2, progress=True)
    done = [fields["completed"] for name, _, fields in drawn.calls if name == "update"]
    assert done
    assert np.all(np.diff(done) > 0)
    assert drawn.calls[1][2]["total"] == 2000
    assert drawn.calls[-1][0] == "stop"


def names(drawn):
    return [name for name, *_ in drawn.calls]


def test_what_is_compiled_is_counted_from_the_start_while_the_other_bar_pauses(drawn, at_once):
    with progress.bar(True, "work", kernels=[first_flip]) as update:
        with event.trigger_event("numba:compile", data={"dispatcher": first_exit}):
            assert names(drawn) == ["start", "add_task", "update"]
            assert drawn.calls[1][1] == ("compiling kernels, once",)
            ready = sum(bool(kernel.overloads) for kernel in (first_exit, first_flip))
            done = drawn.calls[2][2]
            assert done["note"] == f"{done['completed']} of 5"
            assert done["completed"] >= ready
        assert names(drawn)[3:] == ["stop"]
        update(1)
        assert names(drawn)[4:] == ["start", "add_task", "update"]
        with event.trigger_event("numba:compile", data={"dispatcher": first_exit}):
            assert names(drawn)[7:] == ["stop", "start", "add_task", "update"]
        assert names(drawn)[11:] == ["stop", "start"]
    assert names(drawn)[13:] == ["stop"]


def test_compilation_of_work_without_a_bar_is_silent(drawn, at_once):
    with (
        progress.bar(False, "work", kernels=[first_flip]),
        event.trigger_event("numba:compile", data={"dispatcher": first_exit}),
    ):
        assert drawn.calls == []


def test_a_bar_is_shown_on_a_terminal_unless_another_is_around(monkeypatch, drawn):
    monkeypatch.setattr(progress, "_outer", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not progress.is_shown(None)
    assert progress.is_shown(True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert progress.is_shown(None)
    assert not progress.is_shown(False)
    with progress.bar(True, "sweep"):
        assert not progress.is_shown(None)
        assert progress.is_shown(True)
    with progress.bar(False, "sweep"):
        assert progress.is_shown(None)
    progress.silence()
    assert not progress.is_shown(None)


def test_work_known_to_be_long_is_drawn_at_once(drawn):
    with progress.bar(True, "work", 3, at_once=True) as update:
        update(0)
    assert names(drawn) == ["start", "add_task", "update", "stop"]
