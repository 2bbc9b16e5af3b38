"""Statement: a numbered sentence of a paper, how it is measured, and how it is judged.

Judging happens here and nowhere else:

1. a hypothesis (``needs``) fails: NOT_APPLICABLE, and what would have been measured is observed;
2. a hypothesis is undecided: UNRESOLVED;
3. the numbers decide: PASS, FAIL or UNRESOLVED;
4. a violation outside the ``regime`` of an asymptotic statement is UNRESOLVED, with its trend.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reluflow.theory.verdicts import (
    Check,
    Finding,
    NotApplicable,
    Unresolved,
    Verdict,
    verdict_of,
)

if TYPE_CHECKING:
    from reluflow.theory.case import Case

Measure = Callable[[Any], Finding]
Wrong = Callable[[Any], Any]


class Statement:
    """An assumption or a claim; calling it measures it on a case.

    Attributes
    ----------
    id, title : str
        As in the paper's table.
    needs, regime : tuple of str
        Ids of the hypotheses, and of the "small, late or wide enough" of a limit.
    approach : callable, optional
        Of an assumption that is a regime: from a case to the same one further from the limit, so
        that a violation can say whether it shrinks.
    wrong : callable, optional
        From a good subject to one that violates the statement, every hypothesis intact.
    good : callable, optional
        Makes a subject on which the statement holds; the paper's example where there is none.
    """

    def __init__(
        self,
        id: str,
        title: str,
        measure: Measure,
        *,
        needs: tuple[str, ...] = (),
        regime: tuple[str, ...] = (),
        approach: Callable[[Any], Any] | None = None,
    ) -> None:
        self.id, self.title, self.measure = id, title, measure
        self.needs, self.regime, self.approach = needs, regime, approach
        self.wrong: Wrong | None = None
        self.good: Callable[[], Any] | None = None
        self.__doc__ = measure.__doc__
        self.__name__ = getattr(measure, "__name__", id)

    def __call__(self, case: Any) -> Finding:
        """Measure on a case, whatever its hypotheses."""
        return self.measure(case)

    def __repr__(self) -> str:
        return f"Statement({self.id!r}, {self.title!r})"

    def fails_on(self, wrong: Wrong) -> Wrong:
        """Name the wrong subject of the tests: a function of a good subject."""
        self.wrong = wrong
        return wrong

    def passes_on(self, good: Callable[[], Any]) -> Callable[[], Any]:
        """Name the good subject of the tests, where it is not the paper's example."""
        self.good = good
        return good

    def check(self, case: Case) -> Check:
        """Measure and judge on a case."""
        hypotheses = [case.paper.judged(case, id) for id in self.needs]
        failed = [h for h in hypotheses if h.verdict in (Verdict.FAIL, Verdict.NOT_APPLICABLE)]
        if failed:
            return self._observed(case, failed)
        try:
            found = self.measure(case)
        except NotApplicable as reason:
            return self._row(Verdict.NOT_APPLICABLE, None, str(reason))
        except Unresolved as reason:
            return self._row(Verdict.UNRESOLVED, None, str(reason))
        verdict = verdict_of(found)
        if verdict is Verdict.UNRESOLVED and math.isfinite(found.margin):
            found = replace(found, note=_within(found))
        open_ = [h for h in hypotheses if h.verdict is Verdict.UNRESOLVED]
        if open_:
            notes = [f"assumption {h.id} is undecided: {h.note or h.title}" for h in open_]
            told = {Verdict.PASS: ["it would hold"], Verdict.FAIL: ["it would not hold"]}
            return self._row(Verdict.UNRESOLVED, found, "; ".join([*told.get(verdict, []), *notes]))
        return self._within_regime(case, found, verdict)

    def _observed(self, case: Case, failed: list[Check]) -> Check:
        """NOT_APPLICABLE, with the numbers where they can be had."""
        reasons = "; ".join(f"assumption {h.id} is not met: {h.note or h.title}" for h in failed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = self.measure(case)
        except Exception:
            # outside its hypotheses a measurement may be undefined in any way: no observation
            return self._row(Verdict.NOT_APPLICABLE, None, reasons)
        verdict = verdict_of(found)
        observed = None if verdict is Verdict.UNRESOLVED else verdict is Verdict.PASS
        return self._row(Verdict.NOT_APPLICABLE, found, reasons, observed)

    def _within_regime(self, case: Case, found: Finding, verdict: Verdict) -> Check:
        outside = [case.paper.judged(case, id) for id in self.regime]
        outside = [h for h in outside if h.verdict is not Verdict.PASS]
        if not outside:
            return self._row(verdict, found)
        said = {h.id: f"{h.title} ({h.note})" if h.note else h.title for h in outside}
        reached = "; ".join(f"outside the regime {id}: {text}" for id, text in said.items())
        if verdict is not Verdict.FAIL:
            return self._row(verdict, found, reached)
        return self._row(
            Verdict.UNRESOLVED,
            found,
            f"does not hold yet, {self._trend(case, found)}; {reached}; a subject within decides",
        )

    def _trend(self, case: Case, found: Finding) -> str:
        """Whether the violation shrinks towards the regime."""
        change = found.trend
        for id in self.regime if change is None else ():
            approach = case.paper.statement(id).approach
            if approach is None:
                continue
            try:
                change = found.margin - self.measure(approach(case)).margin
                break
            except (NotApplicable, Unresolved):
                continue
        if change is None:
            return "trend unknown"
        return "and the violation shrinks" if change > 0.0 else "and the violation does not shrink"

    def _row(
        self,
        verdict: Verdict,
        found: Finding | None,
        note: str = "",
        observed: bool | None = None,
    ) -> Check:
        said = [text for text in ("" if found is None else found.note, note) if text]
        measured, bound = (None, None) if found is None else (found.measured, found.bound)
        return Check(self.id, self.title, verdict, measured, bound, "; ".join(said), observed)


def _within(found: Finding) -> str:
    """The note of a number that its error keeps open: what it is good for, what it misses."""
    told = f"{abs(found.margin):.2g} from its bound, known to {found.error:.2g}"
    return "; ".join(text for text in (found.note, f"{told}: a smaller error decides") if text)
