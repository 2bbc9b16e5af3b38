"""``reluflow sweep FILE.toml``: compute what is missing of a sweep, print how it came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reluflow.cli import kinds
from reluflow.cli.common import (
    Cluster,
    Fresh,
    Json,
    RetryFailed,
    Seed,
    TlsCa,
    TlsCert,
    TlsKey,
    Workers,
)
from reluflow.cli.guard import Debug, echo, guarded
from reluflow.cli.plain import answer
from reluflow.errors import InputError
from reluflow.wording import is_terminal

if TYPE_CHECKING:
    from rich.table import Table

    from reluflow.sweeps import Certificates, Plan, Store, Summary
    from reluflow.sweeps.summary import Line

ROWS = 20


@guarded
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The sweep to make.")],
    axes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[x=COLUMN y=COLUMN [hue=COLUMN]]", help="What --plot draws."),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the store. [default: results/NAME]")
    ] = None,
    seed: Seed = None,
    workers: Workers = None,
    cluster: Cluster = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    retry_failed: RetryFailed = False,
    fresh: Fresh = False,
    status: Annotated[
        bool, typer.Option("--status", help="Compute nothing; say how the sweep stands.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Write the table of all points to this file.")
    ] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw a column against another: x=... y=... hue=...")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train every point of a sweep that is not yet in its store; run it again to continue."""
    from rich.console import Console

    from reluflow.cli import pictures
    from reluflow.sweeps import Interrupted, Plan, Store, columns, execute
    from reluflow.sweeps.status import culprits
    from reluflow.sweeps.status import words as status_words
    from reluflow.sweeps.summary import summarise

    wanted = pictures.parsed(axes, plot)
    plan = Plan.load(kinds.a_document(file, "sweep"), seed=seed)
    store = Store(out if out is not None else Path("results") / plan.name)
    if status:
        said = list(status_words(plan, store))
        if as_json:
            answer({"store": store.path, "counts": store.summary(), "status": said})
        for line in () if as_json else said:
            echo(line)
        return
    try:
        summary = execute(
            plan,
            store,
            workers=workers,
            cluster=cluster,
            certificates=certificates(tls_ca, tls_cert, tls_key),
            retry_failed=retry_failed,
            fresh=fresh,
            progress=is_terminal(),
        )
    except Interrupted as error:
        echo(error, err=True)
        raise typer.Exit(130) from None
    if as_json:
        made = pictures.written(plan, store, csv, wanted)
        answer(
            {
                **asdict(summary),
                "store": store.path,
                "wrote": made,
                "table": columns(store, plan=plan),
            }
        )
        return
    lines, total = summarise(plan, store, limit=ROWS)
    Console().print(table(plan, lines, total))
    for line in (*doubts(total), *words(summary, store)):
        echo(line)
    for line in culprits(plan, store) if summary.set_aside else ():
        echo(line)
    if csv is not None or wanted is not None:
        for line in pictures.written(plan, store, csv, wanted):
            echo(line)


def certificates(ca: Path | None, cert: Path | None, key: Path | None) -> Certificates | None:
    """The three files of the caller, all of them or none."""
    from reluflow.sweeps import Certificates

    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise InputError(
            "--tls-ca, --tls-cert and --tls-key belong together, and not all are given. Add the "
            "others."
        )
    return Certificates(ca, cert, key)


def words(summary: Summary, store: Store) -> list[str]:
    """What was done, what failed, what to do about it, and where the results are."""
    lines = []
    if summary.damaged:
        lines.append(
            f"{summary.damaged} damaged files were moved to {store.path / 'damaged'}; "
            "their points were computed again"
        )
    if summary.outdated:
        lines.append(
            f"{summary.outdated} results of another numerics version were moved to "
            f"{store.path / 'older'}; their points were computed again"
        )
    if summary.tried:
        before = f", {summary.done_before} were there before" if summary.done_before else ""
        lines.append(
            f"{summary.computed} of {summary.planned} points computed in "
            f"{summary.seconds:.3g} s{before}"
        )
    else:
        lines.append(f"nothing to do: all {summary.planned} points have been computed before")
    if summary.done_before:
        lines.append(f"taken from the store: {summary.reuse()}")
    for count, what in ((summary.failed, "failed"), (summary.set_aside, "were set aside")):
        if count:
            lines.append(
                f"{count} points {what}; errors are in {store.path / 'failures'}, and "
                "--retry-failed computes them again"
            )
    lines.append(f"results are in {store.path}")
    return lines


def doubts(total: Line) -> list[str]:
    """What to know of runs that did not end as was asked: their numbers are in the table too."""
    from reluflow.sweeps.outcome import FAILED_RUN
    from reluflow.trajectory import Status

    known = {(FAILED_RUN if s is Status.FAILED else str(s)): s for s in Status}
    return [
        f"warning: {count} runs ended as {known[name]} ({known[name].text}); their numbers are "
        "those of where they stopped"
        for name, count in total.statuses.items()
        if name in known and not known[name].is_asked_for
    ]


def table(plan: Plan, lines: Sequence[Line], total: Line) -> Table:
    """How each combination ended, with the final log-loss over its trials."""
    from rich.table import Table

    from reluflow.cli.safe import safe

    combinations = len(plan) // plan.repeats
    title = (
        f"{plan.name}: {combinations} combinations, {plan.repeats} trials each; log-loss at the end"
    )
    result = Table(title=safe(title), title_style="bold")
    for path in plan.paths:
        result.add_column(safe(path), justify="right", overflow="fold")
    result.add_column("ended")
    for name in ("median", "least", "greatest"):
        result.add_column(name, justify="right")
    if combinations > 1:
        for line in lines:
            result.add_row(*(safe(cell(line.values[path])) for path in plan.paths), *ends(line))
        if combinations > len(lines):
            result.add_row(*("..." for _ in plan.paths), f"{combinations - len(lines)} more")
        result.add_section()
    result.add_row(*("all" for _ in plan.paths), *ends(total))
    return result


def ends(line: Any) -> list[str]:
    """Statuses with counts, and three numbers."""
    statuses = ", ".join(f"{count} {status}" for status, count in line.statuses.items())
    numbers = [line.median, line.least, line.greatest]
    return [statuses, *("" if value != value else f"{value:.6g}" for value in numbers)]


def cell(value: Any) -> str:
    """A swept value in a few characters."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."
