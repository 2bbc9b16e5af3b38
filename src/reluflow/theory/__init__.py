"""Theory: a paper as an object, and its assumptions and claims checked with numbers and verdicts.

The framework only; the papers themselves are in `reluflow.papers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reluflow import interrupts
from reluflow.dataset import Dataset
from reluflow.network import Network
from reluflow.theory.actions import reproduce, study, sweep
from reluflow.theory.case import Case
from reluflow.theory.contract import (
    Comparison,
    Expectation,
    Findings,
    LabelledRun,
    Reproduction,
    Said,
    Section,
)
from reluflow.theory.fits import Fit, Share, line, share
from reluflow.theory.paper import Paper, Reference
from reluflow.theory.registry import names, paper_named, papers
from reluflow.theory.report import Report
from reluflow.theory.statement import Statement
from reluflow.theory.subject import Drawer, Engines, subject_of, untrusted
from reluflow.theory.verdicts import (
    Check,
    Finding,
    Verdict,
    at_least,
    at_most,
    equals,
    falls,
    holds,
    together,
)
from reluflow.trajectory import Trajectory

__all__ = [
    "Case",
    "Check",
    "Comparison",
    "Expectation",
    "Finding",
    "Findings",
    "Fit",
    "LabelledRun",
    "Paper",
    "Reference",
    "Report",
    "Reproduction",
    "Said",
    "Section",
    "Share",
    "Statement",
    "Verdict",
    "at_least",
    "at_most",
    "bibtex",
    "check",
    "cite",
    "equals",
    "falls",
    "holds",
    "line",
    "list",
    "names",
    "paper_named",
    "papers",
    "reproduce",
    "share",
    "study",
    "subject_of",
    "sweep",
    "together",
]


@interrupts.deferred()
def check(
    paper: Paper | str,
    subject: object,
    *,
    start_runs: bool = True,
    generator: Callable[[int], tuple[Dataset, Network]] | None = None,
    **options: Any,
) -> Report:
    """Check every assumption and claim of a paper on a run.

    Parameters
    ----------
    paper : Paper or str
        A paper, the name of one, or "path/to/file.py:NAME".
    subject : Trajectory, list of Trajectory, or pair (Dataset, Network)
        What to check. Several runs are the same problem at several scales or sizes.
    start_runs : bool
        Claims that need more runs start them; False forbids it, the claim is then NOT_APPLICABLE.
    generator : callable, optional
        From a seed to a pair (data, net): where the subject was drawn from, for claims about
        probabilities. A run made from a document knows it by itself.
    **options
        Of the paper: the keyword parameters of its case's ``prepare``.

    Returns
    -------
    Report
        ``assumptions`` and ``checks``: lists of ``Check(id, title, verdict, measured, bound,
        note, observed)``. PASS and FAIL are given only where the measured number is on one side of
        the bound by more than its error; otherwise UNRESOLVED.
    """
    from reluflow.engines import descend, flow

    known = paper_named(paper)
    engines: Engines | None = {"flow": flow, "descent": descend} if start_runs else None
    given = subject_of(subject, engines)
    given = subject_of(subject, engines, generator or _drawer(given.runs))
    case = known.prepare(given, **options)
    return Report(
        paper=known.name,
        title=known.title,
        citation=known.citation,
        subject=case.describe(),
        assumptions=[known.judged(case, row.id) for row in known.assumptions],
        checks=[row.check(case) for row in known.claims],
        warnings=untrusted(given.runs),
    )


def _drawer(runs: tuple[Trajectory, ...]) -> Drawer | None:
    """The generator of a run that was made from a document: the document with other seeds."""
    document = runs[0].provenance.get("spec") if runs else None
    if not isinstance(document, dict) or "generator" not in document.get("data", {}):
        return None

    def draw(k: int) -> tuple[Dataset, Network]:
        from reluflow import spec

        own = {key: value for key, value in document.items() if key != "study"}
        task = spec.build(own, seed=2**32 + k)  # far from the seeds that people choose
        return task.data, task.net

    return draw


def cite(paper: Paper | str) -> str:
    """How to cite a paper: one line, and BibTeX."""
    entry = bibtex(paper)
    line = paper_named(paper).citation
    return f"{line}\n\n{entry}" if entry else line


def bibtex(paper: Paper | str) -> str:
    """The BibTeX entry of a paper; empty where it has none."""
    return str(getattr(paper_named(paper).reference, "entry", ""))


def list(paper: Paper | str | None = None) -> dict[str, str]:
    """Papers and their titles; of one paper, the ids of its rows and figures and their titles."""
    if paper is None:
        return {known.name: known.title for known in papers()}
    known = paper_named(paper)
    rows = {row.id: row.title for part in (known.assumptions, known.claims) for row in part}
    return rows | {figure.id: figure.title for figure in known.figures.values()}
