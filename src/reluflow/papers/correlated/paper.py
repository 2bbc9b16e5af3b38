"""The paper: D. Chistikov, M. Englert, R. Lazic, NeurIPS 2023 (arXiv 2306.06479).

Statements proved for tiny scales have the regime "2": where the scale is larger, PASS is an
observation and a violation is UNRESOLVED. Derived rows (L3c, B2, R1, T7b) are not in the paper;
they follow from its equations. What each row means: docs/papers/correlated.md.
"""

from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.preset import DOCUMENT
from reluflow.theory.paper import Paper, Reference

paper = Paper(
    "correlated",
    title="Learning a neuron by a shallow ReLU network: correlated inputs",
    case=Correlated,
    reference=Reference(
        authors="D. Chistikov, M. Englert, R. Lazic",
        title=(
            "Learning a Neuron by a Shallow ReLU Network: Dynamics and Implicit Bias for "
            "Correlated Inputs"
        ),
        year=2023,
        where="NeurIPS 2023, arXiv 2306.06479",
    ),
    question=(
        "A network with many small ReLU neurons is trained on points within pi/4 of a single "
        "teacher neuron. In which order does it learn, which of the many networks that fit does it "
        "find, and has that network the least norm?"
    ),
    preset=DOCUMENT,
)
