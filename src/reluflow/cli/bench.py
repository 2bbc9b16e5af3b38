"""``reluflow bench``: the benchmarks, as ratios measured in one run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer
from reluflow.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table


@guarded
def bench(
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="One benchmark, such as descent.")
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One part of it, such as 300x20x200; may be repeated."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Stop a single solver after this long."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows measured so far: read, not repeated, added to."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw what has a figure into a folder.")
    ] = None,
    as_json: Json = False,
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
    console, errors = Console(), Console(stderr=True)
    chosen = names if only is None else [only]
    _check_parts(runner, only, part or [])
    found: dict[str, Any] = {}
    for name in chosen:
        with errors.status(f"measuring {name} ...") as status:
            title, rows = runner.measure(
                name,
                only=part or [],
                limit_s=limit,
                kept=keep,
                tell=partial(_tell, status, name),
            )
        found[name] = {"title": title, "rows": rows}
        if not as_json:
            console.print(as_table(title, rows))
        if figures is not None and hasattr(runner.load(name), "figure"):
            _draw(runner.load(name).figure(rows), figures, errors)
    if as_json:
        answer(found)


def _tell(status: Any, name: str, part: str) -> None:
    status.update(f"measuring {name}, {part} ...")


def _check_parts(runner: Any, only: str | None, wanted: list[str]) -> None:
    """Refuse parts that the one benchmark of ``--only`` does not have."""
    if not wanted:
        return
    from reluflow.checks import nearest

    if only is None:
        raise InputError(
            f"`--part` is {wanted[0]!r} without `--only`. A part belongs to one benchmark. Name it."
        )
    module = runner.load(only)
    known = list(module.parts()) if hasattr(module, "parts") else []
    for part in wanted:
        if part not in known:
            raise InputError(
                f"`--part` is {part!r}; the parts of {only} are {', '.join(known) or 'none'}."
                f"{nearest(part, known)}"
            )


def _draw(figure: Any, folder: Path, errors: Any) -> None:
    if figure is None:
        return
    from reluflow.figures import paper

    folder.mkdir(parents=True, exist_ok=True)
    for path in paper.write(figure, folder):
        errors.print(f"drawn: {path}", highlight=False, markup=False)


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
