"""Which runs the paper is about, and the limit it predicts for them: the bundle."""

from __future__ import annotations

import numpy as np

from reluflow.dataset import Dataset
from reluflow.limits.bundle import Bundle, bundle, failures
from reluflow.limits.predict import Prediction
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.papers.correlated.paper import paper
from reluflow.trajectory import Trajectory

TESTED = (
    "square loss",
    "inner products positive",
    "labels v.x > 0 of one vector",
    "balanced start",
    "J+ not empty",
)


@paper.setting
def setting(run: Trajectory) -> str | None:
    """Regression on the labels of one teacher neuron."""
    both = run.options.get("train", "both") == "both"
    if run.loss_function.name == "square" and both and isinstance(run.data.teacher, np.ndarray):
        return "labels of one teacher neuron"
    return None


@paper.predicts
def limit(data: Dataset, net: Network, loss: Loss) -> Prediction:
    """The bundle: a theorem below pi/4, a construction beyond.

    Positive inner products do not suffice beyond pi/4: two heavy points may be fitted first and
    switch a light one off for good (docs/papers/correlated.md), so the answer there is not proved.
    """
    if not isinstance(loss, Square):
        return Prediction(None, f"the loss is {loss.name}, not square", None, tested=TESTED)
    reasons = failures(data, net)
    if reasons:
        return Prediction(None, f"bundle: {'; '.join(reasons)}", None, tested=TESTED)
    found = bundle(data, net)
    return Prediction("bundle", _reason(found), found.network, found, TESTED, found.proved)


def _reason(found: Bundle) -> str:
    standing = (
        "below pi/4 as the theorem asks"
        if found.proved
        else "not below pi/4: no theorem says that training ends here, and with positive products "
        "alone it need not (a light point can be switched off while heavy ones are fitted). Train "
        "and compare"
    )
    return (
        "Correlated data: inner products are positive, labels are relu(v.x) of one vector v and "
        f"the network is balanced. The {len(found.positive)} neurons of J+ end parallel to v. "
        f"The largest angle of a point to v is {found.angle:.4g}, {standing}."
    )
