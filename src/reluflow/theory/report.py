"""Report: every assumption and claim of a paper on one subject, as a table, a page, plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from os import PathLike
from typing import Any

from reluflow import files
from reluflow.theory.verdicts import Check, Verdict

_MARK = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "FAIL",
    Verdict.UNRESOLVED: "unresolved",
    Verdict.NOT_APPLICABLE: "not applicable",
}


@dataclass(frozen=True)
class Report:
    """The checks of one paper on one subject.

    Attributes
    ----------
    paper, title, citation : str
        Which paper; how to cite it.
    subject : str
        One line on what was checked.
    assumptions, checks : list of Check
        Hypotheses first, then claims, in the order of the paper's table.
    warnings : list of str
        What a reader must know before trusting the verdicts (a run that did not finish, ...).
    """

    paper: str
    title: str
    citation: str
    subject: str
    assumptions: list[Check]
    checks: list[Check]
    warnings: list[str]

    def __getitem__(self, id: str) -> Check:
        """The assumption or claim with this id."""
        for check in (*self.assumptions, *self.checks):
            if check.id == id:
                return check
        raise KeyError(id)

    def counts(self) -> dict[str, int]:
        """How many rows (assumptions and claims) have each verdict."""
        found = Counter(check.verdict for check in (*self.assumptions, *self.checks))
        return {verdict.value: found.get(verdict, 0) for verdict in Verdict}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: text, numbers, lists."""
        return {
            "paper": self.paper,
            "title": self.title,
            "citation": self.citation,
            "subject": self.subject,
            "assumptions": [_plain(check) for check in self.assumptions],
            "checks": [_plain(check) for check in self.checks],
            "warnings": list(self.warnings),
        }

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page."""
        files.write_bytes(path, _page(self).encode())

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.counts().items() if count)
        return f"Report({self.paper}: {counts})"

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.report(self)

    def __str__(self) -> str:
        lines = [f"{self.title}", self.subject, *(f"warning: {text}" for text in self.warnings)]
        for name, rows in (("Assumptions", self.assumptions), ("Claims", self.checks)):
            lines += ["", name, *_table(rows)]
        return "\n".join(lines)


def number(value: float | None) -> str:
    """A number for a table; an empty text for none.

    Examples
    --------
    >>> number(0.25), number(None), number(1e-12)
    ('0.25', '', '1e-12')
    """
    return "" if value is None else f"{value:.6g}"


def _plain(check: Check) -> dict[str, Any]:
    return {**asdict(check), "verdict": check.verdict.value}


def _table(rows: Sequence[Check]) -> Iterable[str]:
    cells = [(c.id, _MARK[c.verdict], number(c.measured), number(c.bound)) for c in rows]
    heads = ("id", "verdict", "measured", "bound")
    widths = [max(len(row[k]) for row in (heads, *cells)) for k in range(4)]

    def line(values: Sequence[str], text: str) -> str:
        parts = [value.ljust(width) for value, width in zip(values, widths, strict=True)]
        return "  ".join([*parts, text]).rstrip()

    yield line(heads, "statement")
    for cell, check in zip(cells, rows, strict=True):
        yield line(cell, check.title)
        said = "; ".join(text for text in (check.observation, check.note) if text)
        if said:
            yield " " * (sum(widths) + 8) + f"({said})"


_STYLE = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;
margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #8886}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}small{opacity:.8}
.v{font-weight:600;white-space:nowrap}
.PASS::before{content:"\\2713 "}.FAIL::before{content:"\\2717 "}
.UNRESOLVED::before{content:"? "}.NOT_APPLICABLE::before{content:"\\2013 "}
.PASS{color:#0072b2}.FAIL{color:#d55e00}.UNRESOLVED{color:#a07000}.NOT_APPLICABLE{opacity:.7}
@media (prefers-color-scheme:dark){
.PASS{color:#56b4e9}.FAIL{color:#ff8c42}.UNRESOLVED{color:#e6c229}}
"""


def _page(report: Report) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(report.title)}</h1><p>{escape(report.subject)}</p>",
        *(f"<p><strong>Warning:</strong> {escape(text)}</p>" for text in report.warnings),
    ]
    for name, rows in (("Assumptions", report.assumptions), ("Claims", report.checks)):
        heads = "".join(
            f'<th scope="col">{head}</th>'
            for head in ("id", "statement", "verdict", "measured", "bound")
        )
        parts.append(f"<h2>{name}</h2><table><thead><tr>{heads}</tr></thead><tbody>")
        parts += [_row(check) for check in rows]
        parts.append("</tbody></table>")
    parts.append(f"<p><small>{escape(report.citation)}</small></p></body></html>")
    return "\n".join(parts)


def _row(check: Check) -> str:
    said = "; ".join(text for text in (check.observation, check.note) if text)
    note = f"<br><small>{escape(said)}</small>" if said else ""
    return (
        f'<tr><th scope="row">{escape(check.id)}</th><td>{escape(check.title)}{note}</td>'
        f'<td class="v {check.verdict.value}" title="{escape(check.verdict.text)}">'
        f"{_MARK[check.verdict]}</td>"
        f'<td class="n">{number(check.measured)}</td><td class="n">{number(check.bound)}</td></tr>'
    )
