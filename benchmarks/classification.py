"""Classification: classes split by a plane, to log-loss -20, from weights of size 0.1.

One part a loss and a number of points, in 20 dimensions with 100 neurons. ``ratio`` is the budget
over what was used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import reluflow as rf

Row = dict[str, Any]

D, WIDTH, STOP_LOG_LOSS = 20, 100, -20.0
BUDGET_S = {160: 5.0, 1000: 60.0}
LOSSES = {"exponential": rf.losses.Exponential(), "logistic": rf.losses.Logistic()}


def parts(limit_s: float = 300.0) -> dict[str, Callable[[], Iterable[Row]]]:
    """The parts by name; a run is stopped after ``limit_s`` seconds."""
    return {f"{name}-{n}": partial(rows_of, name, n, limit_s) for n in BUDGET_S for name in LOSSES}


def warm_up() -> None:
    """Compile everything: implicit steps on few points, explicit ones on as many as need them."""
    for name in LOSSES:
        for n in (8, 120):
            list(rows_of(name, n, 600.0))


def rows_of(name: str, n: int, limit_s: float) -> Iterator[Row]:
    """One run."""
    rng = np.random.default_rng([n, D])
    X = rng.normal(size=(n, D))
    data = rf.Dataset(X, np.where(X @ rng.normal(size=D) > 0.0, 1.0, -1.0))
    net = rf.networks.gaussian(D, WIDTH, sigma_hidden=0.1, sigma_output=0.1, seed=n)
    begin = time.process_time()
    run = rf.flow(
        data,
        net,
        loss=LOSSES[name],
        stop_log_loss=STOP_LOG_LOSS,
        rtol=1e-6,
        max_seconds=limit_s,
    )
    spent = time.process_time() - begin
    budget = BUDGET_S.get(n, 1.0)
    yield {
        "loss": name,
        "n": n,
        "ours_s": spent,
        "ratio": budget / spent if str(run.status) == "stop_loss" else 0.0,
        "target": 1.0,
        "note": f"budget {budget:g} s; {run.status}, log-loss {run.log_loss[-1]:.4g}, "
        f"{run.stats['steps']} steps, {len(run.events)} events",
    }
