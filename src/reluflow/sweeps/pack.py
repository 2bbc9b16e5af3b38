"""Packs: files that hold small results one after the other, a thousand and more in each.

A record is a mark, two lengths, the row of the point as JSON, the bytes of its run file, and the
SHA-256 of all that. Records are only ever appended, in one write for each batch; a later one of a
point counts in place of an earlier one, and one of status ``withdrawn`` says that the point has no
result any more. A program that is killed leaves a last record cut short at worst, and a flipped bit
costs one record: the next mark tells where the next one begins.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reluflow import files, reading
from reluflow.errors import FileError
from reluflow.sweeps.outcome import Encoded
from reluflow.sweeps.point import canonical

BODY_LIMIT = 2**16  # larger results have a file of their own
PACK_BYTES = 2**26  # a thousand of the largest
LIMIT_BYTES = 2**28  # nothing that large was written here
WINDOW_BYTES = 2**21
FLUSH_S = 1.0
WITHDRAWN = "withdrawn"
_MARK = b"\x93reluflow point\n"
_LENGTHS = struct.Struct("<IQ")
_HEAD = len(_MARK) + _LENGTHS.size
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Span:
    """Bytes of a pack: a record with its row, or damage without one."""

    offset: int
    length: int
    row: Mapping[str, Any] | None


def record(item: Encoded) -> bytes:
    """The record of a finished point."""
    row = {
        **item.point.to_dict(),
        "id": item.point.id,
        "status": item.status,
        "values": item.values,
        "versions": item.versions,
    }
    return _sealed(row, item.body)


def withdrawal(point_id: str) -> bytes:
    """The record that takes the ones of a point before it back."""
    return _sealed({"id": point_id, "status": WITHDRAWN}, b"")


def _sealed(row: Mapping[str, Any], body: bytes) -> bytes:
    header = canonical(row).encode()
    content = b"".join((_MARK, _LENGTHS.pack(len(header), len(body)), header, body))
    return content + hashlib.sha256(content).digest()


def scan(content: bytes) -> Iterator[Span]:
    """The spans of a pack, in order, without gaps."""
    offset = 0
    while offset < len(content):
        found = _parsed(content, offset)
        if found is None:
            after = content.find(_MARK, offset + 1)
            end = len(content) if after < 0 else after
            # a body may hold the mark of a pack: only a whole record ends the damage
            while end < len(content) and _parsed(content, end) is None:
                after = content.find(_MARK, end + 1)
                end = len(content) if after < 0 else after
            found = Span(offset, end - offset, None)
        yield found
        offset += found.length


def opened(path: Path) -> AbstractContextManager[BinaryIO]:
    """A pack to be read: an ordinary file, not a pipe that waits or a device that never ends."""
    return reading.opened(path, LIMIT_BYTES, "Move it elsewhere.")


def scan_file(path: Path) -> Iterator[Span]:
    """The same from a file, of which little is held at a time unless it is damaged."""
    offset, size = 0, WINDOW_BYTES
    with opened(path) as stream:
        while content := stream.read(size):
            is_last, done = size < 0 or len(content) < size, 0
            for span in scan(content):
                if span.row is None and not is_last:  # cut off by the window, or damaged
                    break
                yield Span(offset + span.offset, span.length, span.row)
                done = span.offset + span.length
            offset, size = offset + done, WINDOW_BYTES if done else -1
            stream.seek(offset)


def body(path: Path, offset: int, length: int) -> bytes:
    """The run file inside a record, checked; raises `FileError` if anything is wrong with it."""
    try:
        with opened(path) as stream:
            stream.seek(offset)
            content = stream.read(length)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path} ({error.strerror}). Check the folder.") from None
    found = _parsed(content, 0)
    if found is None or found.length != length:
        raise FileError(f"{path} is damaged at byte {offset}: its checksum does not match.")
    header, size = _LENGTHS.unpack_from(content, len(_MARK))
    begin = _HEAD + header
    return content[begin : begin + size]


def _parsed(content: bytes, offset: int) -> Span | None:
    """The record at ``offset``, None if there is no whole one."""
    if content[offset : offset + len(_MARK)] != _MARK or len(content) < offset + _HEAD:
        return None
    header, size = _LENGTHS.unpack_from(content, offset + len(_MARK))
    end = offset + _HEAD + header + size
    if end + _DIGEST > len(content):
        return None
    view = memoryview(content)
    if hashlib.sha256(view[offset:end]).digest() != view[end : end + _DIGEST]:
        return None
    begin = offset + _HEAD
    row = _row(content[begin : begin + header])
    return None if row is None else Span(offset, end + _DIGEST - offset, row)


def _row(header: bytes) -> dict[str, Any] | None:
    """The row in a record; None if it lacks what every row has."""
    try:
        row = json.loads(header)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return None
    if row.get("status") == WITHDRAWN:
        return row
    wanted = {"task": str, "parameters": dict, "status": str, "values": dict, "versions": dict}
    is_whole = all(isinstance(row.get(name), kind) for name, kind in wanted.items())
    return row if is_whole and type(row.get("seed")) is int else None


class Appender:
    """Appends records to the last pack of a folder; flushed once a second and at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle, self._path = -1, folder
        self._flushed = time.monotonic()

    @property
    def path(self) -> Path:
        """The pack that is written now."""
        return self._path

    def append(self, records: Sequence[bytes]) -> list[int]:
        """Write records; their offsets. On any failure the pack stays as it was."""
        size = self._open()
        try:
            self._write(b"".join(records), size)
            if time.monotonic() - self._flushed > FLUSH_S:
                self._flush()
        except OSError as error:
            raise FileError(
                f"cannot write {self._path} ({error.strerror}). Nothing was changed; free space "
                "or choose another folder."
            ) from None
        offsets = [size]
        for content in records[:-1]:
            offsets.append(offsets[-1] + len(content))
        return offsets

    def close(self) -> None:
        """Flush what was written."""
        if self._handle >= 0:
            try:
                self._flush()
            except OSError as error:
                raise FileError(
                    f"{self._path} was written, but the disk did not confirm it "
                    f"({error.strerror}). A power cut may undo it; use a sound disk."
                ) from None
            finally:
                os.close(self._handle)
                self._handle = -1

    def _open(self) -> int:
        """The size of the pack to write, the next one if the last is full."""
        if self._handle >= 0:
            size = os.fstat(self._handle).st_size
            if size < PACK_BYTES:
                return size
            self.close()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._path = last_pack(self._folder)
            if not self._path.exists():
                files.write_bytes(self._path, b"")  # its name is on the disk before its records
            self._handle = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            return os.fstat(self._handle).st_size
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"cannot write into {self._folder} ({error.strerror}). Nothing was changed; free "
                "space or choose another folder."
            ) from None

    def _write(self, content: bytes, size: int) -> None:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError:
            os.ftruncate(self._handle, size)
            raise

    def _flush(self) -> None:
        os.fsync(self._handle)
        self._flushed = time.monotonic()


def names(folder: Path) -> list[str]:
    """The packs of a folder, in order; those a killed writer left unfinished are removed."""
    try:
        found = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    for name in found:
        if name.startswith("."):
            (folder / name).unlink(missing_ok=True)
    return [name for name in found if name.endswith(".pack") and not name.startswith(".")]


def last_pack(folder: Path) -> Path:
    """The pack to append to: the last one, or one after it if that is full."""
    found = names(folder)
    if found and (folder / found[-1]).stat().st_size < PACK_BYTES:
        return folder / found[-1]
    number = int(found[-1].removesuffix(".pack")) + 1 if found else 0
    return folder / f"{number:06d}.pack"
