"""The collocation equations of a step, against dense solutions and the matrix exponential."""

import numpy as np
import pytest
from scipy.linalg import expm

import reluflow as rf
from kernels.flow.scene import (
    S,
    active_points,
    begun,
    carry_by_dense_solve,
    points_of,
    pulls_of,
    system_of,
)
from reluflow.engines.flow.tableau import FOUR, lagrange_matrix
from reluflow.kernels.flow.collocation import (
    SOFT,
    Guess,
    _newton,
    at_points,
    defects,
    node_outputs,
    settled,
    solve_margin,
    solve_square,
)
from reluflow.kernels.flow.forces import share_jacobian, shares, speeds
from reluflow.kernels.flow.forecast import linear_forces, rebent


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("shared", [False, True], ids=["points", "shared planes"])
@pytest.mark.parametrize("step", [0.01, 1.0, 6.0])
def test_node_outputs_equal_the_dense_solution(hidden, shared, step):
    for seed in range(4):
        at = begun(seed, hidden=hidden, shared=shared)
        X = points_of(at.problem.planes)
        c = 0.3 * np.random.default_rng(seed).normal(size=(S, len(X)))
        g = pulls_of(at, c)
        active = active_points(at.state.mode, at.problem.planes)
        h = np.zeros((S, len(X)))
        for j in range(len(at.state.a)):
            nodes, _ = carry_by_dense_solve(
                at.state.a[j], at.state.w[j], g[:, j], step, FOUR.tables.radau_a,
                FOUR.tables.radau_a[-1], hidden,
            )  # fmt: skip
            if at.classes.cid[j] >= 0:
                weight = at.neurons.weight[j]
                h += weight * np.where(active[j], nodes[:, :1] * (nodes[:, 1:] @ X.T), 0.0)
        out = node_outputs(c, system_of(at), step, FOUR.tables.radau_a)
        np.testing.assert_allclose(out, h, rtol=1e-10, atol=1e-10 * np.abs(h).max())


@pytest.mark.parametrize("hidden", [False, True])
def test_node_outputs_equal_the_exponential_for_constant_forces(hidden):
    at = begun(5, hidden=hidden, mixed=False)
    X = points_of(at.problem.planes)
    c, step = np.random.default_rng(5).normal(size=5), 0.04
    out = node_outputs(np.tile(c, (S, 1)), system_of(at), step, FOUR.tables.radau_a)
    h = np.zeros(5)
    for j in range(len(at.state.a)):
        a, w = at.state.a[j], at.state.w[j]
        active = X @ w > 0
        g = np.where(active, c, 0.0) @ X
        A = np.zeros((4, 4))
        A[1:, 0] = g
        if not hidden:
            A[0, 1:] = g
        end = expm(step * A) @ np.concatenate([[a], w])
        h += at.neurons.weight[j] * end[0] * np.where(active, X @ end[1:], 0.0)
    assert out[-1] == pytest.approx(h, rel=1e-11, abs=1e-12)


def test_sums_by_side_reach_the_points_of_that_side():
    at = begun(0, shared=True)
    planes = at.problem.planes
    side = np.random.default_rng(0).normal(size=(2, 2, len(planes.U)))
    out = at_points(side, planes)
    for i, p in enumerate(planes.owner):
        own = side[:, 1, p] if planes.length[i] > 0 else side[:, 0, p]
        np.testing.assert_allclose(out[:, i], planes.length[i] * own, rtol=1e-15)


# ---------------------------------------------------------------------- forecasts


def test_bend_is_interpolated_with_a_zero_at_the_start():
    rng = np.random.default_rng(1)
    p = np.concatenate([np.zeros((1, 3)), rng.normal(size=(4, 3))])
    values = np.polynomial.polynomial.polyval(FOUR.tables.radau, p).T
    expected = np.polynomial.polynomial.polyval(0.3 * FOUR.tables.radau, p).T
    np.testing.assert_allclose(rebent(values, FOUR.tables.nodes, 0.3), expected, atol=1e-13)


def test_linear_forces_are_those_of_the_matrix_exponential():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(5, 3))
    kernel, c0, times = root @ root.T, rng.normal(size=5), np.array([0.0, 0.4, 3.0])
    values, vectors = np.linalg.eigh(0.2 * kernel)
    drain = rng.normal(size=5)
    plain = linear_forces(c0, values, vectors, times, np.zeros(5))
    decaying = linear_forces(c0, values, vectors, times, drain)
    whole = np.zeros((6, 6))  # c' = -0.2 K c + drain, the last coordinate being one
    whole[:5, :5], whole[:5, 5] = -0.2 * kernel, drain
    for k, t in enumerate(times):
        np.testing.assert_allclose(plain[k], expm(-0.2 * t * kernel) @ c0, atol=1e-12)
        there = expm(t * whole) @ np.append(c0, 1.0)
        np.testing.assert_allclose(decaying[k], there[:5], atol=1e-12)


@pytest.mark.parametrize(
    ("size", "previous", "expected"),
    [
        (1e-9, np.inf, True),  # below the goal
        (1e-7, np.inf, False),
        (1e-6, 1e-2, True),  # contracts: leaves 1e-10
        (1e-3, 1e-2, False),
        (9e-15, 1e-14, True),  # rounding
        (1e-6, 1.1e-6, False),
    ],
)
def test_an_iteration_ends_at_its_goal_or_at_rounding(size, previous, expected):
    assert settled(size, previous, 1e-8 if size > 1e-12 else 1e-20, 1e-15) == expected


# ---------------------------------------------------------------------- solutions


def no_guess(at, goal=1e-13):
    none = np.zeros((S, at.problem.n))
    return Guess(none, 1.0, none, goal)


@pytest.mark.parametrize("stiff", [False, True])
def test_forces_of_the_square_loss_solve_their_equations(stiff):
    at = begun(3, shared=True)
    problem, step = at.problem, 0.02
    system = system_of(at, *at.eigen) if stiff else system_of(at)
    solved = solve_square(system, step, no_guess(at), FOUR.tables)
    assert solved.iterations
    h = node_outputs(solved.c, system, step, FOUR.tables.radau_a)
    np.testing.assert_allclose(problem.kappa * (problem.y - h), solved.c, rtol=0, atol=1e-12)
    np.testing.assert_allclose(h, solved.h, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss", [rf.losses.Exponential(), rf.losses.Logistic()])
@pytest.mark.parametrize("stiff", [False, True])
def test_outputs_of_a_classification_loss_solve_their_equations(loss, stiff):
    at = begun(3, loss)
    problem, step = at.problem, 0.02
    solved = solve_margin(system_of(at), step, stiff, no_guess(at), FOUR.tables)
    assert solved.iterations
    np.testing.assert_allclose(solved.c, problem.forces(solved.h), rtol=1e-10)
    h = node_outputs(solved.c, system_of(at), step, FOUR.tables.radau_a)
    np.testing.assert_allclose(h, solved.h, rtol=0, atol=1e-11)


def test_kinks_are_added_to_the_outputs():
    at = begun(3)
    problem, step = at.problem, 0.02
    kinks = 0.01 * np.random.default_rng(0).normal(size=(S, problem.n))
    guess = no_guess(at)._replace(kinks=kinks)
    solved = solve_square(system_of(at, *at.eigen), step, guess, FOUR.tables)
    h = node_outputs(solved.c, system_of(at), step, FOUR.tables.radau_a) + kinks
    np.testing.assert_allclose(problem.kappa * (problem.y - h), solved.c, rtol=0, atol=1e-12)


def test_defects_are_the_gap_at_the_start_and_the_largest_forces():
    at = begun(4, shared=True)
    c = np.random.default_rng(1).normal(size=(S, at.problem.n))
    defect, largest, fastest = defects(system_of(at), c, FOUR.tables.to_start)
    lengths = np.abs(at.problem.planes.length)
    there = lagrange_matrix(FOUR.tables.radau, np.array([0.0]))[0] @ c
    assert defect == pytest.approx((np.abs(there - at.c) * lengths).max(), rel=1e-12)
    top = np.maximum(np.abs(at.c), np.abs(c).max(axis=0))
    assert largest == pytest.approx((top * lengths).max(), rel=1e-14)
    expected = speeds(np.ascontiguousarray(c[-1]), at.classes, at.problem.planes).max()
    assert fastest == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("step", [30.0, 0.5, 1e-4])
def test_newton_of_a_classification_step_is_the_dense_solution_but_for_soft_points(logistic, step):
    """Points that answer by less than SOFT are left out: the rest is exact."""
    loss = rf.losses.Logistic() if logistic else rf.losses.Exponential()
    at = begun(5, loss)
    system, n = system_of(at), at.problem.n
    rng = np.random.default_rng(0)
    h = at.h + rng.normal(size=(4, n))
    h[:, 0] = 40.0 * at.problem.y[0]  # a margin whose share is nothing
    law = at.problem.law
    c = shares(h, at.problem.y, law)
    rhs = rng.normal(size=(4, n)) * at.kernel.any(axis=1)  # what nothing moves has no defect
    A = FOUR.tables.radau_a
    found = _newton(system, step, h, c, A, rhs)
    jacobians = [share_jacobian(h[k], c[k], at.problem.y, law) for k in range(4)]
    dense = np.eye(4 * n)
    for k in range(4):
        for q in range(4):
            block = step * A[k, q] * at.kernel @ jacobians[q]
            dense[k * n : (k + 1) * n, q * n : (q + 1) * n] += block
    true = np.linalg.solve(dense, rhs.ravel()).reshape(4, n)
    answers = step * np.abs(at.kernel).sum(axis=1) * np.abs(c)
    left_out = answers[answers <= SOFT].max(initial=0.0)
    assert left_out > 0.0
    np.testing.assert_allclose(found, true, rtol=0, atol=4.0 * n * left_out + 1e-11)
    if (answers <= SOFT).all():
        np.testing.assert_array_equal(found, rhs)
