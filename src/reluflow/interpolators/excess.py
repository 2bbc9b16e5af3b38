"""How far above the best network a run ended: the end of training beside the certified optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reluflow.errors import InputError
from reluflow.interpolators.min_norm import MinNorm, min_norm
from reluflow.statuses import Status

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


@dataclass(frozen=True)
class Excess:
    """What the end of a run has more than the best network of any width.

    Attributes
    ----------
    objective : float
        Of the end: loss plus decay/2 times the squared norm; without decay the squared norm of a
        network that fits.
    optimum : MinNorm
        The best network and the lower bound on its objective.
    """

    objective: float
    optimum: MinNorm

    @property
    def at_least(self) -> float:
        """A lower bound on the excess, relative to the optimum: 0 at a global minimum."""
        return max(self._above(self.optimum.objective), 0.0)

    @property
    def at_most(self) -> float:
        """An upper bound, which rests on the certificate alone."""
        return self._above(self.optimum.lower_bound)

    def _above(self, optimum: float) -> float:
        gap = self.objective - optimum
        if gap == 0.0:
            return 0.0
        return gap / optimum if optimum > 0.0 else float("inf")


def excess(run: Trajectory) -> Excess:
    r"""Compare the end of a run with the global optimum of what it minimises.

    Parameters
    ----------
    run : Trajectory
        Of both layers and the square loss: one with weight decay :math:`\mu`, compared by
        :math:`L + \frac\mu2 |\theta|^2` wherever it ended, or one without that fits, compared by
        :math:`|\theta|^2`.

    Returns
    -------
    Excess
        ``.objective .optimum .at_least .at_most``; the last two are relative.

    Examples
    --------
    >>> import reluflow as rf
    >>> data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5])
    >>> net = rf.Network([0.3, 0.2], [[0.3, 0.0], [0.0, 0.2]])  # a neuron for each point
    >>> found = excess(rf.flow(data, net, decay=0.01))
    >>> print(f"{found.at_most:.4f}", found.optimum.certified)  # one neuron would do
    0.3357 True
    """
    if run.options.get("train", "both") != "both":
        raise InputError(
            f"the run trains {run.options['train']!r}. The optimum is that of both layers. Train "
            "both, or compare networks with min_norm yourself."
        )
    if not run.decay and run.status is not Status.CONVERGED:
        raise InputError(
            f"the run has no weight decay and ended as `{run.status}`, not in a fit. There is no "
            "optimum to compare it with. Train it to its limit, or with decay."
        )
    best = min_norm(
        run.data, decay=run.decay, loss=run.loss_function, slope=run.net.slope
    )  # refuses losses without an optimum
    end = run.final
    if not run.decay:
        return Excess(end.squared_norm, best)
    loss = run.loss_function.value(end.predict(run.data.X), run.data.y)
    return Excess(loss + 0.5 * run.decay * end.squared_norm, best)
