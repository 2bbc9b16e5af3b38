"""``reluflow cite RUN|PAPER``: what to cite for a saved run, or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.guard import Debug, echo, guarded


@guarded
def cite(
    what: Annotated[
        str, typer.Argument(metavar="RUN|PAPER", help="A saved run, a paper or file.py:NAME.")
    ],
    debug: Debug = False,
) -> None:
    """Print the version of reluflow that made a run and the papers whose theory applies."""
    from reluflow import load, theory
    from reluflow.studies.which import fitting_paper

    if ".py:" in what or (what in theory.names() and not Path(what).exists()):
        echo(theory.cite(what))
        return
    found = load(what)
    version = found.provenance.get("versions", {}).get("reluflow", "unknown")
    echo(f"Computed with reluflow {version} ({found.engine}).")
    echo(f"  The reluflow developers. reluflow, version {version}. 2026.")
    paper, why = fitting_paper(found)
    if paper is None:
        echo(f"Papers: {why}")
        return
    echo(f"Theory ({why}):")
    for line in theory.cite(paper).splitlines():
        echo(f"  {line}")
