"""The user's own data: points on the line and tables."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import datasets
from reluflow.datasets import own
from reluflow.errors import FileError, InputError


@pytest.fixture
def table(tmp_path):
    def write(text, **options):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return datasets.from_csv(path, **options)

    return write


def test_points_get_a_bias_and_keep_their_order():
    data = datasets.from_points([2, -1, 3], [1, -1, 1])
    np.testing.assert_array_equal(data.X, [[2, 1], [-1, 1], [3, 1]])
    np.testing.assert_array_equal(data.y, [1, -1, 1])


def test_a_table_gets_a_bias_where_it_is_asked_for(table):
    data = table("x,y\n1,2\n0,3\n", label="y", bias=True)
    np.testing.assert_array_equal(data.X, [[1, 1], [0, 1]])
    assert data.bias


def test_the_origin_is_an_ordinary_point():
    assert datasets.from_points([0.0], [1.0]).n == 1


def test_header_and_name(table):
    data = table("x,target,z\n1,10,2\n3,-20,4\n", label="target")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.y, [10, -20])
    assert data.name == "table"


@pytest.mark.parametrize("label", [1, -2])
@pytest.mark.parametrize("header", ["", "x,target,z\n"])
def test_index_with_and_without_header(table, label, header):
    data = table(header + "1,10,2\n3,-20,4\n", label=label)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.y, [10, -20])


def test_header_of_numbers_is_recognised_by_the_label(table):
    np.testing.assert_array_equal(table("2020,2021\n1,2\n", label="2021").y, [2])


def test_spaces_quotes_blank_lines_bom_and_windows_ends(table):
    data = table(b'\xef\xbb\xbf"x" , y\r\n\r\n 1e-3 ,"-2"\r\n+4., .5\r\n\r\n', label="y")
    np.testing.assert_array_equal(data.X, [[1e-3], [4.0]])
    np.testing.assert_array_equal(data.y, [-2.0, 0.5])


@given(
    rows=st.lists(
        st.tuples(st.floats(1e-100, 1e100), st.floats(-1e100, 1e100), st.floats(-1e100, 1e100)),
        min_size=1,
        max_size=6,
    ),
    header=st.booleans(),
)
def test_floats_survive_the_trip(tmp_path_factory, rows, header):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    body = "\n".join(",".join(map(repr, row)) for row in rows)
    path.write_text(("a,b,c\n" if header else "") + body)
    data = datasets.from_csv(path, label=2)
    np.testing.assert_array_equal(np.c_[data.X, data.y], np.array(rows))


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("", 0, "is empty"),
        ("\n\n", 0, "is empty"),
        ("x,y\n", "y", "has a header but no data"),
        ("1\n2\n", 0, "has one column"),
        ("1;2\n3;4\n", 0, "has one column"),
        ("x,y\n1,2\n3\n", "y", "line 3: 1 cells where 2 are expected"),
        ("1,2\n3,4,5\n", 0, "line 2: 3 cells where 2"),
        ("x,y\n1,2\n3,abc\n", "y", "line 3, column 'y': 'abc' is not a finite number"),
        ("1,2\n3,abc\n", 0, "line 2, column '1': 'abc'"),
        ("1,abc\n3,4\n", 0, "line 1, column '1': 'abc'"),
        ("x,y\n1,\n", "y", "line 2, column 'y': an empty cell"),
        ("x,y\n1,nan\n", "y", "column 'y': 'nan'"),
        ("x,y\n1e999,1\n", "y", "column 'x': '1e999'"),
        ("x,y\n1_0,1\n", "y", "column 'x': '1_0'"),
        ("x,y\n\n\n1,?\n", "y", "line 4, column 'y'"),
        ("x,y\n1,2\n", "z", "`label` is 'z', the name of 0 columns.*'x', 'y'"),
        ("x,y,y\n1,2,3\n", "y", "the name of 2 columns"),
        ("1,2\n", "y", "has no header"),
        ("1,2\n", 2, "`label` is 2 but .* has 2 columns. Use 0 to 1"),
        ("1,2\n", -3, "`label` is -3"),
        ("1,2\n", 1.0, "`label` is 1.0"),
        ("1,2\n", True, "`label` is True"),
        ("x,y\n0,2\n", "y", "1 zero rows"),
    ],
)
def test_bad_tables_are_refused(table, text, label, message):
    with pytest.raises(InputError, match=message):
        table(text, label=label)


def test_missing_and_foreign_files(table, tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none.csv \(No such file"):
        datasets.from_csv(tmp_path / "none.csv", label=0)
    with pytest.raises(FileError, match="is a folder, not an ordinary file"):
        datasets.from_csv(tmp_path, label=0)
    with pytest.raises(FileError, match="is not a text table"):
        table(b"1,\xff\xfe2\n", label=0)
    with pytest.raises(FileError, match="is not a text table"):
        table("1," + "9" * 200_000, label=0)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([], [], "it is empty"),
        ([1, 2], [1], "2 rows but `y` has 1 labels"),
        ([[1, 2]], [1], "`x` has shape"),
        ([1, np.nan], [1, 1], "`x` has 1 non-finite"),
        (["a"], [1], "not real numbers"),
    ],
)
def test_bad_points_are_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        datasets.from_points(x, y)


MEMORY = """
import resource, sys
from reluflow import datasets
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = datasets.from_csv(sys.argv[1], label=0)
print(data.n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.parametrize("line", ["1," * 19 + "1\n", "0.12345678," * 9 + "-3.5e-3\n"])
def test_memory_is_proportional_to_the_size(line, tmp_path):
    """Four bytes of memory for each byte of text and copy of the table, three copies at a time."""
    path = tmp_path / "table.csv"
    path.write_text(line * (8_000_000 // len(line)))
    command = [sys.executable, "-c", MEMORY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    n, peak = (int(word) for word in done.stdout.split())
    assert n == 8_000_000 // len(line)
    assert peak < 14 * 8_000_000


def test_tables_beyond_the_stated_size_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("wb") as stream:
        stream.write(b"1,2\n" * 1000)
        stream.truncate(10 * 2**30)  # zeros without end, and no disk
    with pytest.raises(FileError, match=r"line 1001 has more than 4194304 characters"):
        datasets.from_csv(path, label=0)


def test_the_size_is_counted_while_reading(table, monkeypatch):
    monkeypatch.setattr(own, "SIZE_LIMIT_BYTES", 100)
    assert table("1,2\n" * 25, label=0).n == 25
    with pytest.raises(FileError, match=r"has more than 100 bytes, the largest size that is read"):
        table("1,2\n" * 26, label=0)


def test_a_cell_does_not_go_on_in_the_next_line(table):
    with pytest.raises(FileError, match="line 3: a quoted cell goes on from the line before"):
        table('1,2\n3,"4\n5,6\n', label=0)


def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "/dev/zero", tmp_path):
        with pytest.raises(FileError, match="not an ordinary file"):
            datasets.from_csv(path, label=0)


def test_long_cells_and_names_are_cut_in_messages(table):
    for text, label in (
        ("1," + "x" * 100_000 + "\n", 0),
        ("y" * 100_000 + ",z\n1,2\n", "w"),
        (",".join(["name"] * 100_000) + "\n1,2\n", "w"),
        ("1,2\n", "w" * 100_000),
    ):
        with pytest.raises(InputError) as caught:
            table(text, label=label)
        assert len(str(caught.value)) < 1500
