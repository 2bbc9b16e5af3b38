"""Writing of files: aside, fsync, rename, fsync of the folder.

At any moment the path holds the old file or the new one, whole. What a killed writer leaves behind
is recognised by its name and by a lock that the system dropped.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from reluflow.errors import FileError
from reluflow.reading import reason
from reluflow.wording import printable

_PREFIX, _SUFFIX = ".reluflow-", ".part"
_ORPHAN_AGE_S = 60.0


def write_bytes(path: str | PathLike[str], body: bytes) -> None:
    """Write bytes aside, fsync, rename over ``path``, fsync the folder.

    A new file gets the permissions that the user's umask leaves; a replaced one keeps its own.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _aside(target) as (stream, aside):
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(aside, target)
    except (OSError, ValueError) as error:
        raise FileError(
            f"cannot write {printable(target)} ({reason(error)}). Nothing was changed; "
            "free space or choose another folder."
        ) from None
    try:
        _sync_folder(target.parent)
    except OSError as error:
        raise FileError(
            f"{printable(target)} was written, but the disk did not confirm it ({reason(error)}). "
            "A power cut may undo it; write it again to a sound disk."
        ) from None


@contextmanager
def _aside(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file beside ``target``, locked while it is written and removed if that fails."""
    aside = target.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            _lock(stream.fileno())
            with suppress(FileNotFoundError):
                os.chmod(aside, stat.S_IMODE(os.stat(target).st_mode))
            yield stream, aside
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def remove_orphans(folder: Path) -> list[Path]:
    """Remove what killed writers left half written in a folder; returns the removed files.

    A writer holds a lock on its file, which the system drops when it dies: files that are locked,
    or younger than a minute (not locked yet), belong to somebody and stay.
    """
    removed = []
    for path in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < _ORPHAN_AGE_S or path.is_symlink():
                continue
            with path.open("rb") as stream:
                if _lock(stream.fileno()):
                    path.unlink()
                    removed.append(path)
    return removed


def _lock(handle: int) -> bool:
    """Whether this process now holds the lock of an open file; False where there are no locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened, and rename is durable by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
