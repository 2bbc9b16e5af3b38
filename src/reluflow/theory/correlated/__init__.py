"""Learning a neuron from correlated inputs: assumptions and claims of arXiv 2306.06479.

Statements proved under Assumption 2 are answered at any scale: where the scale is larger, PASS is
an observation and a violation is NOT_APPLICABLE. Derived rows (L3c, B2, R1, T7b) are not in the
paper; they follow from its equations. What each row means: docs/papers/correlated.md.
"""

from reluflow.theory.correlated import experiments, first_phase, limits, second_phase
from reluflow.theory.correlated.assumptions import ASSUMPTIONS
from reluflow.theory.correlated.case import describe, prepare
from reluflow.theory.paper import Paper
from reluflow.theory.verdicts import Claims

__all__ = ["PAPER"]

_PARTS = (first_phase, second_phase, limits, experiments)

PAPER = Paper(
    name="correlated",
    title="Learning a neuron by a shallow ReLU network: correlated inputs",
    citation=(
        "D. Chistikov, M. Englert, R. Lazic. Learning a Neuron by a Shallow ReLU Network: Dynamics "
        "and Implicit Bias for Correlated Inputs. NeurIPS 2023. arXiv:2306.06479"
    ),
    assumptions=ASSUMPTIONS,
    claims=Claims(*(part.CLAIMS for part in _PARTS)),
    prepare=prepare,
    describe=describe,
)
