"""Univariate classifiers: Safran, Vardi and Lee, NeurIPS 2022.

Claims U1 - U24; see docs/papers/univariate.md for what each row means and for the corrections of
printed statements.
"""

from __future__ import annotations

from reluflow.theory.paper import Paper
from reluflow.theory.univariate import (
    claims_examples,
    claims_flow,
    claims_limit,
    claims_population,
)
from reluflow.theory.univariate.assumptions import assumptions
from reluflow.theory.univariate.case import describe, prepare
from reluflow.theory.verdicts import Claims

__all__ = ["PAPER"]

_PARTS = (claims_flow, claims_limit, claims_examples, claims_population)

PAPER = Paper(
    name="univariate",
    title="Linear regions of univariate classifiers",
    citation=(
        "I. Safran, G. Vardi, J. D. Lee. On the Effective Number of Linear Regions in Shallow "
        "Univariate ReLU Networks: Convergence Guarantees and Implicit Bias. NeurIPS 2022. "
        "arXiv 2205.09072."
    ),
    assumptions=assumptions,
    claims=Claims(sorted((c for part in _PARTS for c in part.claims), key=lambda c: int(c.id[1:]))),
    prepare=prepare,
    describe=describe,
)
