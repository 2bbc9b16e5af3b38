"""Binary frames: a header of JSON and arrays of numbers, as the page reads them.

``u32`` length of the header (little-endian), the header padded with spaces to a multiple of eight
bytes less four, then the arrays one after the other, each padded to a multiple of eight bytes. The
header's ``arrays`` lists their names, shapes and types: ``f8``, ``f4``, ``i4``, ``i1`` or ``u1``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = {"f8": "<f8", "f4": "<f4", "i4": "<i4", "i1": "|i1", "u1": "|u1"}


def encode(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """A frame; numbers of the header that JSON cannot say (inf, nan) become null.

    Examples
    --------
    >>> header, arrays = decode(encode({"id": 3}, {"u": np.ones((2, 1), np.float32)}))
    >>> header["id"], arrays["u"].tolist()
    (3, [[1.0], [1.0]])
    """
    listed, bodies = [], []
    for name, array in (arrays or {}).items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        body = np.ascontiguousarray(array, dtype=TYPES[kind]).tobytes()
        listed.append({"name": name, "shape": list(array.shape), "type": kind})
        bodies.append(body + b"\0" * (-len(body) % 8))
    text = json.dumps(plain({**header, "arrays": listed}), allow_nan=False).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + b"".join(bodies)


def decode(frame: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a frame."""
    size = int.from_bytes(frame[:4], "little")
    header = json.loads(frame[4 : 4 + size])
    arrays, position = {}, 4 + size
    for item in header["arrays"]:
        kind = np.dtype(TYPES[item["type"]])
        count = math.prod(item["shape"])
        found = np.frombuffer(frame, kind, count, position)
        arrays[item["name"]] = found.reshape(item["shape"])
        position += -(-count * kind.itemsize // 8) * 8
    return header, arrays


def plain(value: Any) -> Any:
    """Values that JSON can say: NumPy's as Python's, numbers that are not finite as None."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
