import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import ortho_group

from reluflow import Dataset, Network, losses
from reluflow.errors import InputError
from reluflow.geometry import margin, smoothed_margin

from .helpers import permuted, random_net, seeds, shifted

BOTH = [losses.Exponential(), losses.Logistic()]


def problem(rng, n=6, width=5, d=3):
    data = Dataset(rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n))
    return data, random_net(rng, width, d)


def exact(data, net, loss, log_scale):
    """Both margins with 80 digits, from the definition."""
    with mpmath.workdps(80):
        factor = mpmath.exp(mpmath.mpf(log_scale))
        W = [[factor * mpmath.mpf(w) for w in row] for row in net.W.tolist()]
        a = [factor * mpmath.mpf(v) for v in net.a.tolist()]
        norm = sum(v * v for v in a) + sum(w * w for row in W for w in row)
        q = []
        for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True):
            z = [sum(w * mpmath.mpf(v) for w, v in zip(row, x, strict=True)) for row in W]
            q.append(y * sum(v * max(s, 0) for v, s in zip(a, z, strict=True)))
        if isinstance(loss, losses.Exponential):
            smooth = -mpmath.log(sum(mpmath.exp(-v) for v in q))
        else:
            smooth = -mpmath.log(mpmath.expm1(sum(mpmath.log1p(mpmath.exp(-v)) for v in q)))
        return float(min(q) / norm), float(smooth / norm)


@pytest.mark.parametrize("loss", BOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize("log_scale", [-8.0, -1.0, 0.0, 1.5, 2.3])
def test_both_margins_against_eighty_digits(loss, log_scale):
    rng = np.random.default_rng(0)
    for _ in range(4):
        data, net = problem(rng)
        h = net.predict(data.X)
        right = Dataset(data.X[h != 0], np.sign(h[h != 0]))  # all margins positive
        for points in (data, right):
            plain, smooth = exact(points, net, loss, log_scale)
            scaled = shifted(net, log_scale)
            assert margin(points, scaled) == pytest.approx(plain, rel=1e-13)
            assert smoothed_margin(points, scaled, loss) == pytest.approx(smooth, rel=1e-12)


@given(seeds)
def test_margin_is_invariant(seed):
    rng = np.random.default_rng(seed)
    data, net = problem(rng)
    value = margin(data, net)
    for log_scale in (-1e6, 3.0, 400.0, 1e5):
        assert margin(data, shifted(net, log_scale)) == pytest.approx(value, rel=1e-12)
    assert margin(data, permuted(net, rng)) == pytest.approx(value, rel=1e-12)
    Q = ortho_group.rvs(3, random_state=rng)
    turned = margin(Dataset(data.X @ Q, data.y), Network(net.a, net.W @ Q))
    assert turned == pytest.approx(value, rel=1e-11)
    order = rng.permutation(data.n)
    assert margin(Dataset(data.X[order], data.y[order]), net) == pytest.approx(value, rel=1e-13)


@given(seeds)
def test_sandwich_of_the_exponential_loss(seed):
    rng = np.random.default_rng(seed)
    data, net = problem(rng)
    net = shifted(net, rng.uniform(-3, 4))
    plain, smooth = margin(data, net), smoothed_margin(data, net, losses.Exponential())
    assert smooth <= plain + 1e-12
    assert plain <= smooth + np.log(data.n) / net.squared_norm + 1e-12


def test_total_not_mean_loss():
    data = Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0])
    net = Network([2.0], [[0.0, 2.0]])
    total = smoothed_margin(data, net, losses.Exponential())
    assert total == pytest.approx((4 - np.log(2)) / 8, rel=1e-15)
    mean = -losses.Exponential().log_value(net.predict(data.X), data.y) / net.squared_norm
    assert mean == pytest.approx(0.5, rel=1e-15)  # the mean loss over-estimates


@pytest.mark.parametrize("loss", BOTH, ids=lambda loss: loss.name)
def test_huge_margins_reach_the_plain_one(loss):
    data = Dataset([[4.0, 1.0], [-4.0, 1.0], [1.0, 1.0]], np.ones(3))
    for log_scale in (8.0, 200.0, 1e4):
        net = Network([1.0], [[0.0, 1.0]], log_scale)  # three equal margins
        gap = margin(data, net) - smoothed_margin(data, net, loss)
        # the log form loses nothing: log(3)/|theta|^2 until that is below rounding of 1/2
        assert gap == pytest.approx(np.log(3) / 2 * np.exp(-2 * log_scale), abs=1e-16)
    wrong = Dataset(data.X, -data.y)
    net = Network([1.0], [[0.0, 1.0]], 1e4)
    expected = -0.5 if loss.name == "exponential" else -1.5  # the hinge adds the points up
    assert smoothed_margin(wrong, net, loss) == pytest.approx(expected, rel=1e-12)


def test_tiny_scales():
    rng = np.random.default_rng(2)
    data, net = problem(rng)
    assert smoothed_margin(data, shifted(net, -1e5), losses.Logistic()) == -np.inf
    one = Dataset(data.X[:1], data.y[:1])
    for loss in BOTH:
        for log_scale in (-1e6, -3.0, 1e4):
            scaled = shifted(net, log_scale)
            assert smoothed_margin(one, scaled, loss) == margin(one, scaled)


def test_unbalanced_split_scales_cancel_in_the_function_only():
    data = Dataset([[1.0, 1.0]], [1.0])
    net = Network([1.0], [[1.0, 0.0]], log_scale=50.0, log_scale_out=-50.0)
    assert margin(data, net) == pytest.approx(np.exp(-100.0), rel=1e-14)


def test_refusals():
    rng = np.random.default_rng(3)
    data, net = problem(rng)
    with pytest.raises(InputError, match="has no margin"):
        smoothed_margin(data, net, losses.Square())
    with pytest.raises(InputError, match=r"y\[0\] is 2"):
        margin(Dataset([[1.0, 0.0, 0.0]], [2.0]), net)
    with pytest.raises(InputError, match="all 1 neurons are zero"):
        margin(data, Network([0.0], [[0.0, 0.0, 0.0]]))
