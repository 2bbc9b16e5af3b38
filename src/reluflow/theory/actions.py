"""What the commands do with a paper, for a program or notebook: study, reproduce, sweep.

The machinery of pages and figures stays a leaf: it is imported when one of these is called.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reluflow.errors import InputError
from reluflow.theory import registry
from reluflow.theory.paper import Paper

if TYPE_CHECKING:
    from reluflow.studies.page import Page
    from reluflow.studies.reproduce import Outcome
    from reluflow.sweeps import Result
    from reluflow.theory.contract import Recipe, Size


def study(
    paper: Paper | str,
    out: str | PathLike[str] = "results",
    *,
    seed: int | None = None,
    fresh: bool = False,
) -> Page:
    """Train the paper's preset, check its claims and write its page.

    Parameters
    ----------
    paper : Paper or str
        A paper, the name of one, or "path/to/file.py:NAME".
    out : path
        The page is ``out/NAME/report.html``; runs are kept beside it and not repeated.
    seed : int, optional
        In place of the preset's.
    fresh : bool
        Train again what is kept.

    Returns
    -------
    Page
        What the page says: ``runs``, ``comparisons``, ``claims``, ``sections``.
    """
    from reluflow import report
    from reluflow.studies import document
    from reluflow.studies.make import make

    known = _known(paper)
    if known.preset is None:
        raise InputError(f"the paper {known.name} has no preset. Write a file and study that.")
    table = {**known.preset.get("study", {}), "paper": known.name}
    plan = document.build({**known.preset, "study": table}, name=known.name, seed=seed)
    folder = Path(out) / plan.name
    page = make(plan, folder, fresh=fresh)
    report.write(page, folder / "report.html")
    return page


def reproduce(
    paper: Paper | str,
    figure: str,
    size: Size = "quick",
    out: str | PathLike[str] = "results",
    **options: Any,
) -> Outcome:
    """Compute and draw a figure of a paper; what is stored is not computed again.

    Parameters
    ----------
    paper : Paper or str
        A paper, the name of one, or "path/to/file.py:NAME".
    figure : str
        Its id, such as "fig1".
    size : {"quick", "full"}
        Minutes, or the whole figure.
    out : path
        Files are in ``out/PAPER-FIGURE``.
    **options
        ``seed``, ``workers``, ``cluster``, ``retry_failed``, ``fresh``, ``progress``.

    Returns
    -------
    Outcome
        ``reproduction`` (figures, tables, expectations), ``written`` files, ``summary``.
    """
    from reluflow.studies.reproduce import reproduce as make

    recipe = _recipe(paper, figure)
    return make(recipe, size, Path(out) / recipe.id.replace("/", "-"), **options)


def sweep(
    paper: Paper | str,
    figure: str,
    size: Size = "quick",
    out: str | PathLike[str] = "results",
    *,
    seed: int = 0,
    **options: Any,
) -> list[Result]:
    """Compute what a figure of a paper is drawn from, and return it instead of drawing.

    Parameters
    ----------
    paper, figure, size, out
        As for `reproduce`, with which results are shared.
    seed : int
        Of the sweep.
    **options
        ``workers``, ``cluster``, ``retry_failed``, ``fresh``, ``progress``.

    Returns
    -------
    list of Result
        In the order of the points; failed ones are left out.
    """
    from reluflow.sweeps import Plan, Store, execute

    recipe = _recipe(paper, figure)
    points = list(recipe.points(size, seed))
    store = Store(Path(out) / recipe.id.replace("/", "-") / "store")
    execute(Plan.of(recipe.id, points), store, **options)
    return list(store.results(points))


def _known(paper: Paper | str) -> Paper:
    """The paper; one that only this program has is registered, so that its name is known."""
    if isinstance(paper, Paper) and paper.name not in registry.names():
        registry.register(paper)
    return registry.paper_named(paper)


def _recipe(paper: Paper | str, figure: str) -> Recipe:
    known = _known(paper)
    if figure not in known.figures:
        raise InputError(
            f"{known.name} has no figure {figure!r}. Its figures are {', '.join(known.figures)}."
        )
    return known.figures[figure]
