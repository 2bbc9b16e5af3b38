r"""One explicit step of all neurons: the stages of a Runge-Kutta pair, and outputs between them.

Kinks inside the step are not looked for here; see `crowd`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.pairs import LEAN, Pair
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.state import Modes, pairs_in
from reluflow.kernels.flow import stages as kernel
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import SLIDE, Rows
from reluflow.kernels.flow.stages import Held, Stages

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


class Field:
    """The slopes of all neurons of a problem, through matrix products."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.start: Start | None = None  # the last start, and what its steps share
        self.first: Stages | None = None
        self.held: Held | None = None
        self.reply: float | None = None  # see `answer`

    def begin(self, at: Start) -> tuple[Stages, Held]:
        """The stage at the start, found once for all steps that are tried from there."""
        if self.first is None or self.held is None or self.start is not at:
            rows, problem = at.classes, self.problem
            neuron, slide = slides_of(rows)
            self.start, self.reply = at, None
            self.held = Held(
                at.neurons.weight, rows.cid < 0, neuron, rows.plane[slide], rows.dual[slide]
            )
            self.first = _room(1, at, len(neuron))
            self.first.a[0], self.first.w[0] = at.state.a, at.state.w
            kernel.advance(self.first, 0, LEAN.table, 0.0, self.held, problem.planes, problem.law)
        return self.first, self.held

    def stages(self, at: Start, pair: Pair, step: float) -> Stages:
        """All stages of a step; the last is its end."""
        first, held = self.begin(at)
        found = _room(len(pair.nodes), at, len(held.neuron))
        for column, one in zip(found, first, strict=True):
            column[0] = one[0]
        problem = self.problem
        kernel.advance(found, 1, pair.table, step, held, problem.planes, problem.law)
        return found

    def outputs(
        self, at: Start, a: Array, w: Array, mode: Modes | None = None
    ) -> tuple[Mask, Array]:
        """Sides and outputs; ``mode`` tells the slides, if they are not those of the start."""
        _, held = self.begin(at)
        if mode is not None:
            neuron, plane = pairs_in(mode == SLIDE)
            held = held._replace(neuron=neuron, plane=plane)
        above = np.empty((len(a), len(self.problem.planes.U)), np.bool_)
        return above, kernel.outputs(a, w, above, held, self.problem.planes)

    def pulls(self, at: Start, above: Mask, c: Array) -> Array:
        """Pulls (m, d) of forces on neurons above planes or not, without those of their slides."""
        _, held = self.begin(at)
        low, high = on_planes(c[None], self.problem.planes)
        return np.asarray(kernel.pulls(above, low[0], high[0], held, self.problem.planes))

    def land(self, at: Start, w: Array) -> None:
        """Take neurons back to the planes they slide on, from the rounding of a step."""
        _, held = self.begin(at)
        off = np.einsum("qd,qd->q", w[held.neuron], self.problem.planes.U[held.plane])
        np.subtract.at(w, held.neuron, off[:, None] * held.dual)

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

    def nodes(self, at: Start, pair: Pair, stages: Stages, step: float) -> tuple[Array, Array]:
        """Outputs and forces (S, n) at the Radau nodes, by the dense output of order four."""
        a = at.state.a + step * (pair.inside @ stages.da)
        dw = stages.dw.reshape(len(stages.dw), -1)
        w = at.state.w + step * (pair.inside @ dw).reshape(len(a), *at.state.w.shape)
        inside = [self.outputs(at, a[k], w[k])[1] for k in range(len(a))]
        outputs = np.stack([*inside, stages.h[-1]])
        return outputs, self.problem.forces(outputs)


def _room(count: int, at: Start, slides: int) -> Stages:
    """Where stages are written."""
    (m, d), (n, size) = at.state.w.shape, (len(at.h), at.state.mode.shape[1])
    return Stages(
        np.empty((count, m)), np.empty((count, m, d)), np.empty((count, m, size), np.bool_),
        np.empty((count, n)), np.empty((count, n)), np.empty((count, size)), np.empty((count, m)),
        np.empty((count, m, d)), np.empty((count, slides)),
    )  # fmt: skip


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


def rate(stages: Stages) -> float:
    """The fastest rate in sight: the last two stages are at one time (Hairer & Wanner, IV.2)."""
    slopes = np.square(stages.da[-1] - stages.da[-2]).sum()
    slopes += np.square(stages.dw[-1] - stages.dw[-2]).sum()
    gaps = np.square(stages.a[-1] - stages.a[-2]).sum()
    gaps += np.square(stages.w[-1] - stages.w[-2]).sum()
    return float(np.sqrt(slopes / max(gaps, 1e-300)))
