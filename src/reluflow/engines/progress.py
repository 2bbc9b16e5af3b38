"""A progress bar for long work, shared by the engines.

Nothing is drawn during the first two seconds: short runs stay silent, and rich is imported only
when a bar appears.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DELAY_S = 2.0


@contextmanager
def bar(shown: bool, title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``update(done, note="")``, to be called now and then with the work done so far.

    Parameters
    ----------
    shown : bool
        False: updates do nothing.
    title : str
        Text before the bar.
    total : float, optional
        The value of ``done`` at the end; without it the bar shows activity only.

    Examples
    --------
    >>> with bar(False, "descent", 100) as update:
    ...     update(50, note="loss 1e-3")
    """
    started = time.monotonic()
    drawn: Any = None
    task: Any = None

    def update(done: float, note: str = "") -> None:
        nonlocal drawn, task
        if not shown or time.monotonic() - started < DELAY_S:
            return
        if drawn is None:
            drawn = _draw()
            drawn.start()
            task = drawn.add_task(title, total=total, note=note)
        drawn.update(task, completed=done, note=note)

    try:
        yield update
    finally:
        if drawn is not None:
            drawn.stop()


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
