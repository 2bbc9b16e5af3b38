"""Run files: one ZIP of ``.npy`` members and a JSON manifest, checked as a whole, never executed.

Layout: members are stored, not compressed, so a file cannot unpack to more than its own size.
``manifest.json`` names the format, the kind of content, its text fields and the SHA-256 of each
array. The ZIP comment is the SHA-256 of every byte before it: a flipped bit or a cut anywhere is
noticed before anything is parsed. Writing goes aside, fsync, rename, fsync of the folder: at any
moment the path holds the old file or the new one, whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import tempfile
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow._version import __version__
from reluflow.errors import FileError

FORMAT = "reluflow"
FORMAT_VERSION = 1
SIZE_LIMIT_BYTES = 8 * 2**30
_DIGEST_BYTES = 64
_MEMBER = re.compile(r"[A-Za-z0-9_.]{1,80}\.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def versions() -> dict[str, str]:
    """What the result depends on, written into every file."""
    return {
        "reluflow": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def encode(kind: str, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a run file; equal contents give equal bytes."""
    members = {f"{name}.npy": _npy(array) for name, array in arrays.items()}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "versions": versions(),
        "fields": fields,
        "sha256": {name: hashlib.sha256(body).hexdigest() for name, body in members.items()},
    }
    text = json.dumps(manifest, sort_keys=True, indent=1, allow_nan=True).encode()
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
    if not raw.startswith(b"PK\x03\x04"):
        raise FileError(f"{source} is not a reluflow file. Pass a file that reluflow wrote.")
    body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise FileError(
            f"{source} is damaged, cut short or not a reluflow file: its checksum does not match. "
            "Recompute it or restore a copy."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return _parse(archive, kind, source)
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, ValueError, EOFError) as error:
        raise FileError(
            f"{source} is not a valid reluflow file ({error}). Recompute it or restore a copy."
        ) from None


def write(
    path: str | PathLike[str], kind: str, fields: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a run file atomically; on any failure the old file stays as it was."""
    write_bytes(path, encode(kind, fields, arrays))


def write_bytes(path: str | PathLike[str], body: bytes) -> None:
    """Write bytes aside, fsync, rename over ``path``, fsync the folder."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(body)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(aside, 0o644)
            os.replace(aside, target)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise FileError(
            f"cannot write {target} ({error.strerror or error}). Nothing was changed; "
            "free space or choose another folder."
        ) from None


def read(
    path: str | PathLike[str], kind: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and check a run file of the given kind (any kind if None)."""
    source = str(path)
    try:
        size_bytes = os.stat(path).st_size
        if size_bytes > SIZE_LIMIT_BYTES:
            raise FileError(
                f"{source} has {size_bytes} bytes, above the limit of {SIZE_LIMIT_BYTES}. "
                "It is not a run file."
            )
        raw = Path(path).read_bytes()
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"cannot read {source} ({error.strerror or error}). Check the path."
        ) from None
    return decode(raw, kind, source)


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _parse(
    archive: zipfile.ZipFile, kind: str | None, source: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) != len(names) or "manifest.json" not in names:
        raise ValueError("members are missing or repeated")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"member {info.filename!r} is compressed")
        if info.filename != "manifest.json" and not _MEMBER.fullmatch(info.filename):
            raise ValueError(f"member name {info.filename!r} is not allowed")
    manifest = json.loads(archive.read("manifest.json"))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError("the manifest is not reluflow's")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise FileError(
            f"{source} has format version {manifest.get('format_version')}; this reluflow reads "
            f"{FORMAT_VERSION}. Update reluflow."
        )
    if kind is not None and manifest.get("kind") != kind:
        raise FileError(
            f"{source} holds a {manifest.get('kind')}, not a {kind}. Pass another file."
        )
    sums = manifest["sha256"]
    if sorted([*sums, "manifest.json"]) != sorted(names):
        raise ValueError("the manifest and the members differ")
    arrays = {}
    for name, expected in sums.items():
        body = archive.read(name)
        if hashlib.sha256(body).hexdigest() != expected:
            raise ValueError(f"member {name!r} does not match its checksum")
        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(
            io.BytesIO(body), allow_pickle=False
        )
    return manifest, arrays
