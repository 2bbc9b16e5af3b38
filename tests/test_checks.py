"""Validation helpers: each refusal names the field, the value and the remedy."""

import numpy as np
import pytest

from reluflow import checks
from reluflow.errors import InputError


def test_real_array_is_a_read_only_copy():
    source = np.array([[1.0, 2.0]])
    array = checks.real_array(source, "X", 2)
    source[0, 0] = 7.0
    assert array[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 3.0


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i4", "f4", "f2", "u1", "?", "longdouble"])
def test_real_array_accepts_every_real_dtype_and_byte_order(dtype):
    array = checks.real_array(np.array([0, 1], dtype=dtype), "y", 1)
    assert array.dtype == np.dtype("=f8")
    assert array.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1.0, None], dtype=object), "`y` has dtype object"),
        (np.array([1 + 2j]), "`y` has dtype complex128"),
        (["1.5", "2"], "`y` has dtype <U3, not real numbers. Use `.astype"),
        (np.array(["2020-01-01"], dtype="M8[D]"), r"`y` has dtype datetime64"),
        ([10**400], "`y` has dtype object"),
        ([[1.0, 2.0], [3.0]], "`y` is not a rectangular array .*Give rows of equal length"),
        ([[1.0], [2.0]], r"`y` has shape \(2, 1\); 1 axes are needed"),
        (3.0, r"`y` has shape \(\); 1 axes are needed"),
        ([1.0, np.nan, np.inf], r"`y` has 2 non-finite entries \(first: nan at \(1,\)\)"),
        ([-np.inf], r"first: -inf at \(0,\)"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "`y` is a masked array"),
        (None, "`y` has dtype object"),
        ({"a": 1}, "`y` has dtype object"),
        (np.zeros(2, dtype=[("a", "f8")]), "`y` has dtype .*not real numbers"),
    ],
)
def test_real_array_refuses(values, message):
    with pytest.raises(InputError, match=message):
        checks.real_array(values, "y", 1)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(float).max, reason="long double is double here"
)
def test_a_long_double_beyond_float64_is_reported_as_non_finite():
    with pytest.raises(InputError, match="non-finite"):
        checks.real_array(np.array([1e300], dtype=np.longdouble) * 1e300, "y", 1)


@pytest.mark.parametrize("value", [True, "1", None, [1.0], 1j, np.array(1.0), np.bool_(True)])
def test_number_refuses_what_is_not_a_number(value):
    with pytest.raises(InputError, match=r"`lr` is .*, not a number"):
        checks.number(value, "lr")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 10**400, -(10**400)])
def test_number_refuses_what_is_not_finite(value):
    with pytest.raises(InputError, match=r"`lr` is -?(nan|inf). Pass a finite number"):
        checks.number(value, "lr")


def test_number_bounds_are_open_or_closed_as_named():
    assert checks.number(0, "x", at_least=0, at_most=0) == 0.0
    assert checks.number(np.float32(0.5), "x", above=0, below=1) == 0.5
    assert checks.number(np.inf, "t_end", infinite=True) == np.inf
    for bounds, words in [
        ({"above": 0.0}, "above 0"),
        ({"below": 0.0}, "below 0"),
        ({"at_least": 1.0}, "at least 1"),
        ({"at_most": -1.0}, "at most -1"),
    ]:
        with pytest.raises(InputError, match=f"`x` is 0; it must be {words}"):
            checks.number(0.0, "x", **bounds)


def test_nan_is_refused_even_where_infinity_is_allowed():
    with pytest.raises(InputError, match="`t_end` is nan"):
        checks.number(np.nan, "t_end", infinite=True)


def test_whole_takes_integers_and_integral_floats():
    assert checks.whole(3, "width") == checks.whole(np.int16(3), "width") == 3
    assert checks.whole(3.0, "width") == 3
    assert type(checks.whole(3.0, "width")) is int


@pytest.mark.parametrize("value", [True, 2.5, "3", None, np.nan, np.inf, [3]])
def test_whole_refuses_the_rest(value):
    with pytest.raises(InputError, match=r"`width` is .*, not a whole number"):
        checks.whole(value, "width")


def test_whole_names_the_bound():
    with pytest.raises(InputError, match="`width` is 0; it must be at least 1"):
        checks.whole(0, "width")
    for value in (10**30, 10**400, 2.0**60):
        with pytest.raises(InputError, match=r"`d` is .*; it must be at most 9007199254740992"):
            checks.whole(value, "d")


def test_choice_lists_the_words_and_suggests_the_nearest():
    assert checks.choice("both", "train", ("both", "hidden")) == "both"
    with pytest.raises(InputError, match=r"'hiden'; it must be one of 'both', 'hidden'\. Did you"):
        checks.choice("hiden", "train", ("both", "hidden"))


@pytest.mark.parametrize("value", [None, 1, np.array(["both", "hidden"]), ["both"]])
def test_choice_refuses_what_is_not_text(value):
    with pytest.raises(InputError, match=r"`train` is .*; it must be one of"):
        checks.choice(value, "train", ("both", "hidden"))


def test_generator_repeats_for_equal_seeds_and_passes_generators_through():
    assert checks.generator(5).random() == checks.generator(np.int64(5)).random()
    rng = np.random.default_rng(0)
    assert checks.generator(rng) is rng


@pytest.mark.parametrize("seed", [None, -1, True, 1.0, "0"])
def test_generator_refuses_implicit_seeds(seed):
    with pytest.raises(InputError, match=r"`seed` is .*cannot be repeated"):
        checks.generator(seed)
