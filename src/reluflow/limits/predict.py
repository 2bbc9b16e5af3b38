"""Predict: pick the limit whose hypotheses the data satisfies, and say why."""

from __future__ import annotations

from dataclasses import dataclass

from reluflow.dataset import Dataset
from reluflow.limits import hypotheses
from reluflow.limits.bundle import Bundle, bundle
from reluflow.limits.bundle import failures as bundle_failures
from reluflow.limits.jumps import failures as jump_failures
from reluflow.limits.jumps import saddle_to_saddle
from reluflow.limits.staircase import SaddleToSaddle
from reluflow.network import Network


@dataclass(frozen=True, eq=False)
class Prediction:
    """Where training ends as the scale tends to 0, if a limit theorem says so.

    Attributes
    ----------
    method : str or None
        "bundle", "saddle_to_saddle", or None when no limit applies.
    reason : str
        The hypotheses that hold, or for each method those that fail.
    network : Network or None
        The limit network.
    detail : Bundle, SaddleToSaddle or None
        Everything that method knows; also given for a jump process refused because of a tie.
    """

    method: str | None
    reason: str
    network: Network | None
    detail: Bundle | SaddleToSaddle | None


def predict(data: Dataset, net: Network) -> Prediction:
    """Test the hypotheses of each limit on the data and return the first one that applies.

    ``bundle`` needs positive inner products, labels ``v . x > 0`` of one vector, a balanced network
    and a non-empty J+; ``saddle_to_saddle`` orthonormal points, non-zero labels, a balanced network
    and no tie between groups that share points. Both hold for a single unit point and then agree.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [0.8, -0.6]], [1.0, -1.0])
    >>> answer = predict(data, Network([1.0], [[1.0, 0.0]]))
    >>> print(answer.method, answer.network)
    None None
    >>> print(answer.reason)
    No limit applies. bundle: label y[1] is -1, not positive. saddle_to_saddle: the points are not \
orthonormal: x_0.x_1 is 0.8 (off by 0.8).
    """
    hypotheses.check_pair(data, net)
    against_bundle = bundle_failures(data, net)
    if not against_bundle:
        limit = bundle(data, net)
        return Prediction("bundle", _bundle_reason(limit), limit.network, limit)
    against_jumps = jump_failures(data, net)
    process = None
    if not against_jumps:
        process = saddle_to_saddle(data, net)
        if not process.is_degenerate:
            reason = _jump_reason(process)
            return Prediction("saddle_to_saddle", reason, process.network, process)
        tie = next(tie for tie in process.ties if tie.overlap)
        first, second = (int(process.members[g][0]) for g in tie.groups)
        against_jumps = [
            f"neurons {first} and {second} tie at jump {tie.jump} on points they share, so their "
            "masks do not decide who fits them"
        ]
    reason = (
        f"No limit applies. bundle: {'; '.join(against_bundle)}. "
        f"saddle_to_saddle: {'; '.join(against_jumps)}."
    )
    return Prediction(None, reason, None, process)


def _bundle_reason(limit: Bundle) -> str:
    standing = (
        "below pi/4 as the theorem asks"
        if limit.proved
        else "not below pi/4, so the limit is outside the theorem and rests on positive products"
    )
    return (
        "Correlated data: inner products are positive, labels are relu(v.x) of one vector v and "
        f"the network is balanced. The {len(limit.positive)} neurons of J+ end parallel to v. "
        f"The largest angle of a point to v is {limit.angle:.4g}, {standing}."
    )


def _jump_reason(process: SaddleToSaddle) -> str:
    outcome = (
        "every point is fitted"
        if process.interpolates
        else f"{len(process.uncovered)} points have no matching neuron and are never fitted"
    )
    return (
        "Orthonormal data and a balanced network: training jumps from saddle to saddle, "
        f"{len(process.times)} jumps; {outcome}."
    )
