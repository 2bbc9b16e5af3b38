"""Study of high-dimensional regression: preset, page and figures (arXiv 2603.04895)."""

from __future__ import annotations

from reluflow.studies.contract import Recipe, Study
from reluflow.studies.highdim import fig_freeze, fig_primal, fig_revival, fig_scaling, fig_step
from reluflow.studies.highdim.page import findings

__all__ = ["FIGURES", "STUDY"]

STUDY = Study(
    paper="highdim",
    title="ReLU regression in high dimension",
    question=(
        "How close does gradient descent come to the minimum-norm solution in high dimension, and "
        "why does it not reach it?"
    ),
    document={
        "name": "highdim",
        "seed": 0,
        "study": {"paper": "highdim", "title": "ReLU regression in high dimension"},
        "data": {"generator": "bartlett", "n": 20, "d": 1_000_000},
        "network": {"init": "by_preactivations", "eps": 0.005, "signs": [1, -1]},
        "loss": {"name": "square", "factor": "1/2"},
        # the step is 1/(2 l1), and l1 = d for isotropic data
        "engine": {
            "name": "descent",
            "lr": 5e-7,
            "steps": float("inf"),
            "train": "hidden",
        },
    },
    findings=findings,
)

FIGURES: list[Recipe] = [
    fig_scaling.FIGURE,
    fig_freeze.FIGURE,
    fig_primal.FIGURE,
    fig_step.FIGURE,
    fig_revival.FIGURE,
]
