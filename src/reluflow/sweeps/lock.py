"""One writer for each store: an advisory lock that the system drops when its holder dies."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reluflow.errors import FileError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; refuse at once if another program holds it."""
    import fcntl

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise FileError(
            f"cannot use the folder {path.parent} ({error.strerror}). "
            "Nothing was changed; choose another folder."
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                f"{path.parent} is in use by {_holder(handle)}. Two writers would repeat each "
                "other's work. Wait until it ends, or choose another folder."
            ) from None
        except OSError as error:
            raise FileError(
                f"cannot lock {path} ({error.strerror}). Use a folder on a disk that has locks."
            ) from None
        with suppress(OSError):  # a full disk: the lock holds, only its holder's name is missing
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def _holder(handle: int) -> str:
    return os.pread(handle, 200, 0).decode("utf-8", "replace") or "another program"
