"""``reluflow cite RUN``: what to cite for a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.guard import Debug, echo, guarded


@guarded
def cite(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A saved run.")],
    debug: Debug = False,
) -> None:
    """Print the version of reluflow that made a run and the papers whose theory applies."""
    from reluflow import load, theory
    from reluflow.studies.which import fitting_paper

    found = load(run)
    version = found.provenance.get("versions", {}).get("reluflow", "unknown")
    echo(f"Computed with reluflow {version} ({found.engine}).")
    echo(f"  The reluflow developers. reluflow, version {version}. 2026.")
    paper, why = fitting_paper(found)
    if paper is None:
        echo(f"Papers: {why}")
        return
    echo(f"Theory ({why}):")
    echo(f"  {theory.paper_named(paper).citation}")
