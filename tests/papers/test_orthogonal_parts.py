"""Probabilities and closed forms behind the orthogonal claims, against enumeration and SciPy."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from reluflow.limits import saddle_to_saddle_from_masks
from reluflow.papers.orthogonal import probability
from reluflow.papers.orthogonal.claims.convergence import compact
from reluflow.papers.orthogonal.exact import boost, one_neuron

from .orthogonal_problems import prepared, proper


def draw_masks(y_signs, m, rng):
    """One random start as sign-matched masks (m, n) and signs (m,)."""
    signs = rng.choice([-1.0, 1.0], size=m)
    return (rng.random((m, len(y_signs))) < 0.5) & (signs[:, None] * y_signs > 0.0), signs


def enumerated(y_signs, m, matched):
    """Probability of A4(i) and of coverage by listing every start."""
    n, proper_count, covered, total = len(y_signs), 0, 0, 0
    y = np.array(y_signs, dtype=float)
    for signs in [tuple([y[0]] * m)] if matched else product((-1.0, 1.0), repeat=m):
        s = np.array(signs)
        for bits in product((False, True), repeat=n * m):
            masks = np.array(bits).reshape(m, n) & (s[:, None] * y > 0)
            proper_count += probability.is_proper(masks, s)
            covered += bool(masks.any(axis=0).all())
            total += 1
    return Fraction(proper_count, total), covered / total


@pytest.mark.parametrize(
    ("signs", "m", "matched"),
    [((1, -1), 2, False), ((1, 1, -1), 3, False), ((1, 1, 1), 3, True), ((1, 1), 3, False)],
)
def test_probability_of_a4i_by_enumeration(signs, m, matched):
    positive, negative = signs.count(1), signs.count(-1)
    exact, covered = enumerated(signs, m, matched)
    assert probability.exact_probability(positive, negative, m, matched=matched) == exact
    assert probability.coverage(positive, negative, m, matched=matched) == pytest.approx(covered)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 14), st.booleans())
@settings(max_examples=40)
def test_the_union_bound_lies_below_the_exact_value(positive, negative, m, matched):
    if positive + negative == 0 or (matched and min(positive, negative) > 0):
        return
    exact = probability.exact_probability(positive, negative, m, matched=matched)
    assert 0 <= exact <= 1
    assert probability.lower_bound(positive, negative, m, matched=matched) <= float(exact) + 1e-12
    assert float(exact) <= probability.coverage(positive, negative, m, matched=matched) + 1e-12


@given(st.integers(0, 7), st.integers(0, 7), st.integers(1, 10), st.booleans())
@settings(max_examples=40)
def test_the_two_halves_enclose_the_exact_value(positive, negative, m, matched):
    if positive + negative == 0 or (matched and min(positive, negative) > 0):
        return
    exact = float(probability.exact_probability(positive, negative, m, matched=matched))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probability, "LARGEST_EXACT", 0)
        low, high = probability.enclosed(positive, negative, m, matched=matched)
    assert low - 1e-12 <= exact <= high + 1e-12


def test_failure_probability_has_the_values_of_the_specification():
    assert probability.failure_probability(1024, 40) == pytest.approx(0.08, abs=0.01)
    assert probability.failure_probability(16384, 40) < 1e-15
    assert probability.failure_probability(16, 40) > 1.0
    assert [probability.halvings(n, 9) for n in (0, 1, 2, 16, 17, 2**30)] == [0, 0, 1, 2, 3, 9]


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12))
@settings(max_examples=40)
def test_the_norm_never_exceeds_the_bound_of_its_unfitted_sets(seed, n, m):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n) * np.exp(2 * rng.standard_normal(n))
    masks, signs = draw_masks(np.sign(y), m, rng)
    process = saddle_to_saddle_from_masks(masks, signs, y)
    assert process.squared_norm <= probability.set_bound(process) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_neuron_solves_its_equation(seed, sign):
    rng = np.random.default_rng(seed)
    y = sign * rng.uniform(0.3, 2.0, 3)
    c = rng.uniform(0.05, 0.4, 3)
    v0 = np.append(sign * np.sqrt(c @ c + 0.1 * seed), c)

    def field(_, v):
        r = 0.5 * (y - v[0] * v[1:])
        return np.append(r @ v[1:], v[0] * r)

    assert one_neuron(v0, y, 0.5, 0.0) == pytest.approx(v0, rel=1e-14)
    for t in (0.3, 2.0, 15.0):
        run = solve_ivp(field, (0.0, t), v0, method="DOP853", rtol=1e-12, atol=1e-14)
        assert one_neuron(v0, y, 0.5, t) == pytest.approx(run.y[:, -1], rel=1e-9, abs=1e-11)


def test_one_neuron_ends_at_its_fit_and_far_times_do_not_overflow():
    y = np.array([3.0, 4.0])
    end = one_neuron(np.array([1e-3, 1e-3, 0.0]), y, 1.0, 1e4)
    assert end == pytest.approx([np.sqrt(5), 3 / np.sqrt(5), 4 / np.sqrt(5)], rel=1e-5)


def test_boost_is_the_exponential_and_conserves_the_product():
    rng = np.random.default_rng(0)
    v0, d = rng.normal(size=4), rng.normal(size=3)
    G = np.zeros((4, 4))
    G[0, 1:] = G[1:, 0] = d
    moved = boost(v0, d, 1.7)
    assert moved == pytest.approx(expm(1.7 * G) @ v0, rel=1e-13)
    assert moved[0] ** 2 - moved[1:] @ moved[1:] == pytest.approx(v0[0] ** 2 - v0[1:] @ v0[1:])
    assert np.array_equal(boost(v0, 0 * d, 1.0), v0)


def test_the_compact_avoids_the_jumps_and_keeps_its_exponent():
    process = prepared(proper()).process
    taus, least = compact(process, 500.0)
    assert len(taus) >= 3 * len(process.times)
    assert min(process.rate(float(tau)) for tau in taus) >= least * (1 - 1e-9)
    assert np.abs(taus[:, None] - process.times).min() > 0
