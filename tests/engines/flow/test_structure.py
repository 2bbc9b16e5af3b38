"""What gradient flow conserves, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from numerics.problems import LOSSES, weights
from reluflow.losses import Exponential, Logistic, Square


def problem(seed, log_scale=-1.0, loss="square", width=12, n=6, d=3, unbalanced=True):
    """A random run's data, network and loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    W = rng.normal(size=(width, d))
    a = rng.normal(size=width) if unbalanced else rng.choice([-1, 1], width)
    if not unbalanced:
        a = a * np.linalg.norm(W, axis=1)
    return rf.Dataset(X, y), rf.Network(a, W, log_scale), LOSSES[loss]


RUNS = [
    pytest.param(problem(0), {"t_end": 30.0}, id="square"),
    pytest.param(problem(1, -8.0), {}, id="small start"),
    pytest.param(problem(2, -2000.0, unbalanced=False), {}, id="tiny balanced start"),
    pytest.param(problem(3, -300.0), {}, id="tiny unbalanced start"),
    pytest.param(problem(4, -1.0, n=3, d=7), {}, id="more coordinates than points"),
    pytest.param(
        problem(5, -1.0, "exponential"), {"stop_log_loss": -300.0, "t_end": 1e30}, id="exp"
    ),
    pytest.param(
        problem(6, -3.0, "logistic"), {"stop_log_loss": -300.0, "t_end": 1e30}, id="logistic"
    ),
]


def scaled_products(run, j, k):
    """``a_j a_k - w_j.w_k`` at every record, relative to the largest ``|a_j a_k|`` of the run."""
    states = run.kept
    logs = states["log_scale"][:, j] + states["log_scale"][:, k]
    a = states["a"][:, j] * states["a"][:, k]
    unit = a - np.einsum("td,td->t", states["W"][:, j], states["W"][:, k])
    with np.errstate(divide="ignore"):
        top = np.max(np.log(np.abs(a)) + logs)
    return unit * np.exp(logs - top)


@pytest.mark.parametrize(("setup", "stops"), RUNS)
def test_balance_is_conserved(setup, stops):
    data, net, loss = setup
    run = rf.flow(data, net, loss=loss, max_seconds=30, **stops)
    assert run.status != "budget"
    assert len(run.events) > 0
    a, W, logs = (run.kept[name] for name in ("a", "W", "log_scale"))
    squares = np.einsum("tjd,tjd->tj", W, W)
    top = (2 * logs + np.log(a**2 + squares)).max(axis=0)
    balance = (a**2 - squares) * np.exp(2 * logs - top)
    assert np.abs(balance - balance[0]).max() <= 1e-12


@pytest.mark.parametrize(("setup", "stops"), RUNS)
def test_minkowski_products_of_neurons_that_share_a_row_are_conserved(setup, stops):
    data, net, loss = setup
    run = rf.flow(data, net, loss=loss, max_seconds=30, **stops)
    modes = run.kept["mode"]
    compared = 0
    for j in range(net.width):
        for k in range(j):
            # from the last event of either on; before it they share a row at records, not between
            mine = np.isin(run.events["neuron"], [j, k])
            last = run.events["log_t"][mine].max(initial=-np.inf)
            first = int(np.searchsorted(run.log_t, last))
            share = (modes[-1, j] == modes[-1, k]).all() and (modes[-1, j] == 1).any()
            if not share or len(run.t) - first < 3:
                continue
            product = scaled_products(run, j, k)[first:]
            assert np.abs(product - product[0]).max() <= 1e-10
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize(("setup", "stops"), RUNS)
def test_loss_never_rises(setup, stops):
    data, net, loss = setup
    run = rf.flow(data, net, loss=loss, record=5000, max_seconds=30, **stops)
    if isinstance(loss, Square):
        rounding = (1e-14 * np.abs(data.y).max()) ** 2
        assert (run.loss[1:] <= run.loss[:-1] * (1 + 1e-12) + rounding).all()
    else:
        assert (np.diff(run.log_loss) <= 1e-11 * np.maximum(1.0, np.abs(run.log_loss[1:]))).all()
    assert (np.diff(run.log_t[1:]) >= 0).all()


def test_part_of_the_weights_outside_the_span_never_moves():
    data, net, loss = problem(4, -1.0, n=3, d=7)
    run = rf.flow(data, net, loss=loss)
    outside = np.eye(7) - np.linalg.pinv(data.X) @ data.X
    for k in (1, len(run.t) // 2, -1):
        np.testing.assert_allclose(
            run.network(k).flat().W @ outside, net.flat().W @ outside, rtol=0, atol=1e-14
        )


# ---------------------------------------------------------------------- symmetries


def same_events(left, right, neurons=None, points=None):
    """Whether two event lists are equal up to a relabelling; times to 1e-6."""
    moved = right.copy()
    if neurons is not None:
        moved["neuron"] = neurons[moved["neuron"]]
    if points is not None:
        moved["point"] = np.where(moved["point"] < 0, -1, points[moved["point"]])
    order = np.lexsort([moved["kind"], moved["point"], moved["neuron"], moved["t"].round(5)])
    other = np.lexsort([left["kind"], left["point"], left["neuron"], left["t"].round(5)])
    moved, left = moved[order], left[other]
    same = all((moved[name] == left[name]).all() for name in ("neuron", "point", "kind"))
    return same and np.allclose(moved["t"], left["t"], rtol=1e-6)


SYMMETRIC = st.tuples(
    st.integers(0, 10**6),
    st.sampled_from(sorted(LOSSES)),
    st.sampled_from([0.0, -2.0, -12.0]),
)


def solve(data, net, loss, log_scale):
    """A run to the middle of training at any scale: the time of order one, plus the wait."""
    return rf.flow(data, net, loss=loss, t_end=4.0 - 3.0 * log_scale, rtol=1e-8, max_seconds=30)


@settings(max_examples=8)
@given(SYMMETRIC)
def test_permuted_neurons_and_points_give_the_same_result(case):
    seed, name, log_scale = case
    data, net, loss = problem(seed, log_scale, name, width=6, n=5)
    rng = np.random.default_rng(seed + 1)
    neurons, points = rng.permutation(6), rng.permutation(5)
    base = solve(data, net, loss, log_scale)
    other = solve(
        rf.Dataset(data.X[points], data.y[points]),
        rf.Network(net.mantissa.a[neurons], net.mantissa.W[neurons], log_scale),
        loss,
        log_scale,
    )
    exact = weights(base.final)
    gap = np.linalg.norm(weights(other.final) - exact[neurons]) / np.linalg.norm(exact)
    assert gap <= 1e-7
    assert same_events(base.events, other.events, neurons, points)


@settings(max_examples=8)
@given(SYMMETRIC)
def test_neuron_split_into_collinear_halves_gives_the_same_result(case):
    seed, name, log_scale = case
    data, net, loss = problem(seed, log_scale, name, width=6, n=5)
    parts = np.array([0, 0, 1, 2, 3, 3, 4, 5])
    scale = np.where(np.isin(parts, [0, 3]), np.sqrt(0.5), 1.0)
    base = solve(data, net, loss, log_scale)
    other = solve(
        data,
        rf.Network(
            net.mantissa.a[parts] * scale, net.mantissa.W[parts] * scale[:, None], log_scale
        ),
        loss,
        log_scale,
    )
    exact = weights(base.final)
    joined = weights(other.final) / scale[:, None]
    assert np.linalg.norm(joined - exact[parts]) / np.linalg.norm(exact) <= 1e-7


def test_scale_of_the_data_and_labels_only_rescales_time():
    # x -> 2 x, w -> w, with labels y -> 2 y: h doubles, forces double, g quadruples
    data, net, _ = problem(7)
    base = rf.flow(data, net, t_end=8.0)
    double = rf.flow(rf.Dataset(2 * data.X, 2 * data.y), net, t_end=2.0)
    np.testing.assert_allclose(weights(double.final), weights(base.final), atol=1e-7)


def test_same_input_gives_the_same_bits():
    data, net, loss = problem(8)
    first, second = (rf.flow(data, net, loss=loss) for _ in range(2))
    for name, array in first.kept.items():
        np.testing.assert_array_equal(array, second.kept[name])
    np.testing.assert_array_equal(first.events, second.events)


# ---------------------------------------------------------------------- angles


def correlated(d=3, width=12, seed=0):
    return rf.datasets.cone(d, d, half_angle=0.6, seed=seed), rf.networks.balanced(
        d, width, seed=seed + 1
    )


@pytest.mark.parametrize("log_scale", [-30.0, -700.0, -44000.0])
@pytest.mark.parametrize("seed", [0, 3])
def test_largest_angle_of_the_bundle_is_that_of_the_limit(log_scale, seed):
    data, net = correlated(seed=seed)
    net = net.with_scale(log_scale)
    bundle = rf.limits.bundle(data, net)
    run = rf.flow(data, net)
    assert run.status == "converged"
    seen = run.log_max_angle(run.t[-1], subset=bundle.positive)
    assert seen == pytest.approx(bundle.log_angle_slope + log_scale, abs=1e-6)


def test_angles_from_products_continue_those_from_directions():
    data, net = correlated()
    net = net.with_scale(-9.0)
    chosen = rf.limits.bundle(data, net).positive.tolist()
    run = rf.flow(data, net, rtol=1e-11)
    for t in np.linspace(0.0, 1.0, 23)[1:] * run.t[-1]:
        direct = rf.geometry.max_angle(run.at(t), subset=chosen)
        assert direct > 1e-9
        # directions resolve angles to about 1e-15
        assert run.log_max_angle(t, subset=chosen) == pytest.approx(
            np.log(direct), abs=1e-8 + 1e-14 / direct
        )


def test_angle_of_fewer_than_two_neurons_is_zero():
    data, net = correlated(width=3)
    run = rf.flow(data, net.with_scale(-3.0))
    assert run.log_max_angle(1.0, subset=[1]) == -np.inf


@pytest.mark.parametrize("loss", [Exponential(), Logistic()], ids=lambda loss: loss.name)
def test_margin_losses_are_invariant_under_label_and_output_flip(loss):
    data, net, _ = problem(9, loss="exponential")
    base = rf.flow(data, net, loss=loss, stop_log_loss=-20.0, t_end=1e6)
    flip = rf.flow(
        rf.Dataset(data.X, -data.y),
        rf.Network(-net.mantissa.a, net.mantissa.W, net.log_scale),
        loss=loss,
        stop_log_loss=-20.0,
        t_end=1e6,
    )
    assert flip.status == base.status
    np.testing.assert_allclose(flip.final.flat().W, base.final.flat().W, rtol=1e-7, atol=1e-7)


@settings(max_examples=8)
@given(SYMMETRIC)
def test_rotated_data_give_the_rotated_result(case):
    seed, name, log_scale = case
    data, net, loss = problem(seed, log_scale, name, width=6, n=5)
    Q = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(3, 3)))[0]
    base = solve(data, net, loss, log_scale)
    other = solve(
        rf.Dataset(data.X @ Q, data.y),
        rf.Network(net.mantissa.a, net.mantissa.W @ Q, log_scale),
        loss,
        log_scale,
    )
    exact = weights(base.final)
    turned = weights(other.final)
    turned[:, 1:] = turned[:, 1:] @ Q.T
    assert np.linalg.norm(turned - exact) / np.linalg.norm(exact) <= 1e-7
    assert same_events(base.events, other.events)


def test_long_slides_stay_on_their_planes():
    rng = np.random.default_rng(2)
    X, y, W = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(12, 3))
    a = rng.choice([-1, 1], 12) * np.linalg.norm(W, axis=1)
    run = rf.flow(rf.Dataset(X, y), rf.Network(a, W, -2000.0), record=5000)
    W, mode = run.kept["W"], run.kept["mode"]
    lengths = np.linalg.norm(W, axis=2)[..., None] * np.linalg.norm(X, axis=1)
    assert (mode >= 2).sum() > 100
    assert np.abs((W @ X.T) / lengths)[mode >= 2].max() <= 1e-15


def test_what_changes_no_row_leaves_the_angle_of_a_bundle_as_it_is():
    X = np.array([[1.0, 0.5, 0.2], [0.3, 1.0, 0.4], [0.2, 0.3, 1.0]])
    W = np.abs(np.random.default_rng(3).normal(size=(6, 3)))
    net = rf.Network(np.linalg.norm(W, axis=1), W, log_scale=-60.0)
    run = rf.flow(rf.Dataset(X, [1.0, 1.2, 0.8]), net)
    late = float(run.t[-1])
    assert len(run.events) == 0
    for kind, point in (("branch", 1), ("flip", -1)):
        event = (0.95 * late, np.log(0.95 * late), 2, point, kind)
        told = replace(run, events=np.array([event], dtype=run.events.dtype))
        assert told.log_max_angle(late) == run.log_max_angle(late) < -50.0
