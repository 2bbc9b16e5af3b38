"""Records of a run: modes by point and by plane, and states that come back as they were."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from kernels.flow.scene import planes_with
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.records import restore, stack
from reluflow.engines.flow.replay import problem_of
from reluflow.engines.flow.state import start, to_planes, to_points

# ---------------------------------------------------------------------- modes


PLANES = planes_with(np.eye(3), owner=[0, 0, 1, 2, 2, 1], length=[1.0, 2.0, -1.0, 1.0, -0.5, 1.0])


def test_modes_of_points_are_those_of_their_side():
    mode = np.array([[0, 1, 2], [1, 0, 1]], dtype=np.int8)
    assert to_points(mode, PLANES).tolist() == [[0, 0, 0, 2, 2, 1], [1, 1, 1, 1, 0, 0]]


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_modes_come_back_from_those_of_the_points(seed):
    rng = np.random.default_rng(seed)
    mode = rng.integers(0, 3, size=(int(rng.integers(1, 4)), 5, 3)).astype(np.int8)
    by_point = to_points(mode, PLANES)
    assert by_point.shape == (*mode.shape[:-1], 6)
    back = to_planes(by_point, PLANES)
    np.testing.assert_array_equal(back, mode)
    assert back.dtype == mode.dtype
    # off the planes a point is active where its product is positive
    w = rng.normal(size=3)
    X = PLANES.length[:, None] * PLANES.U[PLANES.owner]
    row = (PLANES.U @ w > 0).astype(np.int8)
    np.testing.assert_array_equal(to_points(row, PLANES), X @ w > 0)


# ---------------------------------------------------------------------- states


def drawn(kind, seed=0):
    """A data set and a network, with ``d > n`` or points that share planes."""
    rng = np.random.default_rng(seed)
    if kind == "wide":
        X = rng.normal(size=(3, 6))
    else:
        X = rng.normal(size=(5, 2))
        X[3], X[4] = 2.0 * X[0], -X[1]
    y = rng.normal(size=len(X))
    return rf.Dataset(X, y), rf.Network(
        0.3 * rng.normal(size=8), 0.3 * rng.normal(size=(8, X.shape[1]))
    )


@pytest.mark.parametrize("kind", ["wide", "shared"])
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_a_start_that_is_recorded_is_restored(kind, train):
    data, net = drawn(kind)
    problem = Problem(data, net, rf.losses.Square(), train)
    state = start(problem)
    state.mode[0] = 2
    state.step, state.clock = 0.25, 3.0
    arrays = stack(problem, [state, state])
    assert arrays["mode"].shape == (2, 8, data.n)
    assert arrays["step"].tolist() == [0.25, 0.25]
    run = rf.flow(data, net, train=train, t_end=1.0)
    recorded = replace(
        run, kept=arrays, t=run.t[:2], log_t=run.log_t[:2], log_loss=run.log_loss[:2]
    )
    back = restore(problem, recorded, 1)
    for name in ("a", "sigma", "mode", "step", "clock"):
        np.testing.assert_array_equal(getattr(back, name), getattr(state, name))
    np.testing.assert_allclose(back.w, state.w, rtol=0, atol=4e-16)
    np.testing.assert_allclose(back.outputs(problem), state.outputs(problem), atol=1e-14)


@pytest.mark.parametrize("kind", ["wide", "shared"])
@pytest.mark.parametrize("train", ["both", "hidden"])
def test_every_record_of_a_run_comes_back(kind, train):
    data, net = drawn(kind, seed=2)
    run = rf.flow(data, net, train=train, t_end=20.0, record=12)
    problem = problem_of(run)
    assert len(run.events)
    for k in range(len(run.t)):
        state = restore(problem, run, k)
        again, there = state.network(problem), run.network(k)
        np.testing.assert_allclose(again.flat().W, there.flat().W, atol=1e-15)
        np.testing.assert_array_equal(again.flat().a, there.flat().a)
        np.testing.assert_array_equal(to_points(state.mode, problem.planes), run.kept["mode"][k])
        assert problem.units.to_time(state.t) == run.t[k]
        loss = problem.log_loss(state.outputs(problem))
        # residuals are differences of outputs: their rounding, over their size
        rounding = 1e-14 * np.exp(-0.5 * run.log_loss[k])
        assert loss == pytest.approx(run.log_loss[k], abs=1e-12 + rounding)


@pytest.mark.parametrize("kind", ["wide", "shared"])
def test_a_continued_run_takes_the_same_steps(kind):
    data, net = drawn(kind, seed=4)
    whole = rf.flow(data, net, t_end=8.0, rtol=1e-9)
    part = rf.flow(data, net, t_end=3.0, rtol=1e-9)
    both = rf.flow(part, t_end=8.0, rtol=1e-9)
    np.testing.assert_allclose(both.final.flat().W, whole.final.flat().W, atol=1e-8)
    assert both.events["kind"].tolist() == whole.events["kind"].tolist()
    # inside steps events are dated by polynomials: half of them to 0.1 rtol, one in 100 to 10,
    # a flip that comes slowly to some hundred
    np.testing.assert_allclose(both.events["t"], whole.events["t"], rtol=1e-6)


def test_opposite_points_are_never_active_together():
    data, net = drawn("shared", seed=7)
    run = rf.flow(data, net, t_end=30.0)
    modes = run.kept["mode"]
    sliding = modes[..., 1] >= 2
    np.testing.assert_array_equal(modes[..., 1][~sliding], 1 - modes[..., 4][~sliding])
    np.testing.assert_array_equal(sliding, modes[..., 4] >= 2)
    np.testing.assert_array_equal(modes[..., 0], modes[..., 3])
