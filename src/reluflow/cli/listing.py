"""``reluflow list``: what there is to choose from, one line each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from reluflow.checks import nearest
from reluflow.cli.common import Json
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.plain import answer
from reluflow.errors import InputError
from reluflow.wording import shown

Entry = tuple[str, str]


@guarded
def listing(
    paper: Annotated[
        str | None, typer.Argument(help="Only this paper: a name or file.py:NAME.")
    ] = None,
    section: Annotated[
        str | None, typer.Option(help="Only one section, such as claims or generators.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List papers, figures, claims, generators, initialisations, losses and engines."""
    from rich.console import Console
    from rich.table import Table

    from reluflow.cli.safe import safe

    found = chosen(sections(paper), section)
    if as_json:
        answer({title.partition(":")[0].lower(): dict(entries) for title, entries in found})
        return
    console = Console()
    for title, entries in found:
        table = Table(
            title=safe(title), title_justify="left", title_style="bold", show_header=False
        )
        table.add_column(no_wrap=True)
        table.add_column()
        for name, line in entries:
            table.add_row(safe(name), safe(line))
        console.print(table)


def chosen(
    found: list[tuple[str, list[Entry]]], section: str | None
) -> list[tuple[str, list[Entry]]]:
    """One of the sections, or all."""
    if section is None:
        return found
    names = {title.partition(":")[0].lower(): (title, entries) for title, entries in found}
    if section.lower() not in names:
        raise InputError(
            f"`--section` is {shown(section, 80)}; there are {', '.join(names)}."
            f"{nearest(section, names)}"
        )
    return [names[section.lower()]]


def sections(paper: str | None = None) -> list[tuple[str, list[Entry]]]:
    """The titled lists; a new kind of thing adds one line here."""
    from reluflow import builders, engines, losses, theory
    from reluflow.studies.decay import PRESETS

    asked = theory.papers() if paper is None else [theory.paper_named(paper)]
    found = [
        ("Papers: reluflow study", [(p.name, p.title) for p in asked]),
        (
            "Figures: reluflow reproduce",
            [(recipe.id, recipe.title) for p in asked for recipe in p.figures.values()],
        ),
        (
            "Claims: reluflow check",
            [
                (f"{p.name} {row.id}", row.title)
                for p in asked
                for rows in (p.assumptions, p.claims)
                for row in rows
            ],
        ),
    ]
    if paper is not None:
        return found
    classes = {cls.name: cls for cls in (losses.Square, losses.Exponential, losses.Logistic)}
    runners: list[tuple[str, Callable[..., Any]]] = [
        ("descent", engines.descend),
        ("flow", engines.flow),
    ]
    return [
        *found,
        (
            "Studies: reluflow study",
            [(name, one["study"]["title"]) for name, one in PRESETS.items()],
        ),
        ("Generators: [data] generator", described(builders.all_generators().items())),
        ("Initialisations: [network] init", described(builders.initialisations().items())),
        ("Losses: [loss] name", described(classes.items())),
        ("Engines: [engine] name", described(runners)),
    ]


def described(things: Iterable[tuple[str, Callable[..., Any]]]) -> list[Entry]:
    """Names with the first line of each docstring."""
    lines = [(name, (inspect.getdoc(thing) or "").partition("\n")[0]) for name, thing in things]
    return [(name, plain(line)) for name, line in lines]


def plain(line: str) -> str:
    r"""A docstring line without its markup.

    Examples
    --------
    >>> plain(r"Mean of :math:`e^{-q_i}`, at most ``m`` of :math:`|W_{jk}| \le 1/\sqrt{d}`.")
    'Mean of e^(-q_i), at most m of |W_jk| <= 1/sqrt(d).'
    """
    line = re.sub(r":\w+:`", "", line).replace("`", "")
    line = line.replace(r"\le ", "<= ").replace(r"\sim ", "~ ").replace(r"\pm", "+-")
    line = re.sub(r"_\{(\w+)\}", r"_\1", line)
    return re.sub(r"\\(\w)", r"\1", line).replace("{", "(").replace("}", ")")
