"""Explicit pairs: conditions of order over all trees, stability, dense output."""

from __future__ import annotations

import numpy as np
import pytest

from reluflow.engines.flow.pairs import LEAN, STABLE
from reluflow.engines.flow.tableau import FOUR

PAIRS = {"lean": (LEAN, 5), "stable": (STABLE, 4)}


def table(pair):
    A = np.zeros((len(pair.nodes), len(pair.nodes)))
    A[1:, :-1] = pair.table
    return A


def trees(order):
    """Rooted trees with ``order`` nodes, each the sorted tuple of its branches."""
    if order == 1:
        return [()]
    return sorted({grown for tree in trees(order - 1) for grown in _with_a_leaf(tree)})


def _with_a_leaf(tree):
    yield tuple(sorted((*tree, ())))
    for k, branch in enumerate(tree):
        for grown in _with_a_leaf(branch):
            yield tuple(sorted((*tree[:k], grown, *tree[k + 1 :])))


def size(tree):
    return 1 + sum(size(branch) for branch in tree)


def density(tree):
    return size(tree) * np.prod([density(branch) for branch in tree], initial=1)


def weight(tree, A):
    """What the stages make of the elementary differential of a tree."""
    value = np.ones(len(A))
    for branch in tree:
        value = value * (A @ weight(branch, A))
    return value


def test_there_are_as_many_trees_as_known():
    assert [len(trees(order)) for order in range(1, 6)] == [1, 1, 2, 4, 9]


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_have_their_orders(name):
    pair, order = PAIRS[name]
    A = table(pair)
    np.testing.assert_allclose(A.sum(axis=1), pair.nodes, atol=1e-14)
    for q in range(1, order + 1):
        for tree in trees(q):
            assert pair.weights @ weight(tree, A) == pytest.approx(1 / density(tree), abs=1e-13)
    more = [abs(pair.weights @ weight(t, A) - 1 / density(t)) for t in trees(order + 1)]
    assert max(more) > 1e-5


@pytest.mark.parametrize("name", PAIRS)
def test_the_difference_sees_nothing_below_its_order(name):
    pair, _ = PAIRS[name]
    A = table(pair)
    seen = [[abs(pair.gap @ weight(t, A)) for t in trees(q)] for q in range(1, pair.order + 1)]
    assert max(map(max, seen[:-1])) < 1e-13
    assert max(seen[-1]) > 1e-5


@pytest.mark.parametrize("name", PAIRS)
def test_dense_output_has_order_four(name):
    pair, _ = PAIRS[name]
    A = table(pair)
    for theta, row in zip(FOUR.tables.radau[:-1], pair.inside, strict=True):
        for q in range(1, 5):
            for tree in trees(q):
                expected = theta**q / density(tree)
                assert row @ weight(tree, A) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", PAIRS)
def test_the_last_two_stages_are_at_the_end(name):
    """Their difference shows the fastest rate; the last is the end itself."""
    pair, _ = PAIRS[name]
    np.testing.assert_allclose(pair.nodes[-2:], 1.0, atol=1e-14)
    np.testing.assert_array_equal(pair.weights[:-1], pair.table[-1])


def growth(pair, z):
    """The factor of a mode of rate ``z`` over one step, by the stages themselves."""
    A = table(pair)
    slopes = np.linalg.solve(np.eye(len(A)) - z * A, z * np.ones(len(A)))
    return 1.0 + pair.weights @ slopes


@pytest.mark.parametrize(("name", "reach"), [("lean", 3.3), ("stable", 14.2)])
def test_steps_are_stable_to_their_border_and_beyond(name, reach):
    pair, _ = PAIRS[name]
    assert pair.border < 0.8 * reach
    assert max(abs(growth(pair, -z)) for z in np.linspace(0.01, reach, 2000)) < 1.0
    assert abs(growth(pair, -1.1 * reach)) > 1.0


def test_stable_steps_damp_fast_modes_and_keep_slow_ones():
    damped = [abs(growth(STABLE, -z)) for z in np.linspace(LEAN.border, STABLE.border, 500)]
    assert max(damped) < 0.95
    for z in (0.05, -0.05, -0.2):
        assert growth(STABLE, z) == pytest.approx(np.exp(z), abs=abs(z) ** 5)


@pytest.mark.parametrize("name", PAIRS)
def test_cubics_and_parabolas_of_speeds_are_exact(name):
    pair, _ = PAIRS[name]
    t = pair.nodes[list(pair.path)]
    cubic = 1.0 - 2.0 * t + 3.0 * t**2 - 4.0 * t**3
    np.testing.assert_allclose(pair.fit @ cubic, [1.0, -2.0, 3.0, -4.0], atol=1e-10)
    np.testing.assert_allclose(pair.rise @ cubic, [1.0, -1.0, 1.0, -1.0], atol=1e-10)
    parabola = 1.0 - 2.0 * t + 3.0 * t**2
    np.testing.assert_allclose(pair.rough_rise @ parabola, [1.0, -1.0, 1.0], atol=1e-10)
