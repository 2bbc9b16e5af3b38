"""The jump process as a value: what each plateau is, when it ends, how fast it is approached."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, number, real_array
from reluflow.errors import InputError
from reluflow.limits.race import Race, Tie
from reluflow.limits.sharp import half_times
from reluflow.network import Network

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SaddleToSaddle:
    r"""The jump process: K jumps, K + 1 plateaus.

    Attributes
    ----------
    times : (K,) array
        Accelerated jump times: flow time divided by ``log(1/lam)``.
    groups, fitted : tuples of K int arrays
        Neurons that jump together, and the points they fit.
    losses : (K + 1,) array
        Losses of the plateaus, the one at 0 first.
    margins : (K,) array
        Second smallest waiting time minus the smallest (inf if nobody else runs).
    ties : tuple of Tie
        Margins below 1e-9 of the waiting time; group numbers refer to ``members``.
    network : Network or None
        Where training ends as the scale tends to 0; None if only masks are known.
    interpolates : bool
        Whether every point is fitted; ``uncovered`` lists those that are not.
    norms : (K,) array
        The total squared hidden norms Y of the jumps.
    dead, frozen : int arrays
        Neurons with an empty mask; neurons whose points were all fitted by others.
    members : tuple of int arrays
        Neurons of every group, jumping or not.
    log_chi : (m,) array or None
        Logarithms of the alignment constants, individual norms included (nan for dead neurons).
    kappa : float
        The normalisation used.
    """

    times: Array
    groups: tuple[Indices, ...]
    fitted: tuple[Indices, ...]
    losses: Array
    margins: Array
    ties: tuple[Tie, ...]
    network: Network | None
    interpolates: bool
    uncovered: Indices
    norms: Array
    dead: Indices
    frozen: Indices
    members: tuple[Indices, ...]
    signs: Array
    y: Array
    kappa: float
    log_chi: Array | None
    race: Race = field(repr=False)
    X: Array | None = field(default=None, repr=False)

    @property
    def is_degenerate(self) -> bool:
        """Whether groups sharing unfitted points tie, so that the masks do not fix the limit."""
        return any(tie.overlap for tie in self.ties)

    @property
    def squared_norm(self) -> float:
        r"""Squared norm of the final network, :math:`2 \sum_k Y_k`."""
        return float(2.0 * self.norms.sum())

    @property
    def minimal_squared_norm(self) -> float:
        r"""Smallest squared norm of any interpolating network, :math:`2 (|y_+| + |y_-|)`."""
        plus, minus = np.maximum(self.y, 0.0), np.minimum(self.y, 0.0)
        return float(2.0 * (np.linalg.norm(plus) + np.linalg.norm(minus)))

    def exponents(self, tau: ArrayLike) -> Array:
        """Exponents r_j at accelerated times: (m,), or one row for each entry of ``tau``."""
        at = real_array(np.atleast_1d(tau), "tau", 1)
        if np.any(at < 0):
            raise InputError(f"`tau` has the entry {at.min():g}; training starts at 0. Change it.")
        result = np.full((len(at), len(self.signs)), -1.0)
        per_group = _interpolate(at, np.append(0.0, self.times), self.race.knots)
        for g, neurons in enumerate(self.members):
            result[:, neurons] = per_group[:, g, None]
        return result[0] if np.ndim(tau) == 0 else result

    def rate(self, tau: float) -> float:
        r"""Exponent delta: at fixed tau the parameters are within ``const * lam**delta``.

        The minimum of 1, of :math:`-r_g(\tau)` over groups that have not jumped, of
        :math:`2 \kappa Y_k (\tau - t_k)` over past jumps (relaxation) and of
        :math:`-r_{g_k}(t_l)` over past jumps k and earlier ones l that fitted a point of the mask
        of k (memory). Reached once ``|tau - t_k|`` is well above ``1/log(1/lam)``.
        """
        tau = number(tau, "tau", at_least=0.0)
        past = int(np.searchsorted(self.times, tau, side="right"))
        jumpers = self.race.jumpers[:past]
        dormant = np.setdiff1d(np.arange(len(self.members)), jumpers)
        knots = self.race.knots
        now = _interpolate(np.array([tau]), np.append(0.0, self.times), knots)[0]
        memory = [
            -knots[earlier + 1, g]
            for k, g in enumerate(jumpers)
            for earlier in np.flatnonzero(self.race.touched[:k, g])
        ]
        relaxation = 2.0 * self.kappa * self.norms[:past] * (tau - self.times[:past])
        return float(min([1.0, *-now[dormant], *relaxation, *memory]))

    def sharp_times(self, log_scale: float) -> Array:
        r"""Jump times of the flow (not accelerated) at a finite scale: half times of the jumps.

        Half time k is when the squared output weights of group k sum to :math:`Y_k/2`. The error is
        a power of the scale where `order_holds`; ``times * log(1/lam)`` alone errs by O(1).
        """
        return self._half_times(log_scale)[0]

    def order_holds(self, log_scale: float) -> bool:
        """Whether groups jump in the limit order at this scale (small margins may reverse it)."""
        return self._half_times(log_scale)[1]

    def saddle(self, k: int) -> Network:
        """The network on plateau k: zero for k = 0, the final one for k = K."""
        if self.X is None or self.log_chi is None:
            raise InputError(
                "the process was built from masks, which do not hold the points. Networks cannot "
                "be formed. Use `saddle_to_saddle(data, net)`."
            )
        if not isinstance(k, (int, np.integer)) or not 0 <= k <= len(self.times):
            raise InputError(f"`k` is {k!r}; plateaus are numbered 0 to {len(self.times)}.")
        a, W = np.zeros(len(self.signs)), np.zeros((len(self.signs), self.X.shape[1]))
        for neurons, points, Y in zip(self.groups[:k], self.fitted, self.norms, strict=False):
            share = _shares(self.log_chi[neurons]) * np.sqrt(Y)
            a[neurons] = self.signs[neurons] * share
            W[neurons] = share[:, None] * (np.abs(self.y[points]) / Y @ self.X[points])
        return Network(a, W)

    def _half_times(self, log_scale: float) -> tuple[Array, bool]:
        log_scale = number(log_scale, "log_scale", below=0.0)
        if self.log_chi is None:
            raise InputError(
                "the process was built from masks, which do not hold the initial directions. Sharp "
                "times need them. Use `saddle_to_saddle(data, net)`."
            )
        top = [float(self.log_chi[neurons].max()) for neurons in self.members]
        start = [
            log_scale + peak + 0.5 * np.log(np.exp(2.0 * (self.log_chi[neurons] - peak)).sum())
            for peak, neurons in zip(top, self.members, strict=True)
        ]
        record = self.race
        return half_times(
            np.array(start),
            record.jumpers,
            record.slopes,
            record.overlaps,
            record.norms,
            self.kappa,
        )


def _interpolate(at: Array, knots: Array, values: Array) -> Array:
    """Piecewise affine interpolation of the columns of ``values``, constant after the last knot."""
    k = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 1)
    after = np.minimum(k + 1, len(knots) - 1)
    width = knots[after] - knots[k]
    part = np.divide(at - knots[k], width, out=np.zeros_like(at), where=width > 0)[:, None]
    return np.asarray((1.0 - part) * values[k] + part * values[after])


def _shares(log_chi: Array) -> Array:
    """How a group divides its norm: proportional to chi, squares summing to 1."""
    chi = np.exp(log_chi - log_chi.max())
    return np.asarray(chi / np.linalg.norm(chi))
