from itertools import pairwise
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.integrate import quad
from scipy.special import ndtr

from reluflow import Network, densities, losses
from reluflow.errors import InputError
from reluflow.geometry import log_population_loss, population_error, population_loss
from reluflow.geometry.piece_means import log_mean_loss

from .helpers import Uniform, permuted, random_net, rescaled, seeds, shifted

BOTH = [losses.Exponential(), losses.Logistic()]
STEP = Network([1.0], [[1.0, 0.0]])


def named(loss):
    return loss.name


class Bell:
    """A normal law cut to [-2, 1.5]: a distribution function that is linear nowhere."""

    support = (-2.0, 1.5)

    def cdf(self, x):
        low, high = ndtr(self.support)
        return np.clip((ndtr(np.clip(x, *self.support)) - low) / (high - low), 0.0, 1.0)

    def pdf(self, x):
        low, high = ndtr(self.support)
        return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) / (high - low)


class Stairs:
    """Three steps of uneven height on [-1, 2], with a gap, whose edges nobody is told."""

    support = (-1.0, 2.0)
    places = np.array([-1.0, -0.3, 0.21, 0.9, 2.0])
    heights = np.array([0.5, 0.0, 0.8, 0.098 / 1.1])

    def cdf(self, x):
        mass = np.concatenate([[0.0], np.cumsum(self.heights * np.diff(self.places))])
        return np.interp(x, self.places, mass / mass[-1])

    def pdf(self, x):
        cell = np.clip(np.searchsorted(self.places, x, side="right") - 1, 0, 3)
        return self.heights[cell] / float(self.heights @ np.diff(self.places))


def grid_error(net, teacher, density, points=400_001):
    """Brute force: labels on a dense grid, weighted by exact masses of its cells."""
    edges = np.linspace(*density.support, points)
    middle = np.column_stack([(edges[1:] + edges[:-1]) / 2, np.ones(points - 1)])
    wrong = (net.predict(middle) > 0) != (teacher.predict(middle) > 0)
    return float(np.diff(density.cdf(edges))[wrong].sum())


def quad_loss(net, teacher, density, loss):
    """Adaptive quadrature of the definition, cut at everything that is not smooth."""
    low, high = density.support
    cuts = [low, high, *getattr(density, "places", [])]
    for network in (net, teacher):
        cuts += (-network.mantissa.W[:, 1] / network.mantissa.W[:, 0]).tolist()
    grid = np.linspace(low, high, 4001)
    for network in (net, teacher):
        h = network.predict(np.column_stack([grid, np.ones(4001)]))
        for k in np.flatnonzero((h[1:] > 0) != (h[:-1] > 0)):
            cuts.append(_bisect(network, grid[k], grid[k + 1]))
    cuts = np.unique([t for t in cuts if low <= t <= high])

    def integrand(x):
        point = np.array([[x, 1.0]])
        y = 1.0 if teacher.predict(point)[0] > 0 else -1.0
        return float(np.exp(loss.log_pointwise(y * net.predict(point)))[0]) * float(density.pdf(x))

    return sum(
        quad(integrand, p, q, epsabs=0, epsrel=1e-11, limit=200)[0] for p, q in pairwise(cuts)
    )


def _bisect(network, left, right):
    def positive(x):
        return network.predict([[x, 1.0]])[0] > 0

    at_left = positive(left)
    for _ in range(60):
        middle = 0.5 * (left + right)
        left, right = (middle, right) if positive(middle) == at_left else (left, middle)
    return 0.5 * (left + right)


def dilogarithm(q):
    """Li_2(-e^-q), whose derivative is log(1 + e^-q)."""
    return mpmath.re(mpmath.polylog(2, -mpmath.exp(-q)))


# ---------------------------------------------------------------- error


def test_error_of_a_shifted_step():
    shifted_step = Network([1.0], [[1.0, -0.3]])
    assert population_error(shifted_step, STEP, Uniform(-1.0, 1.0)) == pytest.approx(
        0.15, rel=1e-15
    )
    assert population_error(STEP, STEP, Uniform(-1.0, 1.0)) == 0.0
    everywhere = Network([1.0], [[0.0, 1.0]])
    assert population_error(everywhere, STEP, Uniform(-1.0, 1.0)) == 0.5
    assert population_error(everywhere, STEP, Uniform(-2.0, -1.0)) == 1.0


@pytest.mark.parametrize("density", [Uniform(-2.0, 2.0), Bell(), Stairs()])
def test_error_against_a_dense_grid(density):
    rng = np.random.default_rng(0)
    for _ in range(5):
        net, teacher = random_net(rng, 8, 2), random_net(rng, 5, 2)
        exact = population_error(net, teacher, density)
        assert exact == pytest.approx(grid_error(net, teacher, density), abs=5e-5)


def test_error_against_sampling():
    rng = np.random.default_rng(1)
    net, teacher, density = random_net(rng, 20, 2), random_net(rng, 4, 2), Uniform(-2.0, 2.0)
    exact = population_error(net, teacher, density)
    n = 200_000
    x = np.column_stack([rng.uniform(-2, 2, n), np.ones(n)])
    share = float(np.mean((net.predict(x) > 0) != (teacher.predict(x) > 0)))
    assert 0.05 < exact < 0.95
    assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / n)


@given(seeds)
def test_error_is_invariant(seed):
    rng = np.random.default_rng(seed)
    net, teacher = random_net(rng, 7, 2), random_net(rng, 3, 2)
    density = Uniform(-2.0, 2.0)
    value = population_error(net, teacher, density)
    assert population_error(teacher, net, density) == pytest.approx(value, abs=1e-14)
    for other in (permuted(net, rng), rescaled(net, rng), shifted(net, -1e6), shifted(net, 1e5)):
        assert population_error(other, teacher, density) == pytest.approx(value, abs=1e-11)


def test_library_densities_are_accepted():
    net = Network([1.0], [[1.0, -0.5]])
    assert population_error(net, STEP, densities.uniform(0.0, 2.0)) == pytest.approx(0.25)
    union = densities.union([(-1.0, 0.25), (0.75, 1.0)])
    assert population_error(net, STEP, union) == pytest.approx(0.25 / 1.5)


def test_whole_line_density():
    normal = SimpleNamespace(support=(-np.inf, np.inf), cdf=ndtr)
    value = population_error(Network([1.0], [[1.0, -1.0]]), STEP, normal)
    assert value == pytest.approx(ndtr(1.0) - 0.5, rel=1e-14)


# ---------------------------------------------------------------- loss


@pytest.mark.parametrize("loss", BOTH, ids=named)
@pytest.mark.parametrize("density", [densities.uniform(-2.0, 2.0), Bell(), Stairs()])
def test_loss_against_quadrature(loss, density):
    rng = np.random.default_rng(3)
    for scale in (0.0, 0.7):
        net, teacher = random_net(rng, 5, 2, scale), random_net(rng, 3, 2)
        exact = population_loss(net, teacher, density, loss)
        assert exact == pytest.approx(quad_loss(net, teacher, density, loss), rel=2e-10)


@pytest.mark.parametrize("loss", BOTH, ids=named)
def test_loss_of_a_step_in_closed_form(loss):
    """h = c relu(x), y = sign: half the mass has margin 0, half an interval of margins [0, c]."""
    for log_c in (-2000.0, -3.0, 0.0, 4.0, 9.0, 300.0, 2000.0):
        net = Network([1.0], [[1.0, 0.0]], log_c / 2)
        with mpmath.workdps(40):
            c = mpmath.exp(log_c)
            if loss.name == "exponential":
                right = -mpmath.expm1(-c) / c
                flat = mpmath.mpf(1)
            else:
                flat = mpmath.log(2)
                right = (dilogarithm(c) - dilogarithm(mpmath.mpf(0))) / c if log_c > -9 else flat
            half, whole = float(mpmath.log((flat + right) / 2)), float(mpmath.log(right))
        found = log_population_loss(net, STEP, Uniform(-1.0, 1.0), loss)
        assert found == pytest.approx(half, abs=1e-13)
        right_only = log_population_loss(net, STEP, Uniform(0.0, 1.0), loss)
        assert right_only == pytest.approx(whole, rel=1e-13, abs=1e-13)


def test_loss_beyond_the_range_of_floats():
    wrong = Network([-1.0], [[1.0, 0.0]], 4.5)  # margins down to -exp(9) on half the mass
    c = np.exp(9.0)
    expected = c - np.log(c) + np.log(0.5)
    loss = losses.Exponential()
    assert log_population_loss(wrong, STEP, Uniform(-1.0, 1.0), loss) == pytest.approx(expected)
    assert population_loss(wrong, STEP, Uniform(-1.0, 1.0), loss) == np.inf
    hinge = Network([-1.0], [[1.0, 0.0]], 1000.0)  # logistic: half the mean of c x on [0, 1]
    found = log_population_loss(hinge, STEP, Uniform(-1.0, 1.0), losses.Logistic())
    assert found == pytest.approx(2000.0 + np.log(0.25), rel=1e-14)


@pytest.mark.parametrize("loss", BOTH, ids=named)
def test_thin_layers_under_a_smooth_density(loss):
    """At large scale the loss lives within 1/c of the sign change: mass density there, over c."""
    layer = {"exponential": 1.0, "logistic": np.pi**2 / 12}[loss.name]
    density = Bell()
    line = Network([1.0, -1.0], [[1.0, -0.5], [-1.0, 0.5]])  # x - 1/2, both sides
    # a zero inside a piece, where the value in floats is 6e-17
    lifted = Network([1 / 0.7, -1 / 0.7], [[0.7, 0.11], [0.0, 0.37]])
    for net, zero in ((line, 0.5), (lifted, 0.26 / 0.7)):
        for log_c in (20.0, 60.0, 2000.0):
            found = log_population_loss(shifted(net, log_c / 2), net, density, loss)
            expected = np.log(2 * layer * density.pdf(zero)) - log_c
            assert found == pytest.approx(expected, abs=3e-8)


@pytest.mark.parametrize("loss", BOTH, ids=named)
def test_smooth_densities_need_few_evaluations(loss):
    """The rule by parts converges at once on smooth pieces, rising or falling."""

    class Counting(Bell):
        calls = 0

        def cdf(self, x):
            Counting.calls += 1
            return super().cdf(x)

    for net in (Network([1.0], [[1.0, 2.5]]), Network([1.0], [[-1.0, 2.0]])):
        Counting.calls = 0
        population_loss(net, net, Counting(), loss)
        assert Counting.calls < 100


def test_a_rough_distribution_function_ends_with_the_work_allowed():
    """A staircase of 2^14 steps, finer than the cells allowed: mass is kept, only spread."""
    steps = 2.0**14
    rough = SimpleNamespace(
        support=(0.0, 1.0), cdf=lambda x: np.clip(np.floor(np.asarray(x) * steps) / steps, 0, 1)
    )
    found = population_loss(STEP, STEP, rough, losses.Exponential())
    assert found == pytest.approx(1 - np.exp(-1), rel=1e-3)


def test_loss_is_at_least_the_error_times_loss_at_zero():
    rng = np.random.default_rng(4)
    for loss in BOTH:
        for _ in range(5):
            net, teacher = random_net(rng, 6, 2), random_net(rng, 3, 2)
            error = population_error(net, teacher, Bell())
            floor = np.exp(loss.log_at_zero) * error
            assert population_loss(net, teacher, Bell(), loss) >= floor * (1 - 1e-12)


@given(seeds)
def test_loss_is_invariant(seed):
    rng = np.random.default_rng(seed)
    net, teacher = random_net(rng, 4, 2), random_net(rng, 3, 2)
    density, loss = Uniform(-2.0, 2.0), losses.Logistic()
    value = population_loss(net, teacher, density, loss)
    for other in (permuted(net, rng), rescaled(net, rng)):
        assert population_loss(other, teacher, density, loss) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("loss", BOTH, ids=named)
@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0.0, 0.0),
        (0.0, 1e-9),
        (-0.3, 0.4),
        (3.0, -2.0),
        (-80.0, 90.0),
        (45.0, 60.0),
        (-70.0, -50.0),
    ],
)
@pytest.mark.parametrize("log_factor", [0.0, 3.0])
def test_mean_loss_over_a_piece(loss, first, last, log_factor):
    with mpmath.workdps(60):
        factor = mpmath.exp(log_factor)
        p, q = mpmath.mpf(first) * factor, mpmath.mpf(last) * factor

        def value(t):
            return mpmath.exp(-t) if loss.name == "exponential" else mpmath.log1p(mpmath.exp(-t))

        if p == q:
            exact = value(p)
        elif loss.name == "exponential":
            exact = (mpmath.exp(-p) - mpmath.exp(-q)) / (q - p)
        else:
            exact = (dilogarithm(q) - dilogarithm(p)) / (q - p)
        expected = float(mpmath.log(exact))
    found = log_mean_loss(loss, first, last, log_factor)
    assert found == pytest.approx(expected, abs=2e-14, rel=2e-15)


# ---------------------------------------------------------------- refusals


def test_refusals():
    net, wide = STEP, Network([1.0], [[1.0, 0.0, 0.0]])
    density = Uniform(-1.0, 1.0)
    with pytest.raises(InputError, match="`teacher` takes 3 inputs"):
        population_error(net, wide, density)
    with pytest.raises(InputError, match="`net` takes 3 inputs"):
        population_loss(wide, net, density, losses.Exponential())
    with pytest.raises(InputError, match="without `cdf` and `support`"):
        population_error(net, net, 3.0)
    with pytest.raises(InputError, match="not an interval"):
        population_error(net, net, Uniform(1.0, 1.0))
    with pytest.raises(InputError, match="no function of a margin"):
        population_loss(net, net, density, losses.Square())
    line = SimpleNamespace(support=(-np.inf, np.inf), cdf=ndtr)
    with pytest.raises(InputError, match="Truncate"):
        population_loss(net, net, line, losses.Exponential())
    broken = SimpleNamespace(support=(-1.0, 1.0), cdf=lambda x: 2.0 * x)
    with pytest.raises(InputError, match="Masses must be between 0 and 1"):
        population_error(net, net, broken)
