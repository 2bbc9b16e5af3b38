r"""Alternating prediction: a greedy guess of the staircase for general data. A heuristic.

Between jumps the residuals :math:`r_i` of the active network are fixed. A dormant neuron of sign s
feels :math:`D(u) = \kappa \sum_{i : u \cdot x_i > 0} r_i x_i`, turns at once to a stationary
direction of :math:`\dot u = s (D(u) - (u \cdot D(u)) u)` and then grows at the rate
:math:`v = s \, u \cdot D(u)`. One round:

1. *align* all dormant neurons, from the directions they have, with the residuals fixed;
2. *race*: exponents, starting at -1, grow by v; the first to reach 0 jumps;
3. *fit*: it joins the active neurons with a small seed, and the flow of the active neurons alone
   runs to its limit;
4. *prune*: an active neuron that vanishes in the fit is dormant again.

On orthonormal data this is the jump process of `saddle_to_saddle`. Elsewhere nothing is proved.

References: Kunin et al. 2025 (alternating gradient flows), Maennel et al. 2018, Pesme and
Flammarion 2023; orthonormal data: Town et al. (arXiv 2605.27097).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow import interrupts
from reluflow.checks import Array, number, read_only, real_array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.limits import hypotheses
from reluflow.limits.phases import Phases, Plateau
from reluflow.network import Network

Indices = NDArray[np.intp]
CAVEATS = (
    "heuristic: alignment is taken as instantaneous and nothing is proved beyond orthonormal data",
    "neurons that have jumped keep moving at later jumps",
)
TIE_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Alternating:
    """The predicted staircase: K jumps, K + 1 plateaus; the shape of `SaddleToSaddle`.

    Attributes
    ----------
    times : (K,) array
        Accelerated jump times: flow time divided by ``log(1/lam)``.
    groups, fitted : tuples of K int arrays
        Neurons that jump together, and the points that are fitted from then on.
    losses : (K + 1,) array
        Losses of the plateaus, the one at 0 first.
    margins : (K,) array
        Second smallest waiting time minus the smallest (inf if nobody else runs).
    network : Network
        The active network after the last jump; dormant neurons are zero.
    interpolates : bool
        Whether every point is fitted; ``uncovered`` lists those that are not.
    sensitivity : (K,) array
        Change of the plateau loss, over the loss at 0, when the seed of the jump is ten times
        smaller.
    pruned : tuple of (jump, neuron)
        Active neurons that vanished and became dormant again.
    caveats : tuple of str
        What makes this a guess; those met on the way are added.
    finished : bool
        Whether the process ended by itself.
    kappa : float
        The normalisation used.
    """

    times: Array
    groups: tuple[Indices, ...]
    fitted: tuple[Indices, ...]
    losses: Array
    margins: Array
    network: Network
    interpolates: bool
    uncovered: Indices
    sensitivity: Array
    pruned: tuple[tuple[int, int], ...]
    caveats: tuple[str, ...]
    finished: bool
    kappa: float
    knots: Array = field(repr=False)
    slopes: Array = field(repr=False)

    @property
    def squared_norm(self) -> float:
        """Squared norm of the final network."""
        return self.network.squared_norm

    def exponents(self, tau: ArrayLike) -> Array:
        """Exponents r_j at accelerated times: (m,), or one row for each entry of ``tau``."""
        at = real_array(np.atleast_1d(tau), "tau", 1)
        if np.any(at < 0):
            raise InputError(f"`tau` has the entry {at.min():g}; training starts at 0. Change it.")
        edges = np.append(0.0, self.times)
        k = np.searchsorted(edges, at, side="right") - 1
        values = self.knots[k] + self.slopes[k] * (at - edges[k])[:, None]
        result = np.minimum(values, 0.0)
        return np.asarray(result[0] if np.ndim(tau) == 0 else result)

    def sharp_times(self, log_scale: float) -> Array:
        """Refused: the constants beyond the leading order are known for orthonormal data only."""
        raise InputError(
            f"sharp times at log_scale {log_scale!r} were asked of the alternating prediction. "
            "Their constants are known for orthonormal data only. Use `times * log(1/lam)`, or "
            "`saddle_to_saddle` where it applies."
        )


@interrupts.deferred()
def alternating(
    data: Dataset, net: Network, *, kappa: float | None = None, seed_size: float = 1e-6
) -> Alternating:
    r"""Guess the staircase of a balanced network on any data. Runs the flow engine.

    Parameters
    ----------
    data : Dataset
        Any points and labels.
    net : Network
        Balanced network; its common log scale tends to minus infinity.
    kappa : float, optional
        The loss is ``kappa/2 sum (h - y)^2``; 1/n if not given.
    seed_size : float
        Norm at which a jumping neuron joins the active ones, over the root of the label norm.

    Returns
    -------
    Alternating
        Jump times, groups, plateaus and the end; a guess, with its caveats.

    Examples
    --------
    >>> data = Dataset(np.eye(3), [3.0, 4.0, 1.0])
    >>> W = np.array([[0.6, 0.8, -0.1], [-0.5, 0.6, 0.7]])
    >>> guess = alternating(data, Network(np.linalg.norm(W, axis=1), W))
    >>> guess.times.round(6), [points.tolist() for points in guess.fitted]
    (array([0.6     , 1.126137]), [[0, 1], [2]])

    Numerics
    --------
    Alignment is the flow's closed form on a plateau, continued until directions move by less than
    1e-8 between half time and end; fits are certified limits of the flow at rtol 1e-9. On
    orthonormal data equal to `saddle_to_saddle` to 1e-6 (tests/limits/test_alternating.py). Points
    are written in the basis of their QR factors, so that a product that is zero is zero.
    """
    from reluflow.engines import flow

    hypotheses.check_pair(data, net, "alternating")
    hypotheses.refuse("alternating", hypotheses.imbalance(net))
    kappa = 1.0 / data.n if kappa is None else number(kappa, "kappa", above=0.0)
    size = number(seed_size, "seed_size", above=0.0, at_most=1e-2)
    if not data.y.any():
        raise InputError("all labels are 0. The start is already a minimum. Give other labels.")
    return _Race(Phases(data, net, kappa, size, flow)).run()


class _Race:
    """The rounds of the process and their record."""

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self.r = np.full(phases.width, -1.0)
        self.t = 0.0
        self.stuck: set[int] = set()
        self.caveats: list[str] = []
        self.times: list[float] = []
        self.margins: list[float] = []
        self.groups: list[Indices] = []
        self.fitted: list[Indices] = []
        self.losses = [phases.loss]
        self.sensitivity: list[float] = []
        self.pruned: list[tuple[int, int]] = []
        self.knots, self.slopes = [self.r], [np.zeros(phases.width)]

    def run(self) -> Alternating:
        """Rounds until no dormant neuron grows; at most three for each neuron."""
        finished = False
        for _ in range(3 * self.phases.width + 1):
            plateau = self.phases.align()
            self._remark(plateau.remark)
            self.slopes[-1] = plateau.slopes
            chosen = self._next(plateau)
            if chosen is None:
                finished = True
                break
            self._jump(chosen, plateau)
        if not finished:
            self._remark("stopped after three jumps a neuron on average")
        return self._result(finished)

    def _next(self, plateau: Plateau) -> tuple[Indices, float, float] | None:
        """Neurons of the next jump, its waiting time and the margin to the next one."""
        v = np.where(plateau.slopes > 0.0, plateau.slopes, np.nan)
        v[list(self.stuck)] = np.nan
        waits = np.where(self.phases.dormant, -self.r / v, np.nan)
        if np.isnan(waits).all():
            return None
        first = int(np.nanargmin(waits))
        wait = float(waits[first])
        u = plateau.directions
        same = (
            (waits - wait <= TIE_TOLERANCE * max(wait, self.t))
            & (np.linalg.norm(u - u[first], axis=1) <= 1e-6)
            & (self.phases.signs == self.phases.signs[first])
        )
        others = waits[~same & ~np.isnan(waits)]
        margin = float(others.min() - wait) if len(others) else np.inf
        if margin <= TIE_TOLERANCE * max(wait, self.t):
            self._remark("a tie between different neurons: their order is a choice")
        return np.flatnonzero(same), wait, margin

    def _jump(self, chosen: tuple[Indices, float, float], plateau: Plateau) -> None:
        group, wait, margin = chosen
        dormant = self.phases.dormant
        self.t += wait
        self.r = np.where(dormant, np.minimum(self.r + plateau.slopes * wait, 0.0), self.r)
        self.r[group] = 0.0
        before = self.phases.unfitted()
        fit = self.phases.fit(group, plateau)
        self._remark(fit.remark)
        vanished = [int(j) for j in fit.vanished]
        # a neuron that dies from its seed would be seeded again for ever
        self.stuck.update(set(vanished) & {int(j) for j in group})
        self.pruned += [(len(self.times), j) for j in vanished]
        if vanished:
            self._remark("active neurons vanished in a fit and became dormant again")
        self.times.append(self.t)
        self.margins.append(margin)
        self.groups.append(group)
        self.fitted.append(np.setdiff1d(before, self.phases.unfitted()))
        self.losses.append(self.phases.loss)
        self.sensitivity.append(fit.sensitivity)
        self.knots.append(self.r)
        self.slopes.append(np.zeros_like(self.r))

    def _remark(self, text: str) -> None:
        if text and text not in self.caveats:
            self.caveats.append(text)

    def _result(self, finished: bool) -> Alternating:
        uncovered = self.phases.unfitted()
        return Alternating(
            times=read_only(np.array(self.times)),
            groups=tuple(self.groups),
            fitted=tuple(self.fitted),
            losses=read_only(np.array(self.losses)),
            margins=read_only(np.array(self.margins)),
            network=self.phases.network(),
            interpolates=not len(uncovered),
            uncovered=uncovered,
            sensitivity=read_only(np.array(self.sensitivity)),
            pruned=tuple(self.pruned),
            caveats=(*CAVEATS, *self.caveats),
            finished=finished,
            kappa=self.phases.kappa,
            knots=np.array(self.knots),
            slopes=np.array(self.slopes),
        )
