"""``reluflow warm-up``: compile everything now, in parallel, so that no later call has to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reluflow import interrupts
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from reluflow.kernels.sharing import Shares

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
        ExitStack() as stack,
        bar(True, COMPILING, total=1.0, at_once=True) as update,
    ):
        pools = [stack.enter_context(processes(1)) for _ in range(most)]
        for pool in pools:  # they start meanwhile
            pool.submit(engines.get_ready)
        looks = looker.submit(engines.entered)
        from reluflow.kernels.sharing import Shares  # while workers start; it reads what comes back

        ((_, kernels),) = _ended({looks: 0})
        update(0.0, f"0 of {len(kernels)}")
        for done, _ in enumerate(_compiled(Shares(kernels, most), pools), 1):
            update(done / len(kernels), f"{done} of {len(kernels)}")
    seconds = time.perf_counter() - began
    if as_json:
        names = [f"{one.module}.{one.name}" for one in kernels]
        answer({"compiled": names, "workers": most, "seconds": seconds})
    else:
        typer.echo(f"kernels are compiled ({seconds:.1f} s)")


def _compiled(shares: Shares, pools: list[Executor]) -> Iterator[None]:
    """Compile kernels, one after the other in each pool; one of them has ended."""
    busy: dict[Future[None], int] = {}

    def begin(worker: int) -> None:
        kernel = shares.next(worker)
        if kernel is not None:
            busy[pools[worker].submit(kernel.compile)] = worker

    for worker in range(len(pools)):
        begin(worker)
    for worker, _ in _ended(busy):
        begin(worker)
        yield


def _ended(busy: dict[Future[T], int]) -> Iterator[tuple[int, T]]:
    """The worker and the result of each as it ends, until none is left; a signal ends the wait."""
    from concurrent.futures import FIRST_COMPLETED, wait

    while busy:
        interrupts.check()
        for one in wait(busy, LOOK_S, return_when=FIRST_COMPLETED).done:
            yield busy.pop(one), one.result()


@contextmanager
def processes(count: int, prepare: Callable[[], None] | None = None) -> Iterator[Executor]:
    """Workers that share nothing but the cache on disk, and are ended at once.

    What they compile cannot be stopped half-way by an error or a signal, and Python waits at its
    end for its workers. When all is done, to take down a process that has compiled takes seconds.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with ProcessPoolExecutor(count, context, initializer=_begin, initargs=(prepare,)) as pool:
        try:
            yield pool
        finally:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()


def _begin(prepare: Callable[[], None] | None) -> None:
    """In a worker, before its work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to it too
    if prepare is not None:
        prepare()
