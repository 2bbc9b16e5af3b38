"""The paper: I. Safran, G. Vardi, J. D. Lee, NeurIPS 2022 (arXiv 2205.09072).

What each row means, and where a statement needs a correction: docs/papers/univariate.md.
"""

from reluflow.papers.univariate.case import Univariate
from reluflow.theory.paper import Paper, Reference

paper = Paper(
    "univariate",
    title="Linear regions of univariate classifiers",
    case=Univariate,
    reference=Reference(
        authors="I. Safran, G. Vardi, J. D. Lee",
        title=(
            "On the Effective Number of Linear Regions in Shallow Univariate ReLU Networks: "
            "Convergence Guarantees and Implicit Bias"
        ),
        year=2022,
        where="NeurIPS 2022, arXiv 2205.09072",
    ),
    question=(
        "How many linear pieces does a wide network keep when it learns to classify points on a "
        "line, and how close to the largest margin does it come?"
    ),
    preset={
        "study": {"paper": "univariate", "title": "Linear regions of a univariate classifier"},
        "seed": 1,
        "data": {
            "generator": "sample_1d",
            "teacher": {"zeros": [-0.5, 0.0, 0.5]},
            "n": 20,
            "density": {"name": "uniform", "lo": -1.0, "hi": 1.0},
        },
        "network": {"init": "gaussian", "width": 64, "sigma_hidden": 0.3, "sigma_output": 0.03},
        "loss": {"name": "exponential"},
        "engine": {"name": "flow", "stop_log_loss": -1e4},
    },
)
