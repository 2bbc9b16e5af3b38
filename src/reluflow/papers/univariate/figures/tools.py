"""Small things that several figures need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.figures import Axis
from reluflow.sweeps import Result
from reluflow.theory.contract import Size
from reluflow.trajectory import Status

LN10 = float(np.log(10.0))
FALL = "loss level F = -log(loss)"


def pick(size: Size, quick: Any, full: Any) -> Any:
    """The choice of a size."""
    return full if size == "full" else quick


def count_axis(label: str, counts: ArrayLike) -> Axis:
    """A logarithmic axis with its own numbers as ticks, such as widths 8, 16, 32."""
    shown = sorted({int(count) for count in np.asarray(counts).ravel()})
    return Axis(label, "log", ticks=tuple((float(count), str(count)) for count in shown))


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
