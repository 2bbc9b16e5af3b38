"""Answers as plain data: ``--json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


def answer(value: Any) -> None:
    """Print a value as one JSON document; numbers that JSON lacks become null."""
    typer.echo(json.dumps(plain(value), allow_nan=False, ensure_ascii=True))


def plain(value: Any) -> Any:
    """Texts, finite numbers, lists and mappings.

    Examples
    --------
    >>> plain({"x": float("nan"), "at": Path("a"), "n": np.int64(3), "y": np.array([1.0])})
    {'x': None, 'at': 'a', 'n': 3, 'y': [1.0]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def run_of(run: Trajectory, path: Path | None = None) -> dict[str, Any]:
    """What a table says of a run."""
    return {
        "file": path,
        "engine": run.engine,
        "status": str(run.status),
        "ending": run.ending,
        "points": run.data.n,
        "inputs": run.data.d,
        "neurons": run.net.width,
        "loss": run.loss_function.to_dict(),
        "t": float(run.stats.get("iterations", run.t[-1])),
        "log_t": float(run.log_t[-1]),
        "log_loss": float(run.stats.get("final_log_loss", run.log_loss[-1])),
        "decay": run.decay,
        "objective": float(run.objective[-1]),
        "squared_norm": run.final.squared_norm,
        "log_squared_norm": run.final.log_squared_norm,
        "limit_error": run.limit_error,
        "events": len(run.events),
        "branches": len(run.branches),
    }
