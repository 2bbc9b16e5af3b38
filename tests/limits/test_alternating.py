"""The alternating prediction: equal to the jump process on orthonormal data, a guess elsewhere."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError


def problem(seed):
    rng = np.random.default_rng(seed)
    n, m, kind = int(rng.integers(2, 10)), int(rng.integers(1, 10)), ("positive", "mixed")[seed % 2]
    data = rf.datasets.orthonormal(n, d=n + seed % 3, labels=kind, rotate=bool(seed % 3), seed=seed)
    signs = "positive" if kind == "positive" else "random"
    net = rf.networks.balanced(data.d, m, directions="sphere", signs=signs, seed=seed + 100)
    return data, net


def near_orthogonal(strength, n=6, m=6):
    rng = np.random.default_rng(3)
    X = np.eye(n) + strength * rng.normal(size=(n, n)) / np.sqrt(n)
    X /= np.linalg.norm(X, axis=1)[:, None]
    net = rf.networks.balanced(n, m, directions="sphere", signs="positive", seed=5)
    return rf.Dataset(X, np.abs(rng.normal(size=n))), net


def sets(parts):
    return [part.tolist() for part in parts]


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 9, 11])
def test_it_is_the_jump_process_on_orthonormal_data(seed):
    data, net = problem(seed)
    process, guess = rf.limits.saddle_to_saddle(data, net), rf.limits.alternating(data, net)
    assert sets(guess.groups) == sets(process.groups)
    assert sets(guess.fitted) == sets(process.fitted)
    assert guess.times == pytest.approx(process.times, rel=1e-9)
    assert guess.losses == pytest.approx(process.losses, abs=1e-9 * process.losses[0])
    assert guess.margins == pytest.approx(process.margins, rel=1e-6)
    assert guess.network.a == pytest.approx(process.network.a, abs=1e-8)
    assert pytest.approx(process.network.W, abs=1e-8) == guess.network.W
    assert guess.interpolates == process.interpolates
    assert guess.squared_norm == pytest.approx(process.squared_norm, rel=1e-9, abs=1e-12)
    taus = np.linspace(0.0, 1.2 * process.times.max(initial=1.0), 7)
    assert guess.exponents(taus) == pytest.approx(process.exponents(taus), abs=1e-8)
    assert guess.finished
    assert len(guess.caveats) == 2


def test_shared_masks_split_as_in_the_jump_process():
    W = np.array([[0.6, 0.6, -0.3], [0.1, 0.9, -0.2], [-0.3, 0.3, 0.7]])
    data, net = rf.Dataset(np.eye(3), [1.5, 1.0, 0.7]), rf.Network(np.linalg.norm(W, axis=1), W)
    process, guess = rf.limits.saddle_to_saddle(data, net), rf.limits.alternating(data, net)
    assert sets(guess.groups) == [[0, 1], [2]]
    assert guess.network.a == pytest.approx(process.network.a, rel=1e-8)


def test_kappa_rescales_time_only():
    data, net = near_orthogonal(0.2)
    one, three = (rf.limits.alternating(data, net, kappa=k) for k in (1.0, 3.0))
    assert three.times * 3.0 == pytest.approx(one.times, rel=1e-10)
    assert three.losses == pytest.approx(3.0 * one.losses, rel=1e-10, abs=1e-12)
    assert pytest.approx(one.network.W, abs=1e-9) == three.network.W


@pytest.mark.parametrize("strength", [0.05, 0.3])
def test_the_staircase_of_near_orthogonal_data_is_that_of_the_flow(strength):
    """Plateaus of the flow at scale e^-150, and its half times within C/L."""
    data, net = near_orthogonal(strength)
    guess, L = rf.limits.alternating(data, net), 150.0
    run = rf.flow(data, net.with_scale(-L))
    for k, loss in enumerate(guess.losses[:-1]):
        before = guess.times[k - 1] if k else 0.0
        middle = 0.5 * (before + guess.times[k])
        state = run.at(L * middle)
        assert run.loss_function.value(state.predict(data.X), data.y) == pytest.approx(
            loss, rel=0.01
        )
        half = 0.5 * (loss + guess.losses[k + 1])
        assert _time_of(run, half) / L == pytest.approx(guess.times[k], abs=10.0 / L)
    assert run.status == "converged"
    assert guess.interpolates
    assert run.final.predict(data.X) == pytest.approx(guess.network.predict(data.X), abs=1e-6)
    assert run.final.squared_norm == pytest.approx(guess.squared_norm, rel=0.02)


def _time_of(run, loss):
    k = int(np.flatnonzero(run.loss <= loss)[0])
    lo, hi = run.t[k - 1], run.t[k]
    for _ in range(40):
        mid = 0.5 * (lo + hi)
        value = run.loss_function.value(run.at(mid).predict(run.data.X), run.data.y)
        lo, hi = (lo, mid) if value <= loss else (mid, hi)
    return hi


def test_correlated_data_ends_in_one_bundle():
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, 8, seed=1)
    guess = rf.limits.alternating(data, net)
    bundle = rf.limits.bundle(data, net)
    assert len(guess.times) == 1
    assert sets(guess.groups) == [bundle.positive.tolist()]
    assert guess.network.predict(data.X) == pytest.approx(data.y, rel=1e-6)
    rate = np.linalg.norm(data.y @ data.X / data.n)
    assert guess.times[0] == pytest.approx(1.0 / rate, rel=1e-7)


def test_a_network_that_never_grows_makes_no_jump():
    data = rf.Dataset(np.eye(3), [1.0, 2.0, 1.0])
    W = np.array([[0.6, 0.7, -0.4]])
    guess = rf.limits.alternating(data, rf.Network(-np.linalg.norm(W, axis=1), W))
    assert len(guess.times) == 0
    assert guess.finished
    assert guess.uncovered.tolist() == [0, 1, 2]
    assert not guess.network.W.any()
    assert guess.exponents(3.0) == pytest.approx([-1.0])


def test_a_zero_neuron_takes_no_part():
    data, net = near_orthogonal(0.2)
    more = rf.Network(np.append(net.a, 0.0), np.vstack([net.W, np.zeros(6)]))
    plain, padded = rf.limits.alternating(data, net), rf.limits.alternating(data, more)
    assert sets(padded.groups) == sets(plain.groups)
    assert padded.times == pytest.approx(plain.times, rel=1e-12)
    assert padded.network.a[-1] == 0.0


def test_rotation_and_order_of_neurons_do_not_matter():
    data, net = near_orthogonal(0.3)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(data.d, data.d)))[0]
    order = np.array([3, 1, 5, 0, 2, 4])
    plain = rf.limits.alternating(data, net)
    turned = rf.limits.alternating(
        rf.Dataset(data.X @ Q, data.y), rf.Network(net.a[order], (net.W @ Q)[order])
    )
    assert turned.times == pytest.approx(plain.times, rel=1e-8)
    assert pytest.approx((plain.network.W @ Q)[order], abs=1e-7) == turned.network.W
    assert [sorted(order[g].tolist()) for g in turned.groups] == sets(plain.groups)


def test_the_seed_hardly_matters_and_its_effect_is_reported():
    data, net = near_orthogonal(0.3)
    one, other = (rf.limits.alternating(data, net, seed_size=s) for s in (1e-6, 1e-4))
    assert one.sensitivity.max() < 1e-8
    assert other.times == pytest.approx(one.times, rel=1e-6)


def test_bad_input_is_refused():
    data, net = near_orthogonal(0.1)
    with pytest.raises(InputError, match="not balanced"):
        rf.limits.alternating(data, rf.Network(2 * net.a, net.W))
    with pytest.raises(InputError, match="all labels are 0"):
        rf.limits.alternating(rf.Dataset(data.X, np.zeros(6)), net)
    with pytest.raises(InputError, match="seed_size"):
        rf.limits.alternating(data, net, seed_size=0.0)
    with pytest.raises(InputError, match="kappa"):
        rf.limits.alternating(data, net, kappa=-1.0)
    guess = rf.limits.alternating(data, net)
    with pytest.raises(InputError, match="orthonormal data only"):
        guess.sharp_times(-100.0)
    with pytest.raises(InputError, match="training starts at 0"):
        guess.exponents(-1.0)


def test_importing_limits_loads_no_engine():
    import subprocess
    import sys

    code = "import reluflow.limits, sys; print([m for m in sys.modules if 'kernels' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
