"""Any initial scale trains like an ordinary one (O25, O26 of the orthogonal theory)."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from reluflow.engines.descent.scale import GAP, binary_scale, join, split

from .reference import gap, gradient_descent, problem


@given(st.floats(-1e12, 1e12))
def test_scales_become_powers_of_two(log_scale):
    (e,), (c,) = binary_scale(np.array([log_scale]))
    with mpmath.workdps(60):
        exact = mpmath.exp(mpmath.mpf(log_scale) - int(e) * mpmath.log(2))
        assert abs(c / exact - 1) < 4e-16
    assert 0.7 < c < 1.42


@given(
    log_scale=st.sampled_from((0.0, -1e6, -690.0, -9.7, 40.0, 1e6)),
    out=st.sampled_from((None, 0.0, -300.0, -1e6)),
    size=st.sampled_from((1e-300, 1e-5, 1.0, 1e300)),
)
def test_splitting_keeps_the_network(log_scale, out, size):
    rng = np.random.default_rng(0)
    net = rf.Network(
        rng.normal(size=4) / size, size * rng.normal(size=(4, 3)), log_scale, log_scale_out=out
    )
    a, W, e = split(net)
    logs = np.log(np.linalg.norm(W, axis=1)) + e * np.log(2)
    logs_out = np.log(np.abs(a)) + e * np.log(2)
    near = np.abs(net.log_norms - net.log_outputs) < (GAP - 70) * np.log(2)
    np.testing.assert_allclose(logs[near], net.log_norms[near], rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(logs_out[near], net.log_outputs[near], rtol=1e-14, atol=1e-12)
    # layers further apart are brought closer, the larger one stays
    larger = np.maximum(net.log_norms, net.log_outputs)
    np.testing.assert_allclose(np.maximum(logs, logs_out), larger, rtol=1e-14, atol=1e-12)
    assert (np.abs(logs - logs_out) < (GAP + 70) * np.log(2)).all()
    np.testing.assert_array_equal(np.sign(W), np.sign(net.mantissa.W))


def test_joining_prefers_plain_weights():
    a, W, e = np.array([1.5, 1.5, 1.5]), np.array([[1.0], [3.0], [2.0**-600]]), [-4, -4000, -450]
    a, W, log_scale, left = join(a, W, np.array(e))
    assert list(left) == [0, -3998, -449]  # the last would have a subnormal weight
    assert (a[0], W[0, 0], log_scale[0]) == (1.5 / 16, 1 / 16, 0.0)
    assert (a[1], W[1, 0], log_scale[1]) == (0.375, 0.75, -3998 * np.log(2))


def orthonormal(n, m, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, n))
    return np.abs(rng.normal(size=n)) + 0.2, Z / np.linalg.norm(Z, axis=1)[:, None]


@pytest.mark.parametrize("scale", [1e-100, 1e-3])
def test_scaled_descent_equals_plain_floats(scale):  # O25
    y, Z = orthonormal(6, 5, 0)
    data = rf.Dataset(np.eye(6), y)
    a, W = gradient_descent(data.X, y, scale * np.ones(5), scale * Z, 0.5, 3000, rf.losses.Square())
    run = rf.descend(data, rf.Network(np.ones(5), Z, np.log(scale)), lr=0.5, steps=3000)
    size = np.abs(W).max(axis=1)
    flat = run.final.flat()
    np.testing.assert_allclose(flat.W / size[:, None], W / size[:, None], atol=1e-12)
    np.testing.assert_allclose(flat.a, a, rtol=1e-12)


@pytest.mark.parametrize("log_scale", [np.log(1e-300), -1e6])
def test_growth_on_a_plateau_is_log1p(log_scale):  # O26
    y, Z = orthonormal(6, 5, 1)
    data, lr = rf.Dataset(np.eye(6), y), 0.3
    run = rf.descend(
        data, rf.Network(np.ones(5), Z, log_scale), lr=lr, steps=3000, record=[2000, 3000]
    )
    growth = (run.network(1).log_norms - run.network(0).log_norms) / 1000
    active = run.network(0).preactivations(data.X).T > 0
    slopes = np.sqrt((active * y**2).sum(axis=1)) / len(y)
    # log_norms near -1e6 carry 1e-10 of absolute rounding
    np.testing.assert_allclose(growth, np.log1p(lr * slopes), rtol=1e-8)


def test_the_run_from_a_vanishing_scale_is_the_shifted_run():
    """Far below the labels all scales make the same steps: only the log norms are shifted."""
    y, Z = orthonormal(6, 5, 2)
    data = rf.Dataset(np.eye(6), y)
    near, far = (
        rf.descend(data, rf.Network(np.ones(5), Z, s), lr=0.3, steps=2000).final
        for s in (-1000.0, -1e6)
    )
    np.testing.assert_allclose(far.log_norms - -1e6, near.log_norms + 1000, atol=1e-9)
    np.testing.assert_allclose(far.directions, near.directions, atol=1e-11)


def test_a_vanishing_start_reaches_the_staircase():
    y, Z = orthonormal(6, 5, 3)
    data = rf.Dataset(np.eye(6), y)
    run = rf.descend(data, rf.Network(np.ones(5), np.abs(Z), -500.0), lr=1.0, steps=50_000)
    assert run.log_loss[0] == pytest.approx(rf.losses.Square().log_value(0 * y, y))
    assert run.log_loss[-1] < -20
    assert run.final.log_scale.max() == 0.0  # neurons of ordinary size carry plain weights


def test_power_of_two_scales_commute_with_a_step_bitwise():
    data, net = problem(8, 8, 12, rf.losses.Square(), seed=4)
    tiny = [
        rf.descend(data, rf.Network(2.0**-k * net.a, 2.0**-k * net.W), lr=0.1, steps=200)
        for k in (600, 700)
    ]
    one, two = (run.final for run in tiny)
    # outputs are zero at both scales (2^-1200), so the steps are the same
    assert np.array_equal(one.mantissa.W, two.mantissa.W)
    assert np.array_equal(one.mantissa.a, two.mantissa.a)
    np.testing.assert_allclose(one.log_scale - two.log_scale, 100 * np.log(2), rtol=1e-12)


@pytest.mark.parametrize("power", [-600, 400])
def test_labels_of_any_size_commute_bitwise(power):
    """y -> c y, weights -> sqrt(c) weights, lr -> lr / c is the same run (O29 with c = 2^k)."""
    data, net = problem(8, 8, 12, rf.losses.Square(), seed=4)
    base = rf.descend(data, net, lr=0.1, steps=300).final
    c, root = 2.0**power, 2.0 ** (power // 2)
    scaled = rf.descend(
        rf.Dataset(data.X, c * data.y),
        rf.Network(root * net.a, root * net.W),
        lr=0.1 / c,
        steps=300,
    ).final
    assert np.array_equal(scaled.flat().W, root * base.W)
    assert np.array_equal(scaled.flat().a, root * base.a)
    assert not np.array_equal(base.W, net.W)


def test_layers_of_very_different_scale():
    """The first step of w with |a| >> |w| sees only the signs of w, whatever its scale."""
    data, net = problem(5, 3, 7, rf.losses.Square(), seed=2)
    runs = [
        rf.descend(
            data, rf.Network(net.a, net.W, s, log_scale_out=0.0), lr=0.1, steps=40
        ).final.flat()
        for s in (-1e6, -700.0, -400.0)
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run.W, runs[0].W, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(run.a, runs[0].a, rtol=1e-12)
    other = rf.descend(data, rf.Network(net.a, net.W, 0.0, log_scale_out=-1e6), lr=0.1, steps=40)
    zero = rf.descend(data, rf.Network(0 * net.a, net.W), lr=0.1, steps=40)
    assert gap(other.final, zero.final.flat().a, zero.final.flat().W) < 1e-13


def test_a_neuron_that_never_moves_is_returned_as_it_was_given():
    data = rf.Dataset([[1.0, 0.0], [1.0, 1.0]], [1.0, 2.0])
    net = rf.Network([1.0, 1.0], [[-1.0, -1.0], [1.0, 0.5]], [-1e6, 0.1], log_scale_out=[5.0, 0.1])
    run = rf.descend(data, net, lr=0.1, steps=100)
    for name, given_array in net.to_arrays().items():
        assert np.array_equal(run.final.to_arrays()[name][0], given_array[0])
    assert not np.array_equal(run.final.W[1], net.W[1])


def test_hidden_only_training_refuses_scales_outside_the_floats():
    data, net = problem(5, 3, 7, rf.losses.Square(), seed=2)
    with pytest.raises(rf.errors.InputError, match=r"`a` of neuron 0 has size 0 .*train=\"both\""):
        rf.descend(data, net.with_scale(-1e6), lr=0.1, steps=1, train="hidden")
    with pytest.raises(rf.errors.InputError, match=r"`W` of neuron 0 has size inf"):
        rf.descend(
            data, rf.Network(net.a, net.W, 1e6, log_scale_out=0.0), lr=0.1, steps=1, train="hidden"
        )
    ordinary = rf.descend(data, net.with_scale(-2.0), lr=0.1, steps=10, train="hidden")
    a, W = gradient_descent(
        data.X, data.y, *net_plain(net, -2.0), 0.1, 10, rf.losses.Square(), hidden=True
    )
    assert gap(ordinary.final, a, W) < 1e-14


def net_plain(net, log_scale):
    return np.exp(log_scale) * net.a, np.exp(log_scale) * net.W


@pytest.mark.parametrize("log_scale", [1e19, -1e19, -1e290])
def test_scales_beyond_integers_are_refused(log_scale):
    net = rf.Network([1.0], [[0.6, 0.8]], log_scale)
    with pytest.raises(rf.InputError, match=r"rf\.flow"):
        rf.descend(rf.Dataset([[1.0, 0.0]], [1.0]), net, lr=0.1, steps=5)
