"""Univariate teachers and samples: zeros, label patterns, strictness, labels."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import datasets, densities
from reluflow.errors import InputError
from reluflow.network import Network

ZEROS = st.lists(st.integers(-200, 200), min_size=1, max_size=9, unique=True).map(
    lambda values: sorted(value / 16 for value in values)
)


def evaluate(net, x):
    """The network in exact rational arithmetic."""
    x = Fraction(x)
    rows = zip(net.a, net.W, strict=True)
    return sum(Fraction(a) * max(Fraction(w) * x + Fraction(b), 0) for a, (w, b) in rows)


def cells(zeros):
    """One point inside each stretch of constant label, far ends included."""
    inner = [(a + b) / 2 for a, b in pairwise(zeros)]
    quarter = [(3 * a + b) / 4 for a, b in pairwise(zeros)]
    left, right = [zeros[0] - 1e6, zeros[0] - 1e-3], [zeros[-1] + 1e-3, zeros[-1] + 1e6]
    expected = [0, 0, *range(1, len(zeros)), *range(1, len(zeros)), len(zeros), len(zeros)]
    return left + inner + quarter + right, expected


@given(zeros=ZEROS, first=st.sampled_from([-1, 1]), strict=st.booleans())
def test_patterns(zeros, first, strict):
    net = datasets.teacher_1d(zeros, first_label=first, strict=strict)
    assert net.width == len(zeros) + strict
    for z in zeros:
        assert evaluate(net, z) == 0  # zeros on a dyadic grid are exact
    points, index = cells(zeros)
    for x, k in zip(points, index, strict=True):
        value, label = evaluate(net, x), first * (-1) ** k
        assert (1 if value > 0 else -1) == label
        if strict:
            assert value != 0
    plateaus = sum(evaluate(net, x) == 0 for x in points)
    assert strict or plateaus > 0


def test_slopes_are_one_in_size():
    net = datasets.teacher_1d([0.0, 1.0, 4.0, 4.5], strict=True)
    x = np.array([-3.0, 0.25, 0.75, 2.0, 3.0, 4.1, 4.4, 9.0])
    h = 1e-3
    ones = np.ones_like(x)
    rise = net.predict(np.c_[x + h, ones]) - net.predict(np.c_[x, ones])
    np.testing.assert_allclose(np.abs(rise / h), 1.0, rtol=1e-9)


@given(seed=st.integers(0, 10**6), r=st.integers(1, 300), strict=st.booleans())
def test_zeros_of_the_stored_network(seed, r, strict):
    # the exact zero on each falling or rising piece of the stored kinks, one ulp from the request
    zeros = np.unique(np.random.default_rng(seed).uniform(-3, 3, r))
    net = datasets.teacher_1d(zeros, strict=strict)
    zero = Fraction(zeros[0])
    kinks = -net.W[: len(zeros), 1]
    for k in range(1, len(zeros)):
        zero = 2 * Fraction(kinks[k]) - zero
        assert abs(zero - Fraction(zeros[k])) <= Fraction(np.spacing(3.0))
    for z in zeros[:: max(1, len(zeros) // 5)]:
        assert abs(evaluate(net, z)) <= Fraction(np.spacing(3.0))


def test_constant_teacher():
    for label in (-1, 1):
        net = datasets.teacher_1d([], first_label=label)
        np.testing.assert_array_equal(net.predict([[-9.0, 1.0], [5.0, 1.0]]), label)


def test_plateau_positions():
    plateau = {
        (-1, 3): [True, False, False, False],
        (1, 3): [False, False, False, True],
        (1, 4): [False, True, False, False, False],
    }
    for (first, r), expected in plateau.items():
        net = datasets.teacher_1d(np.arange(r), first_label=first)
        middles = np.c_[np.arange(r + 1) - 0.5, np.ones(r + 1)]
        np.testing.assert_array_equal(net.predict(middles) == 0.0, expected)


@given(seed=st.integers(0, 1000), first=st.sampled_from([-1, 1]), strict=st.booleans())
def test_sample_labels_are_signs_of_the_teacher(seed, first, strict):
    zeros = [-0.5, 0.1, 0.6]
    teacher = datasets.teacher_1d(zeros, first_label=first, strict=strict)
    data = datasets.sample_1d(teacher, 30, density=densities.uniform(-1, 1), seed=seed)
    x = data.X[:, 0]
    assert (np.diff(x) > 0).all()
    np.testing.assert_array_equal(data.X[:, 1], 1.0)
    np.testing.assert_array_equal(data.y, first * (-1.0) ** np.searchsorted(zeros, x))
    assert data.teacher is teacher


def test_sample_repeats_and_is_the_sorted_density_sample():
    law = densities.truncated_normal(-1, 1, 0, 0.4)
    teacher = datasets.teacher_1d([0.0])
    data = datasets.sample_1d(teacher, 20, density=law, seed=3)
    np.testing.assert_array_equal(data.X[:, 0], np.sort(law.sample(20, seed=3)))
    assert data == datasets.sample_1d(teacher, 20, density=law, seed=3)
    assert data != datasets.sample_1d(teacher, 20, density=law, seed=4)


def test_zero_output_is_labelled_minus_one():
    data = datasets.sample_1d(
        Network([1.0, -1.0], [[1.0, 0.0], [1.0, 0.0]]), 5, density=densities.uniform(0, 1), seed=0
    )
    np.testing.assert_array_equal(data.y, -1.0)


def test_labels_of_a_teacher_below_the_range_of_floats():
    teacher = datasets.teacher_1d([0.0, 0.5])
    tiny = teacher.with_scale(-1e6)
    law = densities.uniform(-1, 1)
    data, same = (datasets.sample_1d(net, 25, density=law, seed=1) for net in (teacher, tiny))
    np.testing.assert_array_equal(data.y, same.y)
    assert 0 < (data.y > 0).sum() < 25


def test_repeated_points_are_drawn_again():
    class Coarse:
        def sample(self, n, seed):
            return seed.integers(0, 12, n) / 4.0

    data = datasets.sample_1d(datasets.teacher_1d([1.0]), 12, density=Coarse(), seed=0)
    np.testing.assert_array_equal(data.X[:, 0], np.arange(12) / 4)
    with pytest.raises(InputError, match="only 12 distinct floats"):
        datasets.sample_1d(datasets.teacher_1d([1.0]), 13, density=Coarse(), seed=0)


LINE = densities.uniform(-1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.teacher_1d([1.0, 1.0]), r"zeros\[1\] = 1 follows 1"),
        (lambda: datasets.teacher_1d([0.0, np.inf]), "non-finite"),
        (lambda: datasets.teacher_1d(1.0), "1 axes are needed"),
        (lambda: datasets.teacher_1d([1.0], first_label=0), "labels are -1 or 1"),
        (lambda: datasets.teacher_1d([1.0], first_label="a"), "`first_label` is 'a'"),
        (lambda: datasets.teacher_1d([1.0, np.nextafter(1.0, 2.0)]), "Move them apart"),
        (lambda: datasets.sample_1d([1.0], 3, density=LINE, seed=0), "got list"),
        (
            lambda: datasets.sample_1d(Network([1.0], [[1.0]]), 3, density=LINE, seed=0),
            "got 1 inputs",
        ),
        (
            lambda: datasets.sample_1d(datasets.teacher_1d([0.0]), 3, density=1.0, seed=0),
            "cannot be sampled",
        ),
        (
            lambda: datasets.sample_1d(datasets.teacher_1d([0.0]), 0, density=LINE, seed=0),
            "`n` is 0",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
