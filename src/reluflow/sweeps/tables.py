"""A sweep as a table: a row for each point, what was varied, how it ended, what was measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from reluflow.checks import nearest
from reluflow.errors import InputError, MissingExtraError
from reluflow.sweeps import measures
from reluflow.sweeps.plan import Plan
from reluflow.sweeps.store import Store
from reluflow.wording import shown

Columns = dict[str, list[Any]]
_PLAIN = (bool, int, float, str)


def load(
    store: str | PathLike[str] | Store,
    *,
    measure: Any = None,
    plan: Plan | None = None,
) -> Any:
    """Return a store as a ``pandas.DataFrame``, one row a point.

    Parameters
    ----------
    store : path or Store
        The folder of a sweep.
    measure : list or mapping, optional
        What to measure on the runs: names (`reluflow.sweeps.measures`), functions of a run, or
        'file.py:function'; a mapping names the columns.
    plan : Plan, optional
        Only its points, in its order, with its measurements where none are given.

    Returns
    -------
    pandas.DataFrame
        A row for each point: what it varies, its seed and status, what was measured.

    Examples
    --------
    >>> import tempfile
    >>> from reluflow.sweeps.point import Point
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for d in (2, 3):
    ...         Store(folder).put(Point("train", {"data": {"d": d}}, seed=0), {"angle": 0.5 * d})
    ...     table = load(folder)
    >>> sorted(table.columns), sorted(table["angle"])
    (['angle', 'data.d', 'seed', 'status'], [1.0, 1.5])
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError(
            "sweeps.load needs pandas. Install it with: pip install 'reluflow[xarray]', or use "
            "reluflow.sweeps.columns"
        ) from None
    return pandas.DataFrame(columns(store, measure=measure, plan=plan))


def columns(
    store: str | PathLike[str] | Store, *, measure: Any = None, plan: Plan | None = None
) -> Columns:
    """The same as plain columns, a list each.

    Parameters
    ----------
    store : path or Store
        The folder of a sweep.
    measure : optional
        Measurements, as `load` takes them.
    plan : Plan, optional
        Only the points of this plan, with what it varies and measures.

    Returns
    -------
    dict of lists
        A column for each name, a row for each point.
    """
    kept = store if isinstance(store, Store) else Store(store)
    if not kept.path.is_dir():
        raise InputError(f"there is no store {shown(str(kept.path))}. Pass the folder of a sweep.")
    taken = measures.read(measure) if measure is not None or plan is None else plan.measures
    rows = [_row(row, kept, taken) for row in _stored(kept, plan)]
    varied = list(plan.paths) if plan is not None and plan.paths else _varied(rows)
    return _joined(varied, rows, list(taken))


def to_csv(table: Columns) -> bytes:
    """Columns as a CSV file; numbers with all their digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow([repr(cell) if isinstance(cell, float) else cell for cell in row])
    return stream.getvalue().encode()


def column_named(table: Columns, name: str) -> str:
    """The column of a name, or of the last part of its path.

    Examples
    --------
    >>> column_named({"network.log_scale": [], "max_angle": []}, "log_scale")
    'network.log_scale'
    """
    if name in table:
        return name
    ends = [column for column in table if column.rpartition(".")[2] == name]
    if len(ends) == 1:
        return ends[0]
    short = [column.rpartition(".")[2] for column in table]
    what = "several columns" if ends else "no column"
    raise InputError(
        f"{shown(name, 80)} is the name of {what}. The columns are {', '.join(table)}."
        f"{nearest(name, [*table, *short])}"
    )


def _stored(store: Store, plan: Plan | None) -> Iterator[Mapping[str, Any]]:
    if plan is None:
        yield from store.rows()
        return
    for row in store.rows_of(plan.points):
        if row is not None:
            yield row


def _row(
    row: Mapping[str, Any], store: Store, taken: Mapping[str, measures.Measure]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a point, flattened, and what came out of it."""
    found = {**row["scalars"], "status": row["status"]}
    if taken and not row["error"]:
        run = store.load(row["id"]).run
        for name, measure in taken.items():
            found[name] = float("nan") if run is None else measures.value(measure, run)
    return {**_flat(row["parameters"], ""), "seed": row["seed"]}, found


def _flat(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in table.items():
        if isinstance(inner, Mapping):
            found |= _flat(inner, f"{path}{name}.")
        elif isinstance(inner, _PLAIN):
            found[f"{path}{name}"] = inner
    return found


def _varied(rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Parameters with more than one value; of a single point, all."""
    names = {name: None for given, _ in rows for name in given if name != "seed"}
    if len(rows) < 2:
        return list(names)
    return [name for name in names if len({repr(given.get(name)) for given, _ in rows}) > 1]


def _joined(
    varied: Sequence[str],
    rows: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    measured: Sequence[str],
) -> Columns:
    results = {name: None for _, found in rows for name in found if name not in measured}
    table: Columns = {name: [given.get(name) for given, _ in rows] for name in varied}
    table["seed"] = [given["seed"] for given, _ in rows]
    for name in (*results, *measured):
        table[name] = [found.get(name) for _, found in rows]
    return table
