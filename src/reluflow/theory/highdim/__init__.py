"""High-dimensional ReLU regression with fixed output signs, every assumption and claim.

K.-W. Lai, G. Wang, M. Tao, V. Muthukumar (arXiv 2603.04895). Ids are those of the specification:
assumptions A1 to A3 (with the ratios A2a, A2b and the hypotheses on step and start), claims HD-01
to HD-33. Risk: half the sum of squares; only the hidden layer is trained.
"""

from __future__ import annotations

from reluflow.theory.highdim import (
    claims_many,
    claims_regimes,
    claims_scaling,
    claims_single,
    claims_steps,
    claims_two,
)
from reluflow.theory.highdim.assumptions import ASSUMPTIONS
from reluflow.theory.highdim.prepare import describe, prepare
from reluflow.theory.paper import Paper
from reluflow.theory.verdicts import Claims

__all__ = ["PAPER"]

_PARTS = (claims_steps, claims_single, claims_scaling, claims_two, claims_many, claims_regimes)

PAPER = Paper(
    name="highdim",
    title="ReLU regression in high dimension: descent beside the minimum-norm solution",
    citation=(
        "K.-W. Lai, G. Wang, M. Tao, V. Muthukumar. How Does the ReLU Activation Affect the "
        "Implicit Bias of Gradient Descent on High-dimensional Neural Network Regression? "
        "arXiv 2603.04895."
    ),
    assumptions=ASSUMPTIONS,
    claims=Claims(*(part.CLAIMS for part in _PARTS)),
    prepare=prepare,
    describe=describe,
)
