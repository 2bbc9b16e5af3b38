"""Runs in progress, saved now and then, and once more when a signal ends them.

Inside ``with saving(seconds, save):`` the engines offer what they have between their steps; outside
of it offers cost nothing and do nothing. What is saved has the status ``interrupted``, and
`reluflow.engines.resume` continues it. Saving takes nothing from a run: it ends in the same bits
with and without.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from reluflow import interrupts
from reluflow.errors import FileError, ReluflowWarning

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory

UNDER_WAY = "it is saved while it goes on"
STOPPED = "a signal stopped it"

Save = Callable[["Trajectory"], None]
SoFar = Callable[[str], "Trajectory"]  # the run up to here; the argument is its `reason`


class _Saver:
    def __init__(self, seconds: float, save: Save) -> None:
        self.seconds, self.save = seconds, save
        self.due = time.monotonic() + seconds


_saver: ContextVar[_Saver | None] = ContextVar("saver", default=None)


@contextmanager
def saving(seconds: float, save: Save) -> Iterator[None]:
    """Let the engines call ``save(run)`` every so many seconds, and when they are interrupted."""
    token = _saver.set(_Saver(seconds, save))
    try:
        yield
    finally:
        _saver.reset(token)


@contextmanager
def translated(translate: Callable[[Trajectory], Trajectory]) -> Iterator[None]:
    """Meanwhile save what ``translate`` makes of the runs that engines offer."""
    saver = _saver.get()
    if saver is None:
        yield
        return
    inner = _Saver(saver.seconds, lambda run: saver.save(translate(run)))
    inner.due = saver.due
    token = _saver.set(inner)
    try:
        yield
    finally:
        _saver.reset(token)
        saver.due = inner.due


def offer(so_far: SoFar) -> None:
    """Save the run up to here if it is time to.

    A disk that is full now may have room at the end: the run goes on, with a warning.
    """
    saver = _saver.get()
    if saver is None or time.monotonic() < saver.due:
        return
    try:
        with interrupts.deferred(grace=None):
            saver.save(so_far(UNDER_WAY))
    except FileError as error:
        warnings.warn(f"no checkpoint: {error}", ReluflowWarning, stacklevel=2)
    saver.due = time.monotonic() + saver.seconds


def offer_last(so_far: SoFar) -> None:
    """Save the run that a signal ends here."""
    saver = _saver.get()
    if saver is None:
        return
    with interrupts.deferred(grace=None):
        try:
            saver.save(so_far(STOPPED))
        except FileError as error:  # the signal, which is raised next, must not hide it
            warnings.warn(f"the run up to here is lost: {error}", ReluflowWarning, stacklevel=2)
