"""The paper: K.-W. Lai, G. Wang, M. Tao, V. Muthukumar (arXiv 2603.04895).

Risk: half the sum of squares; only the hidden layer is trained. Most displayed formulas are missing
in the text at hand: rows marked so in docs/papers/highdim.md are reconstructed.
"""

from reluflow.papers.highdim.case import HighDim
from reluflow.theory.paper import Paper, Reference

paper = Paper(
    "highdim",
    title="ReLU regression in high dimension: descent beside the minimum-norm solution",
    case=HighDim,
    reference=Reference(
        authors="K.-W. Lai, G. Wang, M. Tao, V. Muthukumar",
        title=(
            "How Does the ReLU Activation Affect the Implicit Bias of Gradient Descent on "
            "High-dimensional Neural Network Regression?"
        ),
        where="arXiv 2603.04895",
    ),
    question=(
        "How close does gradient descent come to the minimum-norm solution in high dimension, and "
        "why does it not reach it?"
    ),
    preset={
        "name": "highdim",
        "seed": 0,
        "study": {"paper": "highdim", "title": "ReLU regression in high dimension"},
        "data": {"generator": "bartlett", "n": 20, "d": 1_000_000},
        "network": {"init": "by_preactivations", "eps": 0.005, "signs": [1, -1]},
        "loss": {"name": "square", "factor": "1/2"},
        # the step is 1/(2 l1), and l1 = d for isotropic data
        "engine": {"name": "descent", "lr": 5e-7, "steps": float("inf"), "train": "hidden"},
    },
)
