"""What the page of the study shows of its runs, and predictions beside what was simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reluflow.errors import InputError
from reluflow.limits.hypotheses import common_scale
from reluflow.studies.contract import Comparison, Findings, LabelledRun, Section
from reluflow.studies.correlated import ending, first_act, second_act
from reluflow.theory.correlated.case import Case, prepare
from reluflow.theory.correlated.moments import departure
from reluflow.theory.correlated.second_phase import slowest_mode
from reluflow.theory.subject import subject_of
from reluflow.theory.verdicts import NotApplicable

NOTHING = "This part of the theory does not speak about these runs"


def findings(runs: Sequence[LabelledRun]) -> Findings:
    """Sections in the order of training; what does not apply is said in a sentence."""
    flows = [item for item in runs if item.run.engine == "flow"]
    if not flows:
        return Findings((Section("Theory", f"{NOTHING}: it is about the flow."),))
    case = prepare(subject_of([item.run for item in flows], None))
    cases = [(item, prepare(subject_of(item.run, None))) for item in flows]
    middle = _illustration(cases)
    made: list[Callable[[], Section | None]] = [
        lambda: first_act.alignment(case, flows),
        lambda: first_act.picture(case, flows[0]),
        lambda: second_act.escape(cases),
        lambda: second_act.coordinates(*middle),
        lambda: ending.bundle(case, flows),
        lambda: ending.rank_and_norm(case, flows),
    ]
    sections: list[Section] = []
    reasons: list[str] = []
    for make in made:
        try:
            section = make()
        except (NotApplicable, InputError) as reason:
            reasons.append(str(reason))
            continue
        if section is not None:
            sections.append(section)
    if reasons:
        listed = "; ".join(dict.fromkeys(reasons))
        sections.append(Section("What is left out", f"{NOTHING}: {listed}."))
    return Findings(tuple(sections), tuple(comparisons(case, cases)))


def _illustration(cases: Sequence[tuple[LabelledRun, Case]]) -> tuple[LabelledRun, Case]:
    """The run at the smallest scale whose times are ordinary numbers."""
    practical = [pair for pair in cases if pair[1].log_scale > ending.SMALLEST]
    return min(practical or cases, key=lambda pair: pair[1].log_scale)


def comparisons(case: Case, cases: Sequence[tuple[LabelledRun, Case]]) -> list[Comparison]:
    """Closed forms beside the runs: angles, norms, plateau, final rate."""
    found: list[Comparison] = []
    for make in (_angles, _norms, _plateau, _rate):
        try:
            found += make(case, cases)
        except (NotApplicable, InputError):
            continue
    return found


def _angles(case: Case, cases: Sequence[tuple[LabelledRun, Case]]) -> list[Comparison]:
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


def _norms(case: Case, cases: Sequence[tuple[LabelledRun, Case]]) -> list[Comparison]:
    return [
        Comparison(
            f"squared norm of all weights, {item.label}",
            case.bundle.network.squared_norm,
            item.run.final.squared_norm,
            "the limit for vanishing scale: the difference is O(scale)",
        )
        for item, _ in cases
    ]


def _plateau(case: Case, cases: Sequence[tuple[LabelledRun, Case]]) -> list[Comparison]:
    ordered = sorted(cases, key=lambda pair: -pair[1].log_scale)
    # where T2 comes before all points are active there is no plateau to compare
    ordered = [pair for pair in ordered if departure(pair[1]) > pair[1].begin]
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


def _rate(case: Case, cases: Sequence[tuple[LabelledRun, Case]]) -> list[Comparison]:
    found = []
    for item, one in cases:
        mu, measured, impure = slowest_mode(one)
        if impure < 1e-3:
            note = "twice the smallest eigenvalue of (I + v* v*^T) H; exact for vanishing scale"
            name = f"final rate of the loss, {item.label}"
            found.append(Comparison(name, 2.0 * mu, measured, note))
    return found
