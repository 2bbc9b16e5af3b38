"""First call: from an empty cache of compiled kernels to a first result.

Every row is a process of its own with a cache of its own; CPU seconds from the start of the
interpreter to the result, but for ``warm-up``, which is timed by the clock. ``ratio`` is the budget
over what was used.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]

FIRST_S, SECOND_S, WARM_UP_S = 30.0, 1.0, 20.0
SQUARE = """
import numpy as np, reluflow as rf
rng = np.random.default_rng(0)
data = rf.Dataset(rng.normal(size=(5, 2)), rng.normal(size=5))
net = rf.networks.gaussian(2, 8, sigma_hidden=0.1, sigma_output=0.1, seed=0)
"""
PLAIN = SQUARE + "rf.flow(data, net)"
TINY = SQUARE + "rf.flow(data, net.with_scale(-100.0))"
LOGISTIC = """
import numpy as np, reluflow as rf
rng = np.random.default_rng(0)
data = rf.Dataset(rng.normal(size=(5, 2)), [1, 1, -1, 1, -1])
net = rf.networks.gaussian(2, 8, sigma_hidden=0.1, sigma_output=0.1, seed=0)
rf.flow(data, net, loss=rf.losses.Logistic(), stop_log_loss=-3.0)
"""


def rows() -> Iterator[Row]:
    """Yield the rows: one cache for those of plain calls, another for ``warm-up``."""
    with tempfile.TemporaryDirectory() as folder:
        yield _row("empty cache, square loss", _cpu_seconds(PLAIN, folder), FIRST_S)
        yield _row("second process", _cpu_seconds(PLAIN, folder), SECOND_S)
        yield _row("then, from log scale -100", _cpu_seconds(TINY, folder), None)
        yield _row("then, logistic loss", _cpu_seconds(LOGISTIC, folder), None)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        _run([sys.executable, "-m", "reluflow.cli", "warm-up"], folder)
        wall = time.perf_counter() - begin
        yield _row(f"warm-up on {os.cpu_count()} cores, by the clock", wall, WARM_UP_S)
        yield _row("first call after it", _cpu_seconds(PLAIN, folder), SECOND_S)
        yield _row("logistic after it", _cpu_seconds(LOGISTIC, folder), SECOND_S)


def _row(case: str, spent: float, budget: float | None) -> Row:
    row: Row = {"case": case, "seconds": spent}
    if budget is None:
        return row
    return row | {"ratio": budget / spent, "target": 1.0, "note": f"budget {budget:g} s"}


def _run(command: list[str], folder: str) -> None:
    subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": folder}
    )


def _cpu_seconds(program: str, folder: str) -> float:
    """CPU time of a new interpreter, with all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run([sys.executable, "-c", program], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
