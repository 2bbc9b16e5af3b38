"""Small things that several figures need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array
from reluflow.figures import Axis
from reluflow.figures.description import Dash, Marker
from reluflow.studies.contract import Size
from reluflow.sweeps import Result
from reluflow.trajectory import Status

LN10 = float(np.log(10.0))
DASHES: tuple[Dash, ...] = ("solid", "dash", "dashdot", "dot")
MARKERS: tuple[Marker, ...] = ("circle", "square", "triangle", "diamond", "cross")
FALL = "loss level F = -log(loss)"


def pick(size: Size, quick: Any, full: Any) -> Any:
    """The choice of a size."""
    return full if size == "full" else quick


def power(x: ArrayLike, y: ArrayLike) -> float:
    """Slope of log y against log x over positive pairs; nan if there are fewer than two."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    good = (a > 0.0) & (b > 0.0) & np.isfinite(a) & np.isfinite(b)
    if np.count_nonzero(good) < 2 or np.ptp(a[good]) == 0.0:
        return float("nan")
    return float(np.polyfit(np.log(a[good]), np.log(b[good]), 1)[0])


def count_axis(label: str, counts: ArrayLike) -> Axis:
    """A logarithmic axis with its own numbers as ticks, such as widths 8, 16, 32."""
    shown = sorted({int(count) for count in np.asarray(counts).ravel()})
    return Axis(label, "log", ticks=tuple((float(count), str(count)) for count in shown))


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


def separated(results: Iterable[Result]) -> list[Result]:
    """Runs that classify every point and were not cut short."""
    return [r for r in results if r.values["separated"] and not r.values["unfinished"]]


def fates(results: Sequence[Result]) -> str:
    """How many runs separate the points, end elsewhere, were cut short, or failed."""
    total = len(results)
    cut = sum(bool(result.values["unfinished"]) for result in results)
    right = len(separated(results))
    text = f"{right} of {total} runs classify every point"
    if total - right - cut:
        text += f", {total - right - cut} end in a local minimum or with dead neurons"
    broken = sum(result.values["status"] == Status.FAILED for result in results)
    if cut - broken:
        text += f", {cut - broken} were cut short by the time limit and are left out"
    if broken:
        text += f", {broken} could not be completed by the engine and are left out"
    return text + "."


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
