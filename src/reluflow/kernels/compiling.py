"""When numba compiles: time that belongs to the machine, not to the problem at hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numba.core import event
from numba.core.dispatcher import Dispatcher

from reluflow.kernels.kernel import is_ready

OURS = "reluflow.kernels"


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


class Stopwatch:
    """Seconds since it was made, without those in which numba compiled.

    Examples
    --------
    >>> Stopwatch().seconds() < 1.0
    True
    """

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), _clock.seconds()

    def seconds(self) -> float:
        """Time since it was made that was not spent compiling."""
        compiled = _clock.seconds() - self._compiled
        return time.perf_counter() - self._began - compiled


class _Clock:
    """All time spent compiling in this process."""

    def __init__(self) -> None:
        self._total, self._since = 0.0, 0.0

    def tell(self, begins: bool) -> None:
        now = time.perf_counter()
        if begins:
            self._since = now
        else:
            self._total, self._since = self._total + now - self._since, 0.0

    def seconds(self) -> float:
        under_way = time.perf_counter() - self._since if self._since else 0.0
        return self._total + under_way


_clock = _Clock()
listen(_clock.tell)


class Tally(NamedTuple):
    """How many of the kernels that are wanted are ready."""

    ready: int
    wanted: int


def reachable(kernels: Iterable[Any]) -> set[Any]:
    """These kernels and all that they call, directly or not."""
    found: set[Any] = set()
    open_ = [kernel for kernel in kernels if is_kernel(kernel)]  # none if numba is switched off
    while open_:
        kernel = open_.pop()
        if kernel not in found:
            found.add(kernel)
            names = kernel.py_func.__code__.co_names
            values = (kernel.py_func.__globals__.get(name) for name in names)
            open_.extend(value for value in values if is_kernel(value))
    return found


def is_kernel(value: Any) -> bool:
    """Whether a value is one of our kernels, and not a function of numba itself."""
    return isinstance(value, Dispatcher) and value.py_func.__module__.startswith(OURS)


class _Counter(event.Listener):  # type: ignore[misc]
    """Tells a tally at the begin and end of each of our kernels, None when all is compiled."""

    def __init__(self, kernels: Iterable[Any], tell: Callable[[Tally | None], None]) -> None:
        self._kernels, self._tell, self._depth = reachable(kernels), tell, 0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        self._count(event)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._tell(None)
        else:
            self._count(event)

    def _count(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if is_kernel(kernel):
            self._kernels |= reachable([getattr(kernel, "whole", kernel)])
            ready = sum(map(is_ready, self._kernels))
            self._tell(Tally(ready, len(self._kernels)))


@contextmanager
def counted(kernels: Iterable[Any], tell: Callable[[Tally | None], None]) -> Iterator[None]:
    """Meanwhile call ``tell`` with a tally as kernels are compiled, with None at a pause.

    ``kernels`` are those that will be called: with all that they call they are the ones wanted.
    """
    with event.install_listener("numba:compile", _Counter(kernels, tell)):
        yield
