"""``reluflow warm-up``: compile everything now, in parallel, so that no later call has to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reluflow import interrupts
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

T = TypeVar("T")

USEFUL = 6  # workers: the longest kernel is a third of the work
LOOK_S = 0.2  # between two looks for a signal


@guarded
def warm_up(
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes at once; if not given, one a core and at most six."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile all kernels ahead of their first use; those already compiled take no time."""
    from reluflow.engines import warm_up as engines
    from reluflow.engines.progress import COMPILING, bar

    began = time.perf_counter()
    most = workers or min(os.cpu_count() or 1, USEFUL)
    with (
        processes(1, engines.switch_off) as looker,
        processes(most) as pool,
        bar(True, COMPILING, total=1.0, at_once=True) as update,
    ):
        for _ in range(most):  # they start meanwhile
            pool.submit(engines.get_ready)
        looks = looker.submit(engines.entered)
        engines.get_ready()  # here, too: what comes back is ours
        (kernels,) = _results([looks])
        update(0.0, f"0 of {len(kernels)}")
        for done, _ in enumerate(_results([pool.submit(one.compile) for one in kernels]), 1):
            update(done / len(kernels), f"{done} of {len(kernels)}")
    seconds = time.perf_counter() - began
    if as_json:
        names = [f"{one.module}.{one.name}" for one in kernels]
        answer({"compiled": names, "workers": most, "seconds": seconds})
    else:
        typer.echo(f"kernels are compiled ({seconds:.1f} s)")


def _results(futures: Iterable[Future[T]]) -> Iterator[T]:
    """What comes of them, in the order in which they end; a signal ends the wait."""
    from concurrent.futures import FIRST_COMPLETED, wait

    open_ = set(futures)
    while open_:
        interrupts.check()
        ended, open_ = wait(open_, LOOK_S, return_when=FIRST_COMPLETED)
        for one in ended:
            yield one.result()


@contextmanager
def processes(count: int, prepare: Callable[[], None] | None = None) -> Iterator[Executor]:
    """Workers that share nothing but the cache on disk; an error or a signal ends them at once.

    What they compile cannot be stopped half-way, and Python waits at its end for its workers.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, initializer=_begin, initargs=(prepare,)) as pool:
        try:
            yield pool
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise


def _begin(prepare: Callable[[], None] | None) -> None:
    """In a worker, before its work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to it too
    if prepare is not None:
        prepare()
