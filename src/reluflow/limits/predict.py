"""Predict: ask the registered papers where training ends as the scale vanishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reluflow.dataset import Dataset
from reluflow.departures import departure
from reluflow.limits import hypotheses
from reluflow.losses import Loss, named
from reluflow.network import Network

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Prediction:
    """Where training ends as the scale tends to 0, if a limit theorem says so.

    Attributes
    ----------
    method : str or None
        The limit that applies ("bundle", "saddle_to_saddle", ...), or None when none does.
    reason : str
        The hypotheses that hold, or for each method those that fail.
    network : Network or None
        The limit network; for a margin loss a direction, scaled to margin 1.
    detail : object
        Everything that method knows; also given for a jump process refused because of a tie.
    tested : tuple of str
        The hypotheses that were tested, with the paper they belong to.
    proved : bool
        Whether a theorem says so; False where only its construction was followed.
    """

    method: str | None
    reason: str
    network: Network | None
    detail: Any = None
    tested: tuple[str, ...] = ()
    proved: bool = True

    def __repr__(self) -> str:
        words = "" if self.proved or self.method is None else ", not proved"
        return f"Prediction({self.method}{words}, network={self.network!r})"

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.prediction(self)


def predict_end(run: Trajectory) -> Prediction:
    """`predict` for the problem of a run; nothing where the run is not plain training.

    Examples
    --------
    >>> import reluflow as rf
    >>> data, net = rf.Dataset([[1.0]], [4.0]), rf.Network([0.5], [[0.5]])
    >>> predict_end(rf.descend(data, net, lr=0.1, steps=3, momentum=0.9)).reason
    'the run is trained with momentum 0.9; limits are known for plain training.'
    """
    words = departure(run)
    if words:
        reason = f"the run is trained with {words}; limits are known for plain training."
        return Prediction(None, reason, None)
    return predict(run.data, run.net, loss=run.loss_function)


def predict(data: Dataset, net: Network, *, loss: Loss | str = "square") -> Prediction:
    """Test the hypotheses of each registered paper's limit and return the first that applies.

    Parameters
    ----------
    data, net : Dataset, Network
        The problem; the scale of the network tends to 0.
    loss : Square, Exponential, Logistic or their names
        What is trained: a limit for one loss says nothing about another.

    Returns
    -------
    Prediction
        The limit network and who predicts it, or why nobody does.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.8, -0.6]], [1.0, -1.0])
    >>> answer = predict(data, Network([1.0], [[1.0, 0.0]]))
    >>> print(answer.method, answer.network)
    None None
    >>> "label y[1] is -1, not positive" in answer.reason
    True
    """
    from reluflow.theory.registry import papers

    hypotheses.check_pair(data, net)
    if net.slope:
        reason = f"the network is leaky (slope {net.slope:g}); limits are known for ReLU networks."
        return Prediction(None, reason, None)
    chosen = named(loss)
    refused: list[str] = []
    tested: list[str] = []
    detail = None
    for paper in papers():
        if paper.predictor is None:
            continue
        found: Prediction = paper.predictor(data, net, chosen)
        tested += [f"{paper.name}: {text}" for text in found.tested]
        if found.network is not None:
            return Prediction(
                found.method,
                found.reason,
                found.network.with_bias(data.bias),
                found.detail,
                tuple(tested),
                found.proved,
            )
        detail = detail or found.detail
        refused.append(f"{paper.name}: {found.reason}")
    return Prediction(None, f"No limit applies. {'. '.join(refused)}.", None, detail, tuple(tested))
