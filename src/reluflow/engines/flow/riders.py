r"""Neurons in balance that ride, far below what outputs notice: steps of any length for them.

A balanced neuron has ``|a| = |w|`` for ever, and with ``u = w / |w|`` and the sign s of a

.. math:: \frac{d}{dt} \log |w| = s\,g \cdot u, \qquad \dot u = s\,(g - (g \cdot u)\,u).

On a *ray*, where all of w and all pulls on it lie along one line, u is constant. *Aligned*, after
some e-folds, :math:`s u = \hat g + p` with a small lag p, which obeys

.. math:: \dot p = -|g|\,p - \hat g' + O(p^2 |g|), \qquad s\,g \cdot u = |g|\,(1 - p^2 / 2).

The lag is a smooth solution, by collocation, and what a neuron begins beside that, which fades like
the exponential of the boost.
Either way its size is a quadrature of forces that are known, and no plane is met. (A slide may be
what holds it in a line or a plane, for as long as its weight stays in [0, 1].) While its outputs
are negligible it need not limit the steps of the others, however many e-folds it shrinks or grows
in one of them; what is left of an error of u by then has faded when it counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import growth, lag
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start, classes_of
from reluflow.engines.flow.state import State
from reluflow.engines.flow.step import Stretch
from reluflow.engines.flow.tolerances import BURDEN, EVEN, FAR, FASTER, GONE, LAG
from reluflow.kernels.flow.forces import on_planes, spread
from reluflow.kernels.flow.layout import ABOVE, SLIDE
from reluflow.kernels.flow.planes import land
from reluflow.kernels.flow.plateau import any_below

Indices = NDArray[np.int64]


class Ride(NamedTuple):
    """The end of a step with its riders, or None; then whether a shorter step may have one."""

    end: State | None
    shorter: bool = True


def riders(at: Start, rtol: float, pace: float) -> Indices:
    """The neurons that ride here and would limit the step to be tried: it allows a certain pace.

    Their outputs are `FAR` e-folds below the tolerance.
    """
    problem, state, rows = at.problem, at.state, at.classes
    none, least = np.empty(0, np.int64), BURDEN * pace
    if problem.hidden or at.fastest < least:
        return none
    level = _level(problem, rtol)
    if not _any_below(at, level - FAR):
        return none
    speeds = np.where(rows.cid >= 0, at.speeds[rows.cid], -1.0)
    small = level - state.log_outputs(problem) > FAR
    least = max(least, FASTER * float(speeds[~small].max(initial=0.0)))
    small &= speeds >= least
    if not small.any():
        return none
    # in balance, to rounding: those that have grown far beyond what they were out of it
    small &= (problem.sign == 0.0) | (problem.log_balance_at(state.t) < 2.0 * state.sigma - EVEN)
    small &= rows.free[rows.cid]
    straight = on_rays(at)
    own = np.flatnonzero(small & ~straight)
    if len(own):
        pulls = _pulls_on(at, own, at.c[None])
        beside = _beside(state, own, pulls.g[pulls.which, 0])
        small[own] = _lengths(beside) <= _most(rtol)
    return np.flatnonzero(small)


def on_rays(at: Start) -> NDArray[np.bool_]:
    """The neurons (m,) all of which lies on the line of the pulls, in balance since the start."""
    state, rows = at.state, at.classes
    whole = ~state.still.any(axis=1) & ~np.isnan(state.still_sigma)
    return np.asarray(rows.ray[rows.cid] & whole & (at.problem.sign == 0.0) & (rows.cid >= 0))


def without(at: Start, own: Indices) -> Start:
    """The start of a step in which the neurons ``own`` are not moved: its classes are the others.

    What they add to outputs and to the kernel is far below the tolerance.
    """
    cid = at.classes.cid.copy()
    cid[own] = -1
    kinds, left = classes_of(at.classes, cid)
    return replace(at, classes=left, speeds=at.speeds[kinds])


class Pulls(NamedTuple):
    """Pulls on the classes of some neurons: ``which`` (k,) of these each of them is in.

    ``face`` (C, P) are the modes of the classes, ``g`` (C, S, d) the pulls, ``f`` (C, S, P) their
    multipliers; ``low`` and ``high`` (S, P) those of the planes.
    """

    face: NDArray[np.int8]
    which: Indices
    low: Array
    high: Array
    f: Array
    g: Array


def _pulls_on(at: Start, own: Indices, forces: Array) -> Pulls:
    """The pulls on the neurons ``own`` in forces (S, n)."""
    rows, planes = at.classes, at.problem.planes
    kinds, which = np.unique(rows.cid[own], return_inverse=True)
    low, high = on_planes(forces, planes)
    f = spread(low, high, rows)[kinds]
    return Pulls(rows.face[kinds], which, low, high, f, f @ planes.U)


def _beside(state: State, own: Indices, g: Array) -> Array:
    """How far (k, d) the directions of the neurons ``own`` are beside their pulls (k, d)."""
    w = state.w[own]
    u = (np.sign(state.a[own]) / _lengths(w))[:, None] * w
    return np.asarray(u - g / _lengths(g)[:, None])


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.sqrt(np.square(vectors).sum(axis=-1)))


def _most(rtol: float) -> float:
    """The largest lag: its third power is missed of the direction, where the nodes resolve it."""
    return float(LAG * np.cbrt(rtol))


def room(at: Start, own: Indices, rtol: float) -> float:
    """The step in which no rider comes near the tolerance, at the pace of now."""
    left = _level(at.problem, rtol) - 0.6 * FAR - at.state.log_outputs(at.problem)[own]
    return float((0.49 * left / at.speeds[at.classes.cid[own]]).min())


def carried(at: Start, own: Indices, stretch: Stretch, end: State, rtol: float) -> Ride:
    """The end of a step with the riders ``own``, if all of them can ride all the way.

    One may come too near the tolerance, a slide of it may end, or it turns to a plane or too fast.
    """
    problem, was = at.problem, at.state
    pulls = _pulls_on(at, own, np.concatenate([at.c[None], stretch.c]))
    if not _hold(pulls):
        return Ride(None)
    straight = on_rays(at)[own]
    if straight.any():
        line, which = own[straight], pulls.which[straight]
        w, weights = was.w[line], stretch.step * stretch.method.weights
        along = np.einsum("kd,kd->k", (weights @ pulls.g[:, 1:])[which], w) / _lengths(w)
        end.sigma[line] += np.sign(was.a[line]) * along
    if not straight.all():
        turning = own if not straight.any() else own[~straight]
        kinds, which = np.unique(pulls.which[~straight], return_inverse=True)
        f, g = pulls.f[kinds], pulls.g[kinds]
        part = Pulls(pulls.face[kinds], which, pulls.low, pulls.high, f, g)
        failed = _follow(at, turning, part, stretch, end, rtol)
        if failed is not None:
            return failed
    near = end.log_outputs(problem)[own].max() > _level(problem, rtol) - 0.5 * FAR
    return Ride(None) if near else Ride(end)


def _follow(
    at: Start, own: Indices, pulls: Pulls, stretch: Stretch, end: State, rtol: float
) -> Ride | None:
    """Carry aligned riders to ``end``; how they failed to ride, or None."""
    problem, was, which = at.problem, at.state, pulls.which
    step, method = stretch.step, stretch.method
    sign = np.sign(was.a[own])
    speed = _lengths(pulls.g)
    slowest = speed.min(axis=1)
    if slowest.min() <= 0.0:
        return Ride(None)
    heading = pulls.g / speed[:, :, None]
    beside = _beside(was, own, pulls.g[which, 0])
    lags = lag.follow(heading, speed, step, beside, which, method)
    if lags.size.max() > _most(rtol):
        return Ride(None, shorter=False)
    off = np.maximum(lags.size, rtol * problem.rate / slowest)
    z = method.tables.force @ (heading @ problem.planes.U.T)
    if not _clear(pulls, z, sign, 10.0 * off):
        return Ride(None)
    end.sigma[own] += (step * (speed[:, 1:] @ method.weights))[which] - lags.missed
    turned = sign[:, None] * (heading[which, -1] + lags.end)
    slides = (pulls.face == SLIDE).any(axis=1)
    if slides.any():
        for k in np.flatnonzero(slides[which]).tolist():
            land(turned[k], pulls.face[which[k]] == SLIDE, problem.planes)
    sizes = _lengths(was.w[own]) / _lengths(turned)
    end.w[own] = turned * sizes[:, None]
    rows = at.classes
    end.still_sigma[own[~rows.ray[rows.cid[own]]]] = np.nan
    return None


def lasting(at: Start, rtol: float) -> Start:
    """The start without the riders that clearly shrink: where the others rest, these fade away.

    If there are no others it is a plateau. (What is aligned with its pull grows.)
    """
    problem, state, rows = at.problem, at.state, at.classes
    level = _level(problem, rtol)
    if problem.hidden or not rows.ray.any() or not _any_below(at, level - GONE):
        return at
    fading = on_rays(at) & rows.free[rows.cid]
    fading &= at.speeds[rows.cid] * state.step >= BURDEN * growth.turn(rtol)
    fading &= level - state.log_outputs(problem) > GONE
    own = np.flatnonzero(fading)
    if not len(own):
        return at
    pulls, w = _pulls_on(at, own, at.c[None]), state.w[own]
    growing = np.einsum("kd,kd->k", w, pulls.g[pulls.which, 0]) / _lengths(w)
    shrinks = np.sign(state.a[own]) * growing - problem.decay < -rtol * problem.rate
    own = own[shrinks]
    alone = len(own) == (rows.cid >= 0).sum()
    return at if alone or not len(own) else without(at, own)


def _any_below(at: Start, level: float) -> bool:
    """Whether the bound `State.log_outputs` of some neuron that moves is below ``level``."""
    state, below = at.state, level - float(np.log(at.problem.longest / 2))
    return bool(any_below(state.a, state.w, state.sigma, at.classes.cid, below))


def _hold(pulls: Pulls) -> bool:
    """Whether neurons that slide go on to do so: weights in [0, 1]."""
    slides = pulls.face == SLIDE
    if not slides.any():
        return True
    below, above = np.minimum(pulls.low, pulls.high), np.maximum(pulls.low, pulls.high)
    return not (slides[:, None] & ((pulls.f < below) | (pulls.f > above))).any()


def _clear(pulls: Pulls, z: Array, sign: Array, off: Array) -> bool:
    """Whether neurons of these signs stay on their sides of planes, as far as ``off`` the headings.

    The Bernstein coefficients ``z`` (C, S + 1, P) enclose their products with the normals.
    """
    face = pulls.face
    z = z * np.where(face == ABOVE, 1.0, -1.0)[:, None]
    slides, off = face == SLIDE, off[:, None]
    along = ((z.min(axis=1) > off) | slides).all(axis=1)
    against = ((z.max(axis=1) < -off) | slides).all(axis=1)
    return bool(np.where(sign > 0.0, along[pulls.which], against[pulls.which]).all())


def _level(problem: Problem, rtol: float) -> float:
    """What all neurons together may add to outputs without notice, for one of them."""
    return float(np.log(rtol * problem.output_scale / len(problem.sign)))
