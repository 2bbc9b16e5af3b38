"""Phases of the alternating prediction: dormant neurons that align, active ones that fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.limits import hypotheses
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.trajectory import Trajectory

Indices = NDArray[np.intp]
ALIGNED = 1e-8  # motion of a direction between half time and end that counts as rest
FITTED = 1e-7  # residual over the largest label below which a point is fitted
DOUBLINGS = 24
FIT_TIME = 1e7  # longest fit, in units of the time scale of the labels


@dataclass(frozen=True)
class Plateau:
    """Stationary directions (m, d), growth rates and offsets (m,) of the dormant neurons.

    Rates are in accelerated time, zero for active neurons. ``offsets`` adds up the logarithms of
    the norms beyond ``rate * time``: they decide how equal neurons share a jump.
    """

    directions: Array
    slopes: Array
    offsets: Array
    remark: str


@dataclass(frozen=True)
class Fit:
    """What a fit did beside moving the active neurons."""

    vanished: Indices
    sensitivity: float
    remark: str


@dataclass(frozen=True)
class _Grown:
    a: Array
    W: Array
    directions: Array
    squares: float
    at_rest: bool


class Phases:
    """The state between jumps: which neurons are active, where they are, where dormant ones point.

    Works in the basis of the QR factors of the points and with the loss ``1/2 sum (h - y)^2``;
    slopes are multiplied by kappa on the way out.
    """

    def __init__(
        self,
        data: Dataset,
        net: Network,
        kappa: float,
        seed_size: float,
        flow: Callable[..., Trajectory],
    ) -> None:
        self.flow, self.kappa, self.seed_size = flow, kappa, seed_size
        self.signs, self.width = net.signs, net.width
        self.basis, X = _basis(data.X)
        inside = net.directions @ self.basis
        self.away = net.directions - inside @ self.basis.T
        # the last coordinate holds what lies outside the span of the points, and never moves
        self.data = Dataset(np.column_stack([X, np.zeros(data.n)]), data.y)
        self.u = np.column_stack([inside, np.linalg.norm(self.away, axis=1)])
        self.offsets = net.with_scale(hypotheses.common_scale(net)[1]).log_norms.copy()
        self.alive = np.isfinite(self.offsets)  # a neuron that is zero never moves
        self.dormant = self.alive.copy()
        self.a, self.W = np.zeros(self.width), np.zeros_like(self.u)
        self.top = float(np.abs(data.y).max())
        self.rate = float(np.linalg.norm(data.y)) * float(np.linalg.norm(X, 2))

    # ---------------------------------------------------------------- residuals

    @property
    def residuals(self) -> Array:
        """``y - h`` of the active network, zero on fitted points."""
        r = self.data.y - self.a @ np.maximum(self.W @ self.data.X.T, 0.0)
        return np.where(np.abs(r) <= FITTED * self.top, 0.0, r)

    @property
    def loss(self) -> float:
        """``kappa/2 sum r^2``."""
        r = self.residuals
        return 0.5 * self.kappa * float(r @ r)

    def unfitted(self) -> Indices:
        """Points that are not fitted."""
        return np.flatnonzero(self.residuals)

    # ---------------------------------------------------------------- phases

    def align(self) -> Plateau:
        """Turn the dormant neurons to rest under the present residuals.

        Labels that equal the residuals, at a scale that keeps outputs negligible throughout, make
        the engine's plateau do it: closed form between crossings, slides and deaths included.
        """
        slopes, offsets = np.zeros(self.width), np.zeros(self.width)
        chosen = np.flatnonzero(self.dormant)
        r = self.residuals
        if not len(chosen) or not r.any():
            return Plateau(self.u, slopes, offsets, "")
        task, t = Dataset(self.data.X, r), 50.0 / self.rate
        remark = "a dormant neuron was still turning when its plateau was read"
        for _ in range(DOUBLINGS):
            depth = 2.0 * self.rate * t + 200.0
            start = Network(self.signs[chosen], self.u[chosen], -depth)
            run = self.flow(task, start, loss=Square("1/2"), t_end=t, rtol=1e-9, record=[t / 2, t])
            middle, end = run.network(max(len(run.t) - 2, 0)), run.final
            moved = np.linalg.norm(end.directions - middle.directions, axis=1)
            ended = run.t[-1] < t
            if ended or moved.max() <= ALIGNED:
                remark = _stopped(run)
                break
            t *= 2.0
        if not ended:
            moves = np.isfinite(end.log_norms) & np.isfinite(middle.log_norms)  # not at zero
            some, rise = chosen[moves], (end.log_norms[moves] - middle.log_norms[moves])
            slopes[some] = rise / (run.t[-1] - run.t[-2])
            offsets[some] = (end.log_norms[moves] + depth) - slopes[some] * t
        slopes[np.abs(slopes) <= ALIGNED * self.rate * FITTED] = 0.0
        self.u[chosen] = end.directions
        self.offsets[chosen] += offsets[chosen]
        return Plateau(self.u.copy(), self.kappa * slopes, self.offsets.copy(), remark)

    def fit(self, group: Indices, plateau: Plateau) -> Fit:
        """Let a group join the active neurons and run their flow to its limit."""
        share = np.exp(plateau.offsets[group] - plateau.offsets[group].max())
        share /= np.linalg.norm(share)
        self.dormant[group] = False
        seed = self.seed_size * np.sqrt(self.top)
        before = float(self.data.y @ self.data.y)
        smaller = self._grown(group, 0.1 * seed * share, plateau)
        end = self._grown(group, seed * share, plateau)
        active = np.flatnonzero(self.alive & ~self.dormant)
        vanished = active[np.abs(end.a[active]) <= seed]
        self.a, self.W = end.a.copy(), end.W.copy()
        turned = vanished[end.directions[vanished].any(axis=1)]
        self.u[turned] = end.directions[turned]
        self.a[vanished], self.W[vanished] = 0.0, 0.0
        self.dormant[vanished] = True
        change = abs(smaller.squares - end.squares) / before
        slow = "" if end.at_rest else "a fit was still moving when its time ended"
        return Fit(vanished, change, slow)

    def _grown(self, group: Indices, sizes: Array, plateau: Plateau) -> _Grown:
        """All neurons after a fit in which the group starts at these norms."""
        a, W = self.a.copy(), self.W.copy()
        a[group] = self.signs[group] * sizes
        W[group] = sizes[:, None] * plateau.directions[group]
        active = np.flatnonzero(a)
        t = FIT_TIME / self.rate
        run = self.flow(
            self.data,
            Network(a[active], W[active]),
            loss=Square("1/2"),
            rtol=1e-9,
            t_end=t,
            record=[0.5 * t, t],
        )
        h, earlier = (run.network(k).predict(self.data.X) for k in (len(run.t) - 1, 0))
        still = run.t[-1] < t or float(np.abs(h - earlier).max()) <= FITTED * self.top
        at_rest = still and run.status.is_asked_for
        final = run.final.flat()
        a[active], W[active] = final.a, final.W
        directions = np.zeros_like(W)
        directions[active] = run.final.directions
        r = self.data.y - final.predict(self.data.X)
        return _Grown(a, W, directions, float(r @ r), at_rest)

    def network(self) -> Network:
        """The active network in the coordinates of the data; dormant neurons are zero."""
        inside = self.W[:, :-1] @ self.basis.T
        norms = np.linalg.norm(self.away, axis=1)
        away = self.away / np.where(norms > 0.0, norms, 1.0)[:, None]
        return Network(self.a, inside + self.W[:, -1:] * away)


def _stopped(run: Trajectory) -> str:
    """A remark on a run of the flow that did not end as was asked; otherwise empty."""
    if run.status.is_asked_for:
        return ""
    return f"a plateau was read where the flow ended as `{run.status}`: {run.ending}"


def _basis(X: Array) -> tuple[Array, Array]:
    """Orthonormal basis (d, k) of the rows of X, and the rows in it; rounding made zero."""
    Q, R = np.linalg.qr(X.T)
    flip = np.where(np.diag(R)[: Q.shape[1]] < 0.0, -1.0, 1.0)
    Q, rows = Q * flip, (R * flip[:, None]).T
    size = np.linalg.norm(rows, axis=1)[:, None]
    return Q, np.where(np.abs(rows) <= 1e-14 * size, 0.0, rows)
