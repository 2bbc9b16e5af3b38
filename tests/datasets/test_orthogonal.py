"""Orthonormal data: Gram matrix, label laws, rotation."""

import numpy as np
import pytest
from scipy import stats

from reluflow import datasets
from reluflow.errors import InputError


def test_axes_are_exact():
    data = datasets.orthonormal(3, d=5, seed=0)
    np.testing.assert_array_equal(data.gram, np.eye(3))
    assert (data.n, data.d) == (3, 5)
    assert datasets.orthonormal(3, seed=0).d == 3


@pytest.mark.parametrize(("n", "d"), [(1, 1), (4, 4), (6, 30), (150, 200)])
def test_rotated_rows_are_orthonormal(n, d):
    data = datasets.orthonormal(n, d=d, rotate=True, seed=1)
    assert np.abs(data.gram - np.eye(n)).max() < 1e-14


def test_rotation_keeps_the_labels_and_repeats():
    plain, rotated = (datasets.orthonormal(5, rotate=r, seed=2) for r in (False, True))
    np.testing.assert_array_equal(plain.y, rotated.y)
    assert rotated == datasets.orthonormal(5, rotate=True, seed=2)
    assert rotated != datasets.orthonormal(5, rotate=True, seed=3)


def test_rotation_is_uniform():
    # entries of a Haar matrix in dimension 3 are uniform on [-1, 1]; the signs of LAPACK's QR alone
    # would make diagonal entries one-sided
    rng = np.random.default_rng(3)
    X = np.array([datasets.orthonormal(3, rotate=True, seed=rng).X for _ in range(800)])
    for entry in ((0, 0), (1, 1), (2, 0), (2, 2)):
        assert stats.kstest(X[:, *entry], "uniform", args=(-1, 2)).pvalue > 0.01


def test_label_laws():
    mixed = datasets.orthonormal(2000, seed=4).y
    positive = datasets.orthonormal(2000, labels="positive", seed=4).y
    assert stats.kstest(mixed, "norm").pvalue > 0.01
    np.testing.assert_array_equal(positive, np.abs(mixed))


def test_given_labels_are_kept():
    np.testing.assert_array_equal(datasets.orthonormal(2, labels=[3, -1], seed=0).y, [3, -1])


def test_a_zero_label_is_drawn_again():
    class Unlucky(np.random.Generator):
        calls = 0

        def standard_normal(self, size):
            self.calls += 1
            draw = super().standard_normal(size)
            return draw * (np.arange(size) > 0) if self.calls == 1 else draw

    data = datasets.orthonormal(3, seed=Unlucky(np.random.PCG64(0)))
    assert data.y.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 2}, "only 2 orthonormal points fit"),
        ({"labels": [1, 2]}, "`labels` has 2 entries for 3 points"),
        ({"labels": [1, 0, 2]}, r"`labels\[1\]` is 0"),
        ({"labels": "negative"}, "`labels` is 'negative'; it must be one of 'mixed', 'positive'"),
        ({"labels": [1, np.nan, 2]}, "non-finite"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        datasets.orthonormal(3, seed=0, **options)
