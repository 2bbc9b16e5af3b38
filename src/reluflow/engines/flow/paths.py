"""Ways across planes inside an explicit step, and the moments at which they cross.

A way is known by its speed at the start and at three stages: the cubic through them, integrated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.explicit import NODES
from reluflow.kernels.flow.roots import moments

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

STAGES = (0, 2, 3, 6)
FIT = np.linalg.inv(np.vander(NODES[list(STAGES)], increasing=True))
RISE = FIT / np.arange(1, 5)[:, None]
# the parabola through three of them, for the error of a moment
PARABOLA = np.zeros((3, 4))
PARABOLA[:, [0, 2, 3]] = np.linalg.inv(np.vander([0.0, 0.8, 1.0], increasing=True))
ROUGH_RISE = PARABOLA / np.arange(1, 4)[:, None]
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

    def among(self, which: Indices) -> Paths:
        """Some of the ways."""
        return Paths(
            self.start[which],
            self.speeds[:, which],
            self.jumps[:, which],
            self.up[which],
            self.step,
        )

    def beyond(self, t: Array, rise: Array = RISE) -> Mask:
        """Whether they are on the other side at shares ``t`` (..., E) of the step."""
        value = np.zeros_like(t)
        for coefficient in (self.step * (rise @ self.speeds))[::-1]:
            value = (value + coefficient) * t
        return np.asarray((self.start + value > 0.0) == self.up)

    def moment(self, low: Array, high: Array, rise: Array = RISE) -> Array:
        """Where they come to the other side, between ``low`` and ``high``."""
        return np.asarray(moments(self.start, self.step * (rise @ self.speeds), self.up, low, high))

    def at(self, t: Array) -> tuple[Array, Array]:
        """Speeds and jumps at shares ``t`` (E,) of the step."""
        powers = t ** np.arange(len(FIT))[:, None]
        speed, jump = ((powers * (FIT @ rows)).sum(axis=0) for rows in (self.speeds, self.jumps))
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


class Crossings(NamedTuple):
    """Crossings of a neuron and a plane, and when: shares of the step.

    A pair that leaves its side and returns has two, of which one is ``once``; where only a stage
    was on the other side it has one that does not happen (``happens``), at the end. ``normal``
    (E, d) is that of the plane, projected on those on which the neuron slides; ``speed`` is that
    across the plane without its own pull, ``jump`` what the plane adds above it, ``error`` that of
    the weights by an error of the moment.
    """

    neuron: Indices
    plane: Indices
    normal: Array
    moment: Array
    up: Mask
    once: Mask
    happens: Mask
    speed: Array
    jump: Array
    error: Array

    @property
    def toward(self) -> Array:
        """The speed towards the other side."""
        return np.where(self.up, self.speed, -self.speed)

    @property
    def sent_back(self) -> Mask:
        """Whether the plane sends a neuron back: it will slide."""
        jump = np.where(self.up, self.jump, -self.jump)
        return np.asarray(self.once & ((self.toward <= 0.0) | (self.toward + jump <= 0.0)))
