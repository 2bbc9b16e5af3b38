"""Results of sweeps as arrays: by parameters, medians over trials, slopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.sweeps import Point, Result, derived_seed
from reluflow.theory.results import by_seed, columns

MODULE = "reluflow.papers.correlated.figures.measures"


def point(task: str, seed: int, key: str, parameters: dict[str, Any]) -> Point:
    """A computation of this study; ``key`` names the trial, equal for all scales of it."""
    return Point(f"{MODULE}:{task}", parameters, derived_seed(seed, key))


def where(results: Sequence[Result], **parameters: Any) -> list[Result]:
    """The results whose points have these parameters."""
    return [
        result
        for result in results
        if all(result.point.parameters[name] == value for name, value in parameters.items())
    ]


def distinct(results: Sequence[Result], name: str) -> list[Any]:
    """The values of a parameter, sorted."""
    return sorted({result.point.parameters[name] for result in results})


def spread(
    results: Sequence[Result], along: str, value: Callable[[Result], float]
) -> tuple[Array, Array, Array, Array]:
    """Values of a parameter, and median, least and largest of a number over trials."""
    x = distinct(results, along)
    groups = [[value(result) for result in where(results, **{along: each})] for each in x]
    rows = np.array([[np.median(g), np.min(g), np.max(g)] for g in groups]).reshape(-1, 3)
    return np.array(x, float), rows[:, 0], rows[:, 1], rows[:, 2]


def trials(results: Sequence[Result]) -> list[list[Result]]:
    """Results grouped by the seed of their trial, each ordered by scale, largest first."""
    return [sorted(own, key=lambda r: -r.point.parameters["power"]) for own in by_seed(results)]


def table(results: Sequence[Result], parameters: Sequence[str]) -> dict[str, list[Any]]:
    """Every result as a row: parameters, seed, numbers."""
    names = [name for name, value in results[0].values.items() if np.isscalar(value)]
    return columns(results, parameters, names) | {"seed": [r.point.seed for r in results]}
