"""From the files of a store to its index: what changed is read, what is damaged is set aside."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from reluflow import files, interrupts
from reluflow.checks import choice
from reluflow.errors import FileError
from reluflow.sweeps import outcome, pack
from reluflow.sweeps.index import Index, Location, row_of

FAILED, SET_ASIDE = "failed", "set_aside"  # points without a result
DAMAGED, OLDER = "damaged", "older"
RETRY_S = 0.1
_PREFIXES = [f"{k:02x}" for k in range(256)]


def refresh(root: Path, index: Index) -> list[Path]:
    """Make the index equal to the files of the store at ``root``; returns what was set aside.

    A file is read if its size or time differ from those in the index, and trusted otherwise. One
    folder of 256 is looked at at a time, or one pack: memory stays flat.
    """
    damaged = [path for prefix in _PREFIXES for path in _refresh_runs(root, prefix, index)]
    damaged += refresh_packs(root, index)
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


def withdraw(root: Path, point_id: str, index: Index) -> None:
    """Take the result and the error of a point out of the store; a result goes to ``older``."""
    path = run_path(root, point_id)
    if path.is_file():
        put_aside(root, path, index, OLDER)
    failure_path(root, point_id).unlink(missing_ok=True)
    index.remove(point_id)


def keep_older(root: Path, point_id: str, place: Location) -> None:
    """Copy the result of a point from its pack to ``older``; a damaged one is nothing to keep."""
    try:
        body = pack.body(root / "packs" / place.pack, place.offset, place.size_bytes)
    except FileError:
        return
    target = _unused(root / OLDER, f"{point_id}.rf")
    try:
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(body)
    except OSError as error:
        raise FileError(
            f"cannot write {target} ({error.strerror}). Free space or choose another folder."
        ) from None


def put_aside(root: Path, path: Path, index: Index, name: str = DAMAGED) -> Path:
    """Move a file to the folder ``name``, never over another one, and forget its row."""
    if not os.access(path, os.R_OK):
        raise FileError(f"cannot read {path} (Permission denied). Change its permissions.")
    target = _unused(root / name, path.name)
    try:
        target.parent.mkdir(exist_ok=True)
        os.replace(path, target)
    except OSError as error:
        raise FileError(
            f"{path} cannot be moved to {name} ({error.strerror}). Remove it."
        ) from None
    index.remove(path.stem)
    return target


def _unused(folder: Path, name: str) -> Path:
    """A path in a folder at which nothing is."""
    target, k = folder / name, 0
    while target.exists():
        k += 1
        target = folder / f"{name}.{k}"
    return target


def refresh_packs(root: Path, index: Index, *, damaged: str = "") -> list[Path]:
    """Make the rows of packs equal to their records, from the first that changed, or is damaged.

    All packs after it are read too, because their records count in place of earlier ones.
    """
    found, known, aside = pack.names(root / "packs"), index.packs(), []
    gone = known.keys() - set(found)
    for name in gone:  # others may hold the same points: they are all read again
        index.remove_pack(name)
    is_changed = bool(gone)
    for name in found:
        is_changed |= name == damaged or known.get(name) != stamp(root / "packs" / name)
        if is_changed:
            aside += _read_pack(root, name, index)
    return aside


def refresh_last_pack(root: Path, index: Index) -> None:
    """Bring the pack that is to be written next up to date."""
    for name in pack.names(root / "packs")[-1:]:
        if index.packs().get(name) != stamp(root / "packs" / name):
            _read_pack(root, name, index)


def _read_pack(root: Path, name: str, index: Index) -> list[Path]:
    """Make the rows of a pack equal to its records.

    Damage is set aside and cut out of the pack; so is a last record that a killed writer did not
    finish, which is nothing to be told.
    """
    interrupts.check()
    path, known = root / "packs" / name, index.packs().get(name)
    harmed, end = _put_records(root, name, index)
    content = _bytes(path) if harmed else b""
    aside = [
        _cut_out(root, name, start, content[start:stop])
        for start, stop in harmed
        if start < (known or (0, 0))[0] or stop != end
    ]
    if harmed:
        starts, stops = [0, *(stop for _, stop in harmed)], [*(start for start, _ in harmed), end]
        kept = b"".join(content[i:j] for i, j in zip(starts, stops, strict=True))
        files.write_bytes(path, kept)
        _put_records(root, name, index)
    index.put_pack(name, stamp(path))
    return aside


def _put_records(root: Path, name: str, index: Index) -> tuple[list[tuple[int, int]], int]:
    """Replace the rows of a pack by those of its records, held one at a time.

    Returns where damaged records begin and end, and where the last record ends.
    """
    index.remove_pack(name)
    harmed, end = [], 0
    path = root / "packs" / name
    try:
        for span in pack.scan_file(path):
            end = span.offset + span.length
            if span.row is None:
                harmed.append((span.offset, end))
            else:
                _put_span(root, name, span, index)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path} ({error.strerror}). Check the folder.") from None
    return harmed, end


def _put_span(root: Path, name: str, span: pack.Span, index: Index) -> None:
    """The row of a record, unless the point has a run file, which counts."""
    row = span.row or {}
    if row["status"] == pack.WITHDRAWN:
        index.remove_packed(row["id"])
    elif not run_path(root, row["id"]).is_file():
        index.put(
            row_of(
                row,
                row["id"],
                row["status"],
                (span.length, 0),
                values=row["values"],
                versions=row["versions"],
                location=Location(name, span.offset, span.length),
            )
        )


def _bytes(path: Path) -> bytes:
    with pack.opened(path) as stream:
        return stream.read()


def _cut_out(root: Path, name: str, offset: int, content: bytes) -> Path:
    """Keep damaged bytes of a pack where damaged files are."""
    target = _unused(root / DAMAGED, f"{name}.{offset}")
    files.write_bytes(target, content)
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
        index.put(
            row_of(
                point,
                path.stem,
                result.status,
                now,
                values=result.values,
                versions=result.versions,
            )
        )
    for name, (status, *_) in known.items():
        is_failure = status in (FAILED, SET_ASIDE)
        if not (failure_path(root, name).exists() if is_failure else name in seen):
            index.remove(name)
    return damaged


def _refresh_failures(root: Path, index: Index) -> list[Path]:
    damaged = []
    for path in _files(root / "failures", ".json"):
        status = index.status(path.stem)
        if status not in (None, FAILED, SET_ASIDE):  # killed between the two: the result counts
            path.unlink()
            continue
        now = stamp(path)
        if index.stamps(path.stem).get(path.stem, ("", 0, 0))[1:] == now:
            continue
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            status = choice(stored["status"], "status", (FAILED, SET_ASIDE))
            made = dict(stored.get("versions", {}))
            row = row_of(stored, path.stem, status, now, error=str(stored["error"]), versions=made)
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
