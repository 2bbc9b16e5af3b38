"""Depth: the time of the flow from ever smaller starts, over that from log scale -100.

Random problems of two to eight points in two to four dimensions, balanced starts, each from log
scales -100 down to -1e6. One part a loss. A row has the median and the worst ratio of its log
scale; runs that are stopped are ``unfinished``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import reluflow as rf

Row = dict[str, Any]

SCALES = (-1e2, -1e3, -1e4, -1e5, -1e6)
COUNT = 67  # problems a loss: 200 in all, and one
STOP_LOG_LOSS = -20.0  # of a classification loss
MEDIAN, WORST = 1.2, 3.0  # the ratios set as a target
LOSSES = {
    "square": rf.losses.Square(),
    "exponential": rf.losses.Exponential(),
    "logistic": rf.losses.Logistic(),
}


def parts(limit_s: float = 20.0) -> dict[str, Callable[[], Iterable[Row]]]:
    """One part a loss; a run is stopped after ``limit_s`` seconds."""
    return {name: partial(of_loss, name, limit_s) for name in LOSSES}


def warm_up() -> None:
    """Compile everything on one problem a loss."""
    for name in LOSSES:
        spent(name, 0, -1e3, 600.0)


def problem(name: str, seed: int) -> tuple[rf.Dataset, rf.Network]:
    """Data and a start at log scale 0."""
    rng = np.random.default_rng([seed, len(name)])
    n, d, m = rng.integers(2, 9), rng.integers(2, 5), rng.integers(4, 11)
    y = rng.normal(size=n) if name == "square" else rng.choice([-1.0, 1.0], size=n)
    data = rf.Dataset(rng.normal(size=(n, d)), y)
    return data, rf.networks.balanced(int(d), int(m), log_scale=0.0, seed=seed)


def spent(name: str, seed: int, log_scale: float, limit_s: float) -> float:
    """CPU seconds of a run, the least of three if it is short; nan if it was stopped."""
    data, net = problem(name, seed)
    stop = None if name == "square" else STOP_LOG_LOSS
    best = np.inf
    for _ in range(3):
        begin = time.process_time()
        run = rf.flow(
            data,
            net.with_scale(log_scale),
            loss=LOSSES[name],
            stop_log_loss=stop,
            max_seconds=limit_s,
        )
        best = min(best, time.process_time() - begin)
        if str(run.status) in ("budget", "failed"):
            return np.nan
        if best > 1.0:
            break
    return best


def of_loss(name: str, limit_s: float) -> Iterator[Row]:
    """A row for each log scale below the first."""
    first = [spent(name, seed, SCALES[0], limit_s) for seed in range(COUNT)]
    lost = int(np.isnan(first).sum())
    for scale in SCALES[1:]:
        times = [spent(name, seed, scale, limit_s) for seed in range(COUNT)]
        ratios = [time / base for time, base in zip(times, first, strict=True)]
        done = [ratio for ratio in ratios if np.isfinite(ratio)] or [np.inf]
        median, worst = statistics.median(done), max(done)
        unfinished = int(np.isnan(times).sum())
        yield {
            "loss": name,
            "log scale": scale,
            "median": median,
            "worst": worst,
            "unfinished": unfinished,
            "ratio": 0.0 if unfinished or lost else min(MEDIAN / median, WORST / worst),
            "target": 1.0,
            "note": f"{COUNT} problems, {statistics.median(first):.3g} s from log scale -100"
            + (f", {lost} of them stopped" if lost else ""),
        }
