"""How claims ask for their hypotheses, and what an answer is worth where Assumption 2 fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reluflow.theory.verdicts import NotApplicable, Outcome, Verdict

if TYPE_CHECKING:
    from reluflow.theory.correlated.case import Case

FIRST_PHASE = ("data", "1(i)", "1(ii)", "1(iv)")
ALL = ("data", "1(i)", "1(ii)", "1(iii)", "1(iv)")


def is_met(case: Case, id: str) -> bool:
    """Whether an assumption passes on this case."""
    from reluflow.theory.correlated.assumptions import ASSUMPTIONS

    if id not in case.found:
        case.found[id] = ASSUMPTIONS[id].check(case)
    return case.found[id].verdict is Verdict.PASS


def require(case: Case, *ids: str) -> None:
    """Answer "not applicable", naming the first of these assumptions that is not met."""
    for id in ids:
        if not is_met(case, id):
            raise NotApplicable(f"assumption {id} is not met: {case.found[id].note}")


def under_assumption_2(case: Case, outcome: Outcome, note: str = "") -> Outcome:
    """A statement proved for tiny scales only.

    Where the scale is not tiny enough, that it holds is an observation and stays PASS; that it
    fails contradicts nothing and becomes NOT_APPLICABLE, with the numbers.
    """
    notes = [text for text in (outcome.note, note) if text]
    verdict = outcome.verdict
    if not is_met(case, "2"):
        if verdict is Verdict.FAIL:
            verdict = Verdict.NOT_APPLICABLE
            notes.append("does not hold here, and need not: Assumption 2 is not satisfied")
        else:
            notes.append("an observation: Assumption 2 is not satisfied")
    return replace(outcome, verdict=verdict, note="; ".join(notes))
