"""Verdicts: what a check may answer, and how a claim gives its answer.

A claim is one function of a paper's *case* (its data, runs and everything derived from them) that
returns an `Outcome`. It may also raise `NotApplicable` (a hypothesis or an ingredient is missing)
or `Unresolved` (the numbers cannot decide); both carry the sentence that explains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any


class Verdict(StrEnum):
    """PASS, FAIL, UNRESOLVED (numbers cannot decide) or NOT_APPLICABLE (hypothesis not met)."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNRESOLVED = "UNRESOLVED"
    NOT_APPLICABLE = "NOT_APPLICABLE"

    @property
    def text(self) -> str:
        """One sentence for tables and pages."""
        return _TEXT[self]


_TEXT = {
    Verdict.PASS: "the statement holds on this subject, with a margin above the error",
    Verdict.FAIL: "the statement is violated by more than the error",
    Verdict.UNRESOLVED: "the numbers cannot decide",
    Verdict.NOT_APPLICABLE: "a hypothesis or an ingredient is missing",
}


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """A hypothesis of the claim is not met, or something it needs is not there."""


class Unresolved(Exception):  # noqa: N818 - an answer, not an error
    """Rounding, a budget or a tie leaves the claim undecided."""


@dataclass(frozen=True)
class Outcome:
    """The answer of one claim: verdict, the number measured, the bound it is held to, a note."""

    verdict: Verdict
    measured: float | None = None
    bound: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Check:
    """One row of a report."""

    id: str
    title: str
    verdict: Verdict
    measured: float | None = None
    bound: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A numbered statement of a paper and the function that checks it on a case."""

    id: str
    title: str
    evaluate: Callable[[Any], Outcome]

    def check(self, case: Any) -> Check:
        """Evaluate on a case; a missing hypothesis or an undecided number is an answer too."""
        try:
            found = self.evaluate(case)
        except NotApplicable as reason:
            found = Outcome(Verdict.NOT_APPLICABLE, note=str(reason))
        except Unresolved as reason:
            found = Outcome(Verdict.UNRESOLVED, note=str(reason))
        return Check(self.id, self.title, found.verdict, found.measured, found.bound, found.note)


class Claims:
    """The claims of a paper in the order of their definition; an instance is the decorator.

    ``Claims(part, part, ...)`` joins the parts of a paper in that order.

    Examples
    --------
    >>> claims = Claims()
    >>> @claims("T1", "squares are not negative")
    ... def t1(case):
    ...     return at_least(case**2, 0.0)
    >>> [claim.check(-3.0).verdict.value for claim in claims]
    ['PASS']
    """

    def __init__(self, *parts: Iterable[Claim]) -> None:
        self._claims: dict[str, Claim] = {}
        for claim in chain(*parts):
            self(claim.id, claim.title)(claim.evaluate)

    def __call__(
        self, id: str, title: str
    ) -> Callable[[Callable[[Any], Outcome]], Callable[[Any], Outcome]]:
        """Register the decorated function as the claim ``id``."""

        def register(function: Callable[[Any], Outcome]) -> Callable[[Any], Outcome]:
            if id in self._claims:
                raise ValueError(f"claim {id} is defined twice")
            self._claims[id] = Claim(id, title, function)
            return function

        return register

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims.values())

    def __len__(self) -> int:
        return len(self._claims)

    def __getitem__(self, id: str) -> Claim:
        return self._claims[id]


def at_most(measured: float, bound: float, *, error: float = 0.0, note: str = "") -> Outcome:
    r"""Hold ``measured <= bound``, where ``measured`` is known to :math:`\pm` ``error``.

    Examples
    --------
    >>> at_most(1.0, 2.0).verdict, at_most(3.0, 2.0).verdict, at_most(2.1, 2.0, error=0.5).verdict
    (<Verdict.PASS: 'PASS'>, <Verdict.FAIL: 'FAIL'>, <Verdict.UNRESOLVED: 'UNRESOLVED'>)
    """
    measured, bound = float(measured), float(bound)
    if math.isnan(measured) or math.isnan(bound) or math.isnan(error):
        verdict = Verdict.UNRESOLVED
    elif measured + error <= bound:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.FAIL if measured - error > bound else Verdict.UNRESOLVED
    return Outcome(verdict, measured, bound, note)


def at_least(measured: float, bound: float, *, error: float = 0.0, note: str = "") -> Outcome:
    """Hold ``measured >= bound``; the mirror image of `at_most`."""
    mirrored = at_most(-measured, -bound, error=error, note=note)
    return Outcome(mirrored.verdict, float(measured), float(bound), note)


def holds(truth: bool, *, measured: float | None = None, note: str = "") -> Outcome:
    """PASS or FAIL by an exact test."""
    return Outcome(Verdict.PASS if truth else Verdict.FAIL, measured, None, note)
