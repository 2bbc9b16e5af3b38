"""What a task returns, as the bytes of a run file and back.

A `Trajectory` becomes a run file like any other (kind ``trajectory``), with the point in its
provenance: `reluflow.load` reads it. A mapping becomes a file of kind ``result``. Neither holds a
time, a host or a process, so equal points give equal bytes wherever they are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import files, run_file
from reluflow.errors import InputError
from reluflow.sweeps.point import Point
from reluflow.trajectory import Status, Trajectory, from_parts
from reluflow.wording import shown

# a stored run with status `failed`; a point that is `failed` raised an error and has no result
FAILED_RUN = "failed_run"


@dataclass(frozen=True, eq=False)
class Result:
    """A finished point of a sweep.

    Attributes
    ----------
    point : Point
        What was computed.
    values : mapping
        Its numbers and texts. For a run: ``status``, ``reason``, ``log_loss`` at the end, ``t``,
        ``limit_error``, ``events`` (how many), ``log_squared_norm`` of the final network.
    arrays : mapping
        Its arrays; empty for a run.
    run : Trajectory or None
        The run, if the task returned one.
    versions : mapping
        Of the software that computed it.
    """

    point: Point
    values: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    run: Trajectory | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """How the run ended, or "done"; `FAILED_RUN` where the engine could not complete it."""
        if self.run is None:
            return "done"
        return FAILED_RUN if self.run.status is Status.FAILED else str(self.run.status)


@dataclass(frozen=True)
class Encoded:
    """A finished point on its way to the store: the bytes of its file and its row of the index."""

    point: Point
    body: bytes
    status: str
    values: Mapping[str, Any]
    versions: Mapping[str, Any]


def encode(point: Point, outcome: Any) -> Encoded:
    """Check what a task returned and turn it into the bytes of a run file."""
    result = as_result(point, outcome)
    if result.run is None:
        fields = {
            "point": point.to_dict(),
            "values": result.values,
            "provenance": files.provenance(),
        }
        body = files.encode("result", fields, result.arrays)
    else:
        named = {**result.run.provenance, "point": point.to_dict()}
        body = replace(result.run, provenance=named).to_bytes()
    return Encoded(point, body, result.status, result.values, files.versions())


def as_result(point: Point, outcome: Any) -> Result:
    """Split a mapping into numbers and arrays; measure a run."""
    if isinstance(outcome, Trajectory):
        return Result(point, run_values(outcome), run=outcome)
    if not isinstance(outcome, Mapping):
        raise InputError(
            f"the task {point.task!r} returned {type(outcome).__name__}. "
            "Return a Trajectory or a mapping of numbers, texts and arrays."
        )
    values: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in outcome.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, (bool, int, float, str, np.bool_, np.integer, np.floating)):
            values[name] = value.item() if isinstance(value, np.generic) else value
        else:
            raise InputError(
                f"the task {point.task!r} returned {value!r} as {name!r}, which no file can hold. "
                "Return numbers, texts and NumPy arrays."
            )
    return Result(point, values, arrays)


def run_values(run: Trajectory) -> dict[str, Any]:
    """The numbers of a run that the index keeps."""
    # with records at chosen iterations the last of them may come before the end
    return {
        "status": str(run.status),
        "reason": run.reason,
        "log_loss": float(run.stats.get("final_log_loss", run.log_loss[-1])),
        "t": float(run.stats.get("iterations", run.t[-1])),
        "limit_error": float(run.limit_error),
        "events": len(run.events),
        "log_squared_norm": float(run.final.log_squared_norm),
    }


def read(path: Path) -> Result:
    """Read and check the file of a point; raises `FileError` if anything is wrong with it."""
    manifest, arrays = files.read(path)
    with files.contents(path):
        result = _from_manifest(manifest, arrays)
        if result.point.id != path.stem:
            raise InputError(f"it belongs to the point {result.point.id}")
    return result


def decode(body: bytes, source: str) -> Result:
    """Read and check the bytes of a run file that is part of another file."""
    manifest, arrays = files.decode(body, None, source)
    with files.contents(source):
        return _from_manifest(manifest, arrays)


def _from_manifest(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Result:
    fields = manifest["fields"]
    if manifest["kind"] == "trajectory":
        run = from_parts(fields, arrays)
        point = Point.from_dict(run.provenance["point"])
        made = run_file.versions(run.provenance)
        return Result(point, run_values(run), run=run, versions=made)
    if manifest["kind"] == "result":
        return result_from_parts(fields, arrays)
    raise InputError(f"it holds a {shown(manifest['kind'], 40)}, not a result")


def result_from_parts(fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Result:
    """The result in a file of kind ``result``."""
    if not isinstance(fields["values"], dict):
        raise InputError(f"`values` is {shown(fields['values'])}, not a mapping")
    made = run_file.versions(fields.get("provenance", {}))
    return Result(Point.from_dict(fields["point"]), fields["values"], arrays, versions=made)
