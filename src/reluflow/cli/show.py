"""``reluflow show RUN``: the table of a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli import kinds
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer, run_of


@guarded
def show(
    file: Annotated[Path, typer.Argument(metavar="RUN.rf", help="A saved run.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print what happened in a saved run."""
    from rich.console import Console

    from reluflow.cli.tables import summary
    from reluflow.trajectory import load

    run = load(kinds.a_run(file))
    if as_json:
        answer(run_of(run, file))
    else:
        Console().print(summary(run, title=file.stem, path=file))
