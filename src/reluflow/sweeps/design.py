"""Which values a sweep gives to which paths of a document: a grid, a list or random draws.

Each design knows its length without listing, yields its combinations lazily, and is read from the
table ``[sweep]`` of a document.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reluflow.checks import nearest, number, whole
from reluflow.errors import InputError
from reluflow.sweeps.point import canonical, derived_seed
from reluflow.wording import shown

Combination = dict[str, Any]
KINDS = ("grid", "list", "random")
DRAWS = ("uniform", "log_uniform", "integer", "choice")


@dataclass(frozen=True)
class Grid:
    """All combinations of the values of each path."""

    axes: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.axes.values())

    def __iter__(self) -> Iterator[Combination]:
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(self.axes)

    def samples(self) -> Iterator[tuple[str, Combination]]:
        """The first combination, then one for each other value, each with its place."""
        first = {path: values[0] for path, values in self.axes.items()}
        yield "the first point", first
        for path, values in self.axes.items():
            for k, value in enumerate(values[1:], 1):
                yield f'`$.sweep.grid."{path}"[{k}]`', {**first, path: value}


@dataclass(frozen=True)
class Listed:
    """Combinations written out."""

    entries: list[Combination]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Combination]:
        return iter(self.entries)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(dict.fromkeys(path for entry in self.entries for path in entry))

    def samples(self) -> Iterator[tuple[str, Combination]]:
        """Every entry with its place."""
        return ((f"`$.sweep.list[{k}]`", entry) for k, entry in enumerate(self.entries))


@dataclass(frozen=True)
class Random:
    """Independent draws.

    The k-th depends on the seed, the path and k alone: a longer sweep keeps the points of a
    shorter one.
    """

    count: int
    draws: Mapping[str, tuple[str, list[Any]]]
    seed: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Combination]:
        for k in range(self.count):
            yield {
                path: draw(kind, values, derived_seed(self.seed, f"{path}#{k}"))
                for path, (kind, values) in self.draws.items()
            }

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(self.draws)

    def samples(self) -> Iterator[tuple[str, Combination]]:
        """The first combination, and the ends of each range."""
        first = next(iter(self))
        yield "the first point", first
        for path, (_, values) in self.draws.items():
            for value in values:
                yield f'`$.sweep.random."{path}"`', {**first, path: value}


Design = Grid | Listed | Random


def draw(kind: str, values: list[Any], bits: int) -> Any:
    """A value from 63 random bits, the same on every platform.

    Examples
    --------
    >>> draw("uniform", [0.0, 2.0], 2**62), draw("integer", [1, 3], 0), draw("choice", ["a"], 5)
    (1.0, 1, 'a')
    """
    fraction = (bits >> 10) / 2**53  # as many bits as a float holds: never rounds up to 1
    if kind == "choice":
        return values[int(fraction * len(values))]
    low, high = values
    if kind == "integer":
        return low + int(fraction * (high - low + 1))
    if kind == "uniform":
        return low + (high - low) * fraction
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * fraction)


def read_design(table: Mapping[str, Any], seed: int) -> Design:
    """The design of ``[sweep]``: one of grid, list and random."""
    given = [kind for kind in KINDS if kind in table]
    if len(given) > 1:
        raise InputError(f"`$.sweep` has {' and '.join(given)}. Give one of them.")
    if not given:
        return Grid({})
    if given == ["list"]:
        return _listed(table["list"])
    if not isinstance(table[given[0]], Mapping):
        raise InputError(
            f"`$.sweep.{given[0]}` is {shown(table[given[0]])}, not a table. Make it one."
        )
    return _grid(table["grid"]) if given == ["grid"] else _random(table["random"], seed)


def _grid(table: Mapping[str, Any]) -> Grid:
    for path, values in table.items():
        where = f'$.sweep.grid."{path}"'
        if not isinstance(values, list) or not values:
            raise InputError(f"`{where}` is {shown(values)}. Give a list of values, at least one.")
        texts: set[str] = set()
        for value in values:
            if canonical(value) in texts:
                raise InputError(
                    f"`{where}` lists {shown(value)} twice. Remove one; use `repeats`."
                )
            texts.add(canonical(value))
    return Grid(dict(table))


def _listed(entries: Any) -> Listed:
    if not isinstance(entries, list) or not entries:
        raise InputError(f"`$.sweep.list` is {shown(entries)}. Write [[sweep.list]] tables.")
    for k, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise InputError(
                f"`$.sweep.list[{k}]` is {shown(entry)}, not a table. Give paths, values."
            )
    return Listed([dict(entry) for entry in entries])


def _random(table: Mapping[str, Any], seed: int) -> Random:
    if "count" not in table:
        raise InputError("`$.sweep.random.count` is missing. Say how many points to draw.")
    count = whole(table["count"], "$.sweep.random.count")
    draws = {
        path: _draw_of(rule, f'$.sweep.random."{path}"')
        for path, rule in table.items()
        if path != "count"
    }
    return Random(count, draws, seed)


def _draw_of(rule: Any, where: str) -> tuple[str, list[Any]]:
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise InputError(f"`{where}` is {shown(rule)}. Write it like {{ uniform = [0.0, 1.0] }}.")
    kind, values = next(iter(rule.items()))
    if kind not in DRAWS:
        raise InputError(
            f"`{where}` has {shown(kind)}; it must be one of {', '.join(DRAWS)}."
            f"{nearest(kind, DRAWS)}"
        )
    if not isinstance(values, list) or not values or (kind != "choice" and len(values) != 2):
        wanted = "a list of values" if kind == "choice" else "a pair, lowest and highest value"
        raise InputError(f"`{where}.{kind}` is {shown(values)}. Give {wanted}.")
    if kind == "choice":
        return kind, values
    name = f"{where}.{kind}"
    if kind == "integer":
        low, high = (whole(value, name, at_least=-(2**53)) for value in values)
    else:
        floor = {"above": 0.0} if kind == "log_uniform" else {}
        low, high = (number(value, name, **floor) for value in values)  # type: ignore[assignment,arg-type]
    if low > high:
        raise InputError(f"`{name}` is {shown(values)}; the lowest value comes first. Swap them.")
    return kind, [low, high]
