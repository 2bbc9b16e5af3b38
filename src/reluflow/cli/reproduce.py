"""``reluflow reproduce PAPER/FIGURE``: a figure as PDF, PNG and data, with its shape measured."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.common import Cluster, Fresh, Json, Out, RetryFailed, Seed, Workers
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer
from reluflow.cli.run import check_writable
from reluflow.errors import InputError
from reluflow.wording import is_terminal


@guarded
def reproduce(
    figure: Annotated[
        str,
        typer.Argument(metavar="PAPER/FIGURE", help="A figure of `reluflow list`."),
    ],
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes (the default).")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The whole figure: an hour or more.")
    ] = False,
    descent: Annotated[
        bool, typer.Option("--descent", help="Gradient descent instead of the flow.")
    ] = False,
    out: Out = Path("results"),
    seed: Seed = None,
    workers: Workers = None,
    cluster: Cluster = None,
    retry_failed: RetryFailed = False,
    fresh: Fresh = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compute and draw a figure of a paper; run again to continue where it stopped."""
    from rich.console import Console

    from reluflow.cli.safe import line
    from reluflow.cli.tables import expectation_table
    from reluflow.studies import recipe_named
    from reluflow.studies.reproduce import reproduce as make

    recipe = recipe_named(figure)
    if quick and full:
        raise InputError("--quick and --full are both given. They exclude each other. Drop one.")
    if descent and "descent" not in recipe.options:
        raise InputError(
            f"{figure} has no --descent: it is not a figure of two engines. Drop the option."
        )
    size = "full" if full else "quick"
    folder = out / recipe.id.replace("/", "-")
    check_writable(folder)
    outcome = make(
        recipe,
        size,  # type: ignore[arg-type]
        folder,
        seed=seed or 0,
        workers=workers,
        cluster=cluster,
        retry_failed=retry_failed,
        fresh=fresh,
        progress=is_terminal(),
        options={"descent": True} if descent else {},
    )
    console, made = Console(), outcome.reproduction
    if as_json:
        rows = [{**asdict(row), "verdict": row.verdict.value} for row in made.expectations]
        written = {"written": list(outcome.written), "failed": outcome.summary.failed}
        answer({"figure": figure, "size": size, "expectations": rows, "note": made.note, **written})
        return
    console.print(expectation_table(made.expectations, title=f"{figure}: {recipe.title}"))
    if made.note:
        console.print(line(made.note))
    if outcome.summary.failed:
        console.print(
            f"{outcome.summary.failed} computations failed and are left out; "
            "repeat them with --retry-failed."
        )
    if outcome.summary.done_before:
        console.print(f"taken from the store: {outcome.summary.reuse()}", highlight=False)
    if outcome.summary.outdated:
        console.print(
            f"{outcome.summary.outdated} stored results of another numerics version were moved to "
            f"{folder / 'store' / 'older'} and computed again",
            highlight=False,
        )
    for path in outcome.written:
        console.print(line("wrote ", (path, "bold")))
