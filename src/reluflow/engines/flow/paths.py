"""Ways across planes inside an explicit step, and the moments at which they cross.

A way is known by its speed at the start and at three stages: the cubic through them, integrated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.explicit import Indices, Mask
from reluflow.engines.flow.pairs import Pair
from reluflow.kernels.flow.roots import moments

GRID = np.linspace(0.0, 1.0, 17)[1:]


class Paths(NamedTuple):
    """E ways: places at the start, speeds (4, E) without the plane's own pull on the other side.

    ``jumps`` (4, E) is what the plane adds to the speed above it. A way begins below its plane
    where ``up`` is set, else above.
    """

    start: Array
    speeds: Array
    jumps: Array
    up: Mask
    step: float
    pair: Pair

    def among(self, which: Indices) -> Paths:
        """Some of the ways."""
        return Paths(
            self.start[which],
            self.speeds[:, which],
            self.jumps[:, which],
            self.up[which],
            self.step,
            self.pair,
        )

    def beyond(self, t: Array) -> Mask:
        """Whether they are on the other side at shares ``t`` (..., E) of the step."""
        value = np.zeros_like(t)
        for coefficient in (self.step * (self.pair.rise @ self.speeds))[::-1]:
            value = (value + coefficient) * t
        return np.asarray((self.start + value > 0.0) == self.up)

    def moment(self, low: Array, high: Array, *, rough: bool = False) -> Array:
        """Where they come to the other side, between ``low`` and ``high``."""
        rise = self.pair.rough_rise if rough else self.pair.rise
        return np.asarray(moments(self.start, self.step * (rise @ self.speeds), self.up, low, high))

    def at(self, t: Array) -> tuple[Array, Array]:
        """Speeds and jumps at shares ``t`` (E,) of the step."""
        fit = self.pair.fit
        powers = t ** np.arange(len(fit))[:, None]
        speed, jump = ((powers * (fit @ rows)).sum(axis=0) for rows in (self.speeds, self.jumps))
        return speed, jump

    def excursions(self) -> tuple[Array, Array, Mask]:
        """Of ways that come back: when they leave and return, and whether they do.

        On the other side the plane's own pull acts; the return is put right for it, once.
        """
        outside = self.beyond(np.broadcast_to(GRID[:, None], (len(GRID), len(self.start))))
        real = np.asarray(outside.any(axis=0), np.bool_)
        last = GRID[len(GRID) - 1 - outside[::-1].argmax(axis=0)]
        leaves = self.moment(np.zeros(len(real)), GRID[outside.argmax(axis=0)])
        back = self._replace(up=~self.up).moment(last, np.ones(len(real)))
        speed, jump = self.at(back)
        inward = np.where(self.up, -speed, speed)
        longer = np.where(self.up, jump, -jump) * (back - leaves)
        back = np.clip(back + longer / np.where(inward > 0.0, inward, np.inf), leaves, 1.0)
        return leaves, back, real
