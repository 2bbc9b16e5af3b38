r"""When a theorem of the paper is asked about: what holds, what fails, what nobody can say.

The constants of the paper are not known. A2 holds where its surrogate is below 1/4, as the proofs
need; it fails where one of its ratios is below 1, whatever the constant; between it is open. Where
it fails its theorems are not applicable; where it is open a conclusion that holds passes and one
that does not is unresolved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from reluflow.theory.highdim.case import Case
from reluflow.theory.verdicts import NotApplicable, Outcome, Verdict, at_most

SMALL_START = 0.25  # largest start pre-activation, in units of the first kick (eta l1) y_min
LARGEST_C = 8.0  # beyond, the first step is too short to switch points off


def need_labels(case: Case) -> None:
    """A1, and both signs of labels."""
    if not (case.size > 0.0).all():
        raise NotApplicable("A1 fails: a label is zero")


def need_dimension(case: Case) -> None:
    """A2, as far as it can be refuted."""
    if case.dimension is Verdict.FAIL:
        raise NotApplicable(f"A2 fails: delta sqrt(n) y_max/y_min is {case.surrogate:.3g}")


def need_step(case: Case) -> None:
    """The step of the theorems, from both sides."""
    top = case.eta * float(case.spectrum[-1])
    if top > 1.0 + 1e-9:
        raise NotApplicable(f"the step is too long: eta mu_max is {top:.3g}, above 1")
    if case.C > LARGEST_C:
        raise NotApplicable(
            f"the step is too short: C = 1/(eta l1) is {case.C:.3g}, above {LARGEST_C:g}; the "
            "first step then switches nothing off"
        )


def need_positive_start(case: Case) -> None:
    """Section 2.3: active everywhere, and small beside the first kick."""
    if not (case.P0 > 0.0).all():
        raise NotApplicable("the start is not active on every point")
    ratio = float(case.P0.max()) * case.C / float(case.size.min())
    if ratio > SMALL_START:
        raise NotApplicable(
            f"the start is too large: {ratio:.3g} of the first kick, above {SMALL_START:g}"
        )


def need_assigned_start(case: Case) -> None:
    """Section 3.5: an owner for every point, pre-activations neither too small nor too large."""
    owner = case.owner
    eps, least = np.abs(case.P0), float(case.size.min())
    unassigned = case.own & ~owner
    lowest = float(eps[unassigned].min()) if unassigned.any() else np.inf
    if lowest < case.delta * float(case.size.max()):
        raise NotApplicable(
            f"the start is too small: {lowest:.3g} on a point of another neuron of the same sign, "
            f"below the cross terms {case.delta * float(case.size.max()):.3g}"
        )
    if (case.m - 1) * float(eps.max()) >= least:
        raise NotApplicable(f"the start is too large: m eps is not below y_min = {least:.3g}")


def theorem(case: Case) -> None:
    """Hypotheses shared by Theorems 1 to 5: A1, A2 and the step."""
    need_labels(case)
    need_dimension(case)
    need_step(case)


def conclude(
    case: Case, facts: Mapping[str, bool], measured: float, bound: float, note: str = ""
) -> Outcome:
    """A theorem's conclusion: facts, and a number that must not exceed its bound.

    A failure counts against the theorem only where A2 holds for sure.
    """
    failed = [name for name, truth in facts.items() if not truth]
    found = at_most(measured, bound, note=note)
    if failed:
        found = replace(found, verdict=Verdict.FAIL)
        found = replace(found, note="not so: " + ", ".join(failed) + (f"; {note}" if note else ""))
    if found.verdict is Verdict.FAIL and case.dimension is not Verdict.PASS:
        open_ = f"A2 is open here (surrogate {case.surrogate:.3g}): its constant is not known"
        return replace(
            found, verdict=Verdict.UNRESOLVED, note="; ".join(t for t in (found.note, open_) if t)
        )
    return found
