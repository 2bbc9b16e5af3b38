"""The progress bar: silent at first, then drawn, then gone."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines import progress

from .descent_reference import problem


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
