"""Where paths leave the side they are on: against all roots, mpmath and fine grids."""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from reluflow.engines.flow.tableau import FOUR, SIX, lagrange_matrix
from reluflow.kernels.flow.layout import SLIDE
from reluflow.kernels.flow.roots import (
    NEVER,
    bound_outside,
    exit_boost,
    first_boundary,
    first_exit,
    first_flip,
    leaves_box,
    moments,
    turns_back,
)

START_GAUSS = np.append(0.0, FOUR.tables.gauss)


def bernstein_value(coefficients, t):
    """De Casteljau, vectorised."""
    rows = [np.full(np.shape(t), c, dtype=float) for c in coefficients]
    while len(rows) > 1:
        rows = [(1 - t) * u + t * v for u, v in pairwise(rows)]
    return rows[0]


def to_bernstein(p):
    """Bernstein coefficients on [0, 1] of a monomial polynomial, by interpolation."""
    size = len(p)
    t = 0.5 - 0.5 * np.cos(np.pi * (np.arange(size) + 0.5) / size)
    basis = np.array([bernstein_value(row, t) for row in np.eye(size)]).T
    return np.linalg.solve(basis, polynomial.polyval(t, p))


def exit_by_roots(p, sign):
    """First point of (0, 1] where sign * p turns negative, from all roots; 2.0 if none."""
    roots = polynomial.polyroots(p)
    real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    edges = np.concatenate([[0.0], real[(real > 0) & (real < 1)], [1.0]])
    for left, right in pairwise(edges):
        if sign * polynomial.polyval(0.5 * (left + right), p) < 0:
            return left
    return 2.0


# ---------------------------------------------------------------------- polynomials


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_first_exit_equals_the_first_root(seed, degree):
    rng = np.random.default_rng(seed)
    roots = rng.uniform(-0.5, 1.5, size=degree)
    p = polynomial.polyfromroots(roots) * rng.choice([-1.0, 1.0])
    sign = 1.0 if polynomial.polyval(0.0, p) > 0 else -1.0
    gaps = np.diff(np.sort(np.append(roots, [0.0, 1.0])))
    if gaps.min() < 1e-4:
        return
    found = first_exit(to_bernstein(p), sign, 0.0)
    assert found == pytest.approx(exit_by_roots(p, sign), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_first_exit_of_any_quintic_is_its_first_crossing_root(seed):
    p = np.random.default_rng(seed).normal(size=6)
    sign = 1.0 if p[0] > 0 else -1.0
    found = first_exit(to_bernstein(p), sign, 0.0)
    assert found == pytest.approx(exit_by_roots(p, sign), abs=1e-9)


def test_first_exit_of_a_polynomial_that_stays():
    assert first_exit(np.array([1.0, 0.2, 3.0]), 1.0, 0.0) == 2.0
    # a dip of the control polygon that the curve does not follow
    p = np.array([0.26, -1.0, 1.0])
    assert first_exit(to_bernstein(p), 1.0, 0.0) == 2.0


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-5, 1e-7])
def test_first_exit_sees_a_double_crossing_of_any_width(width):
    for degree in (3, 6):
        p = np.zeros(degree)
        p[:3] = polynomial.polyfromroots([0.3 - width, 0.3 + width])
        found = first_exit(to_bernstein(p), 1.0, 0.0)
        assert found == pytest.approx(0.3 - width, abs=1e-8)


def test_touching_without_crossing_is_no_exit():
    p = polynomial.polyfromroots([0.3, 0.3])
    assert first_exit(to_bernstein(p), 1.0, 1e-15) == 2.0
    assert first_exit(to_bernstein(p + np.array([1e-6, 0.0, 0.0])), 1.0, 0.0) == 2.0


def test_first_exit_at_the_start_and_at_the_end():
    assert first_exit(np.array([-1.0, 1.0]), 1.0, 0.0) == 0.0
    assert first_exit(np.array([0.0, -1.0, -1.0]), 1.0, 0.0) <= 1e-14
    assert first_exit(np.array([1.0, -1e-9]), 1.0, 0.0) == pytest.approx(1.0, abs=2e-9)
    assert first_exit(np.array([1.0, -1e-9]), 1.0, 1e-8) == 2.0


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_first_exit_is_odd_in_the_sign(seed):
    coefficients = np.random.default_rng(seed).normal(size=6)
    left = first_exit(coefficients, 1.0, 0.0)
    assert left == first_exit(-coefficients, -1.0, 0.0)


# ---------------------------------------------------------------------- planes and output weights


@pytest.mark.parametrize("method", [FOUR, SIX], ids=["four", "six"])
def test_bounds_of_the_cheap_test_enclose_the_polynomials(method):
    tables, t = method.tables, np.linspace(0.0, 1.0, 100001)
    basis = lagrange_matrix(np.append(0.0, tables.gauss), t)
    top = np.abs(basis).max(axis=0)
    assert (top <= tables.spread).all()
    assert (top >= 0.99 * tables.spread).all()
    paths = np.cumsum(basis[1:] + basis[:-1], axis=0) * (0.5 * t[1])
    assert (np.abs(paths).max(axis=0) <= tables.bound + 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_first_boundary_is_the_earliest_exit_of_all_planes(seed):
    rng = np.random.default_rng(seed)
    size = 30
    z = rng.normal(size=size) * 10.0 ** rng.uniform(-2, 1)
    row = (z > 0).astype(np.int8)
    row[:3] = SLIDE  # slides have no exit
    speed = rng.normal(size=(1, size)) + 10.0 ** rng.uniform(-2, 1) * rng.normal(size=(5, size))
    tau, where = first_boundary(z, row, speed, 0.7, FOUR.tables, 0.0)
    exits = [
        first_exit(z[p] + 0.7 * FOUR.tables.path @ speed[:, p], np.sign(z[p]), 0.0)
        for p in range(3, size)
    ]
    assert tau == pytest.approx(min(exits), rel=1e-12)
    assert where == (-1 if tau > 1.0 else 3 + int(np.argmin(exits)))


def test_a_pre_activation_at_rounding_leaves_only_if_it_is_carried_off():
    nodes = START_GAUSS
    row, slack = np.array([1], np.int8), 1e-13
    out, back = (-np.ones(5), nodes - 0.25)  # leaves at once; leaves, and is back at tau = 1/2
    for z in (0.0, 5e-14, -5e-14):
        start = np.array([z])
        tau, where = first_boundary(start, row, out[:, None], 1.0, FOUR.tables, slack)
        assert (tau <= 1e-12, where) == (True, 0)
        tau, _ = first_boundary(start, row, back[:, None], 1.0, FOUR.tables, slack)
        assert tau <= 1e-11
        tau, _ = first_boundary(start, row, -out[:, None], 1.0, FOUR.tables, slack)
        assert tau == 2.0
        # a drift that stays within rounding is none
        tiny = 0.5e-13 * out[:, None]
        assert first_boundary(start, row, tiny, 1.0, FOUR.tables, slack)[1] == -1


@pytest.mark.parametrize("seed", range(20))
def test_first_flip_is_the_first_zero_of_the_output_weight(seed):
    rng = np.random.default_rng(seed)
    slope = 2.0 * rng.normal(size=5)  # a quartic through the start and the Gauss nodes
    p = polynomial.polyint(np.polyfit(START_GAUSS, slope, 4)[::-1]) * 0.8
    p[0] = a = rng.normal() * 0.5
    found = first_flip(a, slope, 0.8, FOUR.tables.path)
    assert found == pytest.approx(exit_by_roots(p, np.sign(a)), abs=1e-9)


def test_an_output_weight_of_zero_has_no_flip():
    assert first_flip(0.0, np.ones(5), 1.0, FOUR.tables.path) == 2.0


@pytest.mark.parametrize("seed", range(40))
def test_a_weight_leaves_the_box_when_it_is_first_outside(seed):
    rng = np.random.default_rng(seed)
    force = rng.choice([-1.0, 1.0]) * (1.5 + 0.2 * rng.normal(size=5))
    share = force * (rng.uniform(0.1, 0.9) + 0.6 * rng.normal(size=5))
    share[0] = force[0] * rng.uniform(0.05, 0.95)
    tau, up = leaves_box(share, force, FOUR.tables.force, 0.0, 1e-9)
    at = np.linspace(0.0, 1.0, 20001)
    path = lagrange_matrix(FOUR.tables.nodes, at)
    theta = (path @ share) / (path @ force)
    outside = np.flatnonzero((theta < 0.0) | (theta > 1.0))
    if len(outside):
        assert tau == pytest.approx(at[outside[0]], abs=2e-4)
        assert up == (theta[outside[0]] > 1.0)
    else:
        assert tau == 2.0


def test_a_weight_that_settles_at_an_end_of_the_box_stays_there():
    nodes = FOUR.tables.nodes
    force = np.full(5, -2.0)
    share = force * (1.0 + 1e-7 * nodes)  # beyond 1, by less than forces are known
    assert leaves_box(share, force, FOUR.tables.force, 1e-9, 1e-6)[0] == 2.0
    # far enough in the end: it left when it was outside by ``near``
    share = force * (1.0 + 1e-3 * nodes)
    tau, up = leaves_box(share, force, FOUR.tables.force, 1e-4, 1e-3)
    assert tau == pytest.approx(0.05)
    assert up


@pytest.mark.parametrize("force", [-2.0, 2.0])
@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_a_weight_may_be_outside_by_less_if_it_is_for_long(force, power, end):
    """Outside by 1e-7 t^k: the mean is 1e-7 / (k + 1), whichever end it leaves by."""
    nodes, weights = FOUR.tables.nodes, FOUR.weights
    out = (1e-7 if end else -1e-7) * np.sign(force) * nodes**power
    forces = np.full(5, force)
    mean = 1e-7 / (power + 1)
    for most, wanted in ((0.99 * mean, 0.99 * mean), (1.01 * mean, 1e-6)):
        found = bound_outside(end * forces + out, forces, weights, 1e-6, most)
        assert found == pytest.approx(wanted)
    assert bound_outside(end * forces - out, forces, weights, 1e-6, 1e-12) == 1e-6
    assert bound_outside(end * forces + out[::-1], forces, weights, 1e-6, 1e-12) == 1e-6


# ---------------------------------------------------------------------- constant pulls


def boosted_exit(z, a, p, xi, sign):
    """`exit_boost` of a neuron with ``w.g/|g| = p``."""
    return exit_boost(z, z - xi * p, xi, p + a, sign)


def boosted_exit_by_roots(z, a, p, xi, sign):
    """The same in 60 digits: roots of z + xi [p (cosh q - 1) + a sinh q], a quadratic in e^q."""
    with mp.workdps(60):
        z, a, p, xi = (mp.mpf(float(v)) * s for v, s in ((z, sign), (a, 1), (p, 1), (xi, sign)))
        # times 2 e^q: alpha E^2 + beta E + gamma with E = e^q
        alpha, beta, gamma = xi * (p + a), 2 * (z - xi * p), xi * (p - a)
        if alpha == 0:
            roots = [-gamma / beta] if beta != 0 else []
        else:
            disc = beta**2 - 4 * alpha * gamma
            if disc < 0:
                return None
            roots = [(-beta + s * mp.sqrt(disc)) / (2 * alpha) for s in (1, -1)]
        inside = sorted(r for r in roots if r > 1)
        for root in inside:
            slope = 2 * alpha * root + beta
            if slope < 0:
                return mp.log(root)
        return None


def ordinary(limit):
    """Zero, or a number far from underflow: beyond e^700 a neuron has been rescaled."""
    return st.floats(-limit, limit).map(lambda v: 0.0 if abs(v) < 1e-6 else v)


@settings(max_examples=300)
@given(st.floats(1e-3, 3.0), ordinary(3.0), ordinary(3.0), ordinary(2.0), st.sampled_from([1, -1]))
def test_exit_boost_equals_the_first_root(size, a, p, xi, sign):
    z = sign * size
    seen = boosted_exit(z, a, p, xi, float(sign))
    exact = boosted_exit_by_roots(z, a, p, xi, sign)
    if exact is None:
        # a double root, or one beyond the range, may be decided either way by rounding
        if seen != NEVER:
            value = size + sign * xi * (p * (np.cosh(seen) - 1) + a * np.sinh(seen))
            assert abs(value) <= 1e-9 * (size + abs(xi) * (abs(a) + abs(p)) * np.cosh(seen))
        return
    if seen == NEVER:
        pytest.fail(f"exit at {float(exact)} missed")
    # near a double root the position is uncertain by the root of rounding
    assert seen == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_exit_boost_is_the_first_change_of_sign_on_a_grid(seed):
    z, a, p, xi = np.random.default_rng(seed).normal(size=4)
    sign = np.sign(z)
    q = np.linspace(0.0, 8.0, 400_001)
    path = sign * ((z - p * xi) + xi * (p * np.cosh(q) + a * np.sinh(q)))
    below = np.flatnonzero(path < 0)
    found = boosted_exit(z, a, p, xi, sign)
    if len(below):
        assert found == pytest.approx(q[below[0]], abs=4e-5)
    else:
        assert found > 8.0


def test_a_neuron_that_only_rises_never_leaves():
    assert boosted_exit(1.0, 1.0, 1.0, 1.0, 1.0) == NEVER


@pytest.mark.parametrize("z", [1e-300, 1e-20, 1e-8])
def test_exit_close_to_the_start_keeps_its_digits(z):
    # z small, moving out at speed xi a: q = z / |xi a| to first order
    across, xi, plus = -0.35, 0.7, -0.5  # p = 1/2, a = -1
    assert exit_boost(z, across, xi, plus, 1.0) == pytest.approx(z / 0.7, rel=1e-7)


def test_exit_from_the_plane_itself():
    assert boosted_exit(0.0, -1.0, 0.3, 0.5, 1.0) == 0.0  # moves out at once
    assert boosted_exit(0.0, 1.0, 0.3, 0.5, 1.0) == NEVER  # moves in for ever
    back = boosted_exit(0.0, 1.0, -3.0, 0.5, 1.0)  # in, then back through the plane
    value = 0.5 * (-3.0 * (np.cosh(back) - 1) + np.sinh(back))
    assert 0 < back < 5
    assert value == pytest.approx(0.0, abs=1e-14)


def test_far_exit_does_not_overflow():
    # a nearly balanced neuron that turns only after a long boost
    q = boosted_exit(1.0, -1.0, 1.0 + 1e-15, 1e-3, 1.0)
    assert q == NEVER or q > 5
    assert np.isfinite(q)


@pytest.mark.parametrize("plus", [1e-100, 1e-250, 1e-300])
def test_a_neuron_that_shrinks_and_grows_again_leaves_when_it_has_grown(plus):
    # z = across + xi (plus e^q) / 2 + ...: the growing part is tiny at first
    across, xi = 0.3, -1.0
    q = exit_boost(0.5, across, xi, plus, 1.0)
    # alpha E^2 + across E + gamma with E = e^q, gamma = z - across - xi plus / 2
    with mp.workdps(400):
        alpha = mp.mpf(xi) * mp.mpf(plus) / 2
        gamma = mp.mpf(0.5) - mp.mpf(across) - alpha
        beta = mp.mpf(across)
        root = (-beta - mp.sqrt(beta**2 - 4 * alpha * gamma)) / (2 * alpha)
        expected = float(mp.log(root))
    assert q == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_moments_are_the_roots_inside_their_brackets(seed):
    """Quartics with one change of sign in (0, 1): companion matrices find the same roots."""
    rng = np.random.default_rng(seed)
    start, rises = rng.normal(size=400), rng.normal(size=(4, 400))
    roots = [polynomial.polyroots([start[e], *rises[:, e]]) for e in range(400)]
    inside = [r.real[(abs(r.imag) < 1e-9) & (r.real > 0.0) & (r.real < 1.0)] for r in roots]
    one = np.flatnonzero([len(r) == 1 for r in inside])
    assert len(one) > 50
    low, high = np.zeros(len(one)), np.ones(len(one))
    found = moments(start[one], rises[:, one], start[one] < 0.0, low, high)
    np.testing.assert_allclose(found, [inside[e][0] for e in one], atol=1e-8)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize(
    ("vertex", "least", "moment"),
    [
        (0.5, 1e-6, 0.5 - np.sqrt(9e-6)),  # turns back within 1e-5
        (0.5, 1e-4, 2.0),  # farther away
        (0.003, 1e-6, 0.0),  # was there at the start
        (0.998, 1e-6, 0.998 - np.sqrt(9e-6)),  # is there at the end
        (1.001, 1e-6, 2.0),  # comes nearer to the end
    ],
)
def test_what_comes_near_a_plane_and_turns_back(side, vertex, least, moment):
    # z = (t - vertex)^2 + least in a step of 2, from its speed at the start and the Gauss nodes
    at = np.concatenate([[0.0], FOUR.tables.gauss])
    speed = side * 2.0 * (at - vertex) / 2.0
    z = side * (vertex**2 + least)
    found = turns_back(z, side, speed, 2.0, FOUR.tables.path, 1e-5)
    assert found == pytest.approx(moment, abs=1e-9)
