"""Studies: the machinery of pages and figures; what they show is in `reluflow.papers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.theory.registry import paper_named

if TYPE_CHECKING:
    from reluflow.theory.contract import Recipe

__all__ = ["recipe_named"]


def recipe_named(id: str) -> Recipe:
    """The figure ``PAPER/FIGURE``; the paper is a name or ``path/to/file.py:NAME``."""
    name, _, figure = id.rpartition("/")
    if not name:
        raise InputError(f"{id!r} names no figure. Write PAPER/FIGURE, as `reluflow list` does.")
    paper = paper_named(name)
    if figure not in paper.figures:
        known = [f"{paper.name}/{key}" for key in paper.figures]
        raise InputError(
            f"there is no figure {id!r}. The figures of {paper.name} are {', '.join(known)}."
            f"{nearest(id, known)}"
        )
    return paper.figures[figure]
