"""``reluflow study PRESET|FILE.toml``: train, predict, check, draw, write one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reluflow.cli import kinds
from reluflow.cli.common import Fresh, Json, Out, Seed
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer, run_of
from reluflow.cli.run import check_writable
from reluflow.errors import InputError
from reluflow.wording import is_terminal

if TYPE_CHECKING:
    from reluflow.studies.page import Page


@guarded
def study(
    what: Annotated[
        str,
        typer.Argument(metavar="PAPER|FILE.toml", help="A paper, file.py:NAME, decay, or a file."),
    ],
    out: Out = Path("results"),
    seed: Seed = None,
    fresh: Fresh = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train, predict, check and draw; write one self-contained report.html."""
    from rich.console import Console

    from reluflow import report
    from reluflow.cli.safe import line
    from reluflow.cli.tables import claim_table, comparison_table, run_table
    from reluflow.studies import document
    from reluflow.studies.decay import PRESETS
    from reluflow.studies.make import make
    from reluflow.theory import paper_named

    console, talk = Console(), Console(stderr=True)
    if what.endswith(".toml") or Path(what).is_file():
        plan = document.load(kinds.a_document(what, "study"), seed=seed)
    elif what in PRESETS:
        plan = document.build(PRESETS[what], name=what, seed=seed)
    else:
        paper = paper_named(what)
        if paper.preset is None:
            raise InputError(f"the paper {paper.name} has no preset. Write a file and study that.")
        table = {**paper.preset.get("study", {}), "paper": what}
        plan = document.build({**paper.preset, "study": table}, name=paper.name, seed=seed)
    folder = out / plan.name
    check_writable(folder)
    page = make(
        plan,
        folder,
        fresh=fresh,
        progress=is_terminal(),
        say=lambda text: talk.print(line((text, "dim"))),
    )
    path = folder / "report.html"
    report.write(page, path)
    if as_json:
        answer(found(page, path))
        return
    console.print(run_table(page.runs))
    if page.comparisons:
        console.print(comparison_table(page.comparisons))
    if page.claims is not None:
        console.print(claim_table(page.claims))
    rest = ": open it in a browser; it needs nothing else."
    console.print(line("The page is ", (path, "bold"), rest))


def found(page: Page, path: Path) -> dict[str, Any]:
    """What the page says, as plain data."""
    return {
        "page": path,
        "title": page.title,
        "runs": {item.label: run_of(item.run) for item in page.runs},
        "comparisons": [
            {
                "name": row.name,
                "predicted": row.predicted,
                "simulated": row.simulated,
                "discrepancy": row.discrepancy,
            }
            for row in page.comparisons
        ],
        "claims": None if page.claims is None else page.claims.to_dict(),
    }
