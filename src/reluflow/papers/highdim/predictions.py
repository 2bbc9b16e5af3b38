"""Which runs the paper is about; it names no limit of a vanishing scale."""

from __future__ import annotations

from reluflow.papers.highdim.paper import paper
from reluflow.trajectory import Trajectory


@paper.setting
def setting(run: Trajectory) -> str | None:
    """Regression with fixed output weights."""
    if run.loss_function.name == "square" and run.options.get("train") == "hidden":
        return "regression with fixed output weights"
    return None
