"""Claims of the paper, by theme, and what several of them share."""

from collections.abc import Mapping

import numpy as np

from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.gram import Pattern, limit_by_owner
from reluflow.theory.verdicts import Finding, at_most, holds

THEOREM = ("A1", "step", "own")


def concluded(facts: Mapping[str, bool], measured: float, bound: float, note: str = "") -> Finding:
    """A theorem's conclusion: facts, and a number that must not exceed its bound."""
    failed = [name for name, truth in facts.items() if not truth]
    if failed:
        said = "not so: " + ", ".join(failed)
        return holds(False, measured, bound, f"{said}; {note}" if note else said)
    return at_most(measured, bound, note=note)


def one_step(case: HighDim, owner: Pattern) -> tuple[dict[str, bool], float]:
    """What Theorems 1, 3 and 5 share: the first step makes the pattern, the limit is closed form.

    Returns the facts and the distance of the limit to the closed form, relative.
    """
    B = limit_by_owner(case.G, case.y, case.s, case.P0, case.B0, case.eta, owner)
    closed = case.apart + B @ case.data.X
    facts = {
        "all changes come with the first step": case.limit.stats["last_change"] <= 1,
        "the pattern is certified to stay": case.limit.stats["frozen_from"] is not None,
        "each active exactly on the points it is to fit": bool((case.active_inf == owner).all()),
    }
    return facts, float(np.linalg.norm(case.W_inf - closed) / np.linalg.norm(closed))
