"""Benchmarks: ratios measured in one run on one machine, never times in a test.

Each module of this folder with a function ``rows()`` is one benchmark; its title is the first line
of the module's docstring. ``rows()`` returns mappings from column names to numbers, sequences of
numbers or text. Two columns have a meaning: ``ratio`` (how many times faster or smaller) is
compared with ``target``. Costs at several ``sizes`` give ``seconds`` and their growth ``exponent``.
A competitor that is not installed gets a row whose ``note`` says so.

A benchmark of many parts defines ``parts(limit_s=...)`` instead, a mapping from names to functions
that return rows, and ``warm_up()``; ``summary(rows)`` may add rows and ``figure(rows)`` draw them.
Parts can be run one at a time, and rows that were kept are not measured again.

Run them with ``reluflow bench``, or ``python -m benchmarks.run`` for plain text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def seconds(function: Callable[[], Any], *, repeats: int = 3) -> float:
    """Least CPU time of several calls: other work on the machine can only add to it."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def growth_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of log(value) against log(size) by least squares: the p of a cost size^p."""
    slope, _ = np.polyfit(np.log(sizes), np.log(values), 1)
    return float(slope)
