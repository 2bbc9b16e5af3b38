"""What the page says: from a `Page` to the texts and numbers of the template."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reluflow import files
from reluflow._version import __version__
from reluflow.figures import Figure
from reluflow.figures import page as drawing
from reluflow.figures.typeset import marked, typeset
from reluflow.report.toml_text import to_toml
from reluflow.theory import Check, Report, Verdict
from reluflow.theory.subject import branch_text

if TYPE_CHECKING:
    from reluflow.studies.page import Page
    from reluflow.theory.contract import Comparison, LabelledRun, Section

SOFTWARE = (
    "The reluflow developers. reluflow: a laboratory for the training dynamics of two-layer ReLU "
    f"networks, version {__version__}."
)
VERDICTS = {  # the word, the mark beside it, the class that gives the colour
    Verdict.PASS: ("pass", "✓", "pass"),
    Verdict.FAIL: ("fail", "✗", "fail"),
    Verdict.UNRESOLVED: ("unresolved", "?", "unresolved"),
    Verdict.NOT_APPLICABLE: ("not applicable", "–", "not-applicable"),
}
_TYPES = {"csv": "text/csv", "json": "application/json", "toml": "application/toml"}
_TYPES |= {"txt": "text/plain", "pdf": "application/pdf", "png": "image/png"}


def contents(page: Page) -> dict[str, Any]:
    """Everything the template shows, in its own words."""
    document = to_toml(page.document)
    sections, count = [], 0
    for k, section in enumerate(page.sections, 1):
        sections.append(_section(section, k, count))
        count += len(section.figures)
    offered = {"study.toml": document.encode(), **page.downloads}
    return {
        "title": page.title,
        "question": marked(page.question),
        "answer": marked(page.answer),
        "lead": page.lead,
        "needed": needed(page),
        "summary": _summary(page),
        "document": document,
        "seed": page.seed,
        "runs": [_run(item) for item in page.runs],
        "settings": _settings(page.runs),
        "sections": sections,
        "comparisons": [_comparison(row) for row in page.comparisons],
        "claims": None if page.claims is None else _claims(page.claims),
        "verdicts": VERDICTS,
        "downloads": [_download(name, body) for name, body in offered.items()],
        "citations": [*([page.claims.citation] if page.claims else []), SOFTWARE],
        "command": f"reluflow study study.toml --seed {page.seed}",
    }


def shown(value: float | None, digits: int = 6) -> str:
    """A number for a table.

    Examples
    --------
    >>> shown(0.1), shown(-1e-12), shown(float("inf")), shown(float("nan")), shown(None)
    ('0.1', '−1e−12', 'infinity', 'undefined', '')
    """
    if value is None:
        return ""
    if math.isnan(value):
        return "undefined"
    words = "infinity" if math.isinf(value) else f"{abs(value):.{digits}g}"
    return ("\u2212" if value < 0 else "") + words.replace("e-", "e\u2212").replace("e+", "e")


def size_of(log_value: float) -> str:
    """A positive number given by its natural logarithm, whatever its size.

    Examples
    --------
    >>> size_of(0.0), size_of(-10000.0), size_of(float("-inf"))
    ('1', '10^−4342.94', '0')
    """
    if math.isnan(log_value) or math.isinf(log_value):
        return "0" if log_value < 0 else shown(log_value)
    if abs(log_value) < 690:
        return shown(math.exp(log_value))
    return f"10^{shown(log_value / math.log(10))}"


def _summary(page: Page) -> dict[str, Any]:
    known = [row for row in page.comparisons if not math.isnan(row.discrepancy)]
    worst = max(known, key=lambda row: row.discrepancy, default=None)
    warnings = [
        f"The run “{item.label}” ended as “{item.run.status}”: {item.run.ending}. "
        "Do not take its last state for the end of training."
        for item in page.runs
        if not item.run.status.is_asked_for
    ] + [
        f"The run “{item.label}” is one of several solutions: {branch_text(item.run)}."
        for item in page.runs
        if len(item.run.branches)
    ]
    undefined = len(page.comparisons) - len(known)
    return {
        "warnings": warnings,
        "verdicts": [] if page.claims is None else _grouped(page.claims),
        "worst": None if worst is None else _comparison(worst),
        "undefined": undefined,
    }


def needed(page: Page) -> list[str]:
    """The downloads without which the command would not run."""
    files = [page.document.get(name, {}) for name in ("data", "network")]
    named = [str(table.get("file")) for table in files if isinstance(table, Mapping)]
    return ["study.toml", *(name for name in named if name in page.downloads)]


def _grouped(report: Report) -> list[dict[str, Any]]:
    """Assumptions apart from claims: where the first fail, the second are about another problem."""
    return [
        {
            "title": title,
            "counts": [count for count in _counts(rows) if count["count"]],
            "failing": [
                {"id": row.id, "title": marked(row.title)}
                for row in rows
                if row.verdict is Verdict.FAIL
            ],
        }
        for title, rows in (("Assumptions", report.assumptions), ("Claims", report.checks))
        if rows
    ]


def _counts(rows: Sequence[Check]) -> list[dict[str, Any]]:
    return [
        {
            "word": word,
            "mark": mark,
            "kind": kind,
            "count": sum(row.verdict is verdict for row in rows),
        }
        for verdict, (word, mark, kind) in VERDICTS.items()
    ]


def _run(item: LabelledRun) -> dict[str, Any]:
    run = item.run
    unit = "t" if run.engine == "flow" else "iteration"
    return {
        "label": marked(item.label),
        "status": str(run.status),
        "text": run.ending,
        "trusted": run.status.is_asked_for,
        "engine": run.engine,
        "points": run.data.n,
        "dimension": run.data.d,
        "width": run.net.width,
        "loss": marked(size_of(float(run.log_loss[-1]))),
        "end": marked(f"{unit} = {size_of(float(run.log_t[-1]))}"),
        "events": len(run.events),
        "limit_error": shown(None if math.isnan(run.limit_error) else run.limit_error, 2),
    }


def _settings(runs: Sequence[LabelledRun]) -> list[tuple[str, str]]:
    """Versions and threads of the runs; each difference between runs is listed."""
    found: dict[str, list[str]] = {}
    for provenance in [item.run.provenance for item in runs] or [files.provenance()]:
        versions: Mapping[str, Any] = provenance.get("versions", {})
        threads: Mapping[str, Any] = provenance.get("threads", {})
        for name, value in [*versions.items(), *threads.items()]:
            values = found.setdefault(str(name), [])
            words = "not set" if value is None else str(value)
            if words not in values:
                values.append(words)
    return [(name, ", ".join(values)) for name, values in found.items()]


def _section(section: Section, k: int, figures_before: int) -> dict[str, Any]:
    return {
        "id": f"section-{k}",
        "title": marked(section.title),
        "paragraphs": [marked(part) for part in section.text.split("\n\n") if part.strip()],
        "figures": [
            _figure(figure, figures_before + j) for j, figure in enumerate(section.figures)
        ],
    }


def _figure(figure: Figure, k: int) -> dict[str, Any]:
    return {
        "index": k,
        "name": figure.name,
        "first": figure.first_frame,
        "number": k + 1,
        "title": marked(figure.title),
        "caption": marked(figure.caption),
        "aria": typeset(f"{figure.title}. {figure.caption}" if figure.caption else figure.title),
        "remarks": [marked(text) for text in drawing.remarks(figure)],
        "frames": [typeset(frame.label) for frame in figure.frames],
    }


def _comparison(row: Comparison) -> dict[str, Any]:
    return {
        "name": marked(row.name),
        "predicted": shown(row.predicted, 9),
        "simulated": shown(row.simulated, 9),
        "discrepancy": shown(row.discrepancy, 3),
        "kind": ""
        if math.isnan(row.discrepancy)
        else ("relative" if row.predicted else "absolute"),
        "note": marked(row.note),
    }


def _claims(report: Report) -> dict[str, Any]:
    return {
        "title": report.title,
        "subject": marked(report.subject),
        "warnings": report.warnings,
        "counts": _counts([*report.assumptions, *report.checks]),
        "total": len(report.assumptions) + len(report.checks),
        "tables": [
            {"title": title, "rows": [_check(check) for check in rows]}
            for title, rows in (("Assumptions", report.assumptions), ("Claims", report.checks))
        ],
    }


def _check(check: Check) -> dict[str, str]:
    word, mark, kind = VERDICTS[check.verdict]
    return {
        "id": check.id,
        "title": marked(check.title),
        "note": marked("; ".join(text for text in (check.observation, check.note) if text)),
        "word": word,
        "mark": mark,
        "kind": kind,
        "meaning": check.verdict.text,
        "measured": shown(check.measured),
        "bound": shown(check.bound),
    }


def _download(name: str, body: bytes) -> dict[str, str]:
    kind = _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    size = f"{len(body)} bytes" if len(body) < 2000 else f"{len(body) / 1000:.3g} kB"
    return {
        "name": name,
        "size": size,
        "href": f"data:{kind};base64,{base64.b64encode(body).decode()}",
    }
