"""The compiled descent beside its readable twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow.kernels.descent import gram, weights
from reluflow.kernels.descent.forces import EXPONENTIAL, LOGISTIC, SQUARE, forces
from reluflow.kernels.descent.patterns import (
    Problem,
    fourth_power,
    label_classes,
    neurons,
    workspace,
)
from reluflow.losses import Exponential, Logistic, Square

MARGINS = [-800.0, -30.0, -1.0, 0.0, 1e-12, 2.0, 29.9, 30.1, 700.0, 1e4, 1e7]


def keys(n):
    return np.random.default_rng(0).integers(1, 2**63, n).astype(np.uint64)


def make(n=9, d=6, m=14, seed=0, *, lr=0.1, hidden=False, scale=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    problem = Problem(
        X=X,
        XT=np.ascontiguousarray(X.T),
        y=rng.normal(size=n),
        inverse_lengths=1 / np.linalg.norm(X, axis=1),
        keys=keys(n),
        loss=SQUARE,
        shares=False,
        kappa=1 / n,
        lr=lr,
        hidden=hidden,
    )
    a, W = scale * rng.normal(size=m), scale * rng.normal(size=(m, d))
    return problem, a, W, np.zeros(m, np.int64)


def twin_step(problem, a, W, e):
    """One step on mantissas, class by class as the kernel does, in NumPy."""
    scale = np.ldexp(1.0, np.maximum(2 * e, -1074)) * (2 * e >= -1060)
    rows, label = np.unique(problem.X @ W.T > 0, axis=1, return_inverse=True)
    label = label.ravel()
    h = np.zeros(len(problem.y))
    for r, row in enumerate(rows.T):
        v = (scale * a * (label == r)) @ W
        h += row * (problem.X @ v)
    c = problem.kappa * (problem.y - h)
    G = (rows.T * c) @ problem.X
    step = problem.lr * a[:, None] * G[label]
    return a + problem.lr * (G[label] * W).sum(axis=1) * (not problem.hidden), W + step


# ------------------------------------------------------------------------------ forces


@pytest.mark.parametrize(("number", "loss"), [(EXPONENTIAL, Exponential()), (LOGISTIC, Logistic())])
def test_margin_forces_equal_the_losses(number, loss):
    q = np.array(MARGINS)
    y = np.where(np.arange(len(q)) % 2, 1.0, -1.0)
    c = np.empty_like(q)
    for lowest in (0, 2, 8):  # with and without the margins that dominate
        h, labels, out = (q * y)[lowest:], y[lowest:], c[lowest:]
        assert forces(number, False, 1.0, h, labels, out) == pytest.approx(
            loss.log_value(h, labels), rel=1e-14
        )
        if lowest:
            np.testing.assert_allclose(out, loss.forces(h, labels), rtol=1e-13)
        forces(number, True, 1.0, h, labels, out)
        np.testing.assert_allclose(out, labels * loss.shares(labels * h), rtol=1e-13)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_square_forces_equal_the_loss_at_any_size(size):
    rng = np.random.default_rng(0)
    h, y, c = size * rng.normal(size=5), size * rng.normal(size=5), np.empty(5)
    loss = Square("1/n")
    assert forces(SQUARE, False, loss.kappa(5), h, y, c) == pytest.approx(
        loss.log_value(h, y), rel=1e-14, abs=1e-14
    )
    np.testing.assert_array_equal(c, loss.forces(h, y))
    assert forces(SQUARE, False, 1.0, y, y, c) == -math.inf


@pytest.mark.parametrize("number", [SQUARE, EXPONENTIAL, LOGISTIC])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_are_an_infinite_loss(number, bad):
    h, y = np.array([0.0, bad, 0.0]), np.array([0.0, 1.0, 0.0])
    assert forces(number, False, 1.0, h, y, np.empty(3)) == math.inf


# ------------------------------------------------------------------------------ classes


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_neurons_are_labelled_in_order_of_appearance(kinds):
    m = len(kinds)
    code = keys(7)[kinds]
    code[np.array(kinds) == 0] = 0  # the hash of a neuron active nowhere
    table = np.zeros(1 << (2 * m).bit_length(), np.int64)
    first, label = np.zeros(m, np.int64), np.zeros(m, np.int64)
    count = label_classes(code, table, first, label)
    seen = list(dict.fromkeys(kinds))
    assert count == len(seen)
    assert [seen.index(kind) for kind in kinds] == list(label)
    assert [kinds.index(kind) for kind in seen] == list(first[:count])


def test_powers_of_four():
    assert fourth_power(0) == 1.0
    assert fourth_power(-530) == 2.0**-1060
    assert fourth_power(-531) == 0.0
    assert fourth_power(511) == 2.0**1022
    assert fourth_power(512) == math.inf


# ------------------------------------------------------------------------------ steps


@pytest.mark.parametrize("hidden", [False, True])
def test_steps_equal_the_twin(hidden):
    problem, a, W, e = make(hidden=hidden)
    work = workspace(problem, a, W, e)
    for k in range(50):
        a, W = twin_step(problem, a, W, e)
        assert weights.run(problem, work, k, 1, np.nan, np.inf)[:2] == (weights.DONE, k + 1)
        got_a, got_W, _ = neurons(work)
        np.testing.assert_allclose(got_a, a, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(got_W, W, rtol=1e-12, atol=1e-14)


@given(seed=st.integers(0, 10**6), lr=st.sampled_from([0.01, 0.3, 1.0]))
def test_remembered_patterns_are_those_of_the_weights(seed, lr):
    """The slack of a neuron never hides a sign change."""
    problem, a, W, e = make(n=12, d=3, m=10, seed=seed, lr=lr)
    work = workspace(problem, a, W, e)
    changes, before = 0, None
    for k in range(0, 60, 2):
        outcome, *_ = weights.run(problem, work, k, 2, np.nan, 1e3)
        if outcome != weights.DONE:
            break
        _, W, _ = neurons(work)
        P = W @ problem.X.T
        sure = np.abs(P) > 1e-12 * np.abs(W).max()
        assert ((work.signs > 0) == (P > 0))[sure].all()
        changes += before is not None and (before != (P > 0)).any()
        before = P > 0
        # classes: equal rows, members in rising order
        for r in range(work.classes[0]):
            members = work.order[work.start[r] : work.start[r + 1]]
            assert (np.diff(members) > 0).all()
            assert (work.signs[members] == work.signs[work.first[r]]).all()
        assert work.start[work.classes[0]] == len(a)
    assert changes or lr < 0.1 or k < 10


def test_a_pattern_does_not_depend_on_the_neurons_tested_with_it():
    """On a boundary a product is rounding noise, and matrix products of other shapes round so."""
    problem, a, W, e = make(n=9, d=37, m=150)
    x = problem.X[0]
    W -= np.outer(W @ x, x) / (x @ x)
    together = workspace(problem, a, W, e)
    weights.run(problem, together, 0, 0, np.nan, np.inf)
    for j in range(len(a)):
        alone = workspace(problem, a[j : j + 1], W[j : j + 1], e[j : j + 1])
        weights.run(problem, alone, 0, 0, np.nan, np.inf)
        assert np.array_equal(alone.signs[0], together.signs[j])


@pytest.mark.parametrize("hidden", [False, True])
def test_a_run_in_pieces_is_the_run_bitwise(hidden):
    problem, a, W, e = make(n=30, d=8, m=40, hidden=hidden, lr=0.3)
    whole = workspace(problem, a, W, e)
    weights.run(problem, whole, 0, 3000, np.nan, np.inf)
    pieces = workspace(problem, a, W, e)
    for k in range(3000):
        if k % 500 == 499:  # forget everything but the weights
            pieces = workspace(problem, *neurons(pieces))
        weights.run(problem, pieces, k, 1, np.nan, np.inf)
    (a1, W1, e1), (a2, W2, e2) = neurons(whole), neurons(pieces)
    assert np.array_equal(np.ldexp(a1, e1), np.ldexp(a2, e2))
    assert np.array_equal(np.ldexp(W1, e1[:, None]), np.ldexp(W2, e2[:, None]))


def test_exponents_are_powers_of_two_bitwise():
    problem, a, W, e = make(lr=0.3)
    plain = workspace(problem, a * 2.0**-300, W * 2.0**-300, e)
    split = workspace(problem, a * 2.0**5, W * 2.0**5, e - 305)
    for work in (plain, split):
        weights.run(problem, work, 0, 700, np.nan, np.inf)
    (a1, W1, e1), (a2, W2, e2) = neurons(plain), neurons(split)
    assert np.array_equal(np.ldexp(a1, e1), np.ldexp(a2, e2))
    assert np.array_equal(np.ldexp(W1, e1[:, None]), np.ldexp(W2, e2[:, None]))
    assert (np.abs(a1) < 2.0 ** (2 * weights.WINDOW + 1)).all()
    assert (e1 != -300).any()


def test_mantissas_stay_in_range_however_far_a_neuron_goes():
    problem, a, W, e = make(lr=0.5)
    work = workspace(problem, a, W, e - 100_000)
    weights.run(problem, work, 0, 20_000, np.nan, np.inf)
    _, W, e = neurons(work)
    tops = np.abs(W).max(axis=1)
    assert ((tops > 2.0**-40) & (tops < 2.0**40)).all()
    assert e.max() > -100_000 + 500
    # the neurons never reached a size that matters
    assert forces(SQUARE, False, problem.kappa, np.zeros(9), problem.y, work.c) == pytest.approx(
        weights.run(problem, work, 0, 0, np.nan, np.inf)[2]
    )


def test_outcomes():
    problem, a, W, e = make()
    start = weights.run(problem, workspace(problem, a, W, e), 0, 0, np.nan, np.inf)
    log_loss = start[2]
    assert start == (weights.DONE, 0, log_loss, log_loss)
    assert weights.run(problem, workspace(problem, a, W, e), 0, 9, log_loss, np.inf)[:2] == (
        weights.STOPPED,
        0,
    )
    assert weights.run(problem, workspace(problem, a, W, e), 0, 9, np.nan, log_loss - 1)[:2] == (
        weights.DIVERGED,
        0,
    )
    dead = workspace(problem, a, 0 * W, e)
    assert weights.run(problem, dead, 3, 500, np.nan, np.inf)[:2] == (weights.UNCHANGED, 32)
    code, k, last, least = weights.run(problem, workspace(problem, a, W, e), 0, 40, np.nan, np.inf)
    assert (code, k) == (weights.DONE, 40)
    assert least <= last < log_loss


# ------------------------------------------------------------------------------ Gram form


def make_gram(seed=0, n=8, m=5, lr=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3 * n)) / 4
    W = 0.3 * rng.normal(size=(m, 3 * n))
    problem = gram.Problem(
        K=X @ X.T,
        y=rng.normal(size=n),
        a=rng.normal(size=m),
        start=np.ascontiguousarray(W @ X.T),
        keys=keys(n),
        loss=SQUARE,
        shares=False,
        kappa=1.0,
        lr=lr,
    )
    zero = np.zeros((m, n))
    return problem, X, W, gram.workspace(problem.start, zero, zero)


def test_gram_steps_equal_the_twin():
    problem, X, W, work = make_gram()
    for k in range(60):
        P = W @ X.T
        r = problem.y - problem.a @ np.maximum(P, 0.0)
        W = W + problem.lr * problem.a[:, None] * (((P > 0) * r) @ X)
        gram.run(problem, work, k, 1, np.nan, np.inf)
        np.testing.assert_allclose(work.P, W @ X.T, atol=1e-13)
    np.testing.assert_allclose(work.B @ X, W - make_gram()[2], atol=1e-13)


def test_preactivations_follow_the_duals_between_rebuilds():
    """Steps too small to change p move b; the compensated sum does not lose them."""
    problem, *_, work = make_gram()
    gram.run(problem, work, 1, 900, np.nan, np.inf)  # no rebuild on the way
    exact = problem.start.astype(np.longdouble) + work.B.astype(np.longdouble) @ problem.K
    assert np.abs(work.P + work.rest - exact).max() < 2e-15
    assert np.abs(work.B).max() > 0.1


def test_gram_outcomes():
    problem, *_, work = make_gram()
    log_loss = gram.run(problem, work, 0, 0, np.nan, np.inf)[2]
    assert gram.run(problem, work, 0, 9, log_loss, np.inf)[:2] == (weights.STOPPED, 0)
    assert gram.run(problem, work, 0, 9, np.nan, log_loss - 1)[:2] == (weights.DIVERGED, 0)
    assert gram.run(problem._replace(lr=1e300), work, 0, 9, np.nan, np.inf)[:2] == (
        weights.DIVERGED,
        0,
    )
    problem, *_, work = make_gram()
    dead = gram.workspace(-np.abs(problem.start), 0 * work.B, 0 * work.B)
    quiet = problem._replace(start=-np.abs(problem.start))
    assert gram.run(quiet, dead, 0, 9, np.nan, np.inf)[:2] == (weights.UNCHANGED, 0)
