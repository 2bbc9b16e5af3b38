"""Crossings of planes in an explicit step: which there are, and when."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.explicit import Field, Indices, Mask
from reluflow.engines.flow.pairs import Pair
from reluflow.engines.flow.paths import Paths
from reluflow.engines.flow.start import Start
from reluflow.kernels.flow.layout import ABOVE
from reluflow.kernels.flow.stages import Stages, left

CUBIC = 0.1  # the error of a cubic's moment, by its difference to that of the parabola (measured)


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

    def among(self, which: Mask) -> Crossings:
        """Some of them."""
        columns: list[Any] = [column[which] for column in self]
        return Crossings(*columns)

    def and_also(self, more: Crossings) -> Crossings:
        """These and others."""
        columns: list[Any] = [np.concatenate(two) for two in zip(self, more, strict=True)]
        return Crossings(*columns)

    @property
    def toward(self) -> Array:
        """The speed towards the other side."""
        return np.where(self.up, self.speed, -self.speed)

    @property
    def sent_back(self) -> Mask:
        """Whether the plane sends a neuron back: it will slide."""
        jump = np.where(self.up, self.jump, -self.jump)
        return np.asarray(self.once & ((self.toward <= 0.0) | (self.toward + jump <= 0.0)))


class Taken(NamedTuple):
    """The stages of a step."""

    field: Field
    pair: Pair
    stages: Stages
    step: float

    def crossings(self, at: Start) -> Crossings:
        """Pairs that end on another side than they start, or that some stage found on another."""
        above = self.stages.above
        return self.dated(at, above[-1], *left(above[1:], at.state.mode, at.classes.cid < 0))

    def dated(self, at: Start, above: Mask, neuron: Indices, plane: Indices) -> Crossings:
        """Crossings of pairs, which end ``above`` or not.

        Until it crosses a plane a neuron does not feel its jump. So the moments are found on the
        path that goes on without it; that of a return is put right for the jump.
        """
        mode = at.state.mode
        begin = mode[neuron, plane] == ABOVE
        normal = self.field.across(at, neuron, plane)
        path = self._paths(neuron, plane, normal, ~begin)
        back = np.flatnonzero(above[neuron, plane] == begin)
        zeros, ones = np.zeros(len(neuron)), np.ones(len(neuron))
        moment = path.moment(zeros, ones)
        error = CUBIC * self.step * np.abs(moment - path.moment(zeros, ones, rough=True))
        error[back] = 0.0
        leaves, returns, real = path.among(back).excursions()
        moment[back] = np.where(real, leaves, 1.0)
        which = np.concatenate([np.arange(len(neuron)), back[real]])
        once = np.arange(len(which)) < len(neuron)
        moment = np.concatenate([moment, returns[real]])
        speed, jump = path.among(which).at(moment)
        happens = np.ones(len(which), np.bool_)
        happens[back[~real]] = False
        up = path.up[which] == once
        return Crossings(
            neuron[which], plane[which], normal[which], moment, up, once, happens, speed, jump,
            error[which] * once * np.abs(jump),
        )  # fmt: skip

    def _paths(self, neuron: Indices, plane: Indices, normal: Array, up: Mask) -> Paths:
        """The way across planes, without their own pulls on the other side."""
        share = np.einsum("ed,ed->e", normal, normal)  # of its pull, in the planes it slides on
        stages, which = self.stages, np.array(self.pair.path)[:, None]
        jumps = share * stages.a[which, neuron] * stages.jump[which, plane]
        past = stages.above[which, neuron, plane] == up
        speeds = np.einsum("ked,ed->ke", stages.dw[which, neuron], normal)
        speeds -= np.where(past, np.where(up, jumps, -jumps), 0.0)
        start = np.einsum("ed,ed->e", stages.w[0, neuron], normal)
        return Paths(start, speeds, jumps, up, self.step, self.pair)
