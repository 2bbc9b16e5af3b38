"""``reluflow cite RUN|PAPER``: what to cite for a saved run, or a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow._version import __version__
from reluflow.cli import kinds
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, echo, guarded
from reluflow.cli.plain import answer

YEAR = 2026


@guarded
def cite(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|PAPER]", help="A saved run, a paper or file.py:NAME."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print what to cite, with BibTeX: reluflow, and the papers whose theory applies."""
    from reluflow import load, theory
    from reluflow.studies.which import fitting_paper

    version, paper, why = __version__, None, ""
    if what is not None and (
        ".py:" in what or (what in theory.names() and not Path(what).exists())
    ):
        paper = what
    elif what is not None:
        found = load(kinds.a_run(what))
        version = found.provenance.get("versions", {}).get("reluflow", "unknown")
        paper, why = fitting_paper(found)
    texts = [f"The reluflow developers. reluflow, version {version}. {YEAR}."]
    entries = [software(version)]
    if paper is not None:
        texts.append(theory.paper_named(paper).citation)
        entries.append(theory.bibtex(paper))
    if as_json:
        answer({"cite": texts, "bibtex": [entry for entry in entries if entry], "why": why})
        return
    for text in texts:
        echo(text)
    if why:
        echo(f"({why.rstrip('.')})")
    for entry in entries:
        typer.echo("")
        for line in entry.splitlines():
            echo(line)


def software(version: str) -> str:
    """The BibTeX entry of a version of reluflow."""
    return (
        f"@software{{reluflow{YEAR},\n"
        "  author = {{The reluflow developers}},\n"
        "  title = {{reluflow: a laboratory for the training dynamics of two-layer ReLU "
        "networks}},\n"
        f"  year = {{{YEAR}}},\n"
        f"  version = {{{version}}}\n}}"
    )
