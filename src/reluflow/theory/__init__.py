"""Theory: every assumption and claim of the papers, checked on a run with numbers and verdicts."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from reluflow import interrupts
from reluflow.checks import choice, nearest
from reluflow.errors import InputError
from reluflow.theory.paper import Paper
from reluflow.theory.report import Report
from reluflow.theory.subject import Engines, subject_of, untrusted
from reluflow.theory.verdicts import Check, Verdict

__all__ = ["PAPERS", "Check", "Report", "Verdict", "check", "paper_named"]

PAPERS = ("correlated", "highdim", "univariate", "orthogonal")


def paper_named(name: str) -> Paper:
    """The paper of this name: its claims, title and citation."""
    known = choice(name, "paper", PAPERS)
    found: Paper = import_module(f"reluflow.theory.{known}").PAPER
    return found


@interrupts.deferred()
def check(paper: str, subject: object, *, start_runs: bool = True, **options: Any) -> Report:
    """Check every assumption and claim of a paper on a run.

    Parameters
    ----------
    paper : str
        One of "correlated", "highdim", "univariate", "orthogonal".
    subject : Trajectory, list of Trajectory, or pair (Dataset, Network)
        What to check. Several runs are the same problem at several scales or sizes.
    start_runs : bool
        Claims that need more runs start them; False forbids it, the claim is then NOT_APPLICABLE.
    **options
        Of the paper: see the ``prepare`` function of its module.

    Returns
    -------
    Report
        ``assumptions`` and ``checks``: lists of ``Check(id, title, verdict, measured, bound,
        note)``. PASS and FAIL are given only where the measured number is on one side of the bound
        by more than its error; otherwise UNRESOLVED.
    """
    from reluflow.engines import descend, flow

    known = paper_named(paper)
    allowed = [name for name in signature(known.prepare).parameters if name != "subject"]
    for name in options:
        if name not in allowed:
            raise InputError(
                f"`{name}` is not an option of the {known.name} checks. The options are "
                f"{', '.join(['start_runs', *allowed])}.{nearest(name, ['start_runs', *allowed])}"
            )
    engines: Engines | None = {"flow": flow, "descent": descend} if start_runs else None
    given = subject_of(subject, engines)
    case = known.prepare(given, **options)
    return Report(
        paper=known.name,
        title=known.title,
        citation=known.citation,
        subject=known.describe(case),
        assumptions=[claim.check(case) for claim in known.assumptions],
        checks=[claim.check(case) for claim in known.claims],
        warnings=untrusted(given.runs),
    )
