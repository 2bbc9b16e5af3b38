"""Computing points, here or on a worker: errors become text, results become bytes.

One thread everywhere: BLAS sums in another order with more of them, and results would depend on
the machine. The settings are part of each file, so they are the same inline and on every worker.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from reluflow import interrupts
from reluflow.errors import ReluflowError, ReluflowWarning
from reluflow.sweeps import tasks
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.outcome import Encoded, encode
from reluflow.sweeps.point import Point
from reluflow.trajectory import Status, Trajectory

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
Answer = tuple[bytes, str, Mapping[str, Any], Mapping[str, Any], str, bool, float]


@dataclass(frozen=True)
class Computed:
    """What became of a point: a result, or an error, or a worker that died of it."""

    point: Point
    result: Encoded | None = None
    error: str = ""
    is_set_aside: bool = False
    seconds: float = 0.0


def compute(point: Point) -> Computed:
    """Run the task of a point; any exception it raises is caught and kept as text.

    A signal is nothing of the point's: it is raised, whatever the task made of it, and a result
    that came after it is not trusted.
    """
    began = time.perf_counter()
    try:
        with interrupts.deferred() as pending:
            outcome = tasks.resolve(point.task)(point.parameters, point.seed)
            if isinstance(outcome, Trajectory) and outcome.status is Status.INTERRUPTED:
                raise KeyboardInterrupt  # half a run is no result: the point is computed next time
            done = encode(point, outcome)
            pending.check()
    except KeyboardInterrupt:
        raise
    except ReluflowError as error:
        return Computed(point, error=str(error), seconds=time.perf_counter() - began)
    except BaseException as error:  # also SystemExit: one point must not stop the others
        text = "".join(traceback.format_exception(error)).strip()
        return Computed(point, error=text, seconds=time.perf_counter() - began)
    return Computed(point, done, seconds=time.perf_counter() - began)


def compute_group(
    group: Sequence[Mapping[str, Any]],
    packages: Sequence[str],
    limits: Mapping[str, Any] | None = None,
) -> list[Answer]:
    """Compute points on a worker; plain data in and out.

    The packages that the driver allows are allowed here; the settings of threads stay, because
    other threads of this worker may be computing too.
    """
    for package in packages:
        tasks.allow(package)
    os.environ.update(ONE_THREAD)
    one = chosen(None if limits is None else Limits(**limits))
    with one_thread():
        return [pack(one(Point.from_dict(stored))) for stored in group]


def chosen(limits: Limits | None) -> Callable[[Point], Computed]:
    """How to compute a point: here, or within limits in a process of its own."""
    if limits is None:
        return compute
    from reluflow.sweeps.cell import compute_within

    return partial(compute_within, limits=limits)


def pack(done: Computed) -> Answer:
    """What became of a point, as plain data."""
    if done.result is None:
        return b"", "", {}, {}, done.error, done.is_set_aside, done.seconds
    result = done.result
    return result.body, result.status, result.values, result.versions, "", False, done.seconds


def unpack(point: Point, answer: Answer) -> Computed:
    """Inverse of `pack`."""
    body, status, values, versions, error, is_set_aside, seconds = answer
    result = None if error else Encoded(point, body, status, values, versions)
    return Computed(point, result, error, is_set_aside, seconds)


@contextmanager
def pinned() -> Iterator[None]:
    """One thread for BLAS and numba inside; the old settings afterwards."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        with one_thread(were_set=before == ONE_THREAD):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def one_thread(*, were_set: bool = True) -> AbstractContextManager[Any]:
    """Limit the libraries that are loaded already: they read the environment only once."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        if not were_set:
            warnings.warn(
                "NumPy may use several threads here, so the last bits may differ from those of "
                "workers. Install 'reluflow[sweep]' or set OMP_NUM_THREADS=1.",
                ReluflowWarning,
                stacklevel=2,
            )
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits
