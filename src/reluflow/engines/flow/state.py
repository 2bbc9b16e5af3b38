"""The moving part of a flow: neurons with log scales, modes, time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.errors import InputError
from reluflow.kernels.classes import outputs
from reluflow.network import Network

Modes = NDArray[np.int8]
# a pre-activation this far below |(a, w)||x| is on the plane: rounding of the projection onto it
ON_PLANE = 1e-13


@dataclass
class State:
    """Neurons ``exp(sigma_j) (a_j, w_j)`` in the coordinates of the problem, at one time.

    ``rest`` is the part of the hidden weights outside the span of the points, at scale
    ``rest_sigma``. ``log_t`` is exact where ``t`` overflows. ``clock`` is the loss's own time.
    """

    a: Array
    w: Array
    sigma: Array
    mode: Modes
    t: float
    log_t: float
    clock: float
    rest: Array | None
    rest_sigma: Array

    def copy(self) -> State:
        """A state that shares no changing array with this one."""
        return State(
            self.a.copy(),
            self.w.copy(),
            self.sigma.copy(),
            self.mode.copy(),
            self.t,
            self.log_t,
            self.clock,
            self.rest,
            self.rest_sigma,
        )

    def reach(self, problem: Problem) -> Array:
        """``|(a_j, w_j)| |x_i|`` (m, n): the natural unit of a pre-activation.

        Output weights that are not trained never enter the hidden ones: then ``|w_j| |x_i|``.
        """
        square = np.einsum("jd,jd->j", self.w, self.w)
        size = np.sqrt(square if problem.hidden else self.a**2 + square)
        return np.asarray(size[:, None] * problem.lengths)

    def outputs(self, problem: Problem) -> Array:
        """Network outputs (n,): each neuron counts where its mode says active."""
        return np.asarray(outputs(self.a, self.w, self.sigma, self.mode, problem.X)[2])

    def hidden_weights(self, problem: Problem) -> Array:
        """Hidden weights (m, d) in the coordinates of the data, without their scale."""
        W = self.w if problem.basis is None else self.w @ problem.basis.T
        if self.rest is not None:
            W = W + self.rest * np.exp(self.rest_sigma - self.sigma)[:, None]
        return W

    def network(self, problem: Problem, net: Network) -> Network:
        """The state as a Network in the coordinates of the data."""
        W = self.hidden_weights(problem)
        if problem.hidden:
            return Network(net.a, W, self.sigma, log_scale_out=net.log_scale_out)
        return Network(self.a, W, self.sigma)


def start(problem: Problem, net: Network) -> State:
    """The state of a network before any time has passed; modes are those of its signs."""
    if net.d != problem.data.d:
        raise InputError(
            f"the network takes {net.d} inputs but the points have {problem.data.d}. "
            "Make them agree."
        )
    if problem.hidden:
        scales = np.concatenate([net.log_scale, net.log_scale_out])
        if np.abs(scales).max() > 300.0:
            raise InputError(
                f"log_scale reaches {scales[np.abs(scales).argmax()]:g}, near the end of the range "
                "of floats. Training only the hidden layer needs ordinary scales: keep log_scale "
                "within 300 of 0."
            )
        flat = net.flat()
        a, W, sigma = flat.a.copy(), flat.W.copy(), np.zeros(net.width)
    else:
        shift = net.log_scale_out - net.log_scale
        if np.abs(shift).max() > 600.0:
            raise InputError(
                f"log_scale and log_scale_out differ by {np.abs(shift).max():g}. The flow needs "
                "the two layers of a neuron within exp(600) of each other; bring them closer."
            )
        a, W, sigma = net.a * np.exp(shift), net.W.copy(), net.log_scale.copy()
    w, rest = W, None
    if problem.basis is not None:
        w = W @ problem.basis
        rest = W - w @ problem.basis.T
    w = np.ascontiguousarray(w)
    nothing = np.zeros((len(a), problem.n), np.int8)
    state = State(a, w, sigma, nothing, 0.0, -np.inf, 0.0, rest, sigma.copy())
    state.mode = (w @ problem.X.T > ON_PLANE * state.reach(problem)).astype(np.int8)
    return state
