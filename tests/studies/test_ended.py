"""Runs of studies that did not end as was asked."""

from dataclasses import replace

import pytest

import reluflow as rf
from reluflow.errors import RunError
from reluflow.papers.univariate.figures.tools import fates
from reluflow.studies.ended import remark
from reluflow.studies.reproduce import reproduce
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Recipe, Reproduction
from reluflow.theory.results import ended

POINT = Point("reluflow.sweeps.tasks:echo", {"x": 1}, 0)


def a_run(status, reason=""):
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([0.5], [[0.5]])
    return replace(rf.descend(data, net, lr=0.1, steps=3), status=rf.Status(status), reason=reason)


def results(*statuses, name="status", **values):
    return [Result(POINT, {name: status, **values}) for status in statuses]


@pytest.mark.parametrize("status", rf.Status)
def test_only_ends_that_were_asked_for_are_measured(status):
    run = a_run(status, "no step")
    if status.is_asked_for:
        assert ended(run) is run
    else:
        with pytest.raises(RunError, match=f"ended as `{status}`: .*no step"):
            ended(run)


def test_what_is_drawn_of_other_ends_is_said():
    assert remark(results("converged", "done", "t_end")) == ""
    assert remark([Result(POINT, {"x": 1})]) == ""
    said = remark(results("converged", "failed", "budget", "budget"))
    assert "3 computations are of runs that did not end as was asked (2 budget, 1 failed)" in said
    assert "1 unchanged" in remark(results("unchanged", name="flow_status"))


def test_a_figure_carries_the_remark(tmp_path):
    points = [Point("reluflow.sweeps.tasks:echo", {"status": "failed", "x": x}, 0) for x in (1, 2)]
    recipe = Recipe(
        "toy/fig", "toy", lambda size, seed: points, lambda found: Reproduction((), {}, (), "Two.")
    )
    made = reproduce(recipe, "quick", tmp_path, workers=0).reproduction
    assert made.note.startswith("Two. Warning: 2 computations")
    assert "2 failed" in (tmp_path / "shape.json").read_text()


def test_fates_tell_failures_from_the_time_limit():
    common = {"separated": False}
    told = fates(
        [
            *results("stop_loss", separated=True, unfinished=False),
            *results("stationary", unfinished=False, **common),
            *results("budget", "budget", "failed", unfinished=True, **common),
        ]
    )
    assert told == (
        "1 of 5 runs classify every point, 1 end in a local minimum or with dead neurons, "
        "2 were cut short by the time limit and are left out, "
        "1 could not be completed by the engine and are left out."
    )
    assert "time limit" not in fates(results("failed", unfinished=True, **common))
