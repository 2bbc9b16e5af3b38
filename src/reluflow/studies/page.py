"""Page: everything that a study found out about its runs, ready to be written as one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reluflow.theory import Report
from reluflow.theory.contract import Comparison, LabelledRun, Section


@dataclass(frozen=True)
class Page:
    """Everything that `report.write` puts into one file.

    ``answer`` is the first sentence of the page; the first ``lead`` sections stand right below it.
    ``document`` and ``downloads`` are what makes the page again.
    """

    title: str
    question: str
    document: Mapping[str, Any]
    seed: int
    runs: tuple[LabelledRun, ...]
    sections: tuple[Section, ...]
    comparisons: tuple[Comparison, ...]
    claims: Report | None
    downloads: Mapping[str, bytes] = field(default_factory=dict)
    answer: str = ""
    lead: int = 0
