"""Gradient flow against independent solutions: 40 digits, DOP853, and descent with small steps."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from scipy.integrate import solve_ivp

import reluflow as rf
from numerics.problems import LOSSES, Small, distance, draw, kinds, weights

TOLERANCES = 10.0 ** -np.arange(4, 12)
# at the loose end all errors are rounding here: dead networks and one-step problems
TRIVIAL = 1e-13


@cache
def solved(seed):
    """A small problem and its 40-digit solution."""
    problem = draw(seed)
    return problem, problem.reference()


@cache
def errors(seeds):
    """Relative errors (problems, tolerances) of problems that need more than a few steps."""
    rows = []
    for seed in seeds:
        try:
            problem, exact = solved(seed)
        except RuntimeError:  # a neuron comes to rest at the origin: the reference does not pass
            continue
        row = [distance(problem.flow(rtol=rtol).final, exact) for rtol in TOLERANCES]
        if max(row) > TRIVIAL:
            rows.append(row)
    return np.array(rows)


# ---------------------------------------------------------------------- accuracy


SAMPLE = (0, 8, 10, 17, 20, 30, 33, 36, 37, 40, 41, 43)


@pytest.mark.parametrize(
    "seeds",
    [SAMPLE, pytest.param(tuple(range(200)), marks=pytest.mark.long)],
    ids=["sample", "many"],
)
def test_error_is_proportional_to_the_tolerance(seeds):
    found = errors(seeds)
    share = found / TOLERANCES
    assert len(found) >= 0.75 * len(seeds)
    assert (np.median(share, axis=0) <= 1.0).all()
    assert (np.quantile(share, 0.95, axis=0) <= 5.0).all()
    slope = np.polyfit(np.log(TOLERANCES), np.log(np.median(found, axis=0)), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 6, 7, 9, 10, 13])
def test_small_hidden_weights_alone_are_as_accurate_as_large_ones(seed):
    """They move by a part of what they will come to; a kink may be large beside that."""
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(3, 6)), int(rng.integers(1, 3)), int(rng.integers(2, 4))
    X, W, a = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=m)
    loss = ("square", "exponential", "logistic")[seed % 3]
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    problem = Small(X, y, 1e-2 * a, 1e-3 * W, loss, 4.0, hidden=True)
    exact = problem.reference()
    for rtol in (1e-6, 1e-8, 1e-10):
        assert distance(problem.flow(rtol=rtol).final, exact) < rtol


@pytest.mark.parametrize("seed", [5, 17, 25, 28, 40, 41, 44, 51, 55])
def test_events_are_those_of_the_reference(seed):
    problem, exact = solved(seed)
    assert len(exact.events) > 0
    for rtol in (1e-5, 1e-8, 1e-11):
        run = problem.flow(rtol=rtol)
        assert kinds(run.events) == [event[1:] for event in exact.events]
        times = np.array([event[0] for event in exact.events])
        told = run.events[run.events["kind"] != "branch"]
        assert np.abs(told["t"] / times - 1.0).max() <= 100.0 * rtol


def test_sample_contains_slides_flips_deaths_and_releases():
    seen = {event[3] for seed in (*SAMPLE, 5, 21, 25, 28) for event in solved(seed)[1].events}
    assert seen == {"activate", "deactivate", "slide", "release", "die", "flip"}


@pytest.mark.parametrize("seed", range(6))
def test_hidden_layer_alone_agrees_with_the_reference(seed):
    rng = np.random.default_rng(seed)
    n, d, m = 3, (2, 4)[seed % 2], 3  # fewer and more coordinates than points
    problem = Small(
        rng.normal(size=(n, d)),
        rng.choice([-1.0, 1.0], n),
        rng.choice([-1.0, 1.0], m),
        0.5 * rng.normal(size=(m, d)),
        ("square", "exponential", "logistic")[seed % 3],
        6.0,
        hidden=True,
    )
    exact = problem.reference()
    run = problem.flow(rtol=1e-9)
    assert distance(run.final, exact) <= 1e-8
    assert kinds(run.events) == [event[1:] for event in exact.events]
    np.testing.assert_array_equal(run.final.flat().a, problem.a)


# ---------------------------------------------------------------------- DOP853


def dop853(problem, start, t0, t1):
    """The smooth flow between two times, activation pattern frozen at the start's."""
    m, d = problem.W.shape
    loss = LOSSES[problem.loss]
    pattern = start[:, 1:] @ problem.X.T > 0

    def field(_, flat):
        a, W = flat[:m], flat[m:].reshape(m, d)
        z = np.where(pattern, W @ problem.X.T, 0.0)
        c = loss.forces(a @ z, problem.y)
        return np.concatenate([z @ c, (a[:, None] * ((pattern * c) @ problem.X)).ravel()])

    flat = np.concatenate([start[:, 0], start[:, 1:].ravel()])
    end = solve_ivp(field, (t0, t1), flat, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    return np.column_stack([end[:m], end[m:].reshape(m, d)])


@pytest.mark.parametrize("seed", [8, 10, 11, 13, 20, 30, 33, 43])
def test_every_smooth_stretch_equals_dop853(seed):
    problem = draw(seed)
    run = problem.flow(rtol=1e-11)
    sliding = np.isin(run.events["kind"], ["slide"]).any()
    assert not sliding
    edges = np.unique(np.concatenate([[0.0], run.events["t"], [problem.t_end]]))
    for t0, t1 in pairwise(edges):
        inside = t0 + np.array([1e-3, 0.999]) * (t1 - t0)  # patterns are clear there
        if inside[1] - inside[0] < 1e-6:
            continue
        begin, end = (weights(run.at(t)) for t in inside)
        np.testing.assert_allclose(dop853(problem, begin, *inside), end, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- descent with small steps


@njit(cache=True)
def descend(a, W, X, y, lr, steps):
    """Plain gradient descent on the half mean square, relu'(0) = 0."""
    m, d = W.shape
    n = len(y)
    a, W = a.copy(), W.copy()
    z = np.empty((m, n))
    c = np.empty(n)
    for _ in range(steps):
        c[:] = y
        for j in range(m):
            for i in range(n):
                z[j, i] = 0.0
                for q in range(d):
                    z[j, i] += W[j, q] * X[i, q]
                if z[j, i] > 0.0:
                    c[i] -= a[j] * z[j, i]
        c *= lr / n
        for j in range(m):
            before = a[j]
            for i in range(n):
                if z[j, i] > 0.0:
                    a[j] += c[i] * z[j, i]
                    for q in range(d):
                        W[j, q] += before * c[i] * X[i, q]
    return np.column_stack((a, W))


def centred_problem():
    data = rf.datasets.centred(d=4, seed=0)
    return data, rf.networks.balanced(4, 200, log_scale=-2 * np.log(4.0), seed=1).flat()


def outputs(state, X):
    return state[:, 0] @ np.maximum(state[:, 1:] @ X.T, 0.0)


def test_descent_converges_to_the_flow_at_first_order_sliding_included():
    data, net = centred_problem()
    run = rf.flow(data, net, t_end=20.0)
    assert (run.kept["mode"][-1] >= 2).sum() >= 10
    exact = weights(run.final)
    steps = 4e-4 / 2.0 ** np.arange(4)
    paths = [descend(net.a, net.W, data.X, data.y, lr, round(20.0 / lr)) for lr in steps]
    gaps = [np.linalg.norm(path - exact) / np.linalg.norm(exact) for path in paths]
    assert np.polyfit(np.log(steps), np.log(gaps), 1)[0] == pytest.approx(1.0, abs=0.2)
    assert gaps[-1] <= 2e-5
    extrapolated = 2.0 * paths[-1] - paths[-2]
    # crossings fall on the grid of steps: weights keep a part of order lr, outputs do not
    np.testing.assert_allclose(
        outputs(extrapolated, data.X), run.final.predict(data.X), rtol=0, atol=1e-7
    )
    assert np.abs(extrapolated - exact).max() <= 1e-5


@pytest.mark.long
def test_extrapolated_descent_agrees_with_the_flow_to_a_millionth():
    data, net = centred_problem()
    exact = weights(rf.flow(data, net, t_end=20.0).final)
    paths = [descend(net.a, net.W, data.X, data.y, lr, round(20.0 / lr)) for lr in (1e-5, 5e-6)]
    assert np.abs(2.0 * paths[1] - paths[0] - exact).max() <= 1e-6
