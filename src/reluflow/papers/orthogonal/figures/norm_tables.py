"""Means, bands and tables of the runs behind figures 5 and 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Points
from reluflow.sweeps import Result
from reluflow.theory.contract import Expectation
from reluflow.theory.results import columns, groups


def by_engine(results: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Results of descent and of flow."""
    flow = [r for r in results if r.point.task.endswith("norm_of_flow")]
    return [r for r in results if r not in flow], flow


def flow_points(flow: Sequence[Result], name: str) -> tuple[Points, ...]:
    """Every run of the flow as a cross."""
    if not flow:
        return ()
    x = np.array([float(r.point.parameters[name]) for r in flow])
    y = np.array([float(r.values["squared_norm"]) for r in flow])
    return (Points(x, y, label="flow, each run", colour=7, marker="cross", size=4.0),)


def agreement(descent: Sequence[Result], flow: Sequence[Result]) -> Expectation:
    """Median relative difference of descent and flow from the same start."""
    by_start = {(r.point.parameters["m"], r.point.seed): r.values["squared_norm"] for r in descent}
    gaps = [
        abs(by_start[key] / r.values["squared_norm"] - 1.0)
        for r in flow
        if (key := (r.point.parameters["m"], r.point.seed)) in by_start
    ]
    return Expectation(
        "median difference of descent and flow from the same start",
        float(np.median(gaps)) if gaps else float("nan"),
        0.0,
        0.03,
        "small steps: lr kappa |y| is 0.2 or less",
    )


def bands_by_size(
    results: Sequence[Result], along: str, name: str
) -> tuple[Array, Array, Array, Array]:
    """Sizes, least, mean and largest of a value over the runs of each size."""
    rows = []
    for (size,), found in sorted(groups(results, along).items()):
        values = [r.values[name] for r in found]
        rows.append((size, min(values), float(np.mean(values)), max(values)))
    table = np.array(rows, dtype=float).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]


def means_by_size(results: Sequence[Result], along: str, name: str) -> tuple[Array, Array]:
    """Sizes and means of a value."""
    size, _, mean, _ = bands_by_size(results, along, name)
    return size, mean


def size_ticks(sizes: Array) -> tuple[tuple[float, str], ...]:
    """Every second size, or every one where there are few."""
    return tuple((float(size), f"{size:.0f}") for size in sizes[:: 2 if len(sizes) > 5 else 1])


def run_table(results: Sequence[Result]) -> dict[str, list[Any]]:
    """The columns of the figure's CSV file."""
    parameters = ("n", "m", "init", "lambda0", "lr")
    measured = ("squared_norm", "limit", "optimum", "epochs", "loss", "reached")
    engines = [r.point.task.rpartition("_")[2] for r in results]
    return {"engine": engines} | columns(results, parameters, measured)


def unfinished_note(results: Sequence[Result]) -> str:
    """How many runs missed their target and how many starts leave a point uncovered."""
    late = [r for r in results if not r.values["reached"]]
    bare = sum(not r.values["limit_interpolates"] for r in results)
    return (
        f"{len(late)} of {len(results)} runs did not reach the target loss; {bare} starts leave a "
        "point without a neuron."
    )
