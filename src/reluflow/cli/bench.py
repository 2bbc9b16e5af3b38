"""``reluflow bench``: the benchmarks, as ratios measured in one run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reluflow.cli.guard import Debug, guarded
from reluflow.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table


@guarded
def bench(
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="One benchmark, such as descent.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Run the benchmarks of the source tree and print ratios beside their targets."""
    from rich.console import Console

    folder = find_folder()
    sys.path.insert(0, str(folder.parent))
    runner = importlib.import_module("benchmarks.run")
    names: list[str] = runner.names(folder)
    if only is not None and only not in names:
        from reluflow.checks import nearest

        raise InputError(
            f"`--only` is {only!r}; the benchmarks are {', '.join(names) or 'none'}."
            f"{nearest(only, names)}"
        )
    console = Console()
    for name in names if only is None else [only]:
        with Console(stderr=True).status(f"measuring {name} ..."):
            title, rows = runner.measure(name)
        console.print(as_table(title, rows))


def find_folder() -> Path:
    """The benchmarks of the source tree that holds this package, or of the current folder."""
    here = Path(__file__).resolve()
    for root in (here.parents[3], Path.cwd()):
        if (root / "benchmarks" / "run.py").is_file():
            return root / "benchmarks"
    raise InputError(
        f"there is no folder benchmarks in {Path.cwd()}. The benchmarks are part of the source "
        "tree, not of the installed package. Run this inside a clone of the repository."
    )


def as_table(title: str, rows: list[Mapping[str, Any]]) -> Table:
    """One column a key, in order of appearance; ratios that miss their target are yellow."""
    from rich.table import Table

    from reluflow.cli.safe import safe

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=safe(title), title_style="bold", show_lines=True)
    for column in columns:
        is_text = any(isinstance(row.get(column), str) for row in rows)
        table.add_column(safe(column), justify="left" if is_text else "right")
    for row in rows:
        cells = [safe(cell(row.get(column))) for column in columns]
        table.add_row(*cells, style="yellow" if misses(row) else None)
    return table


def cell(value: Any) -> str:
    """Numbers to three digits, sequences one below the other, nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return "\n".join(cell(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def misses(row: Mapping[str, Any]) -> bool:
    """Whether a measured ratio is below its target."""
    ratio, target = row.get("ratio"), row.get("target")
    return isinstance(ratio, (int, float)) and isinstance(target, (int, float)) and ratio < target
