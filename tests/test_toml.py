"""TOML within bounds: size, nesting, keys and integers, in time proportional to the text."""

import os
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reluflow import toml
from reluflow.errors import FileError, InputError


def test_an_ordinary_document_is_read_as_the_standard_library_reads_it(tmp_path):
    text = (
        'a.b."c.d" = 1 # a "comment" with [[[[\n'
        "text = '''\nkeys = a.b.c.d.e.f.g.h.i.j.k ''' # more\n"
        'other = """quote \\""" and [[[[[[[[[[[[[[[[[[[[[[[[ """\n'
        'closing = """two quotes"""""\n'
        "x = [[1.5, -2], [3, 4]]\n[t.u]\nv = { w = 2026-01-01 }\n"
    )
    (tmp_path / "x.toml").write_text(text)
    import tomllib

    assert toml.read(tmp_path / "x.toml") == toml.parse(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a." * 300_000 + "b = 1", r"a key has 300001 parts, above the limit of 8"),
        ("[" + "a." * 300_000 + "b]", r"a key has 300001 parts"),
        ('"a".' * 100_000 + "b = 1", r"a key has 100001 parts"),
        ('x = """a"""""\n' + "a." * 300_000 + "b = 1", r"a key has 300001 parts"),
        ("x = '''a'''''\n" + "a." * 300_000 + "b = 1", r"a key has 300001 parts"),
        ('x = "\\\\"\n' + "a." * 300_000 + "b = 1", r"a key has 300001 parts"),
        ("x = " + "[" * 1_000_000, "values are nested deeper than 16 brackets"),
        ("x = " + "{a = " * 1000, "values are nested deeper than 16 brackets"),
        ("x = " + "9" * 400, r"`\$\.x` is <an integer of about 4\d\d digits>, more than 64 bits"),
        ("[a]\nx = [1, 9223372036854775808]", r"`\$\.a\.x\[1\]` is 9223372036854775808, more"),
        ("x = -9223372036854775809", "more than 64 bits"),
        ("x = " + "9" * 5000, r"this is not TOML"),
        ('x = """', "this is not TOML"),
        ("x = 'open\ny = 1", "this is not TOML"),
        ("x = 1\nx = 2", "this is not TOML"),
    ],
)
def test_what_is_out_of_bounds_is_refused_at_once(text, message):
    began = time.process_time()
    with pytest.raises(InputError, match=message) as caught:
        toml.parse(text)
    assert time.process_time() - began < 1.0
    assert len(str(caught.value)) < 500


def test_the_mark_that_some_editors_put_in_front_is_no_part_of_the_text(tmp_path):
    file = tmp_path / "marked.toml"
    file.write_bytes(b"\xef\xbb\xbfseed = 1\n")
    assert toml.read(file) == {"seed": 1}


def test_integers_of_64_bits_are_welcome():
    assert toml.parse("x = 9223372036854775807\ny = -9223372036854775808")["x"] == 2**63 - 1


@given(st.text(st.sampled_from("ab.=[]{}\"'#\\\n 1,"), max_size=60))
@example('a = """\\""""')
@example("a.b = '#'")
def test_the_bounds_refuse_nothing_that_is_short(text):
    """The reader of brackets and dots must not mistake strings and comments for them."""
    import tomllib

    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(InputError):
            toml.parse(text)
        return
    assert toml.parse(text) == expected


@pytest.mark.parametrize("repeat", [1, 4])
def test_time_grows_with_the_size(repeat):
    """Four times the text takes about four times as long: at most twice that, for noise."""
    text = "x = [" + "1.5, " * 50_000 + "]\n"

    def seconds(text):
        began = time.process_time()
        toml.parse(text)
        return time.process_time() - began

    several = "".join(text.replace("x", f"x{k}", 1) for k in range(repeat))
    assert seconds(several) < 2 * repeat * min(seconds(text) for _ in range(3)) + 0.1


def test_special_and_large_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for special in (tmp_path / "pipe.toml", "/dev/zero"):
        with pytest.raises(FileError, match="not an ordinary file"):
            toml.read(special)
    with (tmp_path / "large.toml").open("wb") as stream:
        stream.truncate(10 * 2**30)  # a sparse file: no disk, no memory
    with pytest.raises(FileError, match=r"large.toml has more than 4194304 bytes"):
        toml.read(tmp_path / "large.toml")
