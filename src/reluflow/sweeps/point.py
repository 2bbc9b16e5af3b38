"""One computation of a sweep: which task, with which parameters, from which seed.

The id of a point is a digest of exactly these three, so it depends neither on the order of a plan
nor on the version of the software, and equal points share one file of the store.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from reluflow.checks import whole
from reluflow.errors import InputError
from reluflow.sweeps import tasks
from reluflow.wording import shown

ID_DIGITS = 32
SEED_BITS = 63  # a signed 64-bit integer of SQLite holds it


@dataclass(frozen=True, eq=False)
class Point:
    """A computation of a sweep.

    Parameters
    ----------
    task : str
        "train", or "module:function" of the package, such as
        "reluflow.papers.correlated.figures.measures:max_angle".
    parameters : mapping
        Plain data, as in JSON or TOML: text, booleans, numbers, lists, mappings with text keys.
        NumPy scalars and arrays become numbers and lists; nan is refused.
    seed : int
        Of every draw, from 0 to 2^63 - 1.

    Examples
    --------
    >>> point = Point("train", {"d": 4}, seed=7)
    >>> point.id
    '8cf27bcc0d2bf0b9a4145cdb17e30085'
    >>> Point("train", {"d": 4}, seed=8) == point
    False
    """

    task: str
    parameters: Mapping[str, Any]
    seed: int

    def __post_init__(self) -> None:
        tasks.check_name(self.task)
        if not isinstance(self.parameters, Mapping):
            raise InputError(
                f"`parameters` is {shown(self.parameters)}, not a mapping. Pass names with values."
            )
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        seed = whole(self.seed, "seed", at_least=0, at_most=2**SEED_BITS - 1)
        object.__setattr__(self, "seed", seed)

    @cached_property
    def id(self) -> str:
        """The first 32 hexadecimal digits of the SHA-256 of the canonical JSON of the point."""
        return hashlib.sha256(canonical(self.to_dict()).encode()).hexdigest()[:ID_DIGITS]

    def to_dict(self) -> dict[str, Any]:
        """The point as plain data; `from_dict` is the inverse."""
        return {"task": self.task, "parameters": self.parameters, "seed": self.seed}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Point:
        """A point of a file. Its task need not be allowed in this process: nothing is started."""
        point = object.__new__(cls)
        for name, kind in (("task", str), ("parameters", dict), ("seed", int)):
            value = stored[name]
            if not isinstance(value, kind):
                raise InputError(
                    f"`{name}` of a stored point is {shown(value)}. Recompute the point."
                )
            object.__setattr__(point, name, value)
        return point

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)


def seeded(task: str, parameters: Mapping[str, Any], sweep_seed: int, repeat: int = 0) -> Point:
    """A point whose seed is derived from the sweep's seed, its parameters and the trial's number.

    Parameters
    ----------
    task : str
        "train" or "module:function".
    parameters : mapping
        Of the task.
    sweep_seed : int
        Seed of the sweep.
    repeat : int
        Number of the trial, from 0.

    Returns
    -------
    Point
        The point with the seed that follows from them.

    Examples
    --------
    >>> a = seeded("train", {"d": 4}, 7)
    >>> a == seeded("train", {"d": 4}, 7), a.seed == seeded("train", {"d": 4}, 7, repeat=1).seed
    (True, False)
    """
    given = plain(parameters, "parameters")
    key = canonical({"task": task, "parameters": given, "repeat": repeat})
    return Point(task, given, derived_seed(sweep_seed, key))


def derived_seed(sweep_seed: int, key: str) -> int:
    """63 bits of the SHA-256 of a seed and a text: independent of order, platform and version.

    Parameters
    ----------
    sweep_seed : int
        Seed of the sweep.
    key : str
        What the seed is for.

    Returns
    -------
    int
        The same for the same arguments on every machine.

    Examples
    --------
    >>> derived_seed(7, "a") == derived_seed(7, "a") != derived_seed(7, "b")
    True
    """
    root = whole(sweep_seed, "seed", at_least=0, at_most=2**SEED_BITS - 1)
    digest = hashlib.sha256(f"{root}:{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)


def canonical(value: Any) -> str:
    """JSON with sorted names and no spaces: one text for one value (1 and 1.0 differ).

    Examples
    --------
    >>> canonical({"b": [1, 2.5], "a": float("inf")})
    '{"a":Infinity,"b":[1,2.5]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plain(value: Any, path: str) -> Any:
    """A copy made of text, booleans, numbers, lists and dictionaries; anything else is refused."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            raise InputError(f"`{path}` is nan. A point needs numbers. Give a number or leave it.")
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"`{path}` has the name {shown(name)}. Names are text. Rename it.")
        return {name: plain(inner, f"{path}.{name}") for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner, f"{path}[{k}]") for k, inner in enumerate(value)]
    raise InputError(
        f"`{path}` is {shown(value)}, which no file can hold. Use text, numbers, lists, mappings."
    )
