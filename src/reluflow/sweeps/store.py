"""The store: one folder for the results of many points.

::

    packs/000000.pack      small results, a thousand and more in each, each checked
    runs/ab/<id>.rf        one checked run file for each larger one
    failures/<id>.json     the point and the error of each failed one
    damaged/               files that did not pass their check, kept aside
    older/                 results of another numerics version that were computed again
    index.sqlite           a row for each point, rebuilt from the files when needed
    lock                   held by the one program that writes
    under_way              the point that a program computes which has no workers

The files are the truth. A run file is written aside, flushed and renamed; a pack is appended to and
flushed once a second. A program that is killed leaves whole files, and at worst a last record cut
short, which is removed; the index is brought up to date when the next sweep starts.
"""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from reluflow import files
from reluflow.checks import whole
from reluflow.errors import FileError, InputError, ReluflowWarning
from reluflow.sweeps import outcome, upkeep
from reluflow.sweeps.heartbeat import Pulse, read_mark
from reluflow.sweeps.index import (
    PAGE,
    DamagedIndexError,
    Index,
    Location,
    Row,
    opened,
    row_of,
)
from reluflow.sweeps.lock import exclusive
from reluflow.sweeps.outcome import Encoded, Result
from reluflow.sweeps.pack import BODY_LIMIT, Appender, record, withdrawal
from reluflow.sweeps.pack import body as packed
from reluflow.sweeps.point import ID_DIGITS, Point

_WRITERS = 4  # flushes of several files at once share the disk's waiting time
_MOVED = "{damage} It was moved to {aside}; run the sweep again, which computes what is missing."
T = TypeVar("T")


class Store:
    """Results of many points in a folder, which is made when something is first written.

    Parameters
    ----------
    path : path
        The folder.
    pack_up_to : int
        Results of at most so many bytes share files; 0 gives each a run file of its own.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, point = Store(folder), Point("train", {"d": 4}, seed=0)
    ...     store.put(point, {"angle": 0.5})
    ...     store.has(point), store.load(point.id).values["angle"], store.summary()
    (True, 0.5, {'done': 1})
    """

    def __init__(self, path: str | PathLike[str], *, pack_up_to: int = BODY_LIMIT) -> None:
        self.path = Path(path)
        self._pack_up_to = whole(pack_up_to, "pack_up_to", at_least=0, at_most=BODY_LIMIT)
        self._writing: Index | None = None
        self._appender: Appender | None = None
        self._is_checked = False
        self._damaged: list[Path] = []

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def run_path(self, point: Point | str) -> Path:
        """Where the run file of a point is, if it has one of its own."""
        return upkeep.run_path(self.path, _id(point))

    def has(self, point: Point | str) -> bool:
        """Whether the point is finished."""
        return self.run_path(point).is_file() or self._location(_id(point)) is not None

    def load(self, point: Point | str) -> Result:
        """The result of a point; a damaged file is put aside and the message says so."""
        return self._load(_id(point), self._location(_id(point)))

    def body(self, point: Point | str) -> bytes:
        """The bytes of the run file of a point, wherever they are."""
        location = self._location(_id(point))
        if location is not None and not self.run_path(point).is_file():
            return packed(self.path / "packs" / location.pack, location.offset, location.size_bytes)
        try:
            return self.run_path(point).read_bytes()
        except OSError:
            raise self._missing(_id(point)) from None

    def extract(self, point: Point | str, path: str | PathLike[str]) -> None:
        """Write the run file of a point to ``path``, for `reluflow.load` and the command line."""
        files.write_bytes(path, self.body(point))

    def results(self, points: Iterable[Point]) -> Iterator[Result]:
        """The results of these points in this order; points without one are left out.

        Results of different numerics versions are not comparable: they come with a warning.
        """
        seen: set[int] = set()
        for result in self._results(points):
            numerics = files.numerics_of(result.versions)
            if len(seen | {numerics}) == 2 and numerics not in seen:
                warnings.warn(
                    f"{self.path} holds results of numerics versions {min(seen)} and {numerics}, "
                    "which differ by more than rounding. Run the sweep again: it computes those "
                    "of another version.",
                    ReluflowWarning,
                    stacklevel=2,
                )
            seen.add(numerics)
            yield result

    def _results(self, points: Iterable[Point]) -> Iterator[Result]:
        rest = iter(points)
        while page := [point.id for point in itertools.islice(rest, PAGE)]:
            found = self._locations(page)
            for point_id in page:
                if point_id in found or self.run_path(point_id).is_file():
                    yield self._load(point_id, found.get(point_id))

    def _load(self, point_id: str, location: Location | None) -> Result:
        path = self.run_path(point_id)
        if location is not None and not path.is_file():
            return self._load_packed(point_id, location)
        if not path.is_file():
            raise self._missing(point_id)
        try:
            return upkeep.read(path)
        except FileError as error:
            damage = str(error)
        try:
            with self.writer() as index:
                aside = upkeep.put_aside(self.path, path, index)
        except FileError as error:
            raise FileError(f"{damage} It was left where it is: {error}") from None
        raise FileError(_MOVED.format(damage=damage, aside=aside))

    def _load_packed(self, point_id: str, location: Location) -> Result:
        path = self.path / "packs" / location.pack
        try:
            body = packed(path, location.offset, location.size_bytes)
            result = outcome.decode(body, f"the point {point_id} in {path}")
            if result.point.id == point_id:
                return result
            damage = f"{path} holds another point where {point_id} should be."
        except FileError as error:
            damage = str(error)
        try:
            with self.writer() as index:
                self._close_pack()
                aside = upkeep.refresh_packs(self.path, index, damaged=location.pack)
        except FileError as error:
            raise FileError(f"{damage} It was left where it is: {error}") from None
        raise FileError(_MOVED.format(damage=damage, aside=", ".join(map(str, aside))))

    def _location(self, point_id: str) -> Location | None:
        return self._locations([point_id]).get(point_id)

    def _locations(self, ids: list[str]) -> dict[str, Location]:
        return self._read(partial(Index.locations, ids=ids)) if self.path.is_dir() else {}

    def _missing(self, point_id: str) -> FileError:
        return FileError(f"{self.path} has no result for {point_id}. Run the sweep first.")

    def put(self, point: Point, result: Any) -> None:
        """Store what a task returned for a point."""
        self.put_encoded([outcome.encode(point, result)])

    def put_encoded(self, finished: Sequence[Encoded]) -> None:
        """Store finished points: first their bytes, then their rows."""
        with self.writer() as index:
            small = [item for item in finished if len(item.body) <= self._pack_up_to]
            large = [item for item in finished if len(item.body) > self._pack_up_to]
            for row in (*self._put_packed(small, index), *self._put_files(large)):
                upkeep.failure_path(self.path, row.id).unlink(missing_ok=True)
                index.put(row)
            self._note_pack(index)

    def _put_packed(self, finished: Sequence[Encoded], index: Index) -> list[Row]:
        if not finished:
            return []
        records = [record(item) for item in finished]
        name, offsets = self._append(records, index)
        rows = []
        for item, content, offset in zip(finished, records, offsets, strict=True):
            self.run_path(item.point).unlink(missing_ok=True)  # of an attempt before this one
            rows.append(_row(item, (len(content), 0), Location(name, offset, len(content))))
        return rows

    def _append(self, records: Sequence[bytes], index: Index) -> tuple[str, list[int]]:
        """Append records to the last pack; its name and their offsets."""
        if self._appender is None:  # a pack that a killed writer left must end with a whole record
            upkeep.refresh_last_pack(self.path, index)
            self._appender = Appender(self.path / "packs")
        offsets = self._appender.append(records)
        return self._appender.path.name, offsets

    def _note_pack(self, index: Index) -> None:
        """Say that the index knows the last pack: only once it has all rows of it."""
        if self._appender is not None:
            index.put_pack(self._appender.path.name, upkeep.stamp(self._appender.path))

    def _put_files(self, finished: Sequence[Encoded]) -> list[Row]:
        paths = [self.run_path(item.point) for item in finished]
        if len(finished) > 1:
            with ThreadPoolExecutor(_WRITERS) as pool:
                list(pool.map(files.write_bytes, paths, [item.body for item in finished]))
        elif finished:
            files.write_bytes(paths[0], finished[0].body)
        return [_row(item, upkeep.stamp(path)) for item, path in zip(finished, paths, strict=True)]

    def fail(self, point: Point, error: str, *, set_aside: bool = False) -> None:
        """Store the error of a point; ``set_aside`` if it ended its worker instead of raising."""
        status = upkeep.SET_ASIDE if set_aside else upkeep.FAILED
        made = files.versions()
        known = {**point.to_dict(), "status": status, "error": error, "versions": made}
        path = upkeep.failure_path(self.path, point.id)
        with self.writer() as index:
            files.write_bytes(path, json.dumps(known, indent=1).encode())
            now = upkeep.stamp(path)
            index.put(row_of(point.to_dict(), point.id, status, now, error=error, versions=made))

    def withdraw(self, points: Iterable[Point]) -> None:
        """Take these points out of the store; their results are kept in ``older``."""
        ids = (point.id for point in points)
        with self.writer() as index:
            while page := list(itertools.islice(ids, PAGE)):
                located = index.locations(page)
                for point_id, place in located.items():
                    upkeep.keep_older(self.path, point_id, place)
                taken = [name for name in page if name in located or self.run_path(name).is_file()]
                if taken:
                    self._append([withdrawal(name) for name in taken], index)
                for point_id in page:
                    upkeep.withdraw(self.path, point_id, index)
                self._note_pack(index)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every point in the order of ids, read in pages: memory does not grow with the store.

        Each row is a dict with ``id, task, parameters, seed, status, scalars, error, versions``.
        """
        if not self.path.is_dir():
            return
        after = ""
        while page := self._read(partial(Index.page, after=after)):
            yield from page
            after = page[-1]["id"]

    def rows_of(self, points: Iterable[Point]) -> Iterator[dict[str, Any] | None]:
        """The rows of these points in this order; None for one with neither result nor error."""
        ids = (point.id for point in points)
        while page := list(itertools.islice(ids, PAGE)):
            found = self._read(partial(Index.rows, ids=page)) if self.path.is_dir() else {}
            yield from (found.get(point_id) for point_id in page)

    def summary(self) -> dict[str, int]:
        """How many points ended how."""
        return self._read(Index.counts) if self.path.is_dir() else {}

    def pulse(self) -> Pulse | None:
        """The last sign of life of the sweep that computes into this store; None without one."""
        pulse = self._read(Index.pulse) if self.path.is_dir() else None
        if pulse is None or pulse.under_way:
            return pulse
        return replace(pulse, under_way=read_mark(self.mark_path))

    @property
    def mark_path(self) -> Path:
        """Where a driver that computes by itself notes its point."""
        return self.path / "under_way"

    def rebuild(self) -> None:
        """Make the index anew from the files."""
        if self._writing is not None:
            raise InputError("the store is being written. Rebuild its index before or after.")
        with exclusive(self.path / "lock"):
            self._rebuild()

    def refresh(self) -> list[Path]:
        """Bring the index up to date with the files; returns the damaged ones, now set aside."""
        with self.writer() as index:
            self._close_pack()
            damaged = self._damaged + upkeep.refresh(self.path, index)
            self._damaged = []
        return damaged

    @contextmanager
    def writer(self) -> Iterator[Index]:
        """Hold the lock of the store and its index; calls inside share them.

        Many calls of `put` are faster inside one ``with store.writer():``.
        """
        if self._writing is not None:
            yield self._writing
            return
        index_path = self.path / "index.sqlite"
        with exclusive(self.path / "lock"):
            try:
                with opened(index_path, check=not self._is_checked):
                    self._is_checked = True
            except DamagedIndexError:
                self._rebuild()
            with opened(index_path) as index:
                self._writing = index
                try:
                    yield index
                finally:
                    self._writing = None
                    self._close_pack()

    def _close_pack(self) -> None:
        appender, self._appender = self._appender, None
        if appender is not None:
            appender.close()

    def _read(self, ask: Callable[[Index], T]) -> T:
        if self._writing is not None:
            return ask(self._writing)
        try:
            with opened(self.path / "index.sqlite") as index:
                return ask(index)
        except DamagedIndexError:
            self.rebuild()
        with opened(self.path / "index.sqlite") as index:
            return ask(index)

    def _rebuild(self) -> None:
        """Write a new index aside and rename it; a journal of the old one must not touch it."""
        aside = self.path / "index.sqlite.new"
        try:
            for name in (aside.name, f"{aside.name}-journal", "index.sqlite-journal"):
                (self.path / name).unlink(missing_ok=True)
            with opened(aside, fresh=True) as index:
                self._damaged += upkeep.refresh(self.path, index)
            os.replace(aside, self.path / "index.sqlite")
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"cannot write the index of {self.path} ({error.strerror}). The run files are "
                "intact; free space or copy the folder elsewhere."
            ) from None


def _row(item: Encoded, stamp: tuple[int, int], location: Location | None = None) -> Row:
    return row_of(
        item.point.to_dict(),
        item.point.id,
        item.status,
        stamp,
        values=item.values,
        versions=item.versions,
        location=location,
    )


def _id(point: Point | str) -> str:
    if isinstance(point, Point):
        return point.id
    is_id = isinstance(point, str) and len(point) == ID_DIGITS
    if not is_id or set(point) - set("0123456789abcdef"):
        raise InputError(f"{point!r} is no id of a point. Pass a Point or 32 hexadecimal digits.")
    return point
