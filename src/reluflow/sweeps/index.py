"""The index of a store: one SQLite table with a row for each point, made from the files.

It answers what would take a walk through all files: which points are done, how they ended, their
numbers. It holds nothing that the files do not, apart from the driver's last sign of life, so it is
rebuilt whenever it is missing or damaged.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reluflow.errors import FileError
from reluflow.sweeps.heartbeat import Pulse
from reluflow.sweeps.point import canonical

VERSION = 3
PAGE = 900  # SQLite takes at least 999 values in one question
COMMIT_S = 1.0
WAIT_S = 30.0
_TABLE = """
CREATE TABLE points (
    id TEXT PRIMARY KEY, task TEXT, parameters TEXT, seed INTEGER, status TEXT, scalars TEXT,
    error TEXT, versions TEXT, size_bytes INTEGER, time_ns INTEGER, pack TEXT, offset INTEGER
) WITHOUT ROWID
"""
_PACKS = "CREATE TABLE packs (name TEXT PRIMARY KEY, size_bytes INTEGER, time_ns INTEGER)"
_HEARTBEAT = "CREATE TABLE heartbeat (place INTEGER PRIMARY KEY, pulse TEXT)"
_READ = "SELECT id, task, parameters, seed, status, scalars, error, versions FROM points "


class DamagedIndexError(Exception):
    """The index cannot be read; it must be rebuilt."""


@dataclass(frozen=True)
class Row:
    """A row as stored; size and time of the file tell whether it changed since it was read.

    The row of a result in a pack has the size of its record, the name of the pack and its offset.
    """

    id: str
    task: str
    parameters: str
    seed: int
    status: str
    scalars: str
    error: str
    versions: str
    size_bytes: int
    time_ns: int
    pack: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Location:
    """Where the record of a result is; ``pack`` is empty if it has a file of its own."""

    pack: str
    offset: int
    size_bytes: int


_COLUMNS = tuple(field.name for field in fields(Row))


class Index:
    """An open index; one writer at a time, guarded by the lock of the store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last_commit = time.monotonic()

    def put(self, row: Row) -> None:
        """Add or replace a row; rows are committed about once a second."""
        self._change(
            "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            tuple(getattr(row, name) for name in _COLUMNS),
        )
        if time.monotonic() - self._last_commit > COMMIT_S:
            self.commit()

    def remove(self, point_id: str) -> None:
        """Forget a point."""
        self._change("DELETE FROM points WHERE id = ?", (point_id,))

    def remove_packed(self, point_id: str) -> None:
        """Forget a point if its result is in a pack."""
        self._change("DELETE FROM points WHERE id = ? AND pack > ''", (point_id,))

    def put_pack(self, name: str, stamp: tuple[int, int]) -> None:
        """Note size and time of a pack whose records all have rows."""
        self._change("INSERT OR REPLACE INTO packs VALUES (?, ?, ?)", (name, *stamp))

    def remove_pack(self, name: str) -> None:
        """Forget a pack and all that it holds."""
        self._change("DELETE FROM points WHERE pack = ?", (name,))
        self._change("DELETE FROM packs WHERE name = ?", (name,))

    def packs(self) -> dict[str, tuple[int, int]]:
        """Size and time of each pack."""
        return {row[0]: (row[1], row[2]) for row in self._connection.execute("SELECT * FROM packs")}

    def _change(self, statement: str, values: tuple[Any, ...]) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        self._connection.execute(statement, values)

    def commit(self) -> None:
        """Make the rows so far visible to readers."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        self._last_commit = time.monotonic()

    def status(self, point_id: str) -> str | None:
        """How a point ended; None if it is not there."""
        found = self._connection.execute(
            "SELECT status FROM points WHERE id = ?", (point_id,)
        ).fetchone()
        return None if found is None else str(found[0])

    def made(self, point_id: str) -> tuple[str, str] | None:
        """How a point ended and, as JSON, with which versions; None if it is not there."""
        found = self._connection.execute(
            "SELECT status, versions FROM points WHERE id = ?", (point_id,)
        ).fetchone()
        return None if found is None else (str(found[0]), str(found[1]))

    def stamps(self, prefix: str) -> dict[str, tuple[str, int, int]]:
        """Status, size and time of the file of each point whose id starts with ``prefix``.

        Points in packs have none.
        """
        found = self._connection.execute(
            "SELECT id, status, size_bytes, time_ns FROM points "
            "WHERE id >= ? AND id < ? AND pack = ''",
            (prefix, prefix + "g"),  # "g" comes after every hexadecimal digit
        )
        return {row[0]: (row[1], row[2], row[3]) for row in found}

    def rows(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        """The rows of these points, as far as they are there."""
        places = ", ".join("?" * len(ids))
        found = self._connection.execute(_READ + f"WHERE id IN ({places})", ids).fetchall()
        return {row[0]: _as_dict(row) for row in found}

    def locations(self, ids: list[str]) -> dict[str, Location]:
        """Where the records of these points are, as far as they are in packs."""
        places = ", ".join("?" * len(ids))
        found = self._connection.execute(
            f"SELECT id, pack, offset, size_bytes FROM points WHERE id IN ({places}) AND pack > ''",
            ids,
        )
        return {row[0]: Location(*row[1:]) for row in found}

    def page(self, after: str) -> list[dict[str, Any]]:
        """The next rows by id: short reads, so a slow reader never keeps the writer waiting."""
        found = self._connection.execute(
            _READ + "WHERE id > ? ORDER BY id LIMIT ?", (after, PAGE)
        ).fetchall()
        return [_as_dict(row) for row in found]

    def beat(self, pulse: Pulse | None) -> None:
        """Show a sign of life at once, with all rows so far; None removes the last one."""
        self._change("DELETE FROM heartbeat", ())
        if pulse is not None:
            self._change("INSERT INTO heartbeat VALUES (0, ?)", (json.dumps(pulse.to_dict()),))
        self.commit()

    def pulse(self) -> Pulse | None:
        """The last sign of life; None if nobody computes."""
        found = self._connection.execute("SELECT pulse FROM heartbeat").fetchone()
        return None if found is None else Pulse.from_dict(json.loads(found[0]))

    def counts(self) -> dict[str, int]:
        """How many points ended how."""
        found = self._connection.execute(
            "SELECT status, COUNT(*) FROM points GROUP BY status ORDER BY status"
        )
        return {str(status): int(count) for status, count in found}


def row_of(
    point: Mapping[str, Any],
    point_id: str,
    status: str,
    stamp: tuple[int, int],
    *,
    values: Mapping[str, Any] | None = None,
    error: str = "",
    versions: Mapping[str, Any] | None = None,
    location: Location | None = None,
) -> Row:
    """The row of a point, its outcome and the size and time of its file, or its place in a pack."""
    return Row(
        id=point_id,
        task=point["task"],
        parameters=canonical(point["parameters"]),
        seed=point["seed"],
        status=status,
        scalars=canonical(values or {}),
        error=error,
        versions=canonical(versions or {}),
        size_bytes=stamp[0],
        time_ns=stamp[1],
        pack="" if location is None else location.pack,
        offset=0 if location is None else location.offset,
    )


@contextmanager
def opened(path: Path, *, fresh: bool = False, check: bool = False) -> Iterator[Index]:
    """Open an index; ``fresh`` makes an empty one, ``check`` looks for damage first."""
    connection = None
    try:
        if not fresh and not path.is_file():
            raise DamagedIndexError(f"{path} is missing")
        connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
        # it can be rebuilt: a commit need not wait for the disk, and a killed process loses nothing
        connection.execute("PRAGMA synchronous = OFF")
        if fresh:
            connection.execute(_TABLE)
            connection.execute(_PACKS)
            connection.execute(_HEARTBEAT)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        elif connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            raise DamagedIndexError(f"{path} has another version")
        else:
            connection.execute("SELECT id FROM points LIMIT 0")
        if check and connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise DamagedIndexError(f"{path} fails its check")
        index = Index(connection)
        try:
            yield index
        finally:  # rows of files that are written count, whatever ends the block
            index.commit()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):  # a table or column: another program's file
            raise DamagedIndexError(f"{path} is no index ({error})") from None
        raise FileError(
            f"cannot use {path} ({error}). The run files are intact; free space, or wait for "
            "other programs that use the folder, and run again."
        ) from None
    except sqlite3.DatabaseError as error:
        raise DamagedIndexError(f"{path} is damaged ({error})") from None
    finally:
        if connection is not None:
            connection.close()


def _as_dict(found: tuple[Any, ...]) -> dict[str, Any]:
    point_id, task, parameters, seed, status, scalars, error, versions = found
    return {
        "id": point_id,
        "task": task,
        "parameters": json.loads(parameters),
        "seed": seed,
        "status": status,
        "scalars": json.loads(scalars),
        "error": error,
        "versions": json.loads(versions),
    }
