"""Mutations of files: of their bytes, of their sealed parts, and of texts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from reluflow import files

ROOT = Path(__file__).parents[2]
RUNS = sorted((ROOT / "tests" / "data" / "golden").glob("*/*.rf"))
TOMLS = sorted((ROOT / "examples").glob("*.toml"))
TABLES = sorted((ROOT / "examples").glob("*.csv"))

NUMBERS = [0, 1, -1, 2, 3, 127, 255, 1e-320, 1e-300, 0.5, 1e16, 1e150, 1e308, -1e308]
SPECIAL = [*NUMBERS, float("nan"), float("inf"), -float("inf"), 2**31, 2**53, 2**62]
WORDS = [None, True, False, "", "x", "\x1b[31m", "\ud83d\ude00", [], {}, [1, 2], {"a": 1}, 10**400]
TOKENS = [
    *("nan", "inf", "-inf", "1e400", "9" * 400, "-0", "true", "[]", "{}", '""', "'\x1b[31m'"),
    *("[[", "]]", "=", "#", '"""', "\\", "\n", "\r", "\0", ".", ",", "a.b.c.d.e.f.g.h.i = 1"),
    *("1979-05-27", "0x_", "1__0", "\ufeff", "\u202e", "9223372036854775808", "seed = 1\n"),
]


def flipped(body: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, cut, doubled, dropped or moved."""
    raw = bytearray(body)
    for _ in range(int(rng.integers(1, 5))):
        if not raw:
            break
        where = int(rng.integers(len(raw)))
        length = int(rng.integers(1, 40))
        match int(rng.integers(7)):
            case 0:
                raw[where] ^= 1 << int(rng.integers(8))
            case 1:
                raw[where] = int(rng.integers(256))
            case 2:
                del raw[where : where + length]
            case 3:
                raw[where:where] = rng.bytes(length)
            case 4:
                raw[where:where] = raw[where : where + length]
            case 5:
                del raw[where:]
            case 6:
                raw[where : where + length] = rng.bytes(length)
    return bytes(raw)


def damaged(rng: np.random.Generator) -> bytes:
    """A run file with changed bytes and its old checksum."""
    body = _choice(RUNS, rng).read_bytes()
    while (changed := flipped(body, rng)) == body:
        pass
    return changed


def sealed(rng: np.random.Generator) -> bytes:
    """A run file with changed contents and right checksums."""
    body = _choice(RUNS, rng).read_bytes()
    if rng.random() < 0.2:
        raw = body[:4] + flipped(body[4:-64], rng)
        return raw + hashlib.sha256(raw).hexdigest().encode()
    manifest, arrays = files.decode(body, None, "golden")
    fields = manifest["fields"]
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.35 and fields:
            _change_field(fields, rng)
        else:
            _change_array(arrays, rng)
    try:
        return files.encode(manifest["kind"], fields, arrays)
    except Exception:
        return body


def _change_field(fields: dict[str, Any], rng: np.random.Generator) -> None:
    """Another value, or none, at a random place of the manifest."""
    table: Any = fields
    while True:
        key = _choice(sorted(table), rng)
        inner = table[key]
        if isinstance(inner, dict) and inner and rng.random() < 0.7:
            table = inner
            continue
        if rng.random() < 0.2:
            del table[key]
        else:
            table[key] = _choice([*SPECIAL, *WORDS, *_siblings(fields)], rng)
        return


def _siblings(fields: dict[str, Any]) -> list[Any]:
    return [json.loads(json.dumps(value)) for value in fields.values()]


def _change_array(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    """Entries, shape, type, or the whole array changed."""
    name = _choice(sorted(arrays), rng)
    array = np.array(arrays[name])
    match int(rng.integers(9)):
        case 0 | 1 | 2 if array.size and array.dtype.kind in "fiub":
            flat = array.reshape(-1)
            some = rng.integers(0, flat.size, int(rng.integers(1, 4)))
            with np.errstate(all="ignore"):
                flat[some] = np.array(_choice(SPECIAL, rng)).astype(flat.dtype)
        case 3 if array.size and array.dtype.kind == "f":
            array *= _choice([-1.0, 1e-9, 0.5, 1.001, 2.0, 1e9, 1e200], rng)
        case 4 if array.size:
            raw = bytearray(array.tobytes())
            raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
            array = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)
        case 5:
            axis = int(rng.integers(array.ndim)) if array.ndim else 0
            array = array[..., None] if not array.ndim else np.take(
                array, np.arange(int(rng.integers(array.shape[axis] + 1))), axis=axis
            )  # fmt: skip
        case 6:
            array = np.concatenate([array, array]) if array.ndim else array[None]
        case 7 if array.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                array = array.astype(
                    _choice(["f4", ">f8", "i8", "u1", "i1", "?", "c16", "U3"], rng)
                )
        case _:
            other = _choice(sorted(arrays), rng)
            if rng.random() < 0.5:
                del arrays[name]
                return
            array = np.array(arrays[other])
    arrays[name] = array


def text(paths: list[Path], rng: np.random.Generator) -> bytes:
    """A text file with tokens exchanged, or changed bytes."""
    body = _choice(paths, rng).read_bytes()
    if rng.random() < 0.3:
        return flipped(body, rng)
    words = body.decode().replace("=", " = ").replace(",", " , ").split(" ")
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(len(words)))
        match int(rng.integers(4)):
            case 0:
                words[k] = _choice(TOKENS, rng)
            case 1:
                words[k] = words[int(rng.integers(len(words)))]
            case 2:
                words[k] = ""
            case 3:
                words[k] = words[k] * int(rng.integers(2, 2000))
    return " ".join(words).encode(errors="surrogatepass")


def link(rng: np.random.Generator) -> bytes:
    """The state that a link of the explorer holds, with changed values or bytes."""
    from reluflow.explore import presets, state

    raw = state.to_json(presets.named(_choice(presets.listed(), rng)["id"]))
    if rng.random() < 0.2:
        return flipped(json.dumps(raw).encode(), rng)
    for _ in range(int(rng.integers(1, 3))):
        _change_part(raw, rng)
    return json.dumps(raw).encode(errors="surrogatepass")


def _change_part(table: Any, rng: np.random.Generator) -> None:
    """Another value, none, or one more at a random place of nested tables and lists."""
    while True:
        keys = sorted(table) if isinstance(table, dict) else range(len(table))
        key = _choice(keys, rng)
        if isinstance(table[key], (dict, list)) and table[key] and rng.random() < 0.7:
            table = table[key]
            continue
        match int(rng.integers(6)):
            case 0:
                del table[key]
            case 1 if isinstance(table, list):
                table.extend(table[: int(rng.integers(1, 500))])
            case 2 | 3 | 4 if isinstance(table[key], (int, float)):
                table[key] = table[key] * _choice([-1, 0, 0.5, 1.001, 2, 3, 1e3, 1e7, 1e300], rng)
            case _:
                table[key] = _choice([*SPECIAL, *WORDS], rng)
        return


def _choice(options: Any, rng: np.random.Generator) -> Any:
    return options[int(rng.integers(len(options)))]


MUTATIONS = {  # new ones come last: the place is part of the seed
    "csv": lambda rng: text(TABLES, rng),
    "damaged": damaged,
    "sealed": sealed,
    "toml": lambda rng: text(TOMLS, rng),
    "link": link,
}


def mutation(kind: str, number: int, seed: int) -> bytes:
    """The mutation of this number: the same bytes whenever and in whatever order it is made."""
    place = list(MUTATIONS).index(kind)
    return MUTATIONS[kind](np.random.default_rng([seed, place, number]))
