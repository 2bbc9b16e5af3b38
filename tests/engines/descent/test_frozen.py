"""Descent to the limit: change times, the certificate and the limit (HD-02, HD-07 to HD-10)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow.engines.descent.limit import frozen, path
from reluflow.engines.descent.limit.boundary import boundary_limit
from reluflow.engines.descent.limit.modes import modes
from reluflow.engines.descent.limit.next import look_ahead

from .reference import gap, gradient_descent, same

HALF = rf.losses.Square("1/2")


def random_problem(n, d, m, seed, *, signs=True, scale=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.uniform(0.5, 2.0, n) * rng.choice([-1.0, 1.0], n)
    a = rng.choice([-1.0, 1.0], m) * (1.0 if signs else rng.uniform(0.5, 1.5, m))
    data = rf.Dataset(X, y)
    lr = 0.9 / (np.linalg.eigvalsh(data.gram)[-1] * (a @ a))
    return data, rf.Network(a, scale * rng.normal(size=(m, d))), lr


def gram_step(G, y, a, P, eta):
    r = y - a @ np.maximum(P, 0.0)
    return P + eta * a[:, None] * (((P > 0) * r) @ G)


@given(
    sizes=st.sampled_from([(6, 30, 1), (10, 12, 2), (12, 14, 3), (9, 4, 3)]),
    seed=st.integers(0, 10**6),
)
def test_the_next_change_is_the_one_the_loop_finds(sizes, seed):  # HD-10
    data, net, eta = random_problem(*sizes, seed, signs=False)
    P = net.W @ data.X.T
    for _ in range(12):
        found = modes(data.gram, net.a, P, data.y, eta)
        ahead, _ = look_ahead(found)
        pattern = P > 0
        for t in range(1, int(min(ahead, 3000.0 if math.isinf(ahead) else 1e9)) + 1):
            P = gram_step(data.gram, data.y, net.a, P, eta)
            assert ((P > 0) == pattern).all() == (t < ahead), (t, ahead)
        np.testing.assert_allclose(found.preactivations(t), P, rtol=1e-8, atol=1e-10)
        if not math.isfinite(ahead):
            break


@given(seed=st.integers(0, 10**6))
def test_residuals_of_a_fixed_pattern_fall(seed):  # HD-07, HD-09
    data, net, eta = random_problem(8, 20, 2, seed)
    P = np.abs(net.W @ data.X.T)  # active everywhere
    found = modes(data.gram, net.a, P, data.y, eta)
    norms = []
    for t in range(0, 40):
        r = data.y - net.a @ found.preactivations(float(t))  # linear: no relu
        norms.append(np.linalg.norm(r))
    assert (np.diff(norms) <= 1e-14 * norms[0]).all()


@pytest.mark.parametrize(
    ("sizes", "seed"),
    [
        *(((12, 400, 1), seed) for seed in (0, 1)),
        *(((12, 400, 2), seed) for seed in (0, 1)),
        *(((20, 24, 3), seed) for seed in (0, 1, 10)),
        *(((9, 4, 1), seed) for seed in (1, 4, 8)),
    ],
)
def test_the_limit_is_the_end_of_a_long_run(sizes, seed):  # HD-08
    data, net, lr = random_problem(*sizes, seed)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert run.status in ("converged", "stationary")
    steps = min(run.stats["iterations"], 200_000)
    long = rf.descend(data, net, lr=lr, steps=steps, loss=HALF, train="hidden", record=2)
    size = np.linalg.norm(run.final.W)
    assert np.linalg.norm(run.final.W - long.final.W) < 1e-8 * size
    assert 0 <= run.limit_error < 1e-10 * size
    assert run.stats["frozen_from"] <= run.stats["iterations"]
    # the pattern of the state at which the certificate was given is that of the limit
    at_freeze = run.at(run.stats["frozen_from"])
    patterns = [net.preactivations(data.X) > 0 for net in (at_freeze, run.final)]
    assert (patterns[0] == patterns[1]).all()


def test_two_neurons_in_high_dimension_freeze_after_one_step_at_the_closed_form():
    rng = np.random.default_rng(0)
    n, d = 12, 6000
    X = rng.normal(size=(n, d))
    y = rng.uniform(0.5, 2.0, n) * np.repeat([1.0, -1.0], n // 2)
    data, G = rf.Dataset(X, y), X @ X.T
    eps = np.full((2, n), 0.005)
    net = rf.Network([1.0, -1.0], np.linalg.solve(G, eps.T).T @ X)
    lr = 1.0 / (2 * d)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert (run.status, run.stats["frozen_from"]) == ("converged", 1)
    first = run.at(1).W
    for j, own in enumerate((y > 0, y < 0)):
        target = np.abs(y[own]) - X[own] @ first[j]
        exact = first[j] + X[own].T @ np.linalg.solve(G[np.ix_(own, own)], target)
        np.testing.assert_allclose(run.final.W[j], exact, atol=1e-12)
        assert (X[~own] @ run.final.W[j] < 0).all()
    assert HALF.log_value(run.final.predict(X), y) < -60
    assert run.stats["final_log_loss"] < -60


def test_a_neuron_that_cannot_fit_everything_is_stationary():
    data, net, lr = random_problem(8, 200, 1, 3)
    net = rf.Network([1.0], net.W)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert run.status == "stationary"
    active = (run.final.preactivations(data.X) > 0)[:, 0]
    left = 0.5 * (data.y[~active] ** 2).sum()
    assert np.exp(run.stats["final_log_loss"]) == pytest.approx(left, rel=1e-12)
    assert (data.y[active] > 0).all()


def test_dead_networks_and_zero_labels_have_limits_too():
    data, net, lr = random_problem(5, 40, 2, 0)
    X = np.abs(data.X)
    dead = rf.Network([1.0, -1.0], -np.abs(net.W))
    run = rf.descend(rf.Dataset(X, data.y), dead, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert (run.status, run.limit_error) == ("stationary", 0.0)
    assert run.final == dead
    run = rf.descend(rf.Dataset(X, 0 * data.y), dead, lr=lr, steps=np.inf, train="hidden")
    assert run.status == "converged"


def test_recorded_states_are_those_of_plain_iteration():  # HD-02
    data, net, lr = random_problem(20, 24, 3, 4)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert run.t[0] == 0
    assert run.t[-1] == run.stats["iterations"]
    assert run.stats["stretches"] > 2
    for k in (1, len(run.t) // 3, len(run.t) // 2):
        a, W = gradient_descent(data.X, data.y, net.a, net.W, lr, int(run.t[k]), HALF, hidden=True)
        assert gap(run.network(k), a, W) < 1e-10
        h = run.network(k).predict(data.X)
        assert HALF.log_value(h, data.y) == pytest.approx(run.log_loss[k], abs=1e-9)
    assert (np.diff(run.log_loss[-20:]) <= 1e-12).all()


def test_iterations_are_recomputed_bitwise_and_the_limit_is_at_infinity():
    data, net, lr = random_problem(20, 24, 3, 0)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden", record=30)
    every = rf.descend(
        data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden", record=np.arange(0, 900, 7)
    )
    for k in range(0, len(every.t), 11):
        assert same(run.at(every.t[k]), every.network(k))
    assert run.at(np.inf) == run.final
    far = run.at(run.t[-1] * 100)  # beyond the records: the limit is certified
    np.testing.assert_allclose(far.W, run.final.W, atol=1e-12)


def test_long_quiet_stretches_are_jumped_over():
    """A tiny step: a billion iterations, few changes of pattern, all found."""
    data, net, lr = random_problem(10, 12, 1, 4, scale=0.15)
    data, net = rf.Dataset(data.X, np.abs(data.y)), rf.Network([1.0], net.W)
    run = rf.descend(data, net, lr=1e-7 * lr, steps=np.inf, loss=HALF, train="hidden")
    assert run.status in ("converged", "stationary")
    assert run.stats["iterations"] > 10**8
    assert 1 < run.stats["stretches"] < 30
    # in time lr * t this is the flow: a thousand times longer steps follow the same curve
    coarse = rf.descend(data, net, lr=1e-4 * lr, steps=np.inf, loss=HALF, train="hidden")
    assert np.linalg.norm(run.final.W - coarse.final.W) < 1e-3 * np.linalg.norm(run.final.W)
    assert run.stats["stretches"] == coarse.stats["stretches"]


def test_a_stop_inside_a_jump_is_the_first_iteration_below_it():
    data, net, lr = random_problem(12, 400, 2, 1)
    net = rf.Network([1.0, -1.0], np.full((2, 12), 0.01) @ np.linalg.pinv(data.X).T)
    options = {"lr": lr, "loss": HALF, "train": "hidden"}
    full = rf.descend(data, net, steps=np.inf, **options)
    for level in (full.log_loss[0] + 1.0, full.log_loss[0] - 1.0, -3.0, -20.0):
        run = rf.descend(data, net, steps=np.inf, stop_log_loss=level, **options)
        plain = rf.descend(data, net, steps=5000, stop_log_loss=level, **options)
        assert run.status == plain.status == "stop_loss"
        assert run.t[-1] == plain.t[-1]
        assert gap(run.final, plain.final.flat().a, plain.final.flat().W) < 1e-12
        np.testing.assert_allclose(full.at(log_loss=level).W, run.final.W, atol=1e-13)
    with pytest.raises(rf.errors.InputError, match="never falls to -1e"):
        full.at(log_loss=-1e9)


@pytest.mark.parametrize("seed", [2, 3, 5, 9])
def test_limits_on_a_boundary_are_certified(seed):
    """A neuron slides on a point that another one fits: patterns change for ever, p -> 0."""
    data, net, lr = random_problem(20, 24, 3, seed)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert (run.status, run.stats["frozen_from"]) == ("stationary", None)
    size = np.linalg.norm(run.final.W)
    assert 0 < run.limit_error < 1e-11 * size
    P = run.final.preactivations(data.X)
    assert np.abs(P).min() < 1e-12
    long = rf.descend(data, net, lr=lr, steps=60_000, loss=HALF, train="hidden", record=2)
    assert np.linalg.norm(run.final.W - long.final.W) < 1e-10 * size
    assert run.at(np.inf) == run.final
    with pytest.raises(rf.errors.InputError, match="is outside"):
        run.at(run.t[-1] + 1)


def test_a_stop_on_the_way_to_a_boundary_is_met():
    data = rf.Dataset([[1.0, 0.0], [0.3, 1.0]], [0.0, 1.0])
    net = rf.Network([1.0], [[0.5, 0.2]])
    options = {"lr": 0.2, "loss": HALF, "train": "hidden", "stop_loss": 1e-24}
    run = rf.descend(data, net, steps=np.inf, **options)
    plain = rf.descend(data, net, steps=5000, **options)
    assert run.status == plain.status == "stop_loss"
    assert run.t[-1] == plain.t[-1]


def test_a_zero_label_is_a_limit_on_a_boundary():
    data = rf.Dataset([[1.0, 0.0], [0.3, 1.0]], [0.0, 1.0])
    run = rf.descend(
        data, rf.Network([1.0], [[0.5, 0.2]]), lr=0.2, steps=np.inf, loss=HALF, train="hidden"
    )
    assert run.status == "converged"
    assert run.limit_error < 1e-10
    np.testing.assert_allclose(run.final.predict(data.X), data.y, atol=1e-14)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "proved"),
        ({"eta": 2.0}, "a step of 2 / mu"),
        ({"y": np.array([0.5, 1.0])}, "a boundary point with a label nobody fits"),
        ({"P": np.array([[1e-5, 1.0]])}, "too far from the boundary"),
    ],
)
def test_each_condition_of_the_boundary_certificate_matters(change, reason):
    state = {
        "G": np.eye(2),
        "a": np.array([1.0]),
        "P": np.array([[1e-13, 1.0]]),
        "B": np.array([[1e-13, 1.0]]),
        "y": np.array([0.0, 1.0]),
        "eta": 0.5,
    }
    found = boundary_limit(**(state | change))
    assert (found is not None) == (reason == "proved")
    if found is not None:
        np.testing.assert_allclose(found.B, [[0.0, 1.0]], atol=1e-16)
        assert 1e-13 <= found.error < 1e-11
        assert found.fits_all


def test_a_run_that_never_settles_is_given_up(monkeypatch):
    """More points than two neurons can fit: they are kicked across points for ever."""
    monkeypatch.setattr(path, "MAX_ITERATED", 20_000)
    data, net, lr = random_problem(16, 5, 4, 0)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    assert run.status == "failed"
    assert run.reason.startswith("no limit is proved after 2")
    assert run.t[-1] > 20_000
    assert math.isnan(run.limit_error)
    late = rf.descend(data, run.final, lr=lr, steps=1000, loss=HALF, train="hidden")
    assert late.status == "steps"
    assert np.abs(late.final.W - run.final.W).max() > 1e-6


def test_a_step_too_long_for_the_last_pattern_diverges():
    data, net, _ = random_problem(8, 40, 2, 0)
    positive = rf.Dataset(np.abs(data.X), np.abs(data.y))
    start = rf.Network([1.0], np.abs(net.W[:1]))
    mu = np.linalg.eigvalsh(positive.gram)[-1]
    options = {"steps": np.inf, "loss": HALF, "train": "hidden"}
    assert rf.descend(positive, start, lr=1.9 / mu, **options).status == "converged"
    run = rf.descend(positive, start, lr=30.0 / mu, **options)
    assert run.status != "converged"
    assert np.isfinite(run.final.W).all()


def test_the_time_limit_holds():
    data, net, lr = random_problem(16, 5, 4, 0)  # never settles
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden", max_seconds=0.05)
    assert run.status == "budget"
    assert run.reason == f"max_seconds = 0.05 is used up at iteration {run.t[-1]:.0f}"
    assert run.final == run.at(run.t[-1])


def test_restart_states_are_thinned(monkeypatch):
    data, net, lr = random_problem(20, 24, 3, 5)
    options = {"lr": lr, "steps": np.inf, "loss": HALF, "train": "hidden", "record": 40}
    full = rf.descend(data, net, **options)
    monkeypatch.setattr(frozen, "MARKS_BYTES", 1500)
    thin = rf.descend(data, net, **options)
    for k in range(len(full.t)):
        assert same(thin.network(k), full.network(k))


def test_a_saved_limit_recomputes_the_same(tmp_path):
    data, net, lr = random_problem(12, 14, 2, 6)
    run = rf.descend(data, net, lr=lr, steps=np.inf, loss=HALF, train="hidden")
    run.save(tmp_path / "run.zip")
    loaded = rf.load(tmp_path / "run.zip")
    assert loaded.at(17) == run.at(17)
    assert loaded.at(np.inf) == run.final
    assert loaded.limit_error == run.limit_error
