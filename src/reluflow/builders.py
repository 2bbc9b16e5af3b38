"""From tables of names and arguments to data and networks; signatures are the documentation.

A table names one function of `reluflow.datasets` or `reluflow.networks` and its arguments, or a
file, or the arrays themselves. Arguments are compared with the signature of the function, so a new
generator needs no line here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from reluflow import datasets, densities, networks
from reluflow.checks import nearest
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.wording import cut, shown

Table = Mapping[str, Any]


def generators() -> dict[str, Callable[..., Any]]:
    """The functions that return a Dataset, by name (files have a field of their own)."""
    found = _functions(datasets, "Dataset")
    found.pop("from_csv", None)
    return found


def all_generators() -> dict[str, Callable[..., Any]]:
    """Those of `generators`, and those of the papers as ``PAPER/FUNCTION``."""
    from reluflow.theory.registry import papers

    own = {
        f"{paper.name}/{name}": function
        for paper in papers()
        for name, function in paper.generators.items()
    }
    return generators() | own


def initialisations() -> dict[str, Callable[..., Any]]:
    """The functions that return a Network, by name."""
    return _functions(networks, "Network")


def build_data(table: Table, folder: Path, seed: int) -> Dataset:
    """Build the data of ``[data]``: a generator, a CSV file or inline arrays."""
    path = "$.data"
    kind = _kind(table, ("generator", "file", "X"), path)
    if kind == "X":
        return _call(Dataset, table, {}, path)  # type: ignore[no-any-return]
    if kind == "file":
        named = {**table, "file": _file(table, folder, path)}
        return _call(_read_csv, named, {}, path)  # type: ignore[no-any-return]
    arguments = {name: value for name, value in table.items() if name != kind}
    for name, module in (("teacher", datasets), ("density", densities)):
        if isinstance(arguments.get(name), dict):
            arguments[name] = _nested(arguments[name], module, f"{path}.{name}")
    known = all_generators() if "/" in str(table[kind]) else generators()
    function = _named(table[kind], known, f"{path}.{kind}")
    # data and network draw from streams of their own: a new width leaves the points as they are
    return _call(function, arguments, {"seed": np.random.default_rng([seed, 0])}, path)  # type: ignore[no-any-return]


def build_network(table: Table, data: Dataset, folder: Path, seed: int) -> Network:
    """Build the network of ``[network]``: an initialisation, a file or inline arrays."""
    path = "$.network"
    kind = _kind(table, ("init", "file", "W"), path)
    if kind == "W":
        net = _call(Network, table, {}, path)
    elif kind == "file":
        named = {**table, "file": _file(table, folder, path)}
        net = _call(_read_network, named, {}, path)
    else:
        arguments = {name: value for name, value in table.items() if name != kind}
        function = _named(table[kind], initialisations(), f"{path}.{kind}")
        supplied = {"data": data, "d": data.d, "seed": np.random.default_rng([seed, 1])}
        net = _call(function, arguments, supplied, path)
    if net.d != data.d:
        raise InputError(
            f"the network takes {net.d} inputs but the points have {data.d} coordinates. "
            f"Make them agree. (at `{path}`)"
        )
    return net  # type: ignore[no-any-return]


def _functions(module: ModuleType, returned: str) -> dict[str, Callable[..., Any]]:
    """Public functions of a module by the name of what they return, as annotated."""
    found: dict[str, Callable[..., Any]] = {}
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function) and function.__annotations__.get("return") == returned:
            found[name] = function
    return found


def _kind(table: Table, kinds: tuple[str, ...], path: str) -> str:
    """The one of ``kinds`` that the table holds."""
    present = [name for name in kinds if name in table]
    if len(present) == 1:
        return present[0]
    listed = ", ".join(f"`{name}`" for name in kinds)
    typos = [name for name in table if nearest(name, kinds)]
    hint = f" `{typos[0]}` is not one of them.{nearest(typos[0], kinds)}" if typos else ""
    raise InputError(
        f"`{path}` has {' and '.join(present) or 'none'} of the fields {listed}. "
        f"Give exactly one.{'' if present else hint}"
    )


def _named(name: Any, functions: Mapping[str, Callable[..., Any]], path: str) -> Callable[..., Any]:
    if not isinstance(name, str) or name not in functions:
        raise InputError(
            f"`{path}` is {shown(name)}; it must be one of {', '.join(functions)}."
            f"{nearest(name, functions)}"
        )
    return functions[name]


def _file(table: Table, folder: Path, path: str) -> Path:
    name = table["file"]
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError(f"`{path}.file` is {shown(name)}. Give the path of a file as text.")
    return folder / name


def _read_csv(file: Path, label: str | int, bias: bool = False) -> Dataset:
    return datasets.from_csv(file, label=label, bias=bias)


def _read_network(file: Path) -> Network:
    return Network.load(file)


def _nested(table: Table, module: ModuleType, path: str) -> Any:
    """A density, or the network behind univariate labels, from its own table."""
    if module is datasets:
        return _call(datasets.teacher_1d, table, {}, path)
    functions = _functions(densities, "Density")
    arguments = {name: value for name, value in table.items() if name != "name"}
    return _call(_named(table.get("name"), functions, f"{path}.name"), arguments, {}, path)


def _call(function: Callable[..., Any], table: Table, supplied: Table, path: str) -> Any:
    """Call with the arguments of a table and those of ``supplied`` that the signature knows."""
    parameters = inspect.signature(function).parameters
    open_names = [name for name in parameters if name != "data"]
    for name in table:
        if name not in open_names:
            raise InputError(
                f"unknown field `{cut(name, 80)}` - at `{path}`. The fields are "
                f"{', '.join(open_names)}.{nearest(name, open_names)}"
            )
    arguments = {name: value for name, value in supplied.items() if name in parameters} | dict(
        table
    )
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise InputError(f"`{path}.{name}` is missing. Add it.")
    try:
        return function(**arguments)
    except InputError as error:
        raise InputError(f"{error} (at `{path}`)") from None
    except (MemoryError, OverflowError, ValueError) as error:
        raise InputError(
            f"this cannot be built: {error}. Reduce the sizes. (at `{path}`)"
        ) from None
