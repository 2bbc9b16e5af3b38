"""Foreign text in messages: short, and harmless on a terminal."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow.wording import cut, printable, shown


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", [1, 2], {"a": [1.0]}, (True,), b"x"])
def test_ordinary_values_are_shown_whole(value):
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 15_000_000,
        b"x" * 15_000_000,
        ["x"] * 1_000_000,
        [["y" * 1000] * 1000] * 1000,
        {str(k): k for k in range(1_000_000)},
        10**5000,
        -(10**5000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_long_values_are_cut_in_no_time(value):
    began = time.process_time()
    assert 20 < len(shown(value)) <= 200
    assert time.process_time() - began < 0.5


@given(st.text())
def test_printable_text_is_printable_and_says_the_same(text):
    safe = printable(text)
    assert safe.isprintable()
    safe.encode()
    if text.isprintable():
        assert safe == text


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "\udcff", "\u202egnirts", "a\nb", "\x9b31m"])
def test_escapes_and_undecodable_bytes_are_made_visible(text):
    assert "\\" in printable(text)
    assert printable(text).isprintable()


@given(st.text(max_size=50), st.integers(3, 60))
def test_a_cut_text_fits(text, limit):
    assert len(cut(text, limit)) <= limit
    assert cut(text, 50) == text
