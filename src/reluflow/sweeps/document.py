"""Documents of a sweep: the base with some values changed, checked before any work starts."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reluflow.checks import nearest
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.sweeps import tasks
from reluflow.sweeps.design import Combination, Design, Grid, Random
from reluflow.sweeps.point import seeded
from reluflow.wording import shown

SECTIONS = ("data", "network", "loss", "engine")
NUMBERS_LIMIT = 100_000  # of a file that each point carries along
CHECK_S = 5.0


def changed(base: Mapping[str, Any], combination: Combination) -> dict[str, Any]:
    """The tables of the document with the values of a combination at their paths.

    Examples
    --------
    >>> changed({"seed": 1, "data": {"d": 4}}, {"data.d": 8, "engine.lr.alpha": 0.1})
    {'data': {'d': 8}, 'engine': {'lr': {'alpha': 0.1}}}
    """
    result = {name: _copy(base[name]) for name in base if name not in ("seed", "name")}
    for path, value in combination.items():
        *folders, last = path.split(".")
        table = result
        for folder in folders:
            inner = table.setdefault(folder, {})
            if not isinstance(inner, dict):
                raise InputError(
                    f"`{path}` leads through `{folder}`, which is {shown(inner)} in the document. "
                    "Remove that value or shorten the path."
                )
            table = inner
        table[last] = value
    return result


def name_of(raw: Mapping[str, Any], default: str) -> str:
    """The name of the document, or one made from its file; fit for a folder."""
    name = raw.get("name", default)
    if "name" in raw and not isinstance(name, str):
        raise InputError(f"`$.name` is {shown(name)}. Give text.")
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-")[:80] or "sweep"


class Carrier:
    """Puts the contents of the files that a document names into its parameters.

    Ids and seeds then depend on the contents, not on a path, and workers need no files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def __call__(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Replace the tables ``data`` and ``network`` that name a file."""
        for section in ("data", "network"):
            table = parameters.get(section)
            if isinstance(table, dict) and "file" in table:
                key = (section, repr(sorted(table.items())))
                if key not in self._known:
                    self._known[key] = self._read(section, table)
                parameters[section] = self._known[key]
        return parameters

    def _read(self, section: str, table: dict[str, Any]) -> dict[str, Any]:
        from reluflow.builders import build_data, build_network

        if section == "data":
            data = build_data(table, self._folder, 0)
            found: dict[str, Any] = {"X": data.X[:, :-1] if data.bias else data.X, "y": data.y}
            named: dict[str, Any] = {"bias": True} if data.bias else {}
            named |= {} if data.name is None else {"name": data.name}
        else:
            name = table["file"]
            path = self._folder / name if isinstance(name, str) else None
            width = Network.load(path).d if path is not None else 1
            net = build_network(table, Dataset([[1.0] * width], [1.0]), self._folder, 0)
            found, named = dict(net.to_arrays()), {}
        size = sum(array.size for array in found.values())
        if size > NUMBERS_LIMIT:
            raise InputError(
                f"`$.{section}.file` holds {size} numbers. Each point of a sweep carries them "
                f"along, {NUMBERS_LIMIT} at most. Use a generator or a smaller file."
            )
        return {**named, **{name: array.tolist() for name, array in found.items()}}


def check(base: Mapping[str, Any], design: Design, carry: Carrier, seed: int) -> None:
    """Check the paths, then build one point for each value; after a while types and ranges only."""
    from reluflow import spec

    places = _places(design)
    for path in design.paths:
        _check_path(path, places[path], base, design)
    spec.check({**{k: v for k, v in base.items() if k in ("seed", "name")}, **_first(base, design)})
    began = time.monotonic()
    for place, combination in design.samples():
        try:
            point = seeded("train", carry(changed(base, combination)), seed)
            if time.monotonic() - began < CHECK_S:
                tasks.prepare(point.parameters, point.seed)
            else:
                spec.check(point.parameters)
        except InputError as error:
            changes = ", ".join(f"{k} = {shown(v, 80)}" for k, v in combination.items())
            raise InputError(f"{place} ({changes or 'no changes'}): {error}") from None


def _first(base: Mapping[str, Any], design: Design) -> dict[str, Any]:
    return changed(base, next(iter(design)))


def _places(design: Design) -> dict[str, str]:
    """Where each path stands in the document, for messages."""
    if isinstance(design, Grid | Random):
        kind = "grid" if isinstance(design, Grid) else "random"
        return {path: f'$.sweep.{kind}."{path}"' for path in design.paths}
    places: dict[str, str] = {}
    for k, entry in enumerate(design):
        for path in entry:
            places.setdefault(path, f'$.sweep.list[{k}]."{path}"')
    return places


def _check_path(path: str, place: str, base: Mapping[str, Any], design: Design) -> None:
    section, _, rest = path.partition(".")
    if path == "seed":
        raise InputError(
            f"`{place}` sweeps the seed. Each trial has a seed of its own already. "
            "Use `repeats`, or sweep data.seed or network.seed."
        )
    known = [f"{name}.{field}" for name in SECTIONS for field in _fields(name, base, design)]
    if section not in SECTIONS or not rest:
        raise InputError(
            f"`{place}` is no path of the document. Paths start with "
            f"{', '.join(f'{name}.' for name in SECTIONS)} and name a field.{nearest(path, known)}"
        )
    fields = _fields(section, base, design)
    if fields and rest.partition(".")[0] not in fields:
        raise InputError(
            f"`{place}` is no path of the document. The fields of [{section}] are "
            f"{', '.join(fields)}.{nearest(path, known)}"
        )


def _fields(section: str, base: Mapping[str, Any], design: Design) -> list[str]:
    """The fields of a table, for every generator, initialisation or engine that the sweep names."""
    from reluflow import builders, spec

    table = base.get(section)
    given = table if isinstance(table, Mapping) else {}
    if section == "loss":
        return ["factor", "name"]
    if section == "engine":
        names = _values("name", section, given, design)
        structs = [struct for name, struct in spec.ENGINES.items() if name in names]
        return sorted(
            {"name", *(field for struct in structs for field in struct.__struct_fields__)}
        )
    key, functions, value = (
        ("generator", builders.all_generators(), Dataset)
        if section == "data"
        else ("init", builders.initialisations(), Network)
    )
    found = {key, "file"} | ({"bias", "label"} if section == "data" else set())
    for name in _values(key, section, given, design):
        if name in functions:
            found |= set(inspect.signature(functions[name]).parameters) - {"data"}
    if "X" in given or "W" in given:
        found |= set(inspect.signature(value).parameters)
    return sorted(found)


def _values(key: str, section: str, given: Mapping[str, Any], design: Design) -> Iterable[str]:
    """Every name that the document or its sweep gives to ``section.key``."""
    named = {given[key]} if isinstance(given.get(key), str) else set()
    for _, combination in design.samples():
        value = combination.get(f"{section}.{key}")
        if isinstance(value, str):
            named.add(value)
    return named


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
