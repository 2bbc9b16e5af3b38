"""Which paper a run belongs to, when nobody says."""

from __future__ import annotations

import numpy as np

from reluflow.theory import PAPERS
from reluflow.trajectory import Trajectory


def fitting_paper(run: Trajectory) -> tuple[str | None, str]:
    """The paper whose setting the run is in, and the reason; None with a sentence if none is."""
    said = run.provenance.get("paper")
    if said in PAPERS:
        return str(said), "the study that made the run names it"
    data = run.data
    if run.loss_function.name != "square":
        if data.d == 2 and np.all(data.X[:, 1] == 1.0):
            return "univariate", "classification of points on the line with a bias"
        return None, "The classification theory here is about one input and a bias (x, 1)."
    if run.options.get("train") == "hidden":
        return "highdim", "regression with fixed output weights"
    gram = data.gram
    if np.abs(gram - np.diag(np.diag(gram))).max(initial=0.0) <= 1e-12 * np.diag(gram).max():
        return "orthogonal", "orthogonal points"
    if isinstance(data.teacher, np.ndarray):
        return "correlated", "labels of one teacher neuron"
    return None, "No paper's setting fits these data."
