"""Which runs the paper is about; it names no limit network."""

from __future__ import annotations

import numpy as np

from reluflow.papers.univariate.paper import paper
from reluflow.trajectory import Trajectory


@paper.setting
def setting(run: Trajectory) -> str | None:
    """Classification of points on the line."""
    data = run.data
    if run.loss_function.name != "square" and data.d == 2 and np.all(data.X[:, 1] == 1.0):
        return "classification of points on the line with a bias"
    return None
