"""A neuron of a class and alone, and the balance that is held, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from kernels.flow.scene import S
from reluflow.engines.flow.tableau import FOUR
from reluflow.kernels.flow.transport import (
    balance_of,
    class_matrices,
    damped,
    damped_end,
    hold,
    slopes,
    slopes_alone,
)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("step", [1e-3, 0.7])
def test_a_neuron_alone_is_carried_as_in_its_class(hidden, step):
    rng = np.random.default_rng(8)
    g, w, a = rng.normal(size=(S, 3)), rng.normal(size=3), 0.7
    b = g @ w
    method = damped(FOUR.tables.gauss_a, step, 0.0)
    matrices = class_matrices(g[None], method, hidden)
    shared, alone = np.empty((2, S)), np.empty((2, S))
    slopes(a, b, matrices, 0, method, hidden, shared)
    slopes_alone(a, b, g @ g.T, step, FOUR.tables.gauss_a, hidden, alone[0], alone[1])
    np.testing.assert_allclose(alone, shared, rtol=1e-12)


@pytest.mark.parametrize("hidden", [False, True])
def test_slopes_satisfy_the_collocation_equations(hidden):
    rng = np.random.default_rng(5)
    g, w, a, step = rng.normal(size=(S, 3)), rng.normal(size=3), -0.4, 0.9
    value, slope = np.empty((2, S))
    slopes_alone(a, g @ w, g @ g.T, step, FOUR.tables.gauss_a, hidden, value, slope)
    there = w + step * FOUR.tables.gauss_a @ (value[:, None] * g)
    np.testing.assert_allclose(value, a + step * FOUR.tables.gauss_a @ slope, rtol=1e-13)
    expected = np.zeros(S) if hidden else np.einsum("kd,kd->k", there, g)
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-13)


# ---------------------------------------------------------------------- weight decay


@pytest.mark.parametrize("rate", [0.3, 2.0, 15.0])
def test_with_decay_slopes_satisfy_the_collocation_equations(rate):
    """``a' = w.g - mu a, w' = a g - mu w``, written out for all stages at once."""
    rng = np.random.default_rng(6)
    g, w, a, step = rng.normal(size=(S, 3)), rng.normal(size=3), -0.4, 0.9
    decay, A, b = rate / step, FOUR.tables.gauss_a, FOUR.tables.gauss_b
    method = damped(A, step, decay)
    out = np.empty((2, S))
    slopes(a, g @ w, class_matrices(g[None], method, False), 0, method, False, out)
    value, force = out
    there = method.start[:, None] * w + step * method.A @ (value[:, None] * g)
    np.testing.assert_allclose(force, np.einsum("kd,kd->k", there, g), rtol=1e-11)
    np.testing.assert_allclose(value, a + step * A @ (force - decay * value), rtol=1e-11)
    dw = value[:, None] * g - decay * there
    np.testing.assert_allclose(there, w + step * A @ dw, rtol=1e-11)
    keep, weights = damped_end(method, b, decay)
    growth = np.exp(rate)
    end = a + step * b @ (force - decay * value)
    assert keep * a + step * weights @ force == pytest.approx(growth * end, rel=1e-11)
    end = w + step * b @ dw
    found = keep * w + step * weights @ (value[:, None] * g)
    np.testing.assert_allclose(found, growth * end, rtol=1e-10)


def test_a_neuron_that_grows_as_fast_as_it_decays_stays():
    g = np.tile([0.6, 0.0, 0.8], (S, 1))
    for step in (0.1, 1.0, 19.0):
        method = damped(FOUR.tables.gauss_a, step, 1.0)
        out = np.empty((2, S))
        slopes(2.0, 2.0 * np.ones(S), class_matrices(g[None], method, False), 0, method, False, out)
        np.testing.assert_allclose(out, 2.0, rtol=1e-12)
        keep, weights = damped_end(method, FOUR.tables.gauss_b, 1.0)
        end = keep * 2.0 + step * weights @ out[1]
        assert end == pytest.approx(2.0 * np.exp(step), rel=1e-12)


# ---------------------------------------------------------------------- the balance


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-100, 1e-30, 1e-8, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("turn", [-1.0, 1.0])
def test_balance_is_restored_whatever_its_share_of_the_weights(size, sign, turn):
    rng = np.random.default_rng(3)
    w = rng.normal(size=3)
    balance = sign * size * (w @ w)
    # the two layers after a step, off by rounding
    norm = np.linalg.norm(w)
    a = turn * np.sqrt(max(norm**2 + balance, 0.0)) * (1.0 + 3e-16)
    before, direction = (a, w.copy()), w / norm
    a = hold(a, w, balance)
    with mp.workdps(700):
        exact = [mp.mpf(v) for v in w]
        gap = mp.mpf(a) ** 2 - sum(v * v for v in exact)
        # to rounding of the weights: what is larger follows from what is smaller
        assert abs(gap - mp.mpf(balance)) <= 8e-16 * (w @ w)
    assert np.sign(a) == np.sign(before[0])
    np.testing.assert_allclose(w / np.linalg.norm(w), direction, atol=4e-16)
    if sign >= 0.0:
        np.testing.assert_array_equal(w, before[1])
    else:
        assert a == before[0]


@pytest.mark.parametrize("size", [1e-290, 1e-100, 1e-12])
def test_the_smaller_layer_decides_where_the_balance_dominates(size):
    # |w| far below |a|, then |a| far below |w|: no cancellation, full relative precision
    w = size * np.array([0.6, 0.8])
    assert hold(-1.0, w, 1.0) == -1.0
    np.testing.assert_array_equal(w, size * np.array([0.6, 0.8]))
    w = np.array([0.6, 0.8]) * (1.0 + 1e-9)
    assert hold(size, w, -1.0) == size
    np.testing.assert_allclose(w, [0.6, 0.8], rtol=4e-16)


def test_a_balanced_neuron_has_equal_layers():
    w = np.array([3.0, 4.0])
    assert hold(-5.0 - 1e-9, w, 0.0) == -5.0
    w = np.zeros(2)
    assert hold(1e-20, w, 0.0) == 0.0


def test_a_neuron_without_hidden_weights_stays_there():
    w = np.zeros(2)
    assert hold(0.5, w, -1.0) == 0.5
    np.testing.assert_array_equal(w, np.zeros(2))
    assert hold(-0.5, w, 4.0) == -2.0


def test_the_balance_scales_with_the_square_of_the_scale():
    assert balance_of(0.0, -np.inf, 5.0) == 0.0
    assert balance_of(-1.0, np.log(3.0), 0.5) == pytest.approx(-3.0 * np.exp(-1.0))
    assert balance_of(1.0, -2e6, -1e6) == 1.0
    assert np.isfinite(balance_of(1.0, 0.0, -1e6))
    assert balance_of(1.0, -2e6, 1e6) == 0.0
