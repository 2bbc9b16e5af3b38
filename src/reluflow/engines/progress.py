"""A progress bar for long work, shared by the engines; and one for the compilation before it.

Nothing is drawn during the first two seconds: short runs stay silent, and rich is imported only
when a bar appears. Kernels that are compiled, once, are counted in a bar of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from reluflow.wording import is_terminal

DELAY_S = 2.0
COMPILING = "compiling kernels, once"


_outer = 0  # bars around the work of now, and one in a process that works for another


def is_shown(progress: bool | None) -> bool:
    """Whether to draw: as told; if nothing was said, on a terminal, but not inside another bar."""
    return is_terminal() and _outer == 0 if progress is None else progress


def silence() -> None:
    """From now on draw in this process only what is asked for: it works for another one."""
    global _outer
    _outer += 1


@contextmanager
def bar(
    shown: bool,
    title: str,
    total: float | None = None,
    *,
    kernels: Iterable[Any] | None = None,
    at_once: bool = False,
) -> Iterator[Callable[..., None]]:
    """Yield ``update(done, note="")``, to be called now and then with the work done so far.

    Parameters
    ----------
    shown : bool
        False: updates do nothing.
    title : str
        Text before the bar.
    total : float, optional
        The value of ``done`` at the end; without it the bar shows activity only.
    kernels : iterable of kernels, optional
        What the work will call: if it is compiled meanwhile, that is shown instead, from the start.
    at_once : bool
        Draw from the start: the work is known to be long.

    Examples
    --------
    >>> with bar(False, "descent", 100) as update:
    ...     update(50, note="loss 1e-3")
    """
    global _outer
    started = time.monotonic()
    drawn: Any = None
    task: Any = None

    def update(done: float, note: str = "") -> None:
        nonlocal drawn, task
        if not shown or (time.monotonic() - started < DELAY_S and not at_once):
            return
        if drawn is None:
            drawn = _draw()
            drawn.start()
            task = drawn.add_task(title, total=total, note=note)
        drawn.update(task, completed=done, note=note)

    def pause(paused: bool) -> None:
        if drawn is not None:
            (drawn.stop if paused else drawn.start)()

    _outer += shown
    try:
        with _compiling(kernels, pause) if shown and kernels is not None else nullcontext():
            yield update
    finally:
        _outer -= shown
        if drawn is not None:
            drawn.stop()


def _compiling(
    kernels: Iterable[Any], pause: Callable[[bool], None]
) -> AbstractContextManager[None]:
    """Meanwhile draw a bar of its own while kernels are compiled; the other one pauses."""
    from reluflow.kernels.compiling import Tally, counted

    drawn: Any = None
    task: Any = None

    def tell(tally: Tally | None) -> None:
        nonlocal drawn, task
        if tally is None:
            if drawn is not None:
                drawn.stop()
                drawn = None
                pause(False)
            return
        if drawn is None:
            pause(True)
            drawn = _draw()
            drawn.start()
            task = drawn.add_task(COMPILING, total=tally.wanted, note="")
        note = f"{tally.ready} of {tally.wanted}"
        drawn.update(task, completed=tally.ready, total=tally.wanted, note=note)

    return counted(kernels, tell)


def _draw() -> Any:
    """A bar on standard error, removed when the work ends."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
    )
