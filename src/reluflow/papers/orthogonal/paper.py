"""The paper: J. Town, E. Boursier, B. Lewis, M. Englert, R. Lazic (arXiv 2605.27097).

Two rates are kept apart: jump times converge like 1/log(1/lambda) (O8, O10), parameters like a
power of lambda (O12). What each row means: docs/papers/orthogonal.md.
"""

from reluflow.papers.orthogonal.case import Orthogonal
from reluflow.theory.paper import Paper, Reference

TENS = 2.302585092994046  # of log 10

paper = Paper(
    "orthogonal",
    title="Orthogonal data: incremental learning and implicit bias",
    case=Orthogonal,
    reference=Reference(
        authors="J. Town, E. Boursier, B. Lewis, M. Englert, R. Lazic",
        title=(
            "Mildly Overparameterized ReLU Networks on Orthogonal Data: Incremental Learning and "
            "Implicit Bias"
        ),
        where="arXiv 2605.27097",
    ),
    question=(
        "Which neuron learns which points, when, and how far from the smallest norm does training "
        "end?"
    ),
    preset={
        "seed": 9,
        "study": {
            "paper": "orthogonal",
            "title": "Incremental learning on orthogonal data",
            "log_scales": [-100.0 * TENS, -30.0 * TENS, -10.0 * TENS],
        },
        "data": {"generator": "orthonormal", "n": 24, "labels": "mixed"},
        "network": {"init": "balanced", "width": 20, "directions": "sphere"},
        "engine": {"name": "flow", "rtol": 1e-9, "record": 400},
    },
)
