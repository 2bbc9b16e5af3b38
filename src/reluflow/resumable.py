"""A run that is kept at a path while it is trained, and taken up from there after an interruption.

What is reused is the same computation and nothing else: the document, the seed, the contents of
data and network, the versions of the software and the settings of threads are compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reluflow import files, interrupts
from reluflow.engines.checkpoints import saving
from reluflow.errors import FileError
from reluflow.trajectory import Status, Trajectory, load

if TYPE_CHECKING:
    from reluflow.spec import Task

CHECKPOINT_S = 300.0

Say = Callable[[str], None]


def provenance(task: Task, **more: Any) -> dict[str, Any]:
    """All that a run of this task depends on."""
    return {**files.provenance(), **task.provenance, "inputs": task.inputs(), **more}


def found(path: Path, wanted: Mapping[str, Any], say: Say) -> Trajectory | None:
    """The run at a path, whole or interrupted, if it is the same computation."""
    if not path.exists():
        return None
    try:
        run = load(path)
    except FileError as error:
        say(f"{path} is set aside: {error}")
        path.replace(path.with_suffix(".damaged"))
        return None
    changed = differences(run.provenance, wanted)
    if changed:
        say(f"{path} is replaced, because it was computed with other {changed}")
        return None
    return run


def train(
    task: Task,
    path: Path,
    wanted: Mapping[str, Any],
    *,
    earlier: Trajectory | None = None,
    checkpoint_s: float = CHECKPOINT_S,
    progress: bool = False,
) -> Trajectory:
    """Train and save; every ``checkpoint_s`` seconds, and at a signal, save what there is."""

    def save(run: Trajectory) -> None:
        replace(run, provenance=wanted).save(path)

    with saving(checkpoint_s, save):
        run = replace(task.start(progress=progress, earlier=earlier), provenance=wanted)
    with interrupts.deferred(grace=None):
        save(run)
    return run


def interrupted(run: Trajectory | None) -> Trajectory | None:
    """The run, if it can be gone on with."""
    return run if run is not None and run.status is Status.INTERRUPTED else None


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What distinguishes two computations, in words; empty if nothing does."""
    was, now = _plain(old), _plain(new)
    names = []
    for key, name in (("inputs", ""), ("versions", "version of "), ("threads", "")):
        mine, theirs = now.pop(key, {}), was.pop(key, {})
        if not isinstance(theirs, dict):
            theirs = {}
        names += [f"{name}{part}" for part in mine | theirs if mine.get(part) != theirs.get(part)]
    if was != now:
        names.append("settings")
    return ", ".join(names)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping as it comes back from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return plain
