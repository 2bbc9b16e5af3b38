"""Steps of the coupled flow: what is rejected, shortened, accepted, and told at crossroads."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.flow import step as coupled
from reluflow.engines.flow.controller import (
    Controller,
    Counters,
    StepFailedError,
    _forces_at,
)
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.redirect import redirect
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.engines.flow.tableau import FOUR
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE


def large_start(seed):
    """Data with a common mean and a wide network at scale 2: most neurons cross most planes."""
    data = rf.datasets.uncentred(24, seed=seed)
    return data, rf.networks.balanced(24, 120, log_scale=np.log(2.0), seed=seed + 1)


@pytest.mark.parametrize("seed", range(3))
def test_forces_at_the_end_of_a_stiff_step_are_those_it_was_solved_with(seed, monkeypatch):
    rtol, gaps, walked = 1e-4, [], 0
    plain = Controller.accept

    def watched(self, at, tried, following):
        nonlocal walked
        taken = plain(self, at, tried, following)
        if taken.stretch.step * at.stiffness > 1.0 and len(tried.events):
            c = self.problem.forces(taken.end.outputs(self.problem))
            gaps.append(np.abs(c - taken.stretch.c[-1]).max() / np.abs(taken.stretch.c).max())
            walked += len(tried.events)
        return taken

    monkeypatch.setattr(Controller, "accept", watched)
    data, net = large_start(seed)
    run = rf.flow(data, net, loss=rf.losses.Square("1/n"), rtol=rtol, stop_loss=1e-9)
    assert run.status == "stop_loss"
    assert len(gaps) >= 10
    assert walked >= 100
    # neurons that leave their rows just before the end of a step are not given back
    assert np.median(gaps) <= 0.1 * rtol
    assert max(gaps) <= 10.0 * rtol


@pytest.mark.parametrize("seed", range(3))
def test_a_large_start_does_not_depend_on_the_tolerance(seed):
    data, net = large_start(seed)
    ends = [
        rf.flow(data, net, loss=rf.losses.Square("1/n"), rtol=rtol, t_end=200.0).final
        for rtol in (1e-4, 1e-8)
    ]
    coarse, fine = (np.column_stack([e.flat().a, e.flat().W]) for e in ends)
    assert np.abs(coarse - fine).max() <= 1e-2 * np.abs(fine).max()
    np.testing.assert_allclose(ends[0].predict(data.X), ends[1].predict(data.X), atol=1e-3)


# ---------------------------------------------------------------------- single steps


def begun(seed=0, rtol=1e-6, m=6, scale=1.0):
    """A controller and the start of its first step."""
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    net = rf.Network(scale * rng.normal(size=m), scale * rng.normal(size=(m, 3)))
    problem = Problem(data, net, rf.losses.Square(), "both")
    controller = Controller(problem, rtol, Counters(), EventLog())
    state = start(problem)
    state.step = controller.pace.first()
    return controller, begin_at(problem, state)


def test_a_step_moves_the_clock_and_is_counted():
    controller, at = begun()
    taken = controller.advance(at, np.inf)
    assert taken.end.clock == at.state.clock + taken.stretch.step
    assert taken.stretch.step <= at.state.step
    assert controller.counters.steps == 1
    assert controller.counters.evaluations >= 1
    assert at.state.clock == 0.0  # the start is left as it was


def test_a_step_is_at_most_its_limit():
    controller, at = begun()
    limit = 0.3 * at.state.step
    assert controller.advance(at, limit).stretch.step == pytest.approx(limit)


def test_a_step_much_too_long_is_rejected_until_it_is_accurate():
    controller, at = begun()
    at.state.step = 1e6
    taken = controller.advance(at, np.inf)
    assert controller.counters.rejected >= 1
    assert taken.stretch.error <= 1.0


def test_tighter_tolerances_take_shorter_steps():
    sizes = []
    for rtol in (1e-4, 1e-7, 1e-10):
        controller, at = begun(rtol=rtol)
        at.state.step = 1.0
        sizes.append(controller.advance(at, np.inf).stretch.step)
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_step_that_cannot_be_solved_fails_with_its_reason(monkeypatch):
    controller, at = begun()
    nothing = coupled.Attempt(None, None, np.empty((0, 5)))
    monkeypatch.setattr(coupled, "attempt", lambda *_: nothing)
    with pytest.raises(StepFailedError, match="meets the tolerance"):
        controller.advance(at, np.inf)


def test_a_heavy_crossing_deep_inside_a_step_shortens_it():
    """A single neuron that is the whole output crosses a plane: the step ends near its crossing."""
    data = rf.Dataset([[1.0, 0.0], [0.6, 0.8]], [4.0, 1.0])
    net = rf.Network([1.0], [[-0.05, 1.0]])
    problem = Problem(data, net, rf.losses.Square(), "both")
    controller = Controller(problem, 1e-8, Counters(), EventLog())
    state = start(problem)
    state.step = 0.5
    reached = []
    for _ in range(60):
        taken = controller.advance(begin_at(problem, state), np.inf)
        reached.append(taken)
        state = taken.end
        if len(controller.log):
            break
    assert len(controller.log) == 1
    last = reached[-1]
    assert last.end.mode[0, 0] == ABOVE
    # what the outputs miss of the kink, size (q boost)^2 / 2, is far below the tolerance
    z = last.end.w[0] @ problem.planes.U[0]
    assert 0.0 <= z <= 1e-3


# ---------------------------------------------------------------------- crossroads


def at_origin(X, y, a, train="hidden"):
    """A problem and its state with one neuron at w = 0, and the forces there."""
    problem = Problem(rf.Dataset(X, y), rf.Network([a], [[0.0, 0.0]]), rf.losses.Square(), train)
    state = start(problem)
    return problem, state, problem.forces(state.outputs(problem))


CROSS = [[1.0, 0.0], [-0.6, 0.8], [-0.6, -0.8]]


def test_a_start_at_the_origin_pushed_back_from_all_sides_rests():
    problem, state, c = at_origin(CROSS, [-1.0, -1.0, -1.0], 1.0)
    log = EventLog()
    redirect(problem, state, c, 0, log)
    assert state.mode[0].tolist() == [SLIDE] * 3
    assert len(log) == 3


def test_a_start_at_the_origin_that_all_pull_leaves_it():
    problem, state, c = at_origin(CROSS, [1.0, -0.1, -0.1], 1.0)
    log = EventLog()
    redirect(problem, state, c, 0, log)
    assert state.mode[0].tolist() == [ABOVE, BELOW, BELOW]


def test_a_neuron_off_all_planes_is_left_alone():
    problem, state, c = at_origin(CROSS, [1.0, 1.0, 1.0], 1.0)
    state.w[0] = [1.0, 0.3]
    state.mode[0] = [1, 0, 0]
    log = EventLog()
    redirect(problem, state, c, 0, log)
    assert state.mode[0].tolist() == [1, 0, 0]
    assert len(log) == 0


def test_a_start_from_which_both_sides_push_away_is_a_branch():
    # on the plane of e_1, which repels; the other point pulls down by half of its force
    X, y = [[1.0, 0.0], [-0.5, 1.0]], [1.0, 1.0]
    problem = Problem(
        rf.Dataset(X, y), rf.Network([1.0], [[0.0, 1e-3]]), rf.losses.Square(), "both"
    )
    state = start(problem)
    log = EventLog()
    c = problem.forces(state.outputs(problem))
    redirect(problem, state, c, 0, log)
    log.date(lambda clock: (clock, clock))
    assert [str(e["kind"]) for e in log.array(problem.planes)] == ["branch"]
    assert state.mode[0].tolist() == [BELOW, ABOVE]


@pytest.mark.parametrize("train", ["both", "hidden"])
def test_a_neuron_that_nothing_moves_keeps_its_modes(train):
    # a = 0 with w = 0, or for ever: no force on it
    problem, state, c = at_origin(CROSS, [1.0, 1.0, 1.0], 0.0, train)
    log = EventLog()
    redirect(problem, state, c, 0, log)
    assert state.mode[0].tolist() == [BELOW] * 3
    assert len(log) == 0


@pytest.mark.parametrize("tau", [0.0, *FOUR.tables.radau])
def test_forces_inside_a_step_pass_through_its_start_and_its_nodes(tau):
    _, at = begun()
    tried = coupled.attempt(
        at, 0.05, 1e-8, FOUR, None, coupled.limits_of(at, 1e-8, 1e-8, 0.0, 0.0, 1e-8),
        np.zeros(len(at.classes.face), bool), True,
    )  # fmt: skip
    known = dict(zip([0.0, *FOUR.tables.radau], [at.c, *tried.stretch.c], strict=True))
    np.testing.assert_allclose(
        _forces_at(at, tried.stretch, tau, 0), known[tau], rtol=0, atol=1e-13
    )
