"""Random initialisations: laws, exact balance, independence of the scale, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reluflow import networks
from reluflow.errors import InputError

MAKERS = {
    "balanced": networks.balanced,
    "dominated": networks.dominated,
    "unbalanced": lambda d, m, **kw: networks.unbalanced(d, m, ratio=0.5, **kw),
    "gaussian": lambda d, m, **kw: networks.gaussian(d, m, sigma_hidden=2, sigma_output=3, **kw),
    "fan_in_uniform": networks.fan_in_uniform,
}


@pytest.mark.parametrize("name", list(MAKERS))
def test_seeds_repeat(name):
    make = MAKERS[name]
    assert make(3, 5, seed=1) == make(3, 5, seed=np.random.default_rng(1))
    assert make(3, 5, seed=1) != make(3, 5, seed=2)
    assert make(3, 5, seed=1).W.shape == (5, 3)


@given(
    d=st.integers(1, 30),
    width=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    directions=st.sampled_from(["gaussian", "sphere"]),
    log_scale=st.sampled_from([0.0, -9.7, -1e6]),
)
def test_balance_is_exactly_zero(d, width, seed, directions, log_scale):
    net = networks.balanced(d, width, log_scale=log_scale, directions=directions, seed=seed)
    np.testing.assert_array_equal(net.balance, 0.0)
    np.testing.assert_array_equal(net.log_norms, net.log_outputs)
    assert (np.abs(net.signs) == 1.0).all()


def test_scale_is_no_part_of_the_draws():
    nets = [networks.balanced(4, 6, log_scale=s, seed=3) for s in (0.0, -1e6)]
    np.testing.assert_array_equal(nets[0].mantissa.W, nets[1].mantissa.W)
    np.testing.assert_array_equal(nets[0].mantissa.a, nets[1].mantissa.a)
    np.testing.assert_array_equal(nets[1].log_scale, -1e6)
    each = networks.balanced(4, 3, log_scale=[-1.0, -2.0, -3.0], seed=3)
    np.testing.assert_array_equal(each.log_scale, [-1, -2, -3])


def test_gaussian_directions_have_variance_one_over_d_width():
    net = networks.balanced(40, 200, seed=4)
    assert stats.kstest(net.W.ravel() * np.sqrt(40 * 200), "norm").pvalue > 0.01
    assert (net.W**2).sum() == pytest.approx(1.0, rel=0.05)


def test_sphere_directions_are_uniform():
    net = networks.balanced(3, 3000, directions="sphere", seed=5)
    np.testing.assert_allclose(np.linalg.norm(net.W, axis=1), 1.0, rtol=1e-15)
    for k in range(3):  # Archimedes: coordinates on the sphere are uniform
        assert stats.kstest(net.W[:, k], "uniform", args=(-1, 2)).pvalue > 0.01


def test_signs():
    random = networks.balanced(2, 2000, seed=6).signs
    assert abs(random.sum()) < 4 * np.sqrt(2000)
    assert (networks.balanced(2, 9, signs="positive", seed=6).signs == 1).all()
    given = networks.balanced(2, 3, signs=[-1, 1, -1], seed=6)
    np.testing.assert_array_equal(given.signs, [-1, 1, -1])
    np.testing.assert_array_equal(given.W, networks.balanced(2, 3, seed=6).W)


@pytest.mark.parametrize("ratio", [1.5, 3.0])
def test_dominated(ratio):
    plain = networks.balanced(5, 7, log_scale=-2.0, seed=8)
    net = networks.dominated(5, 7, ratio=ratio, log_scale=-2.0, seed=8)
    np.testing.assert_array_equal(net.mantissa.W, plain.mantissa.W)
    np.testing.assert_allclose(net.mantissa.a, ratio * plain.mantissa.a, rtol=1e-15)
    expected = (ratio**2 - 1) * np.exp(2 * net.log_norms)
    np.testing.assert_allclose(net.balance, expected, rtol=1e-12)


def test_unbalanced_below_one_has_negative_balance():
    net = networks.unbalanced(5, 7, ratio=0.25, directions="sphere", seed=8)
    np.testing.assert_allclose(net.balance, 0.0625 - 1.0, rtol=1e-12)


def test_gaussian():
    net = networks.gaussian(20, 500, sigma_hidden=4.0, sigma_output=0.1, seed=9)
    assert stats.kstest(net.W.ravel() / 4.0, "norm").pvalue > 0.01
    assert stats.kstest(net.a / 0.1, "norm").pvalue > 0.01
    again = networks.gaussian(20, 500, sigma_hidden=8.0, sigma_output=0.0, seed=9)
    np.testing.assert_array_equal(again.W, 2 * net.W)
    assert not again.a.any()


def test_fan_in_uniform():
    d, m = 16, 900
    net = networks.fan_in_uniform(d, m, seed=10)
    assert stats.kstest(net.W.ravel() * 4.0, "uniform", args=(-1, 2)).pvalue > 0.01
    assert stats.kstest(net.a * 30.0, "uniform", args=(-1, 2)).pvalue > 0.01
    assert net.squared_norm == pytest.approx((m + 1) / 3, rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: networks.balanced(0, 3, seed=0), "`d` is 0"),
        (lambda: networks.balanced(3, 0, seed=0), "`width` is 0"),
        (lambda: networks.balanced(3, 2, directions="cube", seed=0), "`directions` is 'cube'"),
        (lambda: networks.balanced(3, 2, signs="mixed", seed=0), "`signs` is 'mixed'"),
        (lambda: networks.balanced(3, 2, signs=[1, 0], seed=0), r"`signs\[1\]` is 0"),
        (lambda: networks.balanced(3, 2, signs=[1, 1, 1], seed=0), "3 entries for 2 neurons"),
        (lambda: networks.balanced(3, 2, log_scale=[0.0] * 3, seed=0), "3 entries for 2 neurons"),
        (lambda: networks.balanced(3, 2, log_scale=-np.inf, seed=0), "non-finite"),
        (lambda: networks.balanced(3, 2, seed=-1), "`seed` is -1"),
        (lambda: networks.dominated(3, 2, ratio=1.0, seed=0), "`ratio` is 1; it must be above 1"),
        (lambda: networks.unbalanced(3, 2, ratio=0.0, seed=0), "`ratio` is 0"),
        (
            lambda: networks.gaussian(3, 2, sigma_hidden=0, sigma_output=1, seed=0),
            "`sigma_hidden` is 0",
        ),
        (
            lambda: networks.gaussian(3, 2, sigma_hidden=1, sigma_output=-1, seed=0),
            "`sigma_output` is -1",
        ),
        (lambda: networks.fan_in_uniform(3, 1.5, seed=0), "`width` is 1.5, not a whole number"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
