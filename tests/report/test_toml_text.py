"""Documents as TOML, read back by the standard library."""

import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow.errors import InputError
from reluflow.report.toml_text import to_toml

from . import sample

# TOML holds Unicode text without surrogates
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), words)
values = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(words, values, max_size=4))
def test_what_is_written_is_read_back(document):
    assert tomllib.loads(to_toml(document)) == document


def test_the_sample_is_read_back():
    assert tomllib.loads(to_toml(sample.DOCUMENT)) == sample.DOCUMENT


def test_numpy_values_are_written_as_numbers():
    given = {"a": np.float64(0.5), "b": np.arange(3), "c": np.bool_(True), "d": np.int64(2)}
    assert tomllib.loads(to_toml(given)) == {"a": 0.5, "b": [0, 1, 2], "c": True, "d": 2}


def test_not_a_number_and_nothing():
    found = tomllib.loads(to_toml({"nan": math.nan, "none": None, "table": {"none": None}}))
    assert math.isnan(found.pop("nan"))
    assert found == {"table": {}}


def test_what_toml_cannot_say_is_refused():
    with pytest.raises(InputError, match=r"holds .*, a set\. TOML cannot say it"):
        to_toml({"data": {1, 2}})
