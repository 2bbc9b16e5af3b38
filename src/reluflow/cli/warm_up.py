"""``reluflow warm-up``: compile everything now, in parallel, so that no later call has to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from reluflow import interrupts
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

LOOK_S = 0.2  # between two looks for a signal


@guarded
def warm_up(
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at once; as many as cores if not given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile all kernels ahead of their first use; those already compiled take no time."""
    from concurrent.futures import FIRST_COMPLETED, wait

    from reluflow.engines import warm_up as kinds
    from reluflow.engines.progress import COMPILING, bar

    began = time.perf_counter()
    names = [*kinds.FIRST, *kinds.THEN]
    most = min(workers or os.cpu_count() or 1, len(names))
    done = 0
    with (
        processes(most) as pool,
        bar(True, COMPILING, total=len(names), at_once=True) as update,
    ):
        update(0, f"{done} of {len(names)} kinds")
        open_: dict[Future[None], str] = {
            pool.submit(kinds.warm_up, name): name for name in kinds.FIRST
        }
        while open_:
            interrupts.check()
            for ended in wait(open_, LOOK_S, return_when=FIRST_COMPLETED).done:
                ended.result()
                done += 1
                if open_.pop(ended) == "square loss":  # what it shares with these is now ready
                    open_ |= {pool.submit(kinds.warm_up, name): name for name in kinds.THEN}
                update(done, f"{done} of {len(names)} kinds")
    seconds = time.perf_counter() - began
    if as_json:
        answer({"compiled": names, "workers": most, "seconds": seconds})
    else:
        typer.echo(f"kernels are compiled ({seconds:.1f} s)")


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Workers that share nothing but the cache on disk; an error or a signal ends them at once.

    What they compile cannot be stopped half-way, and Python waits at its end for its workers.
    """
    import multiprocessing
    import signal
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(
        count,
        multiprocessing.get_context("spawn"),
        initializer=signal.signal,  # a terminal sends Ctrl-C to them too
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        try:
            yield pool
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
