"""High-dimensional data: spectra, coordinate laws, labels, and the Bartlett shortcut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reluflow import datasets
from reluflow.dataset import Dataset
from reluflow.errors import InputError


def test_spectra():
    def make(spectrum):
        return datasets.gaussian(2, 5, spectrum=spectrum, seed=0)

    np.testing.assert_array_equal(make("isotropic").spectrum, np.ones(5))
    np.testing.assert_array_equal(make(("spiked", 2, 7.0)).spectrum, [7, 7, 1, 1, 1])
    np.testing.assert_allclose(make(("power", 0.5)).spectrum, [1, 2**-0.5, 3**-0.5, 0.5, 5**-0.5])
    np.testing.assert_array_equal(make([5, 4, 3, 2, 1]).spectrum, [5, 4, 3, 2, 1])
    np.testing.assert_array_equal(make((5, 4, 3, 2, 1)).spectrum, [5, 4, 3, 2, 1])
    # the same draws, columns scaled
    plain, spiked = make("isotropic"), make(("spiked", 2, 7.0))
    np.testing.assert_allclose(spiked.X, plain.X * np.sqrt([7, 7, 1, 1, 1]), rtol=1e-15)
    np.testing.assert_array_equal(spiked.y, plain.y)


@pytest.mark.parametrize(
    ("law", "kurtosis"), [("gaussian", 3.0), ("rademacher", 1.0), ("uniform", 9 / 5)]
)
def test_coordinates_have_mean_zero_variance_one(law, kurtosis):
    z = datasets.gaussian(100, 2000, coordinates=law, seed=1).X
    assert z.mean() == pytest.approx(0.0, abs=0.01)
    assert (z**2).mean() == pytest.approx(1.0, abs=0.01)
    assert (z**4).mean() == pytest.approx(kurtosis, abs=0.05)
    if law == "uniform":
        assert np.abs(z).max() <= np.sqrt(3)


@given(n=st.integers(1, 9), share=st.floats(0, 1), seed=st.integers(0, 1000), big=st.booleans())
def test_labels(n, share, seed, big):
    count = round(share * n)
    make = datasets.bartlett if big else datasets.gaussian
    data = make(n, 20, n_positive=count, y_range=(0.25, 3.0), seed=seed)
    assert (data.y > 0).sum() == count
    assert ((np.abs(data.y) >= 0.25) & (np.abs(data.y) <= 3.0)).all()


def test_half_of_the_labels_are_positive_in_no_fixed_order():
    firsts = [datasets.gaussian(5, 5, seed=s).y for s in range(40)]
    assert {int((y > 0).sum()) for y in firsts} == {3}
    assert {bool(y[0] > 0) for y in firsts} == {True, False}
    np.testing.assert_array_equal(
        datasets.gaussian(5, 9, seed=3).y, datasets.bartlett(5, 9, seed=3).y
    )


def test_magnitudes_are_uniform():
    y = np.abs(datasets.bartlett(1500, 1500, y_range=(1.0, 3.0), seed=2).y)
    assert stats.kstest(y, "uniform", args=(1.0, 2.0)).pvalue > 0.01


def test_seeds_repeat():
    for make in (datasets.gaussian, datasets.bartlett):
        assert make(4, 8, seed=1) == make(4, 8, seed=np.random.default_rng(1))
        assert make(4, 8, seed=1) != make(4, 8, seed=2)


def test_bartlett_has_the_gram_law_of_gaussian_data():
    n, d, draws = 4, 7, 3000
    factor, direct = (
        np.array([make(n, d, seed=rng).gram for _ in range(draws)])
        for make, rng in (
            (datasets.bartlett, np.random.default_rng(0)),
            (datasets.gaussian, np.random.default_rng(1)),
        )
    )
    assert np.abs(factor.mean(axis=0) - d * np.eye(n)).max() < 5 * np.sqrt(2 * d / draws)
    for statistic in (
        lambda G: G[:, 0, 0],
        lambda G: G[:, 3, 3],
        lambda G: G[:, 0, 1],
        lambda G: G[:, 2, 3],
        lambda G: np.linalg.slogdet(G)[1],
        lambda G: np.linalg.eigvalsh(G)[:, 0],
        lambda G: np.linalg.eigvalsh(G)[:, -1],
        lambda G: G[:, 0, 1] * G[:, 1, 2] * G[:, 0, 2],
    ):
        assert stats.ks_2samp(statistic(factor), statistic(direct)).pvalue > 0.01


def test_bartlett_diagonal_has_the_right_degrees_of_freedom():
    # one degree off in any row would be 2 standard errors wide many times over
    n, d, draws = 3, 4, 6000
    rng = np.random.default_rng(5)
    squares = np.array([np.diag(datasets.bartlett(n, d, seed=rng).X) ** 2 for _ in range(draws)])
    for i in range(n):
        assert stats.kstest(squares[:, i], "chi2", args=(d - i,)).pvalue > 0.01
        assert stats.kstest(squares[:, i], "chi2", args=(d - i - 0.5,)).pvalue < 1e-6


def test_bartlett_in_a_billion_dimensions():
    data = datasets.bartlett(6, 1e9, seed=0)
    assert data.X.shape == (6, 6)
    assert data.ambient_dim == 10**9
    assert np.array_equal(data.X, np.tril(data.X))
    # the relative distance of the Gram matrix to d I is of order sqrt(n / d)
    assert np.linalg.norm(data.gram / 1e9 - np.eye(6), 2) < 5 * np.sqrt(6 / 1e9)


def test_effective_dimensions():
    flat = datasets.effective_dimensions(datasets.bartlett(2, 10**9, seed=0))
    assert (flat.trace, flat.d_2, flat.d_inf) == (1e9, 1e9, 1e9)
    spiked = datasets.effective_dimensions(
        datasets.gaussian(2, 10, spectrum=("spiked", 1, 4.0), seed=0)
    )
    assert spiked.trace == pytest.approx(13.0)
    assert spiked.d_2 == pytest.approx(169 / 25)
    assert spiked.d_inf == pytest.approx(13 / 4)
    huge = datasets.effective_dimensions(datasets.gaussian(1, 2, spectrum=[1e300, 1e300], seed=0))
    assert huge.d_2 == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.gaussian(10**5, 10**6, seed=0), "use `bartlett`"),
        (lambda: datasets.gaussian(2, 3, spectrum="flat", seed=0), "`spectrum` is 'flat'"),
        (lambda: datasets.gaussian(2, 3, spectrum=("spikes", 1, 2), seed=0), "one of 'spiked'"),
        (lambda: datasets.gaussian(2, 3, spectrum=("spiked", 1), seed=0), r"\('spiked', r, h\)"),
        (lambda: datasets.gaussian(2, 3, spectrum=("spiked", 4, 2.0), seed=0), "4 spikes in dim"),
        (lambda: datasets.gaussian(2, 3, spectrum=("spiked", 1, 0), seed=0), r"`spectrum\[2\]`"),
        (lambda: datasets.gaussian(2, 3, spectrum=("power", -1), seed=0), r"`spectrum\[1\]` is -1"),
        (lambda: datasets.gaussian(2, 9, spectrum=("power", 900), seed=0), "must be positive"),
        (lambda: datasets.gaussian(2, 3, spectrum=[1, 2], seed=0), "2 eigenvalues in dimension 3"),
        (lambda: datasets.gaussian(2, 3, spectrum=[1, 0, 2], seed=0), r"`spectrum\[1\]` is 0"),
        (
            lambda: datasets.gaussian(2, 3, coordinates="cauchy", seed=0),
            "`coordinates` is 'cauchy'",
        ),
        (
            lambda: datasets.gaussian(2, 3, n_positive=3, seed=0),
            "`n_positive` is 3 but there are 2",
        ),
        (lambda: datasets.gaussian(2, 3, y_range=(0, 1), seed=0), r"`y_range` is \(0, 1\)"),
        (lambda: datasets.gaussian(2, 3, y_range=(2, 1), seed=0), "smaller first"),
        (lambda: datasets.bartlett(5, 4, seed=0), "exists for d >= n only"),
        (
            lambda: datasets.effective_dimensions(Dataset([[1.0]], [1.0])),
            "no known `spectrum`",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
