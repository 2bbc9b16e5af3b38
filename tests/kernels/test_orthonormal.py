"""Descent in the coordinates of orthonormal points against the engine and a plain loop."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.kernels import orthonormal


def problem(scale, seed=0, n=9, m=7):
    data = rf.datasets.orthonormal(n, seed=seed)
    net = rf.networks.balanced(n, m, log_scale=np.log(scale), directions="sphere", seed=seed + 1)
    return data, net


@pytest.mark.parametrize("scale", [0.3, 1e-3, 1e-60])
def test_it_is_the_engine_on_unit_vectors(scale):
    data, net = problem(scale)
    flat, steps, lr = net.flat(), 700, 0.5
    a, c = flat.a.copy(), flat.W.copy()
    done, squares = orthonormal.run(a, c, data.y, lr / data.n, steps, 0.0)
    run = rf.descend(data, net, lr=lr, steps=steps)
    end = run.final.flat()
    assert done == steps
    assert 0.5 * squares / data.n == pytest.approx(np.exp(run.stats["final_log_loss"]), rel=1e-11)
    size = np.linalg.norm(c, axis=1)
    assert np.abs(end.W - c).max(axis=1) / size == pytest.approx(0.0, abs=1e-12)
    assert a == pytest.approx(end.a, rel=1e-12)


def test_a_plain_loop_agrees_from_an_unbalanced_start():
    rng = np.random.default_rng(3)
    y, a, c = rng.normal(size=5), rng.normal(size=4), rng.normal(size=(4, 5))
    b, d = a.copy(), c.copy()
    for _ in range(50):
        r = y - b @ np.maximum(d, 0.0)
        b, d = b + 0.05 * np.maximum(d, 0.0) @ r, d + 0.05 * np.outer(b, r) * (d > 0)
    orthonormal.run(a, c, y, 0.05, 50, 0.0)
    assert a == pytest.approx(b, rel=1e-13)
    assert c == pytest.approx(d, rel=1e-13)


def test_it_stops_at_the_squares_asked_for_and_at_a_blow_up():
    data, net = problem(0.3)
    flat = net.flat()
    a, c = flat.a.copy(), flat.W.copy()
    before = np.sum((data.y - flat.predict(data.X)) ** 2)
    done, squares = orthonormal.run(a, c, data.y, 0.05, 10**6, 0.5 * before)
    assert 0 < done < 10**6
    assert squares <= 0.5 * before
    done, squares = orthonormal.run(flat.a * 1e200, flat.W * 1e200, data.y, 0.05, 10**6, 0.0)
    assert done == 0
    assert not np.isfinite(squares)
