"""Flow of leaky networks: 40 digits, descent with small steps, and the linear network."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reluflow as rf
from numerics.problems import distance, draw, kinds, weights

TOLERANCES = 10.0 ** -np.arange(4, 12, 2)


@cache
def solved(seed):
    """A small problem of a leaky network and its 40-digit solution."""
    slope = float(np.random.default_rng([seed, 7]).choice([0.01, 0.125, 0.5, 0.9]))
    problem = replace(draw(seed), slope=slope)
    return problem, problem.reference()


def test_error_is_proportional_to_the_tolerance():
    found = []
    for seed in (0, 1, 4, 5, 8, 10, 14, 16, 20, 23):
        problem, exact = solved(seed)
        runs = [problem.flow(rtol=rtol) for rtol in TOLERANCES]
        assert kinds(runs[2].events) == [event[1:] for event in exact.events]
        found.append([distance(run.final, exact) for run in runs])
    share = np.array(found) / TOLERANCES
    assert (np.median(share, axis=0) <= 1.0).all()
    assert (share <= 10.0).all()
    slope = np.polyfit(np.log(TOLERANCES), np.log(np.median(found, axis=0)), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.15)


# ---------------------------------------------------------------------- descent


def task(seed):
    """Data, network and options; every fourth has opposite or equal points."""
    rng = np.random.default_rng([seed, 3])
    n, d, m = int(rng.integers(2, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    if seed % 4 == 3:
        X[1] = rng.choice([-0.5, 1.0]) * X[0]
    loss = ("square", "exponential", "logistic")[seed % 3]
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    slope = float(rng.choice([0.01, 0.2, 0.5, 0.9]))
    size = 1.0 if loss == "square" else 0.6  # beyond, descent would need steps below 1e-5
    net = rf.Network(size * rng.normal(size=m), size * rng.normal(size=(m, d)), slope=slope)
    train = "hidden" if seed % 5 == 4 else "both"
    return rf.Dataset(X, y), net, {"loss": loss, "train": train}


@pytest.mark.parametrize(
    "seeds",
    [range(9), pytest.param(range(300), marks=pytest.mark.long)],
    ids=["sample", "many"],
)
def test_descent_with_small_steps_comes_to_the_same_weights(seeds):
    seen = set()
    for seed in seeds:
        data, net, options = task(seed)
        run = rf.flow(data, net, t_end=3.0, **options)
        seen |= set(run.events["kind"].tolist())
        if "branch" in run.events["kind"]:
            continue
        off = []
        for lr in (2e-3, 5e-4, 1.25e-4, 3e-5, 1e-5):
            ends = weights(rf.descend(data, net, lr=lr, steps=round(3.0 / lr), **options).final)
            off.append(np.linalg.norm(ends - weights(run.final)) / np.linalg.norm(ends))
            settled = off[-1] <= 0.4 * off[0] or off[-1] <= 2e-5
            if lr < 2e-4 and off[-1] <= 1e-3 and settled:
                break
        else:
            pytest.fail(f"seed {seed}: {off}")
    assert {"activate", "deactivate", "slide", "flip"} <= seen
    assert "die" not in seen


def test_near_one_it_is_the_linear_network():
    """``a' = sum_i c_i w.x_i``, ``w' = a sum_i c_i x_i``: no planes, solved by DOP853."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 3)), rng.normal(size=4)
    a, W = rng.normal(size=3), rng.normal(size=(3, 3))

    def field(_, flat):
        a, W = flat[:3], flat[3:].reshape(3, 3)
        c = (y - X @ W.T @ a) / 4.0
        return np.concatenate([W @ (X.T @ c), np.outer(a, X.T @ c).ravel()])

    start = np.concatenate([a, W.ravel()])
    exact = solve_ivp(field, (0.0, 5.0), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    off = []
    for gap in (1e-2, 1e-4, 1e-6):
        run = rf.flow(rf.Dataset(X, y), rf.Network(a, W, slope=1.0 - gap), t_end=5.0, rtol=1e-10)
        found = np.concatenate([run.final.a, run.final.W.ravel()])
        off.append(np.abs(found - exact).max() / gap)
    assert max(off) <= 10.0  # proportional to the gap
    assert off[2] == pytest.approx(off[1], rel=0.05)


def test_one_neuron_on_one_point_from_below():
    """``y = -1`` and ``w x < 0``: ``h = alpha a w``, so ``h' = alpha^2 (a^2 + w^2)(y - h)``."""
    alpha = 0.25
    data, net = rf.Dataset([[1.0]], [-1.0]), rf.Network([0.5], [[-0.5]], slope=alpha)
    run = rf.flow(data, net)
    assert run.status == "converged"
    assert run.final.predict([[1.0]])[0] == pytest.approx(-1.0, rel=1e-9)
    assert run.final.a[0] == pytest.approx(1.0 / np.sqrt(alpha), rel=1e-8)  # balanced
    # from a tiny start the log of its size grows at alpha |y|
    tiny = rf.flow(data, net.with_scale(-500.0), t_end=400.0)
    assert tiny.final.log_norms[0] == pytest.approx(np.log(0.5) - 500.0 + 400.0 * alpha, rel=1e-12)


def test_nothing_dies_on_the_way_to_a_limit():
    rng = np.random.default_rng(5)
    data = rf.Dataset(rng.normal(size=(6, 3)), rng.normal(size=6))
    W = rng.normal(size=(20, 3))
    a = rng.choice([-1.0, 1.0], 20) * np.linalg.norm(W, axis=1)
    for scale in (0.0, -100.0):
        run = rf.flow(data, rf.Network(a, W, log_scale=scale, slope=0.1), max_seconds=60)
        assert run.status in ("converged", "stationary")
        assert run.final.slope == 0.1
        assert "die" not in run.events["kind"]
        c = data.y - run.final.predict(data.X)
        active = run.active(-1)
        theta = np.where(active, 1.0, 0.1) * c
        free = np.array([not (row == 2).any() for row in run.modes(-1)])
        pulls = (theta @ data.X)[free]
        assert np.abs(run.final.a[free, None] * pulls).max() <= 1e-6


def test_crowds_of_points():
    """Explicit steps, taken where points are many, against implicit ones of fewer points twice."""
    rng = np.random.default_rng(2)
    X, W = rng.normal(size=(260, 3)), rng.normal(size=(6, 3))
    y, a = rng.normal(size=260), rng.normal(size=6)
    net = rf.Network(a, W, slope=0.3)
    run = rf.flow(rf.Dataset(X, y), net, t_end=2.0, rtol=1e-7)
    steps = 4000
    end = rf.descend(rf.Dataset(X, y), net, lr=2.0 / steps, steps=steps).final
    half = rf.descend(rf.Dataset(X, y), net, lr=1.0 / steps, steps=2 * steps).final
    better = 2.0 * weights(half) - weights(end)
    assert np.linalg.norm(weights(run.final) - better) <= 1e-4 * np.linalg.norm(better)
