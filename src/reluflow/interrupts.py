"""Ctrl-C and SIGTERM: a signal is noted when it comes and acted upon where that is safe.

An exception raised by a signal inside compiled code is swallowed, or comes out as ``SystemError``.
So long work runs inside ``with deferred() as pending:`` and asks ``pending.check()`` between its
steps and after each compiled call; code that has no ``pending`` at hand asks `check`. Blocks nest,
and all of them see the signal that came since the outermost was entered.

Work that never asks is not waited for: after a grace of a second, or at a second signal, the
exception is raised wherever the program stands, unless the innermost block has no grace (``None``:
what must not be cut in two, such as writing a result). Any error that leaves a block after a signal
becomes `Interrupted`, because the signal is its likely cause.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

GRACE_S = 1.0
AGAIN_S = 0.25  # between two raises, should code that catches everything have swallowed the first
SOON_S = 1e-3  # until the next try, where raising would be fatal
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Work was stopped by a signal; ``signal`` is its number."""

    def __init__(self, *args: object, signal: int = signal.SIGINT) -> None:
        super().__init__(*args)
        self.signal = signal


class _Note:
    """The first signal since the outermost block was entered, and when it came."""

    signal: int | None = None
    time_s = 0.0


class Pending:
    """Whether a signal has come, as one block sees it."""

    def __init__(self, note: _Note) -> None:
        self._note = note
        self.is_answered = False

    @property
    def signal(self) -> int | None:
        """The number of the signal that has come; None if none has."""
        return self._note.signal

    @property
    def is_set(self) -> bool:
        """Whether a signal has come."""
        return self._note.signal is not None

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self._note.signal is not None:
            raise Interrupted("interrupted", signal=self._note.signal)

    def answer(self) -> None:
        """Say that the signal had its effect, as when a run ends early and returns what it has.

        Without this the outermost block raises `Interrupted` at its end, so that no signal is lost.
        Blocks around this one still see the signal.
        """
        self.is_answered = True


_note = _Note()
_graces: list[float | None] = []  # of the blocks that are entered, the innermost last
_replaced: dict[int, Any] = {}  # handlers to be restored
_FRAGILE = ("numba.core.serialize", "llvmlite.binding", "namedtuple_", __name__)  # see `_is_fatal`


def check() -> None:
    """Raise `Interrupted` if a signal waits in a block that is entered; else do nothing.

    Examples
    --------
    >>> check()
    """
    Pending(_note).check()


@contextmanager
def deferred(grace: float | None = GRACE_S) -> Iterator[Pending]:
    """Note Ctrl-C and SIGTERM inside the block instead of raising them.

    Parameters
    ----------
    grace : float or None
        Seconds after which a signal that no check has met is raised wherever the program stands;
        None never raises it there.

    Signals that the process ignores stay ignored (a job in the background of a shell). Signals
    reach the main thread only: in another one the block changes nothing, and its checks see what
    the main thread has noted.

    Examples
    --------
    >>> with deferred() as pending:
    ...     for step in range(3):
    ...         pending.check()
    >>> pending.is_set
    False
    """
    if threading.current_thread() is not threading.main_thread():
        yield Pending(_note)
        return
    depth = len(_graces)
    try:
        pending = _enter(grace)
        try:
            yield pending
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if pending.signal is None or pending.is_answered:
                raise
            raise Interrupted("interrupted", signal=pending.signal) from error
        if depth == 0 and not pending.is_answered:
            pending.check()
    finally:
        _leave(depth)


def _enter(grace: float | None) -> Pending:
    global _note
    if not _graces:
        _note = _Note()
        for number in SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # None: not set by Python
                _replaced[number] = signal.signal(number, _take_note)
    _graces.append(grace)
    _set_timer()
    return Pending(_note)


def _leave(depth: int) -> None:
    global _note
    del _graces[depth:]
    _set_timer()
    if depth == 0:
        _note = _Note()
        for number in list(_replaced):
            signal.signal(number, _replaced.pop(number))


def _take_note(number: int, frame: FrameType | None) -> None:
    """Handle a signal: note the first, insist at another one (not the same sent twice at once)."""
    now = time.monotonic()
    if _note.signal is None:
        _note.signal, _note.time_s = number, now
        _set_timer()
    elif now - _note.time_s > AGAIN_S:
        _insist(number, frame)


def _set_timer() -> None:
    """After a signal, let a timer insist when the grace of the innermost block is over."""
    if _note.signal is None or not hasattr(signal, "setitimer"):
        return
    grace = _graces[-1] if _graces else None
    if grace is None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return
    if signal.SIGALRM not in _replaced:
        _replaced[signal.SIGALRM] = signal.signal(signal.SIGALRM, _insist)
    signal.setitimer(signal.ITIMER_REAL, max(grace, 1e-3), AGAIN_S)


def _insist(number: int, frame: FrameType | None) -> None:
    if not _graces or _graces[-1] is None or _note.signal is None:
        return
    if _is_fatal(frame) and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, SOON_S, AGAIN_S)
        return
    raise Interrupted("interrupted", signal=_note.signal)


def _is_fatal(frame: FrameType | None) -> bool:
    """Whether raising here would break the process, or the next signals.

    A signal waits while compiled code runs, until the next line of Python. There

    - numba makes the result: where it is a named tuple, by a line that finds its class, and by the
      maker of the tuple. It does not look whether they failed, and reads what is not there;
    - LLVM has taken over a module, which its Python object does not know yet: both would free it;
    - blocks of this module are entered and left, which must not be left half done.
    """
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(_FRAGILE):
            return True
        frame = frame.f_back
    return False
