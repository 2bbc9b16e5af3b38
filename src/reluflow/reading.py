"""Reading of foreign files: ordinary ones only, up to a stated size, counted while reading.

A pipe would wait for ever and a device never ends; the size that the system states for a file may
be wrong, as in ``/proc``. Every reader of the package opens its files here.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import BinaryIO

from reluflow.errors import FileError
from reluflow.wording import printable


class _Bounded(io.FileIO):
    """A file of which no byte beyond the limit is read."""

    limit_bytes: int
    complaint: FileError

    def readinto(self, buffer, /) -> int | None:  # type: ignore[no-untyped-def]
        """Read, and refuse the file if it goes on behind the limit."""
        count = super().readinto(buffer)
        if self.tell() > self.limit_bytes:
            raise self.complaint
        return count

    def readall(self) -> bytes:
        """Read the rest in pieces, so that the limit is seen in time."""
        parts = []
        while part := self.read(2**20):
            parts.append(part)
            if self.tell() > self.limit_bytes:
                raise self.complaint
        return b"".join(parts)


@contextmanager
def opened(path: str | PathLike[str], limit_bytes: int, remedy: str) -> Iterator[BinaryIO]:
    """Open an ordinary file of at most ``limit_bytes``; ``remedy`` ends the message of refusal."""
    source = printable(os.fspath(path))
    try:
        _check_ordinary(os.stat(path).st_mode, source, remedy)
        # the file may have changed since: a pipe must not make us wait
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        try:
            _check_ordinary(os.fstat(handle).st_mode, source, remedy)
            raw = _Bounded(handle, "rb")
        except BaseException:
            os.close(handle)
            raise
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {source} ({reason(error)}). Check the path.") from None
    raw.limit_bytes = limit_bytes
    raw.complaint = FileError(
        f"{source} has more than {limit_bytes} bytes, the largest size that is read. {remedy}"
    )
    with io.BufferedReader(raw, 2**16) as stream:
        try:
            yield stream
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"cannot read {source} ({reason(error)}). Check the disk.") from None


def read(path: str | PathLike[str], limit_bytes: int, remedy: str) -> bytes:
    """All bytes of an ordinary file of at most ``limit_bytes``."""
    with opened(path, limit_bytes, remedy) as stream:
        return stream.read()


def reason(error: BaseException) -> str:
    """What the system says about a failure, without the path."""
    return getattr(error, "strerror", None) or str(error)


def _check_ordinary(mode: int, source: str, remedy: str) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, device or socket"
        raise FileError(f"{source} is {kind}, not an ordinary file. {remedy}")
