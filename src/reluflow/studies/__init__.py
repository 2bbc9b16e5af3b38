"""Studies: one package a paper, with its preset, the sections of its page and its figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from reluflow.checks import choice, nearest
from reluflow.errors import InputError
from reluflow.theory import PAPERS

if TYPE_CHECKING:
    from reluflow.studies.contract import Recipe, Study

__all__ = ["PAPERS", "recipe_named", "recipes", "study_named"]


def study_named(paper: str) -> Study:
    """The study of a paper."""
    known = choice(paper, "preset", PAPERS)
    found: Study = import_module(f"reluflow.studies.{known}").STUDY
    return found


def recipes(paper: str) -> list[Recipe]:
    """The figures of a paper."""
    known = choice(paper, "paper", PAPERS)
    return list(import_module(f"reluflow.studies.{known}").FIGURES)


def recipe_named(id: str) -> Recipe:
    """The figure ``PAPER/FIGURE``."""
    paper = id.partition("/")[0]
    known = {recipe.id: recipe for recipe in recipes(paper)}
    if id not in known:
        raise InputError(
            f"there is no figure {id!r}. The figures of {paper} are {', '.join(known)}."
            f"{nearest(id, known)}"
        )
    return known[id]
