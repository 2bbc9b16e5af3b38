"""Is a saved file, or a whole store, what it should be? Reads everything, changes nothing.

A *problem* is something lost or wrong: a checksum, a shape, a recorded loss that its network does
not have, a row of the index without its file. A *note* is something the next sweep mends by itself.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reluflow import files, reading, run_relations
from reluflow.errors import FileError, InputError, ReluflowError
from reluflow.network import Network
from reluflow.trajectory import Trajectory, from_parts
from reluflow.wording import printable, shown

if TYPE_CHECKING:
    from reluflow.sweeps.pack import Span

FAILURE_LIMIT_BYTES = 2**24
PACK_LIMIT_BYTES = 2**28


@dataclass
class Verification:
    """What was looked at and what was found; ``is_sound`` if nothing is lost or wrong."""

    path: str
    kind: str
    checked: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "path": self.path,
            "kind": self.kind,
            "sound": self.is_sound,
            "checked": dict(sorted(self.checked.items())),
            "problems": self.problems,
            "notes": self.notes,
        }


def verify(path: str | PathLike[str]) -> Verification:
    """Check a run, network or result file, or the folder of a store.

    Raises `FileError` if there is nothing to check: no such path, or a folder that is no store.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Network([1.0], [[1.0]]).save(f"{folder}/net.rf")
    ...     found = verify(f"{folder}/net.rf")
    >>> found.kind, found.is_sound
    ('network', True)
    """
    target = Path(path)
    if target.is_dir():
        return _verify_store(target)
    if not target.exists():
        raise FileError(f"{printable(path)} does not exist. Pass a file or the folder of a store.")
    found = Verification(printable(path), "file")
    try:
        found.kind = _check_file(target)
        found.checked[found.kind] += 1
    except ReluflowError as error:
        found.problems.append(str(error))
    return found


def _check_file(path: Path) -> str:
    """Raise if anything is wrong with a file; what it holds."""
    manifest, arrays = files.read(path)
    kind = str(manifest["kind"])
    with files.contents(path):
        if kind == "trajectory":
            check_records(from_parts(manifest["fields"], arrays))
        elif kind == "network":
            Network.from_arrays(arrays)
        elif kind == "result":
            from reluflow.sweeps.outcome import result_from_parts

            result_from_parts(manifest["fields"], arrays)
        else:
            raise InputError(f"its kind {shown(kind, 40)} is unknown")
    return kind


def check_records(run: Trajectory) -> None:
    """Raise if the loss or the modes of a record are not those of its network; all are tried."""
    run_relations.check(
        run.data,
        run.loss_function,
        run.kept,
        run.log_loss,
        t=run.t,
        options=run.options,
        slope=run.net.slope,
        work=math.inf,
    )


# -------------------------------------------------------------------------------- stores


def _verify_store(root: Path) -> Verification:
    if not any((root / name).exists() for name in ("packs", "runs", "failures", "index.sqlite")):
        raise FileError(
            f"{printable(root)} is a folder without packs, runs, failures or an index. "
            "Pass a file or the folder of a store."
        )
    found = Verification(printable(root), "store")
    statuses = _check_runs(root, found)
    statuses = _check_packs(root, found) | statuses  # a run file counts in place of a record
    _check_failures(root, found, statuses)
    _check_index(root, found, statuses)
    aside = len(list((root / "damaged").glob("*")))
    if aside:
        found.notes.append(f"damaged holds {aside} files that earlier sweeps set aside")
    return found


def _check_runs(root: Path, found: Verification) -> dict[str, str]:
    """Every run file by its id, with its status ("" if it cannot be read)."""
    from reluflow.sweeps import outcome

    statuses, left = {}, 0
    for path in sorted((root / "runs").glob("*/*")):
        if path.name.startswith("."):
            left += 1
            continue

        statuses[path.stem] = ""

        def check(path: Path = path) -> None:
            result = outcome.read(path)
            if path.parent.name != path.stem[:2] or path.suffix != ".rf":
                raise InputError(f"{path} lies in the wrong folder. Move it to {path.stem[:2]}.")
            if result.run is not None:
                with files.contents(path):
                    check_records(result.run)
            statuses[path.stem] = result.status

        _collect(found, "run files", check)
    if left:
        found.notes.append(f"{left} unfinished files; the next sweep removes them")
    return statuses


def _check_packs(root: Path, found: Verification) -> dict[str, str]:
    """Every point in packs by its id, with its status; a later record counts."""
    from reluflow.sweeps import pack

    statuses: dict[str, str] = {}
    paths = sorted((root / "packs").glob("[!.]*.pack"))
    for path in paths:
        try:
            content = reading.read(path, PACK_LIMIT_BYTES, "Move it elsewhere.")
        except FileError as error:
            found.problems.append(str(error))
            continue
        spans = list(pack.scan(content))
        for span in spans:
            if span.row is None and path == paths[-1] and span is spans[-1]:
                found.notes.append(f"{path.name} ends unfinished; the next sweep cuts that off")
            elif span.row is not None and span.row["status"] == pack.WITHDRAWN:
                statuses.pop(span.row["id"], None)
            else:
                _collect(found, "records of packs", partial(_check_span, path, span, statuses))
    return statuses


def _check_span(path: Path, span: Span, statuses: dict[str, str]) -> None:
    from reluflow.sweeps import outcome, pack

    if span.row is None:
        raise FileError(f"{path} is damaged at byte {span.offset}. Run the sweep again.")
    point_id = span.row["id"]
    statuses[point_id] = ""
    source = f"the point {shown(point_id, 40)} in {path}"
    result = outcome.decode(pack.body(path, span.offset, span.length), source)
    with files.contents(source):
        if result.point.id != point_id or result.status != span.row["status"]:
            raise InputError("its row is that of another point or outcome")
        if result.run is not None:
            check_records(result.run)
    statuses[point_id] = result.status


def _check_failures(root: Path, found: Verification, statuses: dict[str, str]) -> None:
    for path in sorted((root / "failures").glob("*.json")):

        def check(path: Path = path) -> None:
            if statuses.setdefault(path.stem, "") != "":
                found.notes.append(f"{path.stem} has a result and an old failure")
                return
            statuses[path.stem] = _failure_status(path)

        _collect(found, "failures", check)


def _failure_status(path: Path) -> str:
    from reluflow.sweeps.point import Point
    from reluflow.sweeps.upkeep import FAILED, SET_ASIDE

    body = reading.read(path, FAILURE_LIMIT_BYTES, "Remove it.")
    with files.contents(path):
        try:
            stored = json.loads(body)
        except RecursionError:
            raise InputError("it is nested too deep") from None
        if Point.from_dict(stored).id != path.stem:
            raise InputError(f"it belongs to the point {Point.from_dict(stored).id}")
        if stored["status"] not in (FAILED, SET_ASIDE) or not isinstance(stored["error"], str):
            raise InputError("it holds no error")
    return str(stored["status"])


def _check_index(root: Path, found: Verification, statuses: Mapping[str, str]) -> None:
    from reluflow.sweeps.index import DamagedIndexError, opened

    known: dict[str, str] = {}
    try:
        with opened(root / "index.sqlite", check=True) as index:
            after = ""
            while page := index.page(after):
                known |= {row["id"]: row["status"] for row in page}
                after = page[-1]["id"]
    except DamagedIndexError as error:
        found.notes.append(f"{printable(error)}; the next sweep makes it anew from the files")
        return
    except (FileError, ValueError) as error:
        found.problems.append(f"the index cannot be read ({error})")
        return
    found.checked["rows of the index"] += len(known)
    for point_id in sorted(known.keys() - statuses.keys()):
        found.problems.append(f"the index has {shown(point_id, 40)}, of which there is no file")
    for point_id in sorted(statuses.keys() & known.keys()):
        if statuses[point_id] not in ("", known[point_id]):
            found.problems.append(
                f"the index says {shown(known[point_id], 40)} of {point_id}, whose file says "
                f"{statuses[point_id]!r}"
            )
    new = len(statuses.keys() - known.keys())
    if new:
        found.notes.append(f"{new} files are not in the index yet; the next sweep adds them")


def _collect(found: Verification, what: str, check: Callable[[], None]) -> None:
    found.checked[what] += 1
    try:
        check()
    except ReluflowError as error:
        found.problems.append(str(error))
