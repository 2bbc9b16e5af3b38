"""Sweeps: points a second and the overhead of a point, by number of workers.

``echo`` does no work: what is left is planning, sending, writing and indexing. ``train`` is a short
run of descent, ``longer`` one of some 20 ms. ``rebuild`` makes a lost index again.

The first points pay for starting workers and loading kernels: each row is the difference of two
executions of one plan, a short and a long one.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reluflow.sweeps import Plan, Point, Store, execute, seeded

TINY = {
    "data": {"generator": "centred", "d": 4},
    "network": {"init": "balanced", "width": 8, "log_scale": -3.0},
    "engine": {"name": "descent", "lr": 0.05, "steps": 500},
}


def echo(count: int) -> Plan:
    points = (Point("reluflow.sweeps.tasks:echo", {"x": x}, seed=x) for x in range(count))
    return Plan.of("echo", points)


def train(count: int) -> Plan:
    return Plan.of("train", (seeded("train", TINY, 0, k) for k in range(count)))


def longer(count: int) -> Plan:
    document = {**TINY, "engine": {"name": "descent", "lr": 1e-4, "steps": 20_000, "record": 3}}
    return Plan.of("longer", (seeded("train", document, 0, k) for k in range(count)))


def elapsed(plan: Plan, workers: int) -> float:
    """Wall seconds of an execution into an empty store: workers are other processes."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        execute(plan, folder, workers=workers)
        return time.perf_counter() - start


def rows() -> Iterator[dict[str, Any]]:
    """Yield one row for each kind of point and number of workers."""
    for make, short, long in ((echo, 50, 1050), (train, 20, 320), (longer, 20, 320)):
        alone = None
        for workers in (0, 1, 2):
            took = elapsed(make(short), workers)
            each = max(elapsed(make(long), workers) - took, 1e-9) / (long - short)
            alone = each if alone is None else alone
            yield {
                "name": f"{make.__name__}, {workers or 'no'} workers, {os.cpu_count()} cores",
                "points a second": 1 / each,
                "ms a point": 1e3 * each,
                "against inline": alone / each,
                "seconds to start": max(took - short * each, 0.0),
            }
    yield rebuild(20_000)


def rebuild(count: int) -> dict[str, Any]:
    """The row of an index that is lost and made again from the results."""
    with tempfile.TemporaryDirectory() as folder:
        execute(echo(count), folder, workers=0)
        for index in Path(folder).glob("index*"):
            index.unlink()
        start = time.perf_counter()
        assert Store(folder).summary() == {"done": count}
        each = (time.perf_counter() - start) / count
    return {
        "name": f"rebuild, {count} points",
        "points a second": 1 / each,
        "ms a point": 1e3 * each,
    }
