"""Claims of the paper, by theme, and what several of them share."""

from collections.abc import Mapping

from reluflow.theory.verdicts import Finding, at_most, holds

THEOREM = ("A1", "step", "own")


def concluded(facts: Mapping[str, bool], measured: float, bound: float, note: str = "") -> Finding:
    """A theorem's conclusion: facts, and a number that must not exceed its bound."""
    failed = [name for name, truth in facts.items() if not truth]
    if failed:
        said = "not so: " + ", ".join(failed)
        return holds(False, measured, bound, f"{said}; {note}" if note else said)
    return at_most(measured, bound, note=note)
