"""Orthogonal data: incremental learning and implicit bias, every assumption and claim.

J. Town, E. Boursier, B. Lewis, M. Englert, R. Lazic (arXiv 2605.27097). The ids are those of the
specification: assumptions A1 to A4, claims O1 to O30. Two rates are kept apart: jump times converge
like 1/log(1/lambda) (O8, O10), parameters like a power of lambda (O12).
"""

from __future__ import annotations

from reluflow.theory.orthogonal import (
    claims_convergence,
    claims_exact,
    claims_flow,
    claims_interpolator,
    claims_random,
    claims_staircase,
    claims_symmetry,
)
from reluflow.theory.orthogonal.assumptions import ASSUMPTIONS
from reluflow.theory.orthogonal.case import describe, prepare
from reluflow.theory.paper import Paper
from reluflow.theory.verdicts import Claims

__all__ = ["PAPER"]

_PARTS = (
    claims_flow,
    claims_staircase,
    claims_convergence,
    claims_interpolator,
    claims_random,
    claims_exact,
    claims_symmetry,
)

PAPER = Paper(
    name="orthogonal",
    title="Orthogonal data: incremental learning and implicit bias",
    citation=(
        "J. Town, E. Boursier, B. Lewis, M. Englert, R. Lazic. Mildly Overparameterized ReLU "
        "Networks on Orthogonal Data: Incremental Learning and Implicit Bias. arXiv 2605.27097."
    ),
    assumptions=ASSUMPTIONS,
    claims=Claims(*(part.CLAIMS for part in _PARTS)),
    prepare=prepare,
    describe=describe,
)
