"""``reluflow check RUN``: the claims of a paper on a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli import kinds
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer
from reluflow.errors import InputError


@guarded
def check(
    run: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Saved runs of one problem.")],
    paper: Annotated[
        str | None, typer.Option(help="A name or file.py:NAME; default: what fits.")
    ] = None,
    start_runs: Annotated[
        bool, typer.Option("--start-runs/--no-start-runs", help="Allow claims to train more.")
    ] = True,
    html: Annotated[Path | None, typer.Option(help="Also write a page.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check every assumption and claim of a paper on saved runs."""
    from rich.console import Console

    from reluflow import load, theory
    from reluflow.cli.safe import line
    from reluflow.cli.tables import claim_table
    from reluflow.studies.which import fitting_paper

    runs = [load(kinds.a_run(path)) for path in run]
    console = Console(stderr=as_json)
    if paper is None:
        paper, why = fitting_paper(runs[0])
        if paper is None:
            raise InputError(f"{why} Name one with --paper: {', '.join(theory.names())}.")
        console.print(line((f"paper: {paper} ({why}; another with --paper)", "dim")))
    report = theory.check(paper, runs, start_runs=start_runs)
    if as_json:
        answer({**report.to_dict(), "counts": report.counts()})
    else:
        console.print(claim_table(report))
    if html is not None:
        report.to_html(html)
        console.print(line("wrote ", (html, "bold")))
