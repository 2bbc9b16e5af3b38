"""Prose that follows verdicts: what a paper says of runs, as far as its claims hold on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reluflow.theory import Report, Verdict
from reluflow.theory.contract import Said, Section


def followed(sections: Sequence[Section], report: Report) -> tuple[Section, ...]:
    """The sections with their sentences put as the verdicts of the report allow."""
    verdicts = {row.id: row.verdict for row in report.checks}
    return tuple(
        replace(
            section,
            text=" ".join(
                part
                for part in (section.text, *(put(one, verdicts) for one in section.said))
                if part
            ),
            said=(),
        )
        for section in sections
    )


def put(said: Said, verdicts: Mapping[str, Verdict]) -> str:
    """A sentence as fact where all its claims hold; otherwise as the paper's, with what fails.

    Examples
    --------
    >>> one = Said("Neurons end parallel.", ("T7",))
    >>> put(one, {"T7": Verdict.PASS}), put(one, {"T7": Verdict.FAIL})
    ('Neurons end parallel.', 'Not on these runs, where T7 fails: “Neurons end parallel.”')
    >>> put(one, {"T7": Verdict.UNRESOLVED})
    'The paper has: “Neurons end parallel.” On these runs T7 is not decided.'
    """
    groups = {
        verdict: [id for id in said.claims if verdicts.get(id) is verdict] for verdict in Verdict
    }
    false = groups[Verdict.FAIL]
    if false:
        return f"Not on these runs, where {_named(false, 'fails', 'fail')}: “{said.text}”"
    words = {
        Verdict.UNRESOLVED: ("is not decided", "are not decided"),
        Verdict.NOT_APPLICABLE: ("does not apply", "do not apply"),
    }
    open_ones = [
        _named(groups[verdict], *both) for verdict, both in words.items() if groups[verdict]
    ]
    if open_ones:
        return f"The paper has: “{said.text}” On these runs {' and '.join(open_ones)}."
    return said.text


def _named(ids: Sequence[str], one: str, many: str) -> str:
    return f"{', '.join(ids)} {one if len(ids) == 1 else many}"
