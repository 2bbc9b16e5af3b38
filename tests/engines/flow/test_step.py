"""Solved steps of the coupled flow: they give back their forces, and say what they missed."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reluflow as rf
from kernels.flow.scene import active_points, begun, nobody_sure, points_of
from reluflow.engines.flow import step as coupled
from reluflow.engines.flow.tableau import FOUR, SIX
from reluflow.kernels.flow.collocation import node_outputs

LOSSES = [rf.losses.Square(), rf.losses.Exponential(), rf.losses.Logistic()]
methods = pytest.mark.parametrize("method", [FOUR, SIX], ids=["four", "six"])


def solve(at, step, rtol, longer=None, method=FOUR):
    """One solved step in which no event may lie."""
    limits = coupled.limits_of(at, rtol, rtol, 0.0, 0.0, rtol)
    return coupled.attempt(at, step, rtol, method, longer, limits, nobody_sure(at), False)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
@pytest.mark.parametrize("step", [1e-6, 0.02, 0.1])
@methods
def test_a_solved_step_gives_back_its_forces(loss, hidden, shared, step, method):
    at = begun(3, loss, hidden, shared)
    stretch = solve(at, step, 1e-9, method=method).stretch
    h = node_outputs(stretch.c, at.system, step, method.tables.radau_a)
    np.testing.assert_allclose(at.problem.forces(h), stretch.c, rtol=0, atol=1e-11)
    np.testing.assert_allclose(h, stretch.h, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@methods
def test_a_longer_step_spares_iterations_of_a_shorter_one(loss, method):
    at = begun(4, loss)
    longer = solve(at, 0.4, 1e-9, method=method).stretch
    alone = solve(at, 0.24, 1e-9, method=method).stretch
    helped = solve(at, 0.24, 1e-9, longer, method).stretch
    np.testing.assert_allclose(helped.c, alone.c, rtol=0, atol=1e-11)
    assert helped.iterations < alone.iterations


def test_a_step_far_too_long_is_given_up():
    at = begun(3)
    tried = solve(at, 1e5, 1e-9)
    assert tried.moved is None
    assert tried.stretch is None or tried.stretch.error > 1.0


@methods
def test_the_error_of_a_step_falls_with_its_size(method):
    at = begun(6, mixed=False)
    steps = (0.4, 0.2, 0.1, 0.05)
    errors = [solve(at, step, 1e-9, method=method).stretch.error for step in steps]
    assert all(b < 0.1 * a for a, b in pairwise(errors))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
@methods
def test_a_step_without_events_is_that_of_an_adaptive_solver(hidden, shared, method):
    compared = 0
    for seed in range(8):
        at = begun(seed, hidden=hidden, shared=shared, mixed=False)
        problem, state = at.problem, at.state
        step = 0.05
        moved = solve(at, step, 1e-6, method=method).moved
        if moved is None or not moved.whole:
            continue
        X, m = points_of(problem.planes), len(state.a)
        active = active_points(state.mode, problem.planes)
        weight = np.exp(2.0 * state.sigma)

        def field(_, v, X=X, m=m, active=active, weight=weight, problem=problem):
            a, W = v[:m], v[m:].reshape(m, -1)
            z = np.where(active, W @ X.T, 0.0)
            c = problem.kappa * (problem.y - (weight * a) @ z)
            g = np.where(active, c, 0.0) @ X
            return np.append(np.zeros(m) if hidden else z @ c, (a[:, None] * g).ravel())

        begin = np.append(state.a, state.w.ravel())
        end = solve_ivp(field, (0.0, step), begin, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        np.testing.assert_allclose(np.append(moved.a, moved.w.ravel()), end, atol=1e-8)
        compared += 1
    assert compared >= 3
