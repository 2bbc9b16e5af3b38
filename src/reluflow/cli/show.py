"""``reluflow show RUN``: the table of a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.guard import Debug, guarded


@guarded
def show(
    file: Annotated[Path, typer.Argument(metavar="RUN.rf", help="A saved run.")],
    debug: Debug = False,
) -> None:
    """Print what happened in a saved run."""
    from rich.console import Console

    from reluflow.cli.tables import summary
    from reluflow.trajectory import load

    Console().print(summary(load(file), title=file.stem, path=file))
