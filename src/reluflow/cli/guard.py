"""How commands end: 0 done, 2 bad input with one message, 130 interrupted, 1 a defect of ours."""

from __future__ import annotations

import errno
import functools
import warnings
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec

import typer

from reluflow import interrupts
from reluflow.errors import ReluflowError, ReluflowWarning
from reluflow.wording import cut, printable

P = ParamSpec("P")
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn exceptions of a command into a message and an exit code, unless ``--debug`` is given."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ReluflowWarning)
            warnings.showwarning = _show_warning
            try:
                with interrupts.deferred() as pending:
                    try:
                        command(*args, **kwargs)
                    except typer.Exit:
                        pending.answer()  # the command has said itself what a signal meant to it
                        raise
            except (typer.Exit, typer.Abort, BrokenPipeError):
                raise
            except (Exception, KeyboardInterrupt) as error:
                if kwargs.get("debug") and not isinstance(error, KeyboardInterrupt):
                    raise
                message, code = outcome(error)
                echo(message, err=True)
                raise typer.Exit(code) from None

    return wrapper


def outcome(error: BaseException) -> tuple[str, int]:
    """The message and exit code of an exception."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; no half-written file is left behind", 130
    if isinstance(error, ReluflowError):
        return f"error: {error}", 2
    if isinstance(error, MemoryError):
        return f"error: out of memory ({error}). Reduce the sizes.", 2
    if isinstance(error, OSError) and error.errno in _FULL:
        place = "" if error.filename is None else f" to {error.filename}"
        return f"error: cannot write{place} ({error.strerror}). Free space and run again.", 2
    return (
        f"error: unexpected {type(error).__name__}: {error}. This is a defect of reluflow; "
        "run again with --debug and report the traceback.",
        1,
    )


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    echo(f"warning: {message}", err=True)


def echo(text: object, *, err: bool = False) -> None:
    """Print a line of which parts may be foreign: cut, and without control characters."""
    typer.echo(printable(cut(str(text))), err=err)
