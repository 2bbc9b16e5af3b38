"""``reluflow list``: what there is to choose from, one line each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from reluflow.cli.guard import guarded

Entry = tuple[str, str]


@guarded
def listing() -> None:
    """List presets, figures, claims, generators, initialisations, losses and engines."""
    from rich.console import Console
    from rich.table import Table

    from reluflow.cli.safe import safe

    console = Console()
    for title, entries in sections():
        table = Table(
            title=safe(title), title_justify="left", title_style="bold", show_header=False
        )
        table.add_column(no_wrap=True)
        table.add_column()
        for name, line in entries:
            table.add_row(safe(name), safe(line))
        console.print(table)


def sections() -> list[tuple[str, list[Entry]]]:
    """The titled lists; a new kind of thing adds one line here."""
    from reluflow import builders, engines, losses, studies, theory

    classes = {cls.name: cls for cls in (losses.Square, losses.Exponential, losses.Logistic)}
    presets = [(name, studies.study_named(name).title) for name in studies.PAPERS]
    figures = [
        (recipe.id, recipe.title) for name in studies.PAPERS for recipe in studies.recipes(name)
    ]
    claims = [
        (f"{name} {claim.id}", claim.title)
        for name in theory.PAPERS
        for rows in (theory.paper_named(name).assumptions, theory.paper_named(name).claims)
        for claim in rows
    ]
    return [
        ("Presets: reluflow study", presets),
        ("Figures: reluflow reproduce", figures),
        ("Claims: reluflow check", claims),
        ("Generators: [data] generator", described(builders.generators().items())),
        ("Initialisations: [network] init", described(builders.initialisations().items())),
        ("Losses: [loss] name", described(classes.items())),
        (
            "Engines: [engine] name",
            described([("descent", engines.descend), ("flow", engines.flow)]),
        ),
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
