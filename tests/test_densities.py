"""Densities: exact distribution functions against quadrature, mpmath and closed forms."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from reluflow import densities
from reluflow.errors import InputError

LAWS = {
    "uniform": densities.uniform(-1.5, 2.0),
    "piecewise": densities.piecewise([-2.0, -1.0, 0.5, 0.75, 3.0], [1.0, 0.0, 5.0, 2.0]),
    "around the mode": densities.truncated_normal(-1.0, 2.0, 0.3, 0.8),
    "tail": densities.truncated_normal(3.0, 9.0, 0.0, 1.5),
    "left tail": densities.truncated_normal(-9.0, -3.0, 0.0, 1.5),
    "short": densities.truncated_normal(1.0, 1.25, 0.0, 2.0),
    "union": densities.union([(2.0, 2.5), (-1.0, 0.0), (0.5, 1.0)]),
}


@pytest.fixture(params=list(LAWS))
def law(request):
    return LAWS[request.param]


def breaks(law):
    edges = getattr(law, "edges", None)
    return None if edges is None else list(edges[1:-1])


def test_the_density_integrates_to_the_distribution_function(law):
    lo, hi = law.support
    for x in np.linspace(lo, hi, 7)[1:]:
        cuts = [b for b in breaks(law) or [] if lo < b < x]
        mass, _ = integrate.quad(law.pdf, lo, x, points=cuts or None, epsabs=1e-12, limit=200)
        assert law.cdf(x) == pytest.approx(mass, abs=1e-11)


def test_ends_and_outside(law):
    lo, hi = law.support
    assert law.cdf(lo) == 0.0
    assert law.cdf(hi) == 1.0
    np.testing.assert_array_equal(law.cdf([-np.inf, lo - 1, hi + 1, np.inf]), [0, 0, 1, 1])
    np.testing.assert_array_equal(law.pdf([lo - 1e-9, hi + 1e-9, np.inf]), 0.0)
    assert law.pdf(lo) > 0.0
    assert law.pdf(hi) > 0.0


def test_maximum_is_the_largest_value_on_a_grid(law):
    grid = np.linspace(*law.support, 20_001)
    values = law.pdf(grid)
    assert values.max() <= law.maximum * (1 + 1e-14)
    assert values.max() >= law.maximum * (1 - 1e-3)


def test_quantile_inverts_the_distribution_function(law):
    u = np.linspace(0.0, 1.0, 401)[1:-1]
    np.testing.assert_allclose(law.cdf(law.quantile(u)), u, rtol=0, atol=2e-15)


def test_samples_follow_the_law_and_repeat(law):
    x = law.sample(4000, seed=3)
    assert stats.kstest(x, law.cdf).pvalue > 0.01
    np.testing.assert_array_equal(x, law.sample(4000, seed=3))
    np.testing.assert_array_equal(x, law.quantile(np.random.default_rng(3).random(4000)))
    assert (law.pdf(x) > 0.0).all()


def test_shapes_are_kept(law):
    x = np.linspace(*law.support, 6).reshape(2, 3)
    for function in (law.pdf, law.cdf):
        assert function(x).shape == (2, 3)
        assert function(x[0, 1]).shape == ()
    assert law.quantile(np.full((2, 1), 0.5)).shape == (2, 1)


@pytest.mark.parametrize(
    ("lo", "hi", "mean", "sd"),
    [
        (-1.0, 2.0, 0.3, 0.8),
        (-1.0, 1.0, 0.0, 1e6),
        (0.0, 1.0, 5e5, 1e6),  # z-scores differ by less than their own rounding allows
        (40.0, 41.0, 0.0, 1.0),  # the mass of the interval underflows
        (-41.0, -40.0, 0.0, 1.0),
        (1.0, 1.0 + 1e-9, 0.0, 1.0),
        (1.01, 1.5, 0.0, 1.0),
        (-30.0, 50.0, 0.0, 1.0),
        (60.0, 1000.0, 0.0, 1.0),
        (60.0, 60.0001, 0.0, 1.0),
    ],
)
def test_truncated_normal_agrees_with_mpmath(lo, hi, mean, sd):
    law = densities.truncated_normal(lo, hi, mean, sd)
    with mpmath.workdps(420):
        exact_lo, exact_hi = mpmath.mpf(lo), mpmath.mpf(hi)
        tail = lambda x: mpmath.erfc((mpmath.mpf(x) - mean) / (sd * mpmath.sqrt(2))) / 2  # noqa: E731
        total = tail(exact_lo) - tail(exact_hi)
        for x in (lo, lo + 0.1 * (hi - lo), 0.5 * (lo + hi), hi):
            cdf = (tail(exact_lo) - tail(x)) / total
            pdf = mpmath.npdf(mpmath.mpf(x), mean, sd) / total
            assert float(law.cdf(x)) == pytest.approx(float(cdf), abs=1e-14)
            assert float(law.pdf(x)) == pytest.approx(float(pdf), rel=1e-13, abs=1e-300)


def test_narrow_peak_inside_a_wide_interval():
    law = densities.truncated_normal(-1e3, 1e3, 2.0, 1e-3)
    assert law.maximum == pytest.approx(1e3 / np.sqrt(2 * np.pi), rel=1e-14)
    assert law.quantile(0.5) == pytest.approx(2.0, abs=1e-12)


def test_weights_are_masses_and_empty_ends_are_cut():
    law = densities.piecewise([0, 1, 2, 4, 9], [0, 1, 3, 0])
    assert law.support == (1.0, 4.0)
    np.testing.assert_allclose(law.pdf([1.5, 3.0, 0.5]), [0.25, 0.375, 0.0])
    assert law.maximum == 0.375


def test_right_limit_at_an_edge_and_last_edge_included():
    law = densities.piecewise([0, 1, 3], [1, 1])
    np.testing.assert_array_equal(law.pdf([0.0, 1.0, 3.0]), [0.5, 0.25, 0.25])


def test_quantile_jumps_over_a_gap():
    law = densities.union([(0, 1), (5, 6)])
    assert law.quantile(0.5) == 1.0
    assert law.quantile(np.nextafter(0.5, 1)) == pytest.approx(5.0)
    assert law.quantile(0.0) == 0.0
    assert law.quantile(1.0) == 6.0


def test_touching_intervals_join():
    law = densities.union([(1, 2), (0, 1)])
    np.testing.assert_allclose(law.cdf([0.5, 1.0, 1.5]), [0.25, 0.5, 0.75])


@given(
    cells=st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 5)), min_size=1, max_size=8).filter(
        lambda cells: any(weight > 1e-3 for _, weight in cells)
    ),
    shift=st.floats(-5, 5),
    u=st.floats(0, 1),
)
def test_piecewise_moves_with_its_edges(cells, shift, u):
    edges = np.concatenate([[0.0], np.cumsum([width for width, _ in cells])])
    weights = [weight for _, weight in cells]
    law, moved = densities.piecewise(edges, weights), densities.piecewise(edges + shift, weights)
    x = float(law.quantile(u))
    assert abs(float(law.cdf(x)) - u) <= 1e-12
    assert float(moved.cdf(x + shift)) == pytest.approx(float(law.cdf(x)), abs=1e-9)
    assert law.support[0] <= x <= law.support[1]


def test_weights_of_any_size():
    law = densities.piecewise([0, 1, 2], [1e308, 1e308])
    assert law.cdf(1.0) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: densities.uniform(1, 1), r"\[1, 1\] has no length"),
        (lambda: densities.uniform(0, np.nan), "`hi` is nan"),
        (lambda: densities.uniform("a", 1), "`lo` is 'a', not a number"),
        (lambda: densities.piecewise([0, 1], [1, 1]), "2 entries and `weights` 2"),
        (lambda: densities.piecewise([0, 1, 1], [1, 1]), r"edges\[2\] = 1 follows 1"),
        (lambda: densities.piecewise([0, 1, 2], [1, -1]), r"`weights\[1\]` is -1"),
        (lambda: densities.piecewise([0, 1], [0]), "all `weights` are zero"),
        (lambda: densities.truncated_normal(0, 1, 0, 0), "`sd` is 0; it must be above 0"),
        (lambda: densities.truncated_normal(0, 1, 9, 1e-320), "leaves the range of floats"),
        (lambda: densities.union([]), "2 axes are needed"),
        (lambda: densities.union([(0, 1, 2)]), r"shape \(1, 3\)"),
        (lambda: densities.union([(0, 2), (1, 3)]), r"\[0, 2\] and \[1, 3\] overlap"),
        (lambda: densities.uniform(0, 1).quantile(1.5), r"`u` holds 1.5, outside \[0, 1\]"),
        (lambda: densities.uniform(0, 1).cdf(np.nan), "`x` holds NaN"),
        (lambda: densities.uniform(0, 1).pdf("a"), "not real numbers"),
        (lambda: densities.uniform(0, 1).sample(0, seed=1), "`n` is 0; it must be at least 1"),
        (lambda: densities.uniform(0, 1).sample(2, seed=None), "`seed` is None"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
