"""Verdicts: what a check may answer, and the one place where an answer is computed.

A claim measures: it returns a `Finding`, that is a number, the bound it is held to, the error of
the number and a word. `verdict_of` makes PASS, FAIL or UNRESOLVED of these, and nothing else does.
Hypotheses and regimes are judged by the paper (`reluflow.theory.paper`), never by the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from reluflow.network import Network
    from reluflow.theory.case import Case


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
    """Something the claim needs is not there: a run that may not be started, a generator."""


class Unresolved(Exception):  # noqa: N818 - an answer, not an error
    """A run that ended early, a budget or rounding leaves the claim undecided."""


@dataclass(frozen=True)
class Finding:
    """What a claim measured, and against what.

    Attributes
    ----------
    margin : float
        How far inside the bound the number is; negative outside.
    error : float
        Of the margin: what the number is good for.
    measured, bound : float or None
        As shown in a table.
    note : str
        A word for the reader.
    trend : float or None
        How the margin changes towards the limit of the statement (further in time, scale or size):
        positive where it improves; None where nobody knows.
    """

    margin: float
    error: float = 0.0
    measured: float | None = None
    bound: float | None = None
    note: str = ""
    trend: float | None = None


@dataclass(frozen=True)
class Check:
    """One row of a report.

    ``observed`` says, where a hypothesis fails and the verdict is NOT_APPLICABLE, whether the
    statement holds all the same: True (would hold), False (would not), None (not measured).
    """

    id: str
    title: str
    verdict: Verdict
    measured: float | None = None
    bound: float | None = None
    note: str = ""
    observed: bool | None = None

    @property
    def observation(self) -> str:
        """The observation in words; empty if there is none."""
        return {True: "would hold", False: "would not hold", None: ""}[self.observed]

    def __repr__(self) -> str:
        numbers = "" if self.measured is None else f", measured={self.measured:.6g}"
        numbers += "" if self.bound is None else f", bound={self.bound:.6g}"
        return f"Check({self.id}: {self.verdict.value}{numbers})"

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.check(self)


def verdict_of(finding: Finding) -> Verdict:
    """PASS inside the bound by at least the error, FAIL outside by more, otherwise UNRESOLVED.

    Examples
    --------
    >>> verdict_of(at_most(1.0, 2.0)).value, verdict_of(at_most(2.1, 2.0, 0.5)).value
    ('PASS', 'UNRESOLVED')
    """
    if math.isnan(finding.margin) or math.isnan(finding.error):
        return Verdict.UNRESOLVED
    if finding.margin >= finding.error:
        return Verdict.PASS
    return Verdict.FAIL if finding.margin < -finding.error else Verdict.UNRESOLVED


def at_most(
    measured: float,
    bound: float,
    error: float | None = None,
    *,
    case: Case | None = None,
    note: str = "",
    trend: float | None = None,
) -> Finding:
    r"""Hold ``measured <= bound``, where ``measured`` is known to :math:`\pm` ``error``.

    Without ``error`` the number is exact; with ``case`` instead, it is as good as the case's run:
    its relative error times the larger of the two numbers.

    Parameters
    ----------
    measured, bound : float
        The number found, and what it is held to.
    error : float, optional
        Of the measured number.
    case : Case, optional
        Whose run says how good the number is.
    note : str
        A word for the reader of the table.
    trend : float, optional
        How the margin changes towards the limit of the statement; positive where it improves.

    Returns
    -------
    Finding
        The verdict with both numbers.

    Examples
    --------
    >>> verdict_of(at_most(3.0, 2.0)).value
    'FAIL'
    """
    measured, bound = float(measured), float(bound)
    if error is None:
        size = max(abs(measured), abs(bound)) if case is not None else 0.0
        error = case.error * size if case is not None and math.isfinite(size) else 0.0
    margin = 0.0 if measured == bound else bound - measured  # also for two infinities
    return Finding(margin, float(error), measured, bound, note, trend)


def at_least(
    measured: float,
    bound: float,
    error: float | None = None,
    *,
    case: Case | None = None,
    note: str = "",
    trend: float | None = None,
) -> Finding:
    """Hold ``measured >= bound``; the mirror image of `at_most`.

    Parameters
    ----------
    measured, bound, error, case, note, trend
        As for `at_most`.

    Returns
    -------
    Finding
        The verdict with both numbers.
    """
    mirrored = at_most(-float(measured), -float(bound), error, case=case, note=note, trend=trend)
    return replace(mirrored, measured=float(measured), bound=float(bound))


def equals(measured: float, expected: float, error: float, *, note: str = "") -> Finding:
    """Hold ``|measured - expected| <= error``: the error is the whole distance allowed.

    Parameters
    ----------
    measured, expected : float
        The number found, and the one it should be.
    error : float
        The distance allowed.
    note : str
        A word for the reader of the table.

    Returns
    -------
    Finding
        The verdict with both numbers.

    Examples
    --------
    >>> verdict_of(equals(1.01, 1.0, 0.02)).value, verdict_of(equals(1.5, 1.0, 0.02)).value
    ('PASS', 'FAIL')
    """
    margin = float(error) - abs(float(measured) - float(expected))
    return Finding(margin, 0.0, float(measured), float(expected), note)


def holds(
    condition: Any, measured: float | None = None, bound: float | None = None, note: str = ""
) -> Finding:
    """PASS or FAIL by an exact test.

    Parameters
    ----------
    condition : bool
        The outcome of the test.
    measured, bound : float, optional
        As shown in the table.
    note : str
        A word for the reader of the table.

    Returns
    -------
    Finding
        The verdict.

    Examples
    --------
    >>> verdict_of(holds(2 < 1)).value
    'FAIL'
    """
    shown = None if measured is None else float(measured)
    return Finding(1.0 if condition else -1.0, 0.0, shown, bound, note)


def undecided(measured: float | None = None, bound: float | None = None, note: str = "") -> Finding:
    """Numbers that decide nothing, shown all the same."""
    return Finding(math.nan, 0.0, measured, bound, note)


def together(*findings: Finding) -> Finding:
    """A statement of several parts: the part that decides it, failures first, is the answer.

    Examples
    --------
    >>> verdict_of(together(at_most(1.0, 2.0), holds(False))).value
    'FAIL'
    """
    rank = {Verdict.FAIL: 0, Verdict.UNRESOLVED: 1, Verdict.PASS: 2}
    return min(findings, key=lambda found: rank[verdict_of(found)])


SLOWEST = 0.1  # power of F above which a measure tends to 0
VANISHING = 0.02  # and below which it tends to something else
FAR = 0.1  # a relative distance above this is no limit that is nearly reached
ROUNDING = 1e-13


def falls(
    case: Case,
    measure: Callable[[Network], float],
    *,
    error: float = ROUNDING,
    note: str = "",
) -> Finding:
    r"""Hold that a measure tends to 0 along the case's run: a power law with its uncertainty.

    The measure is taken at log-losses spread evenly over the last decades of ``F = -log L``
    (`Case.late_measures`), and :math:`\log(\text{measure}) = c - a \log F` is fitted to the last
    decade. Limits of the theory are reached like :math:`F^{-1/2}` or faster: it passes where the
    power is above 0.1 by two standard errors. A measure that tends to something else has a power
    that vanishes: below 0.02 and far from 0 it fails; slower falls, and values near 0, decide
    nothing. A value below ``error`` is reached already.

    Parameters
    ----------
    case : Case
        Whose run is followed.
    measure : callable
        From a network to a number that should vanish.
    error : float
        A value below it counts as zero.
    note : str
        A word for the reader of the table.

    Returns
    -------
    Finding
        The verdict with the fitted power.
    """
    levels, values = case.late_measures(measure)
    last = float(values[-1])
    told = f"{last:.3g} at F = {levels[-1]:.4g}" + (f"; {note}" if note else "")
    if last <= error:
        return Finding(1.0, 0.0, last, error, f"reached: {told}")
    if len(values) < 4:
        return undecided(last, 0.0, f"{told}; the run is too short for a trend; continue it")
    tail = slice(min(len(values) - 4, int((levels < levels[-1] / 10.0001).sum())), None)
    fit = case.fit(np.log(levels[tail]), np.log(np.maximum(values[tail], error)))
    power, spread = -fit.slope, 2.0 * fit.error
    text = f"{told}; {'falls' if power > 0.0 else 'goes'} like F^{-power:.3g} (+- {spread:.2g})"
    if power <= SLOWEST and (last <= FAR or power > VANISHING):
        note = f"{text}; a later run decides, unless it falls like 1/log F"
        return replace(undecided(power, SLOWEST, note), trend=power)
    if abs(power - SLOWEST) < spread:
        text = f"{text}; a later run decides"
    return Finding(power - SLOWEST, spread, power, SLOWEST, text, power)
