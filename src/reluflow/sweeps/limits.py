"""Limits of a sweep: how long a point may take and how much memory it may need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reluflow.checks import nearest, number
from reluflow.errors import InputError
from reluflow.wording import cut
from reluflow.wording import shown as shown_value

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)\s*", re.IGNORECASE)
_FIELDS = ("seconds", "memory")


@dataclass(frozen=True)
class Limits:
    """What a point may use; one that uses more is stopped and set aside.

    Parameters
    ----------
    seconds : float, optional
        Time of a point. Compilation, which the first use of a machine pays, does not count.
    memory : int or str, optional
        Memory of the process that computes it, in bytes or like "2GB"; Python and its libraries
        are included, about 0.3 GB.

    Examples
    --------
    >>> Limits(seconds=60, memory="2GB")
    Limits(seconds=60.0, memory=2000000000)
    """

    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            seconds = number(self.seconds, "limits.seconds", above=0.0)
            object.__setattr__(self, "seconds", seconds)
        if self.memory is not None:
            object.__setattr__(self, "memory", _size(self.memory))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def read(table: Any) -> Limits | None:
    """The limits of the table ``[sweep]``, None without any."""
    if table is None:
        return None
    if not isinstance(table, Mapping) or not table:
        raise InputError(
            f"`$.sweep.limits` is {shown_value(table)}. Write "
            'limits = { seconds = 60, memory = "2GB" }, or one of the two.'
        )
    for key in table:
        if key not in _FIELDS:
            raise InputError(
                f"unknown field `{cut(key, 80)}` - at `$.sweep.limits`. The fields are "
                f"{', '.join(_FIELDS)}.{nearest(key, _FIELDS)}"
            )
    return Limits(table.get("seconds"), table.get("memory"))


def shown(size_bytes: float) -> str:
    """A size in a unit that suits it.

    Examples
    --------
    >>> shown(2_500_000_000), shown(750_000)
    ('2.5 GB', '750 KB')
    """
    unit = [name for name, factor in _UNITS.items() if factor <= max(size_bytes, 1)][-1]
    return f"{size_bytes / _UNITS[unit]:.3g} {unit}"


def _size(value: Any) -> int:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value)
        if not found:
            raise InputError(
                f"`limits.memory` is {shown_value(value)}, not a size. Give bytes, or text like "
                '"2GB".'
            )
        value = int(float(found[1]) * _UNITS[found[2].upper()])
    return int(number(value, "limits.memory", above=0.0))
