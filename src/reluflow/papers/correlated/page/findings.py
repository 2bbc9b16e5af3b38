"""What the page of the study shows of its runs, and predictions beside what was simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from reluflow.errors import InputError
from reluflow.limits.hypotheses import common_scale
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.claims.second_phase import slowest_mode
from reluflow.papers.correlated.moments import departure
from reluflow.papers.correlated.page import ending, first_phase, second_phase
from reluflow.papers.correlated.paper import paper
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Section
from reluflow.theory.subject import Subject, subject_of
from reluflow.theory.verdicts import NotApplicable, Unresolved

NOTHING = "This part of the theory does not speak about these runs"


@paper.page
def findings(runs: Sequence[LabelledRun]) -> Findings:
    """Sections in the order of training; what does not apply is said in a sentence."""
    flows = [item for item in runs if item.run.engine == "flow"]
    if not flows:
        return Findings((Section("Theory", f"{NOTHING}: it is about the flow."),))
    case = _case(subject_of([item.run for item in flows], None))
    cases = [(item, _case(subject_of(item.run, None))) for item in flows]
    middle = _illustration(cases)
    made: list[Callable[[], Section | None]] = [
        lambda: first_phase.alignment(case, flows),
        lambda: first_phase.picture(case, flows[0]),
        lambda: second_phase.escape(cases),
        lambda: second_phase.coordinates(*middle),
        lambda: ending.bundle(case, flows),
        lambda: ending.rank_and_norm(case, flows),
    ]
    sections: list[Section] = []
    reasons: list[str] = []
    for make in made:
        try:
            section = make()
        except (NotApplicable, Unresolved, InputError) as reason:
            reasons.append(str(reason))
            continue
        if section is not None:
            sections.append(section)
    if reasons:
        listed = "; ".join(dict.fromkeys(reasons))
        sections.append(Section("What is left out", f"{NOTHING}: {listed}."))
    return Findings(tuple(sections), tuple(comparisons(case, cases)))


def _case(subject: Subject) -> Correlated:
    return Correlated(paper, subject)


def _illustration(
    cases: Sequence[tuple[LabelledRun, Correlated]],
) -> tuple[LabelledRun, Correlated]:
    """The run at the smallest scale whose times are ordinary numbers."""
    practical = [pair for pair in cases if pair[1].log_scale > ending.SMALLEST]
    return min(practical or cases, key=lambda pair: pair[1].log_scale)


def comparisons(
    case: Correlated, cases: Sequence[tuple[LabelledRun, Correlated]]
) -> list[Comparison]:
    """Closed forms beside the runs: angles, norms, plateau, final rate."""
    found: list[Comparison] = []
    for make in (_angles, _norms, _plateau, _rate):
        try:
            found += make(case, cases)
        except (NotApplicable, Unresolved, InputError):
            continue
    return found


def _angles(case: Correlated, cases: Sequence[tuple[LabelledRun, Correlated]]) -> list[Comparison]:
    note = "right to a relative error of the order of the angle itself"
    return [
        Comparison(
            f"ln of the largest angle, {item.label}",
            case.bundle.log_max_angle(common_scale(item.run.net)[0]),
            ending.log_final_angle(case, item.run),
            note,
        )
        for item, _ in cases
        if len(case.positive) > 1
    ]


def _norms(case: Correlated, cases: Sequence[tuple[LabelledRun, Correlated]]) -> list[Comparison]:
    return [
        Comparison(
            f"squared norm of all weights, {item.label}",
            case.bundle.network.squared_norm,
            item.run.final.squared_norm,
            "the limit for vanishing scale: the difference is O(scale)",
        )
        for item, _ in cases
    ]


def _plateau(case: Correlated, cases: Sequence[tuple[LabelledRun, Correlated]]) -> list[Comparison]:
    ordered = sorted(cases, key=lambda pair: -pair[1].log_scale)
    # where T2 comes before all points are active there is no plateau to compare
    ordered = [pair for pair in ordered if pair[1].begin < departure(pair[1]) < inf]
    times = [departure(one) for _, one in ordered]
    note = "ratio of differences: the plateau lengthens by 1/|gamma| for each factor e"
    found = []
    for k in range(1, len(ordered)):
        (first, one), (second, other) = ordered[k - 1], ordered[k]
        found.append(
            Comparison(
                f"lengthening of the plateau, {first.label} to {second.label}",
                (one.log_scale - other.log_scale) / case.k,
                times[k] - times[k - 1],
                note,
            )
        )
    return found


def _rate(case: Correlated, cases: Sequence[tuple[LabelledRun, Correlated]]) -> list[Comparison]:
    found = []
    for item, one in cases:
        mu, measured, error = slowest_mode(one)
        if error < 1e-3:
            note = "twice the smallest eigenvalue of (I + v* v*^T) H; exact for vanishing scale"
            name = f"final rate of the loss, {item.label}"
            found.append(Comparison(name, 2.0 * mu, measured, note))
    return found
