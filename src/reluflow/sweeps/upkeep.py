"""From the files of a store to its index: what changed is read, what is damaged is set aside."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from reluflow import interrupts
from reluflow.checks import choice
from reluflow.errors import FileError
from reluflow.sweeps import outcome
from reluflow.sweeps.index import Index, row_of

FAILED, SET_ASIDE = "failed", "set_aside"
RETRY_S = 0.1
_PREFIXES = [f"{k:02x}" for k in range(256)]


def refresh(root: Path, index: Index) -> list[Path]:
    """Make the index equal to the files of the store at ``root``; returns what was set aside.

    A file is read if its size or time differ from those in the index, and trusted otherwise. One
    folder of 256 is looked at at a time: memory stays flat.
    """
    damaged = [path for prefix in _PREFIXES for path in _refresh_runs(root, prefix, index)]
    return damaged + _refresh_failures(root, index)


def stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def run_path(root: Path, point_id: str) -> Path:
    """Where the run file of a point is."""
    return root / "runs" / point_id[:2] / f"{point_id}.rf"


def failure_path(root: Path, point_id: str) -> Path:
    """Where the error of a point is."""
    return root / "failures" / f"{point_id}.json"


def read(path: Path) -> outcome.Result:
    """Read a run file, twice if need be: a network disk may show a new file empty for a moment."""
    try:
        return outcome.read(path)
    except FileError:
        time.sleep(RETRY_S)
        return outcome.read(path)


def put_aside(root: Path, path: Path, index: Index) -> Path:
    """Move a damaged file to ``damaged``, never over another one, and forget its row."""
    if not os.access(path, os.R_OK):
        raise FileError(f"cannot read {path} (Permission denied). Change its permissions.")
    folder = root / "damaged"
    try:
        folder.mkdir(exist_ok=True)
        target, k = folder / path.name, 0
        while target.exists():
            k += 1
            target = folder / f"{path.name}.{k}"
        os.replace(path, target)
    except OSError as error:
        raise FileError(
            f"{path} is damaged and cannot be moved aside ({error.strerror}). Remove it."
        ) from None
    index.remove(path.stem)
    return target


def _refresh_runs(root: Path, prefix: str, index: Index) -> list[Path]:
    interrupts.check()
    known, damaged, seen = index.stamps(prefix), [], set()
    for path in _files(root / "runs" / prefix, ".rf"):
        seen.add(path.stem)
        now = stamp(path)
        if path.stem in known and known[path.stem][1:] == now:
            continue
        try:
            result = read(path)
        except FileError:
            damaged.append(put_aside(root, path, index))
            continue
        point = result.point.to_dict()
        index.put(row_of(point, path.stem, result.status, now, values=result.values))
    for name, (status, *_) in known.items():
        is_failure = status in (FAILED, SET_ASIDE)
        if not (failure_path(root, name).exists() if is_failure else name in seen):
            index.remove(name)
    return damaged


def _refresh_failures(root: Path, index: Index) -> list[Path]:
    damaged = []
    for path in _files(root / "failures", ".json"):
        if run_path(root, path.stem).exists():  # killed between the two: the result counts
            path.unlink()
            continue
        now = stamp(path)
        if index.stamps(path.stem).get(path.stem, ("", 0, 0))[1:] == now:
            continue
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            status = choice(stored["status"], "status", (FAILED, SET_ASIDE))
            row = row_of(stored, path.stem, status, now, error=str(stored["error"]))
        except (LookupError, TypeError, ValueError):
            damaged.append(put_aside(root, path, index))
            continue
        index.put(row)
    return damaged


def _files(folder: Path, suffix: str) -> Iterator[Path]:
    """The files of a folder; those a killed writer left unfinished are removed."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        if name.startswith("."):
            (folder / name).unlink(missing_ok=True)
        elif name.endswith(suffix):
            yield folder / name
