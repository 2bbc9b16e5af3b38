r"""One explicit step of all neurons: the stages of a Runge-Kutta pair, and outputs between them.

Kinks inside the step are not looked for here; see `crowd`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.pairs import Pair
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.state import Modes
from reluflow.kernels.flow.layout import SLIDE, Rows

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


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
        self.silent: tuple[Any, ...] = ()  # see `_silent`
        self.first: Stage | None = None
        self.reply: float | None = None  # see `answer`

    def begin(self, at: Start) -> Stage:
        """The stage at the start, found once for all steps that are tried from there."""
        if self.first is None or self.start is not at:
            self.start, self.slides = at, slides_of(at.classes)
            self.silent = _silent(at, at.state.mode)
            self.first, self.reply = self.stage(at, at.state.a, at.state.w), None
        return self.first

    def stages(self, at: Start, pair: Pair, step: float) -> list[Stage]:
        """All stages of a step; the last is its end."""
        a0, w0 = at.state.a, at.state.w
        stages = [self.begin(at)]
        slopes = np.empty((len(pair.stages), w0.size + len(a0)))
        for k, row in enumerate(pair.stages):
            slopes[k, : w0.size], slopes[k, w0.size :] = stages[k].dw.ravel(), stages[k].da
            move = (step * np.array(row)) @ slopes[: k + 1]
            w = w0 + move[: w0.size].reshape(w0.shape)
            stages.append(self.stage(at, a0 + move[w0.size :], w))
        return stages

    def stage(self, at: Start, a: Array, w: Array) -> Stage:
        """The slopes of all neurons at given weights; slides are held by their projections."""
        planes, rows = self.problem.planes, at.classes
        above, h = self.outputs(at, a, w)
        c = self.problem.forces(h)
        low, high = self.on_planes(c)
        g = self.pulls(above, low, high)
        neuron, slide = self.slides
        if len(neuron):
            off = np.einsum("sd,sd->s", g[neuron], planes.U[rows.plane[slide]])
            begin = np.flatnonzero(np.diff(neuron, prepend=-1))  # they come in order
            g[neuron[begin]] -= np.add.reduceat(off[:, None] * rows.dual[slide], begin)
        da = np.zeros_like(a) if self.problem.hidden else np.einsum("jd,jd->j", w, g)
        return Stage(a, w, above, h, c, high - low, da, a[:, None] * g)

    def outputs(
        self, at: Start, a: Array, w: Array, mode: Modes | None = None
    ) -> tuple[Mask, Array]:
        """Sides and outputs; ``mode`` tells the slides, if they are not those of the start."""
        planes = self.problem.planes
        z = w @ planes.U.T
        for pairs in self.silent if mode is None else _silent(at, mode):
            z[pairs] = 0.0
        above = z > 0.0
        scaled = at.neurons.weight * a
        if self.one_each:
            return above, planes.length * (scaled @ np.maximum(z, 0.0, out=z))
        up = (scaled @ np.maximum(z, 0.0))[planes.owner]
        down = (scaled @ np.minimum(z, 0.0))[planes.owner]
        side = np.where(self.positive, up, down) + planes.slope * np.where(self.positive, down, up)
        return above, planes.length * side

    def pulls(self, above: Mask, low: Array, high: Array) -> Array:
        """Pulls (m, d) on neurons that are above planes or not, without those of their slides."""
        U = self.problem.planes.U
        if self.one_each:  # there is none from below, and what is silent is not above
            return np.asarray(above.astype(np.float64) @ (high[:, None] * U))
        pull = np.where(above, high, low)
        for pairs in self.silent:
            pull[pairs] = 0.0
        return np.asarray(pull @ U)

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

    def across(self, at: Start, neuron: Indices, plane: Indices) -> Array:
        """Normals (E, d) of planes, projected on those on which the neurons slide."""
        planes, rows = self.problem.planes, at.classes
        normal = planes.U[plane]
        first, counts = _slides(rows, neuron)
        pair = np.repeat(np.arange(len(neuron)), counts)
        slide = np.repeat(first, counts) + _ranks(counts)
        off = planes.gram[plane[pair], rows.plane[slide]]
        np.subtract.at(normal, pair, off[:, None] * rows.dual[slide])
        return normal

    def answer(self, at: Start) -> float:
        """What a change of weights does to pulls at most, through outputs and forces.

        The Jacobian of the shares of a classification loss is at most ``|c|``; of points that are
        not active to a neuron there are none.
        """
        problem, planes = self.problem, self.problem.planes
        if problem.is_square:
            return problem.kappa * problem.spectral_norm**2
        if self.reply is None:
            X = planes.length[:, None] * planes.U[planes.owner]
            squares = (X * np.abs(at.c)[:, None]).T @ X
            self.reply = float(np.linalg.eigvalsh(squares)[-1])
        return self.reply

    def nodes(self, at: Start, pair: Pair, stages: list[Stage], step: float) -> tuple[Array, Array]:
        """Outputs and forces (S, n) at the Radau nodes, by the dense output of order four."""
        a = at.state.a + step * (pair.inside @ np.stack([stage.da for stage in stages]))
        dw = np.stack([stage.dw.ravel() for stage in stages])
        w = at.state.w + step * (pair.inside @ dw).reshape(len(a), *at.state.w.shape)
        inside = [self.outputs(at, a[k], w[k])[1] for k in range(len(a))]
        outputs = np.stack([*inside, stages[-1].h])
        return outputs, self.problem.forces(outputs)


def _silent(at: Start, mode: Modes) -> tuple[Any, ...]:
    """Pairs without a side: dead neurons, which may lie on a plane, and slides."""
    return np.flatnonzero(at.classes.cid < 0), np.nonzero(mode == SLIDE)


def slides_of(rows: Rows) -> tuple[Indices, Indices]:
    """Pairs of a neuron and one of the slides of its class."""
    first, counts = _slides(rows, np.arange(len(rows.cid)))
    return np.repeat(np.arange(len(rows.cid)), counts), np.repeat(first, counts) + _ranks(counts)


def _slides(rows: Rows, neuron: Indices) -> tuple[Indices, Indices]:
    """Where the slides of neurons begin, and how many they are."""
    k = rows.cid[neuron]
    return rows.begin[k], np.where(k >= 0, rows.begin[k + 1] - rows.begin[k], 0)


def _ranks(counts: Indices) -> Indices:
    """0, 1, .., for each of the counts."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def rate(stages: list[Stage]) -> float:
    """The fastest rate in sight: the last two stages are at one time (Hairer & Wanner, IV.2)."""
    one, two = stages[-2], stages[-1]
    slopes = np.square(two.da - one.da).sum() + np.square(two.dw - one.dw).sum()
    gaps = np.square(two.a - one.a).sum() + np.square(two.w - one.w).sum()
    return float(np.sqrt(slopes / max(gaps, 1e-300)))
