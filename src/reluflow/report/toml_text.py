"""A document of tables, numbers, texts and lists as TOML, so that a reader can run it again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reluflow.errors import InputError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(document: Mapping[str, Any]) -> str:
    """Write a document as TOML; entries that are None, which TOML cannot say, are left out.

    Examples
    --------
    >>> print(to_toml({"seed": 3, "data": {"d": 4, "rho": 1.0}}), end="")
    seed = 3
    <BLANKLINE>
    [data]
    d = 4
    rho = 1.0
    """
    return "\n".join(_table(document, ())).lstrip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    inner = {name: part for name, part in table.items() if isinstance(part, Mapping)}
    plain = {name: part for name, part in table.items() if name not in inner and part is not None}
    if path and (plain or not inner):
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(name)} = {_value(part)}" for name, part in plain.items()]
    for name, part in inner.items():
        lines += _table(part, (*path, name))
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped too
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return _value(value.tolist())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # nan, inf, -inf: as TOML
    if isinstance(value, Mapping):
        inside = ", ".join(
            f"{_key(name)} = {_value(part)}" for name, part in value.items() if part is not None
        )
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return f"[{', '.join(_value(part) for part in value)}]"
    raise InputError(
        f"the document holds {value!r}, a {type(value).__name__}. TOML cannot say it, so nobody "
        "could run the study again. Use numbers, texts, lists and tables."
    )
