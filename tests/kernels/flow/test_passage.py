"""One neuron through parts of a step: against dense collocation and an adaptive solver."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from kernels.flow.scene import S, carry_by_dense_solve, path_of
from reluflow.engines.flow.tableau import FOUR, lagrange_matrix
from reluflow.kernels.flow.passage import (
    combine,
    denominators,
    moment_of_flip,
    passage,
    pull_on,
    slopes_at,
    weights_at,
)

NODES = FOUR.tables.nodes


def drawn(seed, hidden=False, step=1.0, d=3):
    """A neuron, its pulls at the nodes, and a path that has them (of no forces)."""
    rng = np.random.default_rng(seed)
    g = NODES[:, None] ** np.arange(3) @ (0.5 * rng.normal(size=(3, d)))
    a, w = rng.normal(), rng.normal(size=d)
    none = np.zeros((S + 1, 1))
    push = np.ascontiguousarray(g @ rng.normal(size=(d, 4)))
    return a, w, g, push, path_of(none, none, step, hidden)


def exact(a, w, g, path, start, end):
    """``(a, w)`` at ``end`` of a neuron that is (a, w) at ``start``, in the interpolated pull."""

    def field(s, v):
        pull = lagrange_matrix(path.nodes, np.array([s]))[0] @ g * path.step
        return np.append(0.0 if path.hidden else v[1:] @ pull, v[0] * pull)

    run = solve_ivp(field, (start, end), np.append(a, w), "DOP853", rtol=1e-13, atol=1e-14)
    return run.y[0, -1], run.y[1:, -1]


def test_denominators_are_those_of_the_lagrange_polynomials():
    gaps = NODES[:, None] - NODES[None, :] + np.eye(S + 1)
    np.testing.assert_allclose(denominators(NODES), 1.0 / gaps.prod(axis=1), rtol=1e-14)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("nodes", [FOUR.tables.nodes, FOUR.tables.radau], ids=["start", "late"])
def test_values_inside_a_step_are_those_of_the_interpolant(tau, nodes):
    values = np.random.default_rng(2).normal(size=(len(nodes), 3))
    weights, out = np.empty(len(nodes)), np.zeros(3)
    weights_at(path_of(values, values, nodes=nodes), tau, weights)
    combine(weights, values, out)
    expected = [np.polyval(np.polyfit(nodes, column, len(nodes) - 1), tau) for column in values.T]
    np.testing.assert_allclose(out, expected, atol=1e-11)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("nodes", [FOUR.tables.nodes, FOUR.tables.radau], ids=["start", "late"])
def test_slopes_inside_a_step_are_those_of_the_interpolant(tau, nodes):
    values, weights = np.random.default_rng(3).normal(size=len(nodes)), np.empty(len(nodes))
    slopes_at(path_of(values[:, None], values[:, None], nodes=nodes), tau, weights)
    curve = np.polyder(np.polyfit(nodes, values, len(nodes) - 1))
    np.testing.assert_allclose(weights @ values, np.polyval(curve, tau), atol=1e-10)


def test_products_of_pulls_are_those_of_the_vectors():
    _, w, g, push, _ = drawn(0)
    pull = pull_on(w, g, push)
    np.testing.assert_allclose(pull.along, g @ w, rtol=1e-13)
    np.testing.assert_allclose(pull.products, g @ g.T, rtol=1e-13)
    np.testing.assert_array_equal(pull.products, pull.products.T)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (0.2, 0.9), (0.5, 0.5)])
@pytest.mark.parametrize("step", [0.3, 5.0])
def test_a_passage_is_the_dense_solution_of_its_collocation(hidden, start, end, step):
    for seed in range(4):
        a, w, g, push, path = drawn(seed, hidden, step)
        moved = passage(start, end, a, pull_on(w, g, push), path, FOUR.tables)
        at = start + FOUR.tables.gauss * (end - start)
        there = lagrange_matrix(NODES, at) @ g
        nodes, last = carry_by_dense_solve(
            a, w, there, (end - start) * step, FOUR.tables.gauss_a, FOUR.tables.gauss_b, hidden
        )
        size = np.abs(last).max()
        np.testing.assert_allclose(moved.value, nodes[:, 0], atol=1e-12 * size)
        np.testing.assert_allclose(
            np.append(moved.a, w + moved.share @ g), last, atol=1e-12 * size
        )  # fmt: skip


def test_a_passage_solves_the_neuron_equation_at_order_nine():
    gaps = []
    for end in (0.4, 0.2):  # parts of one step: the pull is the same
        worst = 0.0
        for seed in range(8):
            a, w, g, push, path = drawn(seed, step=2.0)
            moved = passage(0.0, end, a, pull_on(w, g, push), path, FOUR.tables)
            exact_a, exact_w = exact(a, w, g, path, 0.0, end)
            mine = np.append(moved.a, w + moved.share @ g)
            worst = max(worst, np.abs(mine - np.append(exact_a, exact_w)).max())
        gaps.append(worst)
    assert gaps[0] > 1e-9
    # local error of Gauss collocation with S = 4 stages
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(9.0, abs=1.0)


def test_a_passage_keeps_the_balance_to_rounding_whatever_the_step():
    for step in (0.1, 3.0, 20.0):
        a, w, g, push, path = drawn(3, step=step)
        moved = passage(0.1, 0.8, a, pull_on(w, g, push), path, FOUR.tables)
        after = w + moved.share @ g
        size = moved.a**2 + after @ after
        assert moved.a**2 - after @ after == pytest.approx(a * a - w @ w, abs=1e-13 * size)


def test_two_passages_make_one():
    a, w, g, push, path = drawn(5, step=0.1)
    whole = passage(0.0, 1.0, a, pull_on(w, g, push), path, FOUR.tables)
    half = passage(0.0, 0.4, a, pull_on(w, g, push), path, FOUR.tables)
    w_half = w + half.share @ g
    rest = passage(0.4, 1.0, half.a, pull_on(w_half, g, push), path, FOUR.tables)
    assert rest.a == pytest.approx(whole.a, abs=1e-10)
    np.testing.assert_allclose(w_half + rest.share @ g, w + whole.share @ g, atol=1e-10)


@pytest.mark.parametrize("start", [0.0, 0.15])
def test_the_moment_of_a_flip_is_where_the_output_weight_vanishes(start):
    found = 0
    for seed in range(60):
        a, w, g, push, path = drawn(seed)
        a *= 0.1
        pull = pull_on(w, g, push)
        at = np.linspace(start, 1.0, 201)[1:]
        signs = [passage(start, tau, a, pull, path, FOUR.tables).a * a > 0 for tau in at]
        if all(signs) or not start + 0.1 < at[signs.index(False)] < 0.95:
            continue
        guess = at[signs.index(False)]
        tau = moment_of_flip(guess, start, a, pull, path, FOUR.tables)
        assert tau == pytest.approx(guess, abs=0.01)
        assert passage(start, tau, a, pull, path, FOUR.tables).a == pytest.approx(0.0, abs=1e-13)
        assert exact(a, w, g, path, start, tau)[0] == pytest.approx(0.0, abs=1e-6)
        found += 1
    assert found >= 10
