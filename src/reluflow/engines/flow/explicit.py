r"""One explicit step of all neurons: the stages of a Runge-Kutta pair, and outputs between them.

Kinks inside the step are not looked for here; see `crowd`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import tableau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import Modes
from reluflow.engines.flow.step import Start
from reluflow.kernels.flow.layout import SLIDE, Rows

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

# Dormand and Prince (1980): nodes, stages, the fifth order and its difference to the fourth
NODES = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
WEIGHTS = np.array([*STAGES[-1], 0.0])
GAP = WEIGHTS - np.array(
    [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]
)
# dense output of order four (Hairer, Norsett & Wanner, Solving ODEs I, II.6)
DENSE = np.array(
    [-12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
     701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423]
)  # fmt: skip


class Stage(NamedTuple):
    """One evaluation: weights, sides (m, P), outputs, pulls of the planes and slopes."""

    a: Array
    w: Array
    above: Mask
    h: Array
    c: Array
    jump: Array
    da: Array
    dw: Array


class Field:
    """The slopes of all neurons of a problem, through matrix products."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        planes = problem.planes
        self.positive = planes.length > 0.0
        self.one_each = len(planes.U) == problem.n and not bool(planes.both.any())
        self.start: Start | None = None  # the last start, and what its steps share
        self.slides: tuple[Indices, Indices] = (np.empty(0, np.int64), np.empty(0, np.int64))
        self.first: Stage | None = None

    def begin(self, at: Start) -> Stage:
        """The stage at the start, found once for all steps that are tried from there."""
        if self.first is None or self.start is not at:
            self.start, self.slides = at, slides_of(at.classes)
            self.first = self.stage(at, at.state.a, at.state.w)
        return self.first

    def stages(self, at: Start, step: float) -> list[Stage]:
        """All stages of a step; the last is its end."""
        a0, w0 = at.state.a, at.state.w
        stages = [self.begin(at)]
        for row in STAGES:
            a, w = a0.copy(), w0.copy()
            for share, stage in zip(row, stages, strict=True):
                if share:
                    a += step * share * stage.da
                    w += step * share * stage.dw
            stages.append(self.stage(at, a, w))
        return stages

    def stage(self, at: Start, a: Array, w: Array) -> Stage:
        """The slopes of all neurons at given weights; slides are held by their projections."""
        planes, rows = self.problem.planes, at.classes
        above, h = self.outputs(at, a, w)
        c = self.problem.forces(h)
        low, high = self.on_planes(c)
        pull = np.where(above, high, low)
        pull[rows.cid < 0] = 0.0
        held = at.state.mode == SLIDE
        if held.any():
            pull[held] = 0.0
        g = pull @ planes.U
        neuron, slide = self.slides
        off = np.einsum("sd,sd->s", g[neuron], planes.U[rows.plane[slide]])
        np.subtract.at(g, neuron, off[:, None] * rows.dual[slide])
        da = np.zeros_like(a) if self.problem.hidden else np.einsum("jd,jd->j", w, g)
        return Stage(a, w, above, h, c, high - low, da, a[:, None] * g)

    def outputs(
        self, at: Start, a: Array, w: Array, mode: Modes | None = None
    ) -> tuple[Mask, Array]:
        """Sides and outputs; ``mode`` tells the slides, if they are not those of the start."""
        planes = self.problem.planes
        z = w @ planes.U.T
        held = (at.state.mode if mode is None else mode) == SLIDE
        z[held | (at.classes.cid < 0)[:, None]] = 0.0  # a dead one may lie on a plane
        above = z > 0.0
        scaled = at.neurons.weight * a
        up = scaled @ np.maximum(z, 0.0)
        if self.one_each:
            return above, planes.length * up
        down = scaled @ np.minimum(z, 0.0)
        up, down = up[planes.owner], down[planes.owner]
        side = np.where(self.positive, up, down) + planes.slope * np.where(self.positive, down, up)
        return above, planes.length * side

    def on_planes(self, c: Array) -> tuple[Array, Array]:
        """Pulls of the planes below and above them."""
        planes = self.problem.planes
        pulls, size = c * planes.length, len(planes.U)
        if self.one_each:
            return np.zeros(size), pulls
        weak = planes.slope * pulls
        sides = (np.where(self.positive, weak, pulls), np.where(self.positive, pulls, weak))
        low, high = (np.bincount(planes.owner, side, size) for side in sides)
        return np.asarray(low, np.float64), np.asarray(high, np.float64)

    def nodes(self, at: Start, stages: list[Stage], step: float) -> tuple[Array, Array]:
        """Outputs and forces (S, n) at the Radau nodes, by the dense output of order four."""
        first, last = stages[0], stages[-1]
        h = []
        for theta in tableau.RADAU[:-1]:
            weights = []
            for name in ("a", "w"):
                slope = [getattr(stage, f"d{name}") for stage in stages]
                change = getattr(last, name) - getattr(first, name)
                bend = step * slope[0] - change
                twist = change - step * slope[-1] - bend
                rest = step * sum(f * k for f, k in zip(DENSE, slope, strict=True))
                inner = bend + theta * (twist + (1.0 - theta) * rest)
                weights.append(getattr(first, name) + theta * (change + (1.0 - theta) * inner))
            h.append(self.outputs(at, weights[0], weights[1])[1])
        h.append(last.h)
        outputs = np.stack(h)
        return outputs, np.stack([self.problem.forces(row) for row in h])


def slides_of(rows: Rows) -> tuple[Indices, Indices]:
    """Pairs of a neuron and one of the slides of its class."""
    counts = np.where(rows.cid >= 0, np.diff(rows.begin, append=rows.begin[-1])[rows.cid], 0)
    neuron = np.repeat(np.arange(len(rows.cid)), counts)
    rank = np.arange(len(neuron)) - np.repeat(np.cumsum(counts) - counts, counts)
    return neuron, rows.begin[rows.cid[neuron]] + rank


def rate(stages: list[Stage]) -> float:
    """The fastest rate in sight: the last two stages are at one time (Hairer & Wanner, IV.2)."""
    one, two = stages[-2], stages[-1]
    slopes = np.square(two.da - one.da).sum() + np.square(two.dw - one.dw).sum()
    gaps = np.square(two.a - one.a).sum() + np.square(two.w - one.w).sum()
    return float(np.sqrt(slopes / max(gaps, 1e-300)))
