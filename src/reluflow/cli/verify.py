"""``reluflow verify PATH``: check a saved file or a whole store; nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.guard import Debug, echo, guarded

SHOWN = 50


@guarded
def verify(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A saved file, or a sweep's folder.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print plain data.")] = False,
    debug: Debug = False,
) -> None:
    """Check checksums, shapes, losses and the index; ends with 0 if all is sound, else with 1."""
    from reluflow.verify import verify as look

    found = look(path)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        for title, texts in (("problem", found.problems), ("note", found.notes)):
            for text in texts[:SHOWN]:
                echo(f"{title}: {text}")
            if len(texts) > SHOWN:
                echo(f"{title}: {len(texts) - SHOWN} more (all with --json)")
        counts = ", ".join(f"{count} {what}" for what, count in sorted(found.checked.items()))
        verdict = "sound" if found.is_sound else f"NOT sound, {len(found.problems)} problems"
        echo(f"{found.path}: {found.kind}, {verdict}" + (f" ({counts} checked)" if counts else ""))
    if not found.is_sound:
        raise typer.Exit(1)
