"""``reluflow run FILE.toml``: train what a file describes, print what happened, save the run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reluflow.cli import kinds
from reluflow.cli.common import Fresh, Json
from reluflow.cli.guard import Debug, echo, guarded
from reluflow.cli.plain import answer, run_of
from reluflow.errors import FileError
from reluflow.wording import is_terminal
from reluflow.writing import remove_orphans

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


@guarded
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run to make.")],
    out: Annotated[Path, typer.Option(help="Folder of the result.")] = Path("results"),
    seed: Annotated[int | None, typer.Option(min=0, help="Replaces the seed of the file.")] = None,
    checkpoint: Annotated[
        float, typer.Option(min=1.0, help="Seconds between saves of a run that goes on.")
    ] = 300.0,
    fresh: Fresh = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train the network of a TOML file; save the run and print a table of what happened.

    An interrupted run is saved up to there; the same command goes on with it.
    """
    from rich.console import Console

    from reluflow import resumable, spec
    from reluflow.cli.tables import summary

    task = spec.load(kinds.a_document(file, "run"), seed=seed)
    target = out / f"{task.name}.rf"
    check_writable(out)
    start, wanted = time.perf_counter(), resumable.provenance(task)
    found = None if fresh else resumable.found(target, wanted, lambda text: echo(text, err=True))
    earlier = resumable.interrupted(found)
    if earlier is not None:
        echo(f"{target} was interrupted at {reached(earlier)}; it goes on from there", err=True)
    try:
        result = resumable.train(
            task,
            target,
            wanted,
            earlier=earlier,
            checkpoint_s=checkpoint,
            progress=is_terminal(),
        )
    except KeyboardInterrupt:
        saved = resumable.interrupted(resumable.found(target, wanted, lambda text: None))
        if saved is None:
            raise
        echo(
            f"interrupted at {reached(saved)}; the run up to there is saved in {target}. "
            "Run the same again to continue.",
            err=True,
        )
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - start
    if as_json:
        answer(run_of(result, target) | {"seconds": seconds})
    else:
        Console().print(summary(result, title=task.name, seconds=seconds, path=target))


def reached(run: Trajectory) -> str:
    """How far a run is."""
    return f"t = {run.t[-1]:.6g}" if run.engine == "flow" else f"iteration {run.t[-1]:.0f}"


def check_writable(folder: Path) -> None:
    """Refuse now what would otherwise fail after the training; tidy up after killed commands."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise FileError(
            f"cannot make the folder {folder} ({error.strerror}). Choose another with --out."
        ) from None
    if not writable:
        raise FileError(f"cannot write into {folder}. Choose another folder with --out.")
    remove_orphans(folder)
