"""When numba compiles: time that belongs to the machine, not to the problem at hand."""

from __future__ import annotations

from collections.abc import Callable

from numba.core import event


class _Listener(event.Listener):  # type: ignore[misc]
    """Tells when the outermost compilation begins and ends: one compiles others."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self._tell, self._depth = tell, 0

    def on_start(self, event: object) -> None:
        self._depth += 1
        if self._depth == 1:
            self._tell(True)

    def on_end(self, event: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._tell(False)


def listen(tell: Callable[[bool], None]) -> None:
    """Call ``tell(True)`` when a compilation begins in this process, ``tell(False)`` at its end.

    Examples
    --------
    >>> heard = []
    >>> listen(heard.append)
    """
    event.register("numba:compile", _Listener(tell))
