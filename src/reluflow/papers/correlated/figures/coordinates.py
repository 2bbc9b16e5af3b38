"""Single runs: coordinates of v* - v cross zero in order, norms settle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.figures.description import DASHES
from reluflow.papers.correlated.figures.tables import point
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction

TRIALS = {"quick": 8, "full": 40}
SHOWN = 5  # coordinates drawn
SOURCE = "single-run illustration of arXiv 2306.06479 (appendix): uncentred, d = 16, m = 25, 4^-7"


def points(size: str, seed: int) -> Iterator[Point]:
    """Trials of the illustration of the paper."""
    for trial in range(TRIALS[size]):
        parameters: dict[str, Any] = {"scheme": "uncentred", "d": 16, "width": 25, "power": -7}
        yield point("coordinates", seed, f"coordinates {trial}", parameters)


def crossings(result: Result) -> Array:
    """Iteration at which each coordinate of v* - v first changes sign; inf if it never does."""
    left, iterations = result.arrays["left"], result.arrays["iterations"]
    found = np.full(left.shape[1], math.inf)
    for k in range(left.shape[1]):
        negative = np.flatnonzero(left[:, k] < 0)
        if len(negative):
            found[k] = iterations[negative[0]]
    return found


def in_order(result: Result) -> bool:
    """Whether coordinates that cross do so in the order of the eigenvalues."""
    times = crossings(result)
    times = times[np.isfinite(times)]
    return bool((np.diff(times) >= 0).all())


def draw(results: Sequence[Result]) -> Reproduction:
    """The first trial whose points all have positive inner products."""
    good = [result for result in results if result.values["is_positive"]]
    shown = (good or list(results))[0]
    share = shown.arrays["left"] / shown.arrays["target"]
    count = min(SHOWN, share.shape[1])
    caption = (
        f"Left: the first {count} coordinates of v* - v along the eigenvectors of the data, as "
        "shares of the teacher's: each falls from 1 and changes sign (a dip, dotted), in order. "
        "Right: squared norm of all weights and nuclear norm of the hidden ones."
    )
    figure = Figure(
        "coordinates",
        "Coordinates are learned one after the other",
        (_coordinates_panel(shown, share[:, :count]), _norms_panel(shown)),
        2,
        caption,
    )
    return Reproduction((figure,), {"coordinates": _table(shown, share)}, _expected(shown, good))


def _coordinates_panel(shown: Result, share: Array) -> Panel:
    """A curve for each column of ``share``, and a dotted line where it changes sign."""
    times = crossings(shown)
    iterations = shown.arrays["iterations"]
    seen = iterations > 0
    count = share.shape[1]
    lines = tuple(
        Line(iterations[seen], np.abs(share[seen, k]), f"k = {k + 1}", k, DASHES[k % 4])
        for k in range(count)
    )
    marks = tuple(
        Rule(float(times[k]), "x", dash="dot", colour=k)
        for k in range(count)
        if math.isfinite(times[k])
    )
    return Panel(
        "missing share of each coordinate",
        Axis("iterations", "log"),
        Axis("|u_k . (v* - v)| / u_k . v*", "log", (1e-5, 2.0)),
        (*marks, *lines),
    )


def _norms_panel(shown: Result) -> Panel:
    """Squared and nuclear norm over iterations, with their limits 2 and 1."""
    iterations = shown.arrays["iterations"]
    seen = iterations > 0
    norms = (
        Line(iterations[seen], shown.arrays["squared_norm"][seen], "squared norm", 0),
        Line(iterations[seen], shown.arrays["nuclear_norm"][seen], "nuclear norm", 1, "dash"),
        Rule(2.0, "y", "2"),
        Rule(1.0, "y", "1"),
    )
    return Panel("norms", Axis("iterations", "log"), Axis("norm"), norms)


def _expected(shown: Result, good: Sequence[Result]) -> tuple[Expectation, ...]:
    """The order of crossings in all trials that count, and the norms at the end of one."""
    ordered = [in_order(result) for result in good]
    return (
        Expectation(
            f"share of trials that cross in order ({len(ordered)} with positive products)",
            float(np.mean(ordered)) if ordered else math.nan,
            0.8,
            1.0,
            SOURCE,
        ),
        Expectation(
            "squared norm at the end",
            float(shown.arrays["squared_norm"][-1]),
            1.99,
            2.01,
            SOURCE,
        ),
        Expectation(
            "nuclear norm at the end",
            float(shown.arrays["nuclear_norm"][-1]),
            0.99,
            1.01,
            SOURCE,
        ),
    )


def _table(shown: Result, share: Array) -> dict[str, list[Any]]:
    """The curves of one trial, all its coordinates, as columns."""
    return {
        "iterations": shown.arrays["iterations"].tolist(),
        **{f"share_{k + 1}": share[:, k].tolist() for k in range(share.shape[1])},
        "squared_norm": shown.arrays["squared_norm"].tolist(),
        "nuclear_norm": shown.arrays["nuclear_norm"].tolist(),
    }


RECIPES = [
    Recipe(
        "correlated/fig-coordinates",
        "coordinates of v* - v crossing zero in order, in one run",
        points,
        draw,
    )
]
