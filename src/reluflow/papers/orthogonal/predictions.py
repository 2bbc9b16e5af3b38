"""Which runs the paper is about, and the limit it predicts for them: the jump process."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.limits.jumps import failures, saddle_to_saddle
from reluflow.limits.predict import Prediction
from reluflow.limits.staircase import SaddleToSaddle
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.papers.orthogonal.paper import paper
from reluflow.trajectory import Trajectory

TESTED = (
    "square loss",
    "points orthonormal at this scale",
    "balanced start",
    "labels not zero",
    "no tie between groups that share points",
)


@paper.setting
def setting(run: Trajectory) -> str | None:
    """Regression on orthogonal points."""
    gram = run.data.gram
    off = float(np.abs(gram - np.diag(np.diag(gram))).max(initial=0.0))
    both = run.options.get("train", "both") == "both"
    if run.loss_function.name == "square" and both and off <= 1e-12 * np.diag(gram).max():
        return "orthogonal points"
    return None


@paper.predicts
def limit(data: Dataset, net: Network, loss: Loss) -> Prediction:
    """The jump process, where no tie leaves it undetermined."""
    if not isinstance(loss, Square):
        return Prediction(None, f"the loss is {loss.name}, not square", None, tested=TESTED)
    reasons = failures(data, net)
    if reasons:
        return Prediction(None, f"saddle_to_saddle: {'; '.join(reasons)}", None, tested=TESTED)
    process = saddle_to_saddle(data, net)
    if process.is_degenerate:
        tie = next(tie for tie in process.ties if tie.overlap)
        first, second = (int(process.members[g][0]) for g in tie.groups)
        reason = (
            f"saddle_to_saddle: neurons {first} and {second} tie at jump {tie.jump} on points they "
            "share, so their masks do not decide who fits them"
        )
        return Prediction(None, reason, None, process, TESTED)
    return Prediction("saddle_to_saddle", _reason(process), process.network, process, TESTED)


def _reason(process: SaddleToSaddle) -> str:
    outcome = (
        "every point is fitted"
        if process.interpolates
        else f"{len(process.uncovered)} points have no matching neuron and are never fitted"
    )
    return (
        "Orthonormal data and a balanced network: training jumps from saddle to saddle, "
        f"{len(process.times)} jumps; {outcome}."
    )
