"""Paper: what a module of `theory` offers: its claims and how to prepare a case for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reluflow.theory.verdicts import Claims


@dataclass(frozen=True)
class Paper:
    """A paper's statements.

    1. ``prepare(subject, **options)`` checks the options and returns the *case*: an object with
       everything the claims read, computed once (cached properties), or raises `InputError`.
    2. ``assumptions`` and ``claims`` hold one function each per row of the paper's table.
    3. ``describe(case)`` is one line on what is checked.
    """

    name: str
    title: str
    citation: str
    assumptions: Claims
    claims: Claims
    prepare: Callable[..., Any]
    describe: Callable[[Any], str]
