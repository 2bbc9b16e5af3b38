"""The moving part of a flow: neurons with log scales, modes, time, and the step to try next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem, split
from reluflow.engines.flow.tolerances import ON_PLANE
from reluflow.kernels.flow.classes import outputs
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Planes
from reluflow.network import Network

Modes = NDArray[np.int8]
# so many e-folds fit into the range of floats, with room for the weights themselves
BELOW = 600.0


class Weights(NamedTuple):
    """Output weights (m,), hidden weights (m, d) and log scales (m,) in the units of the data."""

    a: Array
    W: Array
    sigma: Array


@dataclass
class State:
    """Neurons ``exp(sigma_j) (a_j, w_j)`` in the units and coordinates of the problem, at one time.

    ``mode`` (m, P) says where a neuron lies to each plane. ``still`` (m, d) is the part of ``w``
    across the ray a neuron moves along, at log scale ``still_sigma`` (nan: not known). ``rest`` is
    the part of the hidden weights outside the span of the points, at scale ``rest_sigma``.
    ``log_t`` is exact where ``t`` overflows. ``clock`` is the loss's own time and ``step`` the next
    step of it to try.
    """

    a: Array
    w: Array
    sigma: Array
    mode: Modes
    still: Array
    still_sigma: Array
    t: float
    log_t: float
    clock: float
    step: float
    rest: Array | None
    rest_sigma: Array

    def copy(self) -> State:
        """A state that shares no changing array with this one."""
        names = ("a", "w", "sigma", "mode", "still", "still_sigma")
        return replace(self, **{name: getattr(self, name).copy() for name in names})

    def fade(self, amount: float, which: NDArray[np.bool_] | None = None) -> None:
        """Take the factor ``exp(-amount)`` of weight decay into the log scales, of all or some.

        Nothing holds the part outside the span of the points: it always fades.
        """
        if amount:
            shift = amount if which is None else np.where(which, amount, 0.0)
            self.sigma = self.sigma - shift
            self.still_sigma = self.still_sigma - shift
            self.rest_sigma = self.rest_sigma - amount

    def sizes(self, hidden: bool) -> Array:
        """``|(a_j, w_j)|`` (m,), the natural unit of a pre-activation.

        Output weights that are not trained never enter the hidden ones: then ``|w_j|``.
        """
        square = np.einsum("jd,jd->j", self.w, self.w)
        return np.asarray(np.sqrt(square if hidden else self.a**2 + square))

    def log_outputs(self, problem: Problem) -> Array:
        """Logarithm of a bound on the output of each neuron on a point, ``(a^2 + |w|^2) |x| / 2``.

        Not ``|a||w||x|``: that vanishes where an output weight passes zero.
        """
        squares = self.a**2 + np.einsum("jd,jd->j", self.w, self.w)
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * self.sigma + np.log(0.5 * squares) + np.log(problem.longest))

    def outputs(self, problem: Problem) -> Array:
        """Network outputs (n,): each neuron counts where its mode says active."""
        return np.asarray(outputs(self.a, self.w, self.sigma, self.mode, problem.planes)[2])

    def weights(self, problem: Problem) -> Weights:
        """Weights in the coordinates and units of the data, and their log scales.

        A neuron that shrank far below the part of it outside the span of the points, which never
        moves, is given at the scale of that part.
        """
        a, sigma = self.a, self.sigma
        W = self.w if problem.basis is None else self.w @ problem.basis.T
        if self.rest is not None:
            left = self.rest.any(axis=1)
            below = np.where(left & (self.rest_sigma - sigma > BELOW), self.rest_sigma - sigma, 0.0)
            sigma, shrunk = sigma + below, np.exp(-below)
            a, W = a * shrunk, W * shrunk[:, None]
            factor = np.exp(np.where(left, self.rest_sigma - sigma, 0.0))
            W = W + self.rest * factor[:, None]
        return Weights(np.ldexp(a, problem.units.output), np.ldexp(W, problem.units.hidden), sigma)

    def network(self, problem: Problem) -> Network:
        """The state as a Network in the coordinates and units of the data."""
        net, whole = problem.net, self.weights(problem)
        if problem.hidden:
            return Network(
                net.mantissa.a, whole.W, whole.sigma, log_scale_out=net.log_scale_out,
                slope=net.slope,
            )  # fmt: skip
        return Network(*whole, slope=net.slope)


def start(problem: Problem) -> State:
    """The state of the network before any time has passed; modes are those of its signs."""
    net, units = problem.net, problem.units
    if problem.hidden:
        flat = net.flat()
        a, W, sigma = flat.a.copy(), flat.W.copy(), np.zeros(net.width)
    else:
        shift = net.log_scale_out - net.log_scale
        # mantissas near one, by powers of two: subnormal ones would leave the range when rescaled
        top = np.maximum(np.abs(net.mantissa.W).max(axis=1), np.abs(net.mantissa.a) * np.exp(shift))
        power = np.where(
            np.abs(np.log2(np.where(top > 0.0, top, 1.0))) > 900.0, np.frexp(top)[1], 0
        )
        a, W = (
            np.ldexp(net.mantissa.a, -power) * np.exp(shift),
            np.ldexp(net.mantissa.W, -power[:, None]),
        )
        sigma = net.log_scale + power * np.log(2.0)
    return state_of(problem, np.ldexp(a, -units.output), np.ldexp(W, -units.hidden), sigma)


def state_of(problem: Problem, a: Array, W: Array, sigma: Array) -> State:
    """The state of neurons in the units of the solver at time zero, modes by their signs."""
    w, rest = (np.ascontiguousarray(W), None) if problem.basis is None else split(W, problem.basis)
    m = len(a)
    state = State(
        a, w, sigma, np.zeros((m, len(problem.planes.U)), np.int8), np.zeros_like(w),
        np.full(m, np.nan), 0.0, -np.inf, 0.0, 0.0, rest, sigma.copy(),
    )  # fmt: skip
    z = w @ problem.planes.U.T
    state.mode = (z > ON_PLANE * state.sizes(problem.hidden)[:, None]).astype(np.int8)
    return state


def pairs_in(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neurons and planes where ``mask`` (m, P) is set; `np.nonzero` is slow in two dimensions."""
    return np.divmod(np.flatnonzero(mask), mask.shape[1])


def to_points(mode: Modes, planes: Planes) -> Modes:
    """Modes (..., n) of the points from those (..., P) of the planes: below turns its points."""
    own = mode[..., planes.owner]
    if (planes.length > 0.0).all():
        return np.ascontiguousarray(own, dtype=np.int8)
    turned = np.where(own < SLIDE, ABOVE - own, own)
    return np.ascontiguousarray(np.where(planes.length > 0.0, own, turned), dtype=np.int8)


def to_planes(mode: Modes, planes: Planes) -> Modes:
    """Modes (..., P) of the planes from those of the points: each has one with positive length."""
    first = np.empty(len(planes.U), np.int64)
    above = np.flatnonzero(planes.length > 0.0)
    first[planes.owner[above]] = above
    # by rows: kernels would be compiled once more for another order
    return np.ascontiguousarray(np.minimum(mode[..., first], SLIDE), dtype=np.int8)
