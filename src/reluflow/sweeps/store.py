"""The store: one folder for the results of many points.

::

    runs/ab/<id>.rf        one checked run file for each finished point
    failures/<id>.json     the point and the error of each failed one
    damaged/               files that did not pass their check, kept aside
    index.sqlite           a row for each point, rebuilt from the files when needed
    lock                   held by the one program that writes
    under_way              the point that a program computes which has no workers

The files are the truth. Each is written aside, flushed and renamed, so a program that is killed
leaves whole files only; the index is brought up to date when the next sweep starts.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from reluflow import files
from reluflow.errors import FileError, InputError
from reluflow.sweeps import outcome, upkeep
from reluflow.sweeps.heartbeat import Pulse, read_mark
from reluflow.sweeps.index import PAGE, DamagedIndexError, Index, opened, row_of
from reluflow.sweeps.lock import exclusive
from reluflow.sweeps.outcome import Encoded, Result
from reluflow.sweeps.point import ID_DIGITS, Point

_WRITERS = 4  # flushes of several files at once share the disk's waiting time
T = TypeVar("T")


class Store:
    """Results of many points in a folder, which is made when something is first written.

    Parameters
    ----------
    path : path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, point = Store(folder), Point("train", {"d": 4}, seed=0)
    ...     store.put(point, {"angle": 0.5})
    ...     store.has(point), store.load(point.id).values["angle"], store.summary()
    (True, 0.5, {'done': 1})
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._writing: Index | None = None
        self._is_checked = False
        self._damaged: list[Path] = []

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def run_path(self, point: Point | str) -> Path:
        """Where the run file of a point is, or will be."""
        return upkeep.run_path(self.path, _id(point))

    def has(self, point: Point | str) -> bool:
        """Whether the point is finished."""
        return self.run_path(point).is_file()

    def load(self, point: Point | str) -> Result:
        """The result of a point; a damaged file is put aside and the message says so."""
        path = self.run_path(point)
        if not path.is_file():
            raise FileError(f"{self.path} has no result for {_id(point)}. Run the sweep first.")
        try:
            return upkeep.read(path)
        except FileError as error:
            damage = str(error)
        try:
            with self.writer() as index:
                aside = upkeep.put_aside(self.path, path, index)
        except FileError as error:
            raise FileError(f"{damage} It was left where it is: {error}") from None
        raise FileError(
            f"{damage} It was moved to {aside}; run the sweep again, which computes what is "
            "missing."
        )

    def results(self, points: Iterable[Point]) -> Iterator[Result]:
        """The results of these points in this order; points without one are left out."""
        return (self.load(point) for point in points if self.has(point))

    def put(self, point: Point, result: Any) -> None:
        """Store what a task returned for a point."""
        self.put_encoded([outcome.encode(point, result)])

    def put_encoded(self, finished: Sequence[Encoded]) -> None:
        """Store finished points: first all files, then their rows."""
        with self.writer() as index:
            paths = [self.run_path(item.point) for item in finished]
            if len(finished) > 1:
                with ThreadPoolExecutor(_WRITERS) as pool:
                    list(pool.map(files.write_bytes, paths, [item.body for item in finished]))
            elif finished:
                files.write_bytes(paths[0], finished[0].body)
            for item, path in zip(finished, paths, strict=True):
                point, now = item.point, upkeep.stamp(path)
                upkeep.failure_path(self.path, point.id).unlink(missing_ok=True)
                index.put(row_of(point.to_dict(), point.id, item.status, now, values=item.values))

    def fail(self, point: Point, error: str, *, set_aside: bool = False) -> None:
        """Store the error of a point; ``set_aside`` if it ended its worker instead of raising."""
        status = upkeep.SET_ASIDE if set_aside else upkeep.FAILED
        text = json.dumps({**point.to_dict(), "status": status, "error": error}, indent=1)
        path = upkeep.failure_path(self.path, point.id)
        with self.writer() as index:
            files.write_bytes(path, text.encode())
            index.put(row_of(point.to_dict(), point.id, status, upkeep.stamp(path), error=error))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every point in the order of ids, read in pages: memory does not grow with the store.

        Each row is a dict with ``id, task, parameters, seed, status, scalars, error``.
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


def _id(point: Point | str) -> str:
    if isinstance(point, Point):
        return point.id
    is_id = isinstance(point, str) and len(point) == ID_DIGITS
    if not is_id or set(point) - set("0123456789abcdef"):
        raise InputError(f"{point!r} is no id of a point. Pass a Point or 32 hexadecimal digits.")
    return point
