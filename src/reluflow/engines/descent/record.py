"""Which iterations a descent keeps: geometric or chosen, never more than fits in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import number, real_array, whole
from reluflow.errors import InputError

MEMORY_BYTES = 256 * 2**20
LARGEST = 2**53  # above, consecutive iterations are no longer different floats


def schedule(record: Any, steps: int, state_bytes: int) -> NDArray[np.int64]:
    """Iterations to record, rising.

    Parameters
    ----------
    record : int or array
        At most so many, 0 and ``steps`` among them, the others in geometric progression; or the
        exact iterations.
    steps : int
        The last iteration.
    state_bytes : int
        Size of one record. All records together stay below 256 MB: a count is lowered to that,
        a longer list is refused.

    Examples
    --------
    >>> schedule(6, 1000, 1)
    array([   0,    1,    5,   31,  177, 1000])
    """
    most = max(2, MEMORY_BYTES // state_bytes)
    if np.ndim(record) == 0:
        count = min(whole(record, "record", at_least=2), most)
        inner = np.geomspace(1, max(steps, 1), count - 1) if count > 2 else np.empty(0)
        # the last point of geomspace may fall short of `steps` by an ulp before the floor
        grid = np.concatenate([[0.0], np.floor(inner[:-1] * (1 + 1e-12)), [steps]])
        return np.unique(np.minimum(grid, steps)).astype(np.int64)
    return _exact(record, steps, state_bytes, most)


def iteration_of(target: dict[str, float], end: int) -> int:
    """The last iteration not after ``t`` or ``log_t``; refused outside ``0 .. end``."""
    if "log_t" in target:
        log_t = number(target["log_t"], "log_t", infinite=True)
        t = math.exp(min(log_t, 700.0)) * (1 + 1e-12)  # log_t was rounded
    else:
        t = number(target["t"], "t", infinite=True)
    if not 0 <= t < end + 1:
        raise InputError(
            f"the run has iterations 0 to {end}; {t:g} is outside. Ask inside, or train longer."
        )
    return math.floor(t)


def _exact(record: Any, steps: int, state_bytes: int, most: int) -> NDArray[np.int64]:
    asked = real_array(record, "record", 1)
    if not len(asked):
        raise InputError("`record` is an empty array. Give at least one iteration, or a count.")
    bad = np.flatnonzero((asked < 0) | (asked != np.floor(asked)) | (asked > steps))
    if len(bad):
        raise InputError(
            f"`record` asks for iteration {asked[bad[0]]:g} of a run of {steps} steps. Iterations "
            f"are whole numbers from 0 to {steps}; remove it."
        )
    exact = np.unique(asked).astype(np.int64)
    if len(exact) > most:
        raise InputError(
            f"`record` asks for {len(exact)} states of {state_bytes} bytes; runs keep at most "
            f"{MEMORY_BYTES >> 20} MB. Ask for {most} at most; `at(t)` recomputes any other."
        )
    return exact
