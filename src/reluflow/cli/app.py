"""The application: its commands and its version."""

from __future__ import annotations

from typing import Annotated

import typer

from reluflow._version import __version__
from reluflow.cli.bench import bench
from reluflow.cli.check import check
from reluflow.cli.cite import cite
from reluflow.cli.explore import explore
from reluflow.cli.listing import listing
from reluflow.cli.reproduce import reproduce
from reluflow.cli.run import run
from reluflow.cli.show import show
from reluflow.cli.study import study
from reluflow.cli.sweep import sweep
from reluflow.cli.verify import verify
from reluflow.cli.warm_up import warm_up

app = typer.Typer(
    name="reluflow",
    help="Training dynamics and implicit bias of two-layer ReLU networks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("study")(study)
app.command("reproduce")(reproduce)
app.command("sweep")(sweep)
app.command("run")(run)
app.command("show")(show)
app.command("check")(check)
app.command("verify")(verify)
app.command("explore")(explore)
app.command("list")(listing)
app.command("warm-up")(warm_up)
app.command("bench")(bench)
app.command("cite")(cite)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reluflow {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Training dynamics and implicit bias of two-layer ReLU networks."""
