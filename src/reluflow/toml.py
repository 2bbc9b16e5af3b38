"""TOML documents: read with bounds on size, nesting and keys, in time proportional to their size.

The parser of the standard library takes time quadratic in the parts of a dotted key and recurses
into nested values, so both are counted before it sees the text. Integers have 64 bits, as the
TOML standard asks: the numbers behind them are floats and arrays of that width.
"""

from __future__ import annotations

import re
import tomllib
from os import PathLike
from typing import Any

from reluflow import reading
from reluflow.errors import InputError
from reluflow.wording import cut, shown

SIZE_LIMIT_BYTES = 4 * 2**20
NESTING_LIMIT = 16
KEY_PARTS_LIMIT = 8
REMEDY = "It is no specification; keep large data in a CSV file and name it in [data]."
_OPENS = re.compile(r"\"\"\"|'''|[\"'#]")
_SEPARATES = re.compile(r"[=,\[\]{}\n]")


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """The tables of a TOML file."""
    body = reading.read(path, SIZE_LIMIT_BYTES, REMEDY)
    try:
        text = body.decode("utf-8-sig")  # some editors put a mark of three bytes in front
    except UnicodeDecodeError as error:
        raise InputError(f"this is not text ({error}). Pass a TOML file in UTF-8.") from None
    return parse(text)


def parse(text: str) -> dict[str, Any]:
    r"""The tables of a TOML text.

    Examples
    --------
    >>> parse("seed = 1\n[data]\nd = 4")
    {'seed': 1, 'data': {'d': 4}}
    """
    _check_bounds(_bare(text))
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not TOML ({cut(str(error), 300)}). Correct that line.") from None
    _check_integers(raw, "$")
    return raw


def _bare(text: str) -> str:
    """The text with ``_`` for each string and without comments; its brackets and dots are TOML's.

    An unfinished string hides the rest, which the parser will refuse.
    """
    parts, position = [], 0
    while found := _OPENS.search(text, position):
        parts.append(text[position : found.start()])
        position = _end(text, found[0], found.end())
        if found[0] != "#":
            parts.append("_")
        if position < 0:
            return "".join(parts)
    return "".join([*parts, text[position:]])


def _end(text: str, mark: str, start: int) -> int:
    """Where the string or comment that ``mark`` opened before ``start`` ends; -1 if it does not."""
    if mark == "#":
        return text.find("\n", start)
    while (found := text.find(mark, start)) >= 0:
        slashes = found
        while mark[0] == '"' and slashes > start and text[slashes - 1] == "\\":
            slashes -= 1
        if (found - slashes) % 2 == 0:
            end = found + len(mark)
            # one or two quotes may stand before the three that close
            extra = len(mark) - len(text[end : end + len(mark) - 1].lstrip(mark[0])) - 1
            return end + extra
        start = found + 1
    return -1


def _check_bounds(bare: str) -> None:
    longest = max(part.count(".") for part in _SEPARATES.split(bare)) + 1
    if longest > KEY_PARTS_LIMIT:
        raise InputError(
            f"a key has {longest} parts, above the limit of {KEY_PARTS_LIMIT}. No table lies that "
            "deep. Shorten it."
        )
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", bare):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
        if depth > NESTING_LIMIT:
            raise InputError(
                f"values are nested deeper than {NESTING_LIMIT} brackets. No list or table lies "
                "that deep. Close the brackets."
            )


def _check_integers(value: Any, path: str) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_integers(inner, f"{path}.{cut(name, 80)}")
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            _check_integers(inner, f"{path}[{k}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(
            f"`{path}` is {shown(value)}, more than 64 bits hold. "
            "Write it as a float, such as 1e20."
        )
