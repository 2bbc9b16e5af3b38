"""Run files: one ZIP of ``.npy`` members and a JSON manifest, checked as a whole, never executed.

Layout: members are stored, not compressed, and may not overlap, so a file cannot unpack to more
than its own size. ``manifest.json`` names the format, the kind of content, its text fields and the
SHA-256 of each array. The ZIP comment is the SHA-256 of every byte before it: a flipped bit or a
cut anywhere is noticed before anything is parsed. Reading takes the memory of the arrays and a
bounded manifest, no more; writing is atomic (`reluflow.writing`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reluflow._version import NUMERICS_VERSION, __version__
from reluflow.errors import FileError, InputError
from reluflow.reading import opened
from reluflow.wording import cut, printable, shown
from reluflow.writing import write_bytes as write_bytes

if TYPE_CHECKING:
    import zipfile

FORMAT = "reluflow"
FORMAT_VERSION = 1
SIZE_LIMIT_BYTES = 8 * 2**30
MANIFEST_LIMIT_BYTES = 16 * 2**20
_MAGIC = b"PK\x03\x04"
_DIGEST_BYTES = 64
_PIECE_BYTES = 2**20
_HEADER_BYTES = 2**16 + 10  # the longest header of format 1.0, with what stands before it
_MEMBER = re.compile(r"[A-Za-z0-9_.]{1,80}\.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def versions() -> dict[str, Any]:
    """What the result depends on, written into every file."""
    return {
        "reluflow": __version__,
        "numerics": NUMERICS_VERSION,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def provenance() -> dict[str, Any]:
    """Versions and thread settings: equal ones give equal bytes for an equal specification."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {"versions": versions(), "threads": {name: os.environ.get(name) for name in names}}


def numerics_of(versions: Mapping[str, Any]) -> int:
    """The numerics version among these; 0 in files from before there was one.

    Examples
    --------
    >>> numerics_of({"reluflow": "0.1.0", "numerics": 3}), numerics_of({"reluflow": "0.1.0"})
    (3, 0)
    """
    found = versions.get("numerics", 0)
    return found if type(found) is int else 0


def made_by(versions: Mapping[str, Any]) -> str:
    """What a result was computed with, in words.

    Examples
    --------
    >>> made_by({"reluflow": "0.1.0", "numerics": 3, "numpy": "2.4.6", "python": "3.11.7"})
    'reluflow 0.1.0, numerics 3, numpy 2.4.6, python 3.11.7'
    """
    named = {"reluflow": "unknown", **versions, "numerics": numerics_of(versions)}
    words = [
        f"{name} {named[name]}"
        for name in ("reluflow", "numerics", "numpy", "python")
        if name in named
    ]
    return ", ".join(words)


def digest(fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of numbers, texts and arrays: equal ones, and only those, have the same.

    Examples
    --------
    >>> digest({}, {"y": np.array([1.0])}) == digest({}, {"y": np.array([1.0])})
    True
    >>> digest({}, {"y": np.array([1.0])}) == digest({}, {"y": np.array([2.0])})
    False
    """
    found = hashlib.sha256(_json(fields))
    for name, array in sorted(arrays.items()):
        body = _npy(name, array)
        found.update(f"\0{name} {len(body)}\0".encode() + body)
    return found.hexdigest()


def encode(kind: str, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a run file; equal contents give equal bytes."""
    import zipfile

    members = {f"{name}.npy": _npy(name, array) for name, array in sorted(arrays.items())}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "versions": versions(),
        "fields": fields,
        "sha256": {name: hashlib.sha256(body).hexdigest() for name, body in members.items()},
    }
    text = _json(manifest)
    if len(text) > MANIFEST_LIMIT_BYTES:
        raise InputError(
            f"the fields take {len(text)} bytes, above the {MANIFEST_LIMIT_BYTES} that a run file "
            "may hold beside its arrays. Keep large data in arrays or in a CSV file."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("manifest.json", _EPOCH), text)
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), body)
        archive.comment = b"0" * _DIGEST_BYTES
    body = buffer.getvalue()[:-_DIGEST_BYTES]
    return body + hashlib.sha256(body).hexdigest().encode()


def decode(raw: bytes, kind: str | None, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check and parse the bytes of a run file; returns ``(manifest, arrays)``."""
    return _decode(io.BytesIO(raw), kind, source)


def _decode(
    stream: BinaryIO, kind: str | None, source: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    import zipfile

    size_bytes = _check_seal(stream, source)
    try:
        with zipfile.ZipFile(stream) as archive:
            return _parse(archive, size_bytes, kind, source)
    except FileError:
        raise
    # crafted bytes with a right checksum make zipfile, json and the .npy header parser raise almost
    # anything (struct.error, RecursionError, TokenError, ...); it all means the same
    except Exception as error:
        raise FileError(
            f"{source} is not a valid reluflow file ({cut(str(error), 300)}). "
            "Recompute it or restore a copy."
        ) from None


def _check_seal(stream: BinaryIO, source: str) -> int:
    """Compare the checksum at the end with the bytes before it, piece by piece; their number."""
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise FileError(f"{source} is not a reluflow file. Pass a file that reluflow wrote.")
    digest, tail, size_bytes = hashlib.sha256(_MAGIC), b"", len(_MAGIC)
    while piece := stream.read(_PIECE_BYTES):
        size_bytes += len(piece)
        tail += piece
        digest.update(tail[:-_DIGEST_BYTES])
        tail = tail[-_DIGEST_BYTES:]
    if digest.hexdigest().encode() != tail:
        raise FileError(
            f"{source} is damaged, cut short or not a reluflow file: its checksum does not match. "
            "Recompute it or restore a copy."
        )
    stream.seek(0)
    return size_bytes


def write(
    path: str | PathLike[str], kind: str, fields: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a run file atomically; on any failure the old file stays as it was."""
    write_bytes(path, encode(kind, fields, arrays))


def read(
    path: str | PathLike[str], kind: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check a run file of the given kind (any kind if None)."""
    source = printable(os.fspath(path))
    with opened(path, SIZE_LIMIT_BYTES, "Pass a file that reluflow wrote.") as stream:
        return _decode(stream, kind, source)


@contextmanager
def contents(path: str | PathLike[str]) -> Iterator[None]:
    """Report what is missing or unusable in a sound file as a `FileError` that names the file."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise FileError(
            f"{printable(path)} is whole but its contents cannot be used ({cut(what)}). "
            "Recompute it."
        ) from None


def _json(manifest: Mapping[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)) and not value.dtype.hasobject:
            return value.tolist()
        raise InputError(
            f"a field holds {shown(value)}, which JSON cannot store. "
            "Use numbers, text, lists, mappings."
        )

    return json.dumps(manifest, sort_keys=True, indent=1, default=plain).encode()


def _npy(name: str, values: Any) -> bytes:
    array = np.asarray(values, order="C")
    if not _MEMBER.fullmatch(f"{name}.npy"):
        raise InputError(
            f"the array name {shown(name)} cannot be stored. "
            "Use 1 to 80 letters, digits, dots or _."
        )
    if array.dtype.hasobject or array.dtype.itemsize == 0:
        raise InputError(
            f"`{name}` has dtype {array.dtype}, which cannot be stored without pickle. "
            "Convert it to numbers or text."
        )
    buffer = io.BytesIO()
    try:
        np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    except ValueError as error:
        raise InputError(f"`{name}` cannot be stored ({error}). Use plain field names.") from None
    return buffer.getvalue()


def _from_npy(body: bytearray, name: str) -> NDArray[Any]:
    """One member as an array over its own bytes; its header may not promise more of them."""
    stream = io.BytesIO(memoryview(body)[:_HEADER_BYTES])
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"member {name!r} has an unknown .npy version")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or dtype.itemsize == 0 or fortran_order:
        raise ValueError(f"member {name!r} has a layout or dtype that reluflow never writes")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != len(body) - stream.tell():
        raise ValueError(f"member {name!r} has shape {shown(shape)} but another length")
    array = np.frombuffer(body, dtype, offset=stream.tell()).reshape(shape)
    return array if array.flags.aligned else array.copy()


def _parse(
    archive: zipfile.ZipFile, size_bytes: int, kind: str | None, source: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) != len(names) or "manifest.json" not in names:
        raise ValueError("members are missing or repeated")
    for info in infos:  # compression 0 is "stored"
        if info.compress_type != 0 or info.compress_size != info.file_size:
            raise ValueError(f"member {info.filename!r} is compressed")
        if info.filename != "manifest.json" and not _MEMBER.fullmatch(info.filename):
            raise ValueError(f"member name {info.filename!r} is not allowed")
    if sum(info.file_size for info in infos) > size_bytes:
        raise ValueError("its members overlap")
    manifest = _manifest(archive, source)
    if not isinstance(manifest.get("kind"), str) or (kind is not None and manifest["kind"] != kind):
        found = printable(cut(str(manifest.get("kind")), 80))
        raise FileError(f"{source} holds a {found}, not a {kind}. Pass another file.")
    sums = manifest["sha256"]
    if not isinstance(sums, dict) or not isinstance(manifest["fields"], dict):
        raise ValueError("the manifest has no fields or checksums")
    if sorted([*sums, "manifest.json"]) != sorted(names):
        raise ValueError("the manifest and the members differ")
    arrays = {}
    for name, expected in sums.items():
        body = _member(archive, name)
        if hashlib.sha256(body).hexdigest() != expected:
            raise ValueError(f"member {name!r} does not match its checksum")
        arrays[name.removesuffix(".npy")] = _from_npy(body, name)
    return manifest, arrays


def _member(archive: zipfile.ZipFile, name: str) -> bytearray:
    """The bytes of a member, in one piece of memory that its array can keep."""
    body, filled = bytearray(archive.getinfo(name).file_size), 0
    with archive.open(name) as stream:
        while piece := stream.read(_PIECE_BYTES):
            body[filled : filled + len(piece)] = piece
            filled += len(piece)
    return body


def _manifest(archive: zipfile.ZipFile, source: str) -> dict[str, Any]:
    """The manifest, bounded before it is parsed: JSON takes 25 times its size in memory."""
    size_bytes = archive.getinfo("manifest.json").file_size
    if size_bytes > MANIFEST_LIMIT_BYTES:
        raise ValueError(f"its manifest has {size_bytes} bytes, above {MANIFEST_LIMIT_BYTES}")
    manifest = json.loads(archive.read("manifest.json"))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError("the manifest is not reluflow's")
    version = manifest.get("format_version")
    if type(version) is not int:  # JSON's true and 1.0 equal 1 in Python
        raise ValueError(f"its format version is {shown(version, 40)}, not an integer")
    if version != FORMAT_VERSION:
        raise FileError(
            f"{source} has format version {shown(version, 40)}; this reluflow reads "
            f"{FORMAT_VERSION}. Update reluflow."
        )
    return manifest
