"""How much a request asks for, told before the work begins: ten minutes or half the memory.

Times are orders of magnitude, from what a step costs on an ordinary core and from how many steps
ordinary problems take; a descent is measured on its first steps.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from pathlib import Path

from reluflow.errors import ReluflowWarning

LONG_S = 600.0
SHARE = 0.5
# steps of a training to some time or loss, and of one to its limit for each of many points
STEPS, STEPS_A_POINT = 300, 10


def explicit_seconds(n: int, d: int, m: int) -> float:
    """An explicit step: seven stages, products at 2e10 operations a second, masks at 2e8."""
    return 2e-3 + 7.0 * m * n * (5e-9 + 2e-10 * d)


def implicit_seconds(n: int, d: int, m: int, is_square: bool) -> float:
    """An implicit step: an eigendecomposition, or for a classification loss some systems of 4 n."""
    solve = 14.0 if is_square else 150.0
    return 3e-3 + 1e-10 * (solve * n**3 + 4.0 * m * n**2) + 1e-7 * m * (n + d)


def stiff_seconds(n: int, d: int, m: int, is_square: bool) -> float:
    """An implicit step where outputs react fast: kinks of walks are solved for, some rounds."""
    if is_square:  # late, when neurons are few classes: less than a whole eigendecomposition
        return 5e-3 + 1.5e-10 * n**3 + 5e-8 * m * n * d
    return implicit_seconds(n, d, m, is_square) + 3e-9 * m * n**2 + 3e-7 * m * (n + d)


def announce_flow(
    n: int, d: int, m: int, *, is_square: bool, explicit: bool, to_the_end: bool, limit_s: float
) -> None:
    """Say so if a flow will take long or much memory; ``explicit``: points are a crowd."""
    implicit = implicit_seconds(n, d, m, is_square)
    seconds = STEPS * (explicit_seconds(n, d, m) if explicit else implicit)
    if explicit and to_the_end:
        seconds = STEPS_A_POINT * n * explicit_seconds(n, d, m) + STEPS * implicit
    what = f"a flow of {n} points, {d} inputs and {m} neurons"
    cheaper = "Stop earlier (`t_end`, `stop_loss`), loosen `rtol`, or set `max_seconds`"
    announce_time(what, min(seconds, limit_s), cheaper)
    # kernels and Gram matrices, products of all neurons with all points and their sides, records
    announce_memory(what, 100.0 * n * (n + m) + 200.0 * m * d + 2**30)


def announce_time(what: str, seconds: float, cheaper: str) -> None:
    """Warn of work that will take more than ten minutes."""
    if seconds > LONG_S:
        _warn(f"{what} will take about {_span(seconds)}. {cheaper}; Ctrl-C ends it.")


def announce_memory(what: str, size: float) -> None:
    """Warn of work that will take more than half the memory, in bytes."""
    there = memory()
    if size > SHARE * there:
        _warn(
            f"{what} will take about {size / 2**30:.0f} GB, and this machine has "
            f"{there / 2**30:.0f}. Fewer points or neurons take less."
        )


def memory() -> float:
    """Bytes of memory of this machine, or of the container it is."""
    sizes = [float("inf")]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        sizes.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(sizes)


def _span(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "hours")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 60.0:.0f} minutes"


def _warn(text: str) -> None:
    warnings.warn(text[0].upper() + text[1:], ReluflowWarning, stacklevel=2)
