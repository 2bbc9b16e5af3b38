"""The user's own data: points on the line, or a table of comma-separated values."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from reluflow import reading
from reluflow.checks import Array, real_array
from reluflow.dataset import Dataset
from reluflow.errors import FileError, InputError
from reluflow.wording import cut, printable, shown

_Row = tuple[int, list[str]]

SIZE_LIMIT_BYTES = 64 * 2**20
LINE_LIMIT = 4 * 2**20


def from_points(x: ArrayLike, y: ArrayLike) -> Dataset:
    """Univariate data with a bias: rows ``(x_i, 1)``, in the order given.

    Parameters
    ----------
    x : (n,) array
        Points on the line. For points with several coordinates use ``Dataset(X, y)``.
    y : (n,) array
        Labels, kept as given.

    Returns
    -------
    Dataset
        Rows ``(x, 1)``.

    Examples
    --------
    >>> from_points([4.0, -4.0], [1.0, 1.0]).X
    array([[ 4.,  1.],
           [-4.,  1.]])
    """
    return Dataset(real_array(x, "x", 1), y, name="points", bias=True)


def from_csv(path: str | PathLike[str], *, label: str | int, bias: bool = False) -> Dataset:
    r"""Read points and labels from a file of comma-separated numbers, one point a line.

    Parameters
    ----------
    path : path
        UTF-8 text of at most 64 MB, read in a stream: time and memory are proportional to its size.
        A first line without any number is a header; so is one that holds the name
        ``label``. Blank lines are skipped.
    label : str or int
        The column of the labels: its name in the header, or its index (from 0; -1 is the last).
        The other columns, in order, are the coordinates.
    bias : bool
        Append the coordinate 1, as `reluflow.Dataset` does.

    Returns
    -------
    Dataset
        The columns but the label as inputs, in their order.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "small.csv"
    ...     _ = file.write_text("a,b,target\n1,0,2\n0,1,-3\n")
    ...     data = from_csv(file, label="target")
    >>> data, data.y
    (Dataset('small', n=2, d=2), array([ 2., -3.]))
    """
    if isinstance(label, bool) or not isinstance(label, (str, int, np.integer)):
        raise InputError(f"`label` is {shown(label)}. Pass the name or the index of a column.")
    source = printable(path)
    with (
        reading.opened(path, SIZE_LIMIT_BYTES, "Pass a CSV file, or a part of it.") as stream,
        closing(_rows(stream, source)) as rows,
    ):
        X, y = _read(rows, label, source)
        return Dataset(X, y, name=Path(path).stem, bias=bias)


def _read(rows: Iterator[_Row], label: str | int, source: str) -> tuple[Array, Array]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{source} is empty. There is nothing to learn. Give one point a line.")
    width = len(first[1])
    if width < 2:
        raise InputError(
            f"{source} has one column. Points and labels need two or more, separated by commas."
        )
    header = _header(first[1], label)
    names = header or [str(k) for k in range(width)]
    column = _column(label, header, width, source)
    numbers = array("d")  # eight bytes each: the table is never held as text
    for row in rows if header else chain([first], rows):
        numbers.extend(_numbers(row, names, source))
    if not numbers:
        raise InputError(f"{source} has a header but no data. Give one point a line below it.")
    table = np.frombuffer(numbers).reshape(-1, width)
    return np.delete(table, column, axis=1), table[:, column].copy()


def _rows(stream: BinaryIO, source: str) -> Generator[_Row]:
    """Lines that are not blank, with their numbers, one after the other."""
    lines = _Lines(stream, source)
    try:
        for row in csv.reader(lines, skipinitialspace=True):
            if row:
                yield lines.number, row
            lines.is_row_open = False
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(
            f"{source} is not a text table ({error}). Save it as comma-separated UTF-8 text."
        ) from None
    finally:
        lines.detach()


class _Lines:
    """The lines of a table, each of bounded length and a row of its own."""

    def __init__(self, stream: BinaryIO, source: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self._source = source
        self.number = 0
        self.is_row_open = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LINE_LIMIT + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LINE_LIMIT:
            raise FileError(
                f"{self._source}, line {self.number} has more than {LINE_LIMIT} characters. "
                "Give one point a line, or fewer coordinates."
            )
        if self.is_row_open:
            raise FileError(
                f"{self._source}, line {self.number}: a quoted cell goes on from the line before. "
                "Numbers need no quotes; remove the quotation mark."
            )
        self.is_row_open = True
        return line

    def detach(self) -> None:
        """Leave the stream to whoever opened it."""
        self._text.detach()


def _header(first: list[str], label: str | int) -> list[str] | None:
    """The column names if the first line is a header, else None."""
    names = [cell.strip() for cell in first]
    if isinstance(label, str) and label in names:
        return names
    return None if any(_value(cell) is not None for cell in names) else names


def _column(label: str | int, header: list[str] | None, width: int, source: str) -> int:
    if not isinstance(label, str):
        if not -width <= label < width:
            raise InputError(
                f"`label` is {label} but {source} has {width} columns. Use 0 to {width - 1}."
            )
        return int(label) % width
    if header is None:
        raise InputError(
            f"`label` is {shown(label)} but {source} has no header. Pass the index of the column."
        )
    found = header.count(label)
    if found != 1:
        listed = cut(", ".join(shown(name, 40) for name in header[:100]), 400)
        raise InputError(
            f"`label` is {shown(label)}, the name of {found} columns of {source}; one is needed. "
            f"The columns are {listed}."
        )
    return header.index(label)


def _numbers(row: _Row, names: list[str], source: str) -> list[float]:
    line, cells = row
    if len(cells) != len(names):
        raise InputError(
            f"{source}, line {line}: {len(cells)} cells where {len(names)} are expected. "
            "Every line needs one number a column."
        )
    values = []
    for name, cell in zip(names, cells, strict=True):
        value = _value(cell)
        if value is None or not math.isfinite(value):
            what = shown(cell, 80) if cell.strip() else "an empty cell"
            raise InputError(
                f"{source}, line {line}, column {shown(name, 80)}: {what} is not a finite number. "
                "Training is undefined there. Correct it or drop the line."
            )
        values.append(value)
    return values


def _value(cell: str) -> float | None:
    """The number in a cell, or None; digits grouped by ``_`` are Python's habit, not a table's."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
