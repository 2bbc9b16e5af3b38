"""``reluflow run FILE.toml``: train what a file describes, print what happened, save the run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.guard import Debug, guarded
from reluflow.errors import FileError
from reluflow.writing import remove_orphans


@guarded
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run to make.")],
    out: Annotated[Path, typer.Option(help="Folder of the result.")] = Path("results"),
    seed: Annotated[int | None, typer.Option(min=0, help="Replaces the seed of the file.")] = None,
    debug: Debug = False,
) -> None:
    """Train the network of a TOML file; save the run and print a table of what happened."""
    from rich.console import Console

    from reluflow import spec
    from reluflow.cli.tables import summary

    task = spec.load(file, seed=seed)
    target = out / f"{task.name}.rf"
    check_writable(out)
    start = time.perf_counter()
    result = task.start(progress=sys.stderr.isatty())
    seconds = time.perf_counter() - start
    result.save(target)
    Console().print(summary(result, title=task.name, seconds=seconds, path=target))


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
