r"""Plans: the points of a sweep, made one at a time.

A sweep document is a document of `reluflow.spec` and a table that says what changes::

    [sweep]
    seed = 7                        # default: the seed of the document
    repeats = 5                     # trials of each combination, each with its own derived seed
    limits = { seconds = 60 }       # what a point may use, also memory = "2GB"

    [sweep.grid]                    # paths of the document and their values: all combinations
    "network.log_scale" = [-5, -10, -20]
    "data.d" = [4, 16]

    [measure]                       # optional: what to measure on each run, a column each
    angle = "max_angle"

Instead of the grid: ``[[sweep.list]]`` tables of paths and values, or ``[sweep.random]`` with
``count`` and rules such as ``"engine.lr" = { log_uniform = [1e-3, 1e-1] }`` (also ``uniform``,
``integer``, ``choice``). The seed of a point depends on the seed of the sweep, the parameters of
the point and the number of the trial, not on its place in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from reluflow import toml
from reluflow.checks import nearest, whole
from reluflow.errors import InputError
from reluflow.sweeps import limits as limits_of
from reluflow.sweeps.design import Design, read_design
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.measures import Measure
from reluflow.sweeps.measures import read as read_measures
from reluflow.sweeps.point import SEED_BITS, Point, seeded
from reluflow.wording import cut, printable

LIMIT = 10_000_000
_OF_RUNS = ("data", "network", "engine", "loss", "name", "seed")  # no typos of "sweep"
_FIELDS = ("seed", "repeats", "limits", "grid", "list", "random")


class Plan:
    """Points to compute, with a name and a seed; iterated lazily, as often as needed.

    Attributes
    ----------
    name : str
        For folders and tables.
    seed : int
        Seed of the sweep.
    paths : tuple of str
        What changes from point to point; empty for a plan made from points.
    repeats : int
        Trials of each combination; they follow each other in ``points``.
    limits : Limits or None
        What each point may use; not part of its id.
    measures : mapping
        What tables of the results show beside how the runs ended, by column.

    Examples
    --------
    >>> plan = Plan.of("angles", [Point("train", {"d": d}, seed=0) for d in (2, 3)])
    >>> len(plan), [point.parameters["d"] for point in plan.points]
    (2, [2, 3])
    """

    def __init__(
        self,
        name: str,
        count: int,
        make: Callable[[], Iterator[Point]],
        *,
        seed: int = 0,
        paths: tuple[str, ...] = (),
        repeats: int = 1,
        limits: Limits | None = None,
        measures: Mapping[str, Measure] | None = None,
    ) -> None:
        if count > LIMIT:
            raise InputError(
                f"the plan has {count} points, above the limit of {LIMIT}. It would take years "
                "and fill the disk. Use fewer values, or [sweep.random] with a count."
            )
        self.name, self.seed, self.paths, self.repeats = name, seed, paths, repeats
        self.limits, self._count, self._make = limits, count, make
        self.measures: Mapping[str, Measure] = measures or {}

    def __len__(self) -> int:
        return self._count

    @property
    def points(self) -> Iterator[Point]:
        """The points, from the first; nothing is kept in memory."""
        return self._make()

    def __repr__(self) -> str:
        return f"Plan({self.name!r}, {len(self)} points)"

    @classmethod
    def of(
        cls,
        name: str,
        points: Iterable[Point],
        *,
        seed: int = 0,
        limits: Limits | None = None,
    ) -> Plan:
        """A plan of given points."""
        listed = tuple(points)
        for point in listed:
            if not isinstance(point, Point):
                raise InputError(f"a plan got {point!r}, not a Point. Pass reluflow.sweeps.Point.")
        return cls(name, len(listed), lambda: iter(listed), seed=seed, limits=limits)

    @classmethod
    def load(cls, path: str | PathLike[str], *, seed: int | None = None) -> Plan:
        """The plan of a TOML file; ``seed`` replaces the seed of the sweep."""
        file = Path(path)
        try:
            return cls.build(toml.read(file), name=file.stem, folder=file.parent, seed=seed)
        except InputError as error:
            raise InputError(f"{printable(path)}: {error}") from error

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        name: str = "sweep",
        folder: Path | None = None,
        seed: int | None = None,
    ) -> Plan:
        """The plan of a TOML text; files that it names are looked up in ``folder``."""
        return cls.build(toml.parse(text), name=name, folder=folder, seed=seed)

    @classmethod
    def build(
        cls,
        raw: Mapping[str, Any],
        *,
        name: str = "sweep",
        folder: Path | None = None,
        seed: int | None = None,
    ) -> Plan:
        """The plan of the tables of a document."""
        from reluflow.sweeps import document

        table = _sweep_table(raw)
        own = table.get("seed", raw.get("seed", 0)) if seed is None else seed
        root = whole(own, "$.sweep.seed", at_least=0, at_most=2**SEED_BITS - 1)
        repeats = whole(table.get("repeats", 1), "$.sweep.repeats")
        design = read_design(table, root)
        measures = read_measures(raw.get("measure"), folder)
        base = {key: value for key, value in raw.items() if key not in ("sweep", "measure")}
        carry = document.Carrier(folder or Path())

        def points() -> Iterator[Point]:
            for combination in design:
                parameters = carry(document.changed(base, combination))
                for repeat in range(repeats):
                    yield seeded("train", parameters, root, repeat)

        plan = cls(
            document.name_of(raw, name),
            _length(design) * repeats,
            points,
            seed=root,
            paths=design.paths,
            repeats=repeats,
            limits=limits_of.read(table.get("limits")),
            measures=measures,
        )
        document.check(base, design, carry, root)
        return plan


def _length(design: Design) -> int:
    return design.__len__()  # len() itself overflows above 2^63


def _sweep_table(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    table = raw.get("sweep")
    if not isinstance(table, Mapping):
        typos = nearest("sweep", [key for key in raw if key not in _OF_RUNS])
        raise InputError(
            "`$.sweep` is missing. Add a table [sweep] with a grid, a list or random draws, or "
            f"train this file once with `reluflow run`.{typos}"
        )
    for key in table:
        if key not in _FIELDS:
            raise InputError(
                f"unknown field `{cut(key, 80)}` - at `$.sweep`. The fields are "
                f"{', '.join(_FIELDS)}.{nearest(key, _FIELDS)}"
            )
    return table
