"""Results of a sweep, grouped and summed up: what the figures of papers share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array
from reluflow.errors import RunError
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.sweeps import Result


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Slope of log y against log x over positive pairs; nan if there are fewer than two.

    Examples
    --------
    >>> round(slope([1.0, 10.0, 100.0], [2.0, 200.0, 20000.0]), 12)
    2.0
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    good = (a > 0.0) & (b > 0.0) & np.isfinite(a) & np.isfinite(b)
    if np.count_nonzero(good) < 2 or np.ptp(a[good]) == 0.0:
        return float("nan")
    return float(np.polyfit(np.log(a[good]), np.log(b[good]), 1)[0])


def values(results: Iterable[Result], name: str) -> Array:
    """One number of each result."""
    return np.array([result.values[name] for result in results], dtype=np.float64)


def groups(results: Sequence[Result], *names: str) -> dict[tuple[Any, ...], list[Result]]:
    """Results by some of their parameters, in order of appearance."""
    found: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        key = tuple(result.point.parameters[name] for name in names)
        found.setdefault(key, []).append(result)
    return found


def by_seed(results: Sequence[Result]) -> list[list[Result]]:
    """Results of each draw, in order of appearance."""
    found: dict[int, list[Result]] = {}
    for result in results:
        found.setdefault(result.point.seed, []).append(result)
    return list(found.values())


def columns(
    results: Sequence[Result], parameters: Iterable[str], names: Iterable[str]
) -> dict[str, list[Any]]:
    """A table with a row for each result: some parameters, some numbers (-1 where it has none)."""
    table = {name: [result.point.parameters[name] for result in results] for name in parameters}
    return table | {name: [result.values.get(name, -1) for result in results] for name in names}


def median(numbers: ArrayLike) -> float:
    """The median, nan of nothing."""
    array = np.asarray(numbers, dtype=np.float64)
    return float(np.median(array)) if array.size else float("nan")


def extreme(numbers: ArrayLike, kind: Literal["least", "largest"]) -> float:
    """The smallest or largest number, nan of nothing."""
    array = np.asarray(numbers, dtype=np.float64)
    if not array.size:
        return float("nan")
    return float(array.min() if kind == "least" else array.max())


def ended(run: Trajectory) -> Trajectory:
    """Return the run if it ended as was asked; otherwise the computation fails with the reason."""
    if run.status.is_asked_for:
        return run
    raise RunError(
        f"a run ended as `{run.status}`: {run.ending}. What is measured on it would not be that of "
        "its end. Give it more time, or train it alone and look."
    )
