"""What came out of a sweep: how each combination ended and the spread of one number."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.sweeps.plan import Plan
from reluflow.sweeps.point import Point
from reluflow.sweeps.store import Store


@dataclass(frozen=True)
class Line:
    """The trials of one combination, or of the whole plan.

    Attributes
    ----------
    values : mapping
        What the combination sets; empty for the whole plan.
    statuses : mapping
        How many trials ended how; ``missing`` for those not yet computed.
    median, least, greatest : float
        Of the number asked for, over the trials that have it; nan if none has.
    """

    values: Mapping[str, Any]
    statuses: Mapping[str, int]
    median: float
    least: float
    greatest: float


def summarise(
    plan: Plan, store: Store, *, number: str = "log_loss", limit: int = 20
) -> tuple[list[Line], Line]:
    """The first ``limit`` combinations of a plan, and all of it together, in one pass.

    Examples
    --------
    >>> import tempfile
    >>> plan = Plan.of("two", [Point("train", {"d": d}, seed=0) for d in (2, 3)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     for point in plan.points:
    ...         store.put(point, {"angle": 0.5 * point.parameters["d"]})
    ...     lines, total = summarise(plan, store, number="angle")
    >>> lines[1].median, total.least, total.greatest, total.statuses
    (1.5, 1.0, 1.5, {'done': 2})
    """
    points, again = itertools.tee(plan.points)
    rows = store.rows_of(again)
    lines: list[Line] = []
    statuses: Counter[str] = Counter()
    numbers = array("d")
    # tee keeps only what one of the two has read ahead: one page of the store
    while trials := list(itertools.islice(points, plan.repeats)):
        found = [next(rows) for _ in trials]
        states, measured = _outcomes(found, number)
        statuses.update(states)
        numbers.extend(measured)
        if len(lines) < limit:
            lines.append(_line(values_of(trials[0], plan.paths), Counter(states), measured))
    return lines, _line({}, statuses, numbers)


def _outcomes(rows: list[dict[str, Any] | None], number: str) -> tuple[list[str], list[float]]:
    states = ["missing" if row is None else row["status"] for row in rows]
    values = [row["scalars"].get(number) for row in rows if row is not None]
    return states, [float(v) for v in values if isinstance(v, (int, float))]


def _line(values: Mapping[str, Any], statuses: Counter[str], numbers: Iterable[float]) -> Line:
    known = np.asarray(list(numbers) if isinstance(numbers, list) else numbers, dtype=float)
    known = known[~np.isnan(known)]
    if not known.size:
        return Line(values, dict(sorted(statuses.items())), np.nan, np.nan, np.nan)
    return Line(
        values,
        dict(sorted(statuses.items())),
        float(np.median(known)),
        float(known.min()),
        float(known.max()),
    )


def values_of(point: Point, paths: tuple[str, ...]) -> dict[str, Any]:
    """The values of a point at some paths; for a file, the name of its data."""
    found = {}
    for path in paths:
        value: Any = point.parameters
        for name in path.replace("data.file", "data.name").split("."):
            value = value.get(name, "") if isinstance(value, Mapping) else ""
        found[path] = value
    return found
