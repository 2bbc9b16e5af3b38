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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import lag, tableau
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start, begin_at
from reluflow.engines.flow.state import State
from reluflow.engines.flow.step import Stretch
from reluflow.engines.flow.tolerances import BURDEN, EVEN, FAR, GONE, LAG
from reluflow.kernels.flow.forces import on_planes, spread
from reluflow.kernels.flow.layout import ABOVE, SLIDE, Rows
from reluflow.kernels.flow.planes import land
from reluflow.kernels.flow.plateau import any_below

Indices = NDArray[np.int64]


class Ride(NamedTuple):
    """The end of a step with its riders, or None; then whether a shorter step may have one."""

    end: State | None
    shorter: bool = True


def riders(at: Start, rtol: float, far: float | None = None) -> NDArray[np.bool_]:
    """The neurons (m,) that ride here and would limit the step to be tried.

    Their outputs are ``far`` e-folds below the tolerance (`FAR`).
    """
    far = FAR if far is None else far
    problem, state, rows = at.problem, at.state, at.classes
    found = np.zeros(len(state.a), np.bool_)
    if problem.hidden or at.fastest * state.step < BURDEN:
        return found
    level = _level(problem, rtol)
    below = level - far - np.log(problem.longest / 2)
    if not any_below(state.a, state.w, state.sigma, rows.cid, below):
        return found
    left = level - state.log_outputs(problem)
    small = (rows.cid >= 0) & (left > far)
    small &= at.speeds[rows.cid] * state.step >= BURDEN
    # in balance, to rounding: those that have grown far beyond what they were out of it
    small &= (problem.sign == 0.0) | (problem.log_balance_at(state.t) < 2.0 * state.sigma - EVEN)
    small &= rows.free[rows.cid]
    found = np.asarray(small & on_rays(at))
    own = np.flatnonzero(small & ~found)
    if len(own):
        pulls = _pulls_on(at, own, at.c[None])
        beside = _beside(state, own, pulls.g[pulls.which, 0])
        found[own] = np.linalg.norm(beside, axis=1) <= _most(rtol)
    return found


def on_rays(at: Start) -> NDArray[np.bool_]:
    """The neurons (m,) all of which lies on the line of the pulls, in balance since the start."""
    state, rows = at.state, at.classes
    whole = ~state.still.any(axis=1) & ~np.isnan(state.still_sigma)
    return np.asarray(rows.ray[rows.cid] & whole & (at.problem.sign == 0.0) & (rows.cid >= 0))


class Pulls(NamedTuple):
    """Pulls on the classes of some neurons: ``which`` (k,) of these rows each of them is in.

    ``g`` (C, S, d) are the pulls, ``f`` (C, S, P) their multipliers; ``low`` and ``high`` (S, P)
    those of the planes.
    """

    rows: Rows
    which: Indices
    low: Array
    high: Array
    f: Array
    g: Array


def _pulls_on(at: Start, own: Indices, forces: Array) -> Pulls:
    """The pulls on the neurons ``own`` in forces (S, n)."""
    kinds, which = np.unique(at.classes.cid[own], return_inverse=True)
    rows, planes = _chosen(at.classes, kinds), at.problem.planes
    low, high = on_planes(np.ascontiguousarray(forces), planes)
    f = spread(low, high, rows)
    return Pulls(rows, which, low, high, f, f @ planes.U)


def _chosen(rows: Rows, kinds: Indices) -> Rows:
    """Some of the classes."""
    counts = np.diff(rows.begin)[kinds]
    begin = np.concatenate([[0], np.cumsum(counts)])
    slides = np.repeat(rows.begin[kinds] - begin[:-1], counts) + np.arange(begin[-1])
    return Rows(
        rows.cid, rows.face[kinds], begin, rows.plane[slides], rows.dual[slides],
        rows.lift[slides], rows.free[kinds], rows.ray[kinds], rows.axis[kinds],
    )  # fmt: skip


def _beside(state: State, own: Indices, g: Array) -> Array:
    """How far (k, d) the directions of the neurons ``own`` are beside their pulls (k, d)."""
    u = state.w[own] / np.linalg.norm(state.w[own], axis=1)[:, None]
    heading = g / np.linalg.norm(g, axis=1)[:, None]
    return np.asarray(np.sign(state.a[own])[:, None] * u - heading)


def _most(rtol: float) -> float:
    """The largest lag: its third power is missed of the direction, where the nodes resolve it."""
    return float(LAG * np.cbrt(rtol))


def without(state: State, ride: NDArray[np.bool_]) -> State:
    """The state in which riders are nothing: nothing moves these."""
    left = state.copy()
    left.a[ride], left.w[ride] = 0.0, 0.0
    return left


def room(at: Start, ride: NDArray[np.bool_], rtol: float) -> float:
    """The step in which no rider comes near the tolerance, at the pace of now."""
    left = _level(at.problem, rtol) - 0.5 * FAR - at.state.log_outputs(at.problem)[ride]
    return float((0.45 * left / at.speeds[at.classes.cid[ride]]).min())


def carried(at: Start, ride: NDArray[np.bool_], stretch: Stretch, end: State, rtol: float) -> Ride:
    """The end of a step with its riders, if all of them can ride all the way.

    One may come too near the tolerance, a slide of it may end, or it turns to a plane or too fast.
    """
    problem, was = at.problem, at.state
    end.a[ride], end.w[ride], end.mode[ride] = was.a[ride], was.w[ride], was.mode[ride]
    end.still_sigma[ride] = was.still_sigma[ride] - problem.decay * stretch.step
    end.sigma = end.sigma.copy()
    forces, rays = np.vstack([at.c, stretch.c]), on_rays(at)
    straight, aligned = np.flatnonzero(ride & rays), np.flatnonzero(ride & ~rays)
    if len(straight):
        pulls = _pulls_on(at, straight, forces)
        if not _hold(pulls):
            return Ride(None)
        w, weights = was.w[straight], stretch.step * tableau.RADAU_A[-1]
        pull = np.einsum("s,csd->cd", weights, pulls.g[:, 1:])[pulls.which]
        along = np.einsum("kd,kd->k", pull, w) / np.linalg.norm(w, axis=1)
        end.sigma[straight] += np.sign(was.a[straight]) * along
    if len(aligned):
        pulls = _pulls_on(at, aligned, forces)
        if not _hold(pulls):
            return Ride(None)
        failed = _follow(at, aligned, pulls, stretch.step, end, rtol)
        if failed is not None:
            return failed
    near = end.log_outputs(problem)[ride].max() > _level(problem, rtol) - 0.25 * FAR
    return Ride(None) if near else Ride(end)


def _follow(
    at: Start, own: Indices, pulls: Pulls, step: float, end: State, rtol: float
) -> Ride | None:
    """Carry aligned riders to ``end``; how they failed to ride, or None."""
    problem, was = at.problem, at.state
    rows, which, sign = pulls.rows, pulls.which, np.sign(was.a[own])
    speed = np.linalg.norm(pulls.g, axis=2)
    if speed.min() <= 0.0:
        return Ride(None)
    heading = pulls.g / speed[:, :, None]
    lags = lag.follow(heading, speed, step, _beside(was, own, pulls.g[which, 0]), which)
    if lags.size.max() > _most(rtol):
        return Ride(None, shorter=False)
    off = np.maximum(lags.size, rtol * problem.rate / speed.min(axis=1))
    if not _clear(problem, pulls, heading, sign, 10.0 * off):
        return Ride(None)
    grown = step * (speed[:, 1:] @ tableau.RADAU_A[-1])
    end.sigma[own] += grown[which] - lags.missed
    turned = sign[:, None] * (heading[which, -1] + lags.end)
    for k in np.flatnonzero((rows.face == SLIDE).any(axis=1)[which]).tolist():
        land(turned[k], rows.face[which[k]] == SLIDE, problem.planes)
    sizes = np.linalg.norm(was.w[own], axis=1) / np.linalg.norm(turned, axis=1)
    end.w[own] = turned * sizes[:, None]
    end.still_sigma[own[~rows.ray[which]]] = np.nan
    return None


def lasting(at: Start, rtol: float) -> Start:
    """The start without the riders that clearly shrink: where the others rest, these fade away.

    If there are no others it is a plateau.
    """
    problem, state, rows = at.problem, at.state, at.classes
    fading = riders(at, rtol, GONE)
    own = np.flatnonzero(fading)
    if not len(own):
        return at
    pulls, w = _pulls_on(at, own, at.c[None]), state.w[own]
    growth = np.einsum("kd,kd->k", w, pulls.g[pulls.which, 0]) / np.linalg.norm(w, axis=1)
    fading[own] = np.sign(state.a[own]) * growth - problem.decay < -rtol * problem.rate
    alone = fading[rows.cid >= 0].all()
    return at if alone or not fading.any() else begin_at(problem, without(state, fading))


def _hold(pulls: Pulls) -> bool:
    """Whether neurons that slide go on to do so: weights in [0, 1]."""
    slides = (pulls.rows.face == SLIDE)[:, None]
    below, above = np.minimum(pulls.low, pulls.high), np.maximum(pulls.low, pulls.high)
    return not (slides & ((pulls.f < below) | (pulls.f > above))).any()


def _clear(problem: Problem, pulls: Pulls, heading: Array, sign: Array, off: Array) -> bool:
    """Whether neurons of these signs stay on their sides of planes, as far as ``off`` the headings.

    These (C, S + 1, d) are at the start and the nodes; Bernstein coefficients enclose them on the
    way.
    """
    face = pulls.rows.face
    side = np.where(face == ABOVE, 1.0, -1.0)[:, None]
    z = side * np.einsum("ks,csp->ckp", tableau.TABLES.force, heading @ problem.planes.U.T)
    for s in np.unique(sign):
        kinds = np.unique(pulls.which[sign == s])
        clear = s * z[kinds] > off[kinds, None, None]
        if not (clear | (face[kinds] == SLIDE)[:, None]).all():
            return False
    return True


def _level(problem: Problem, rtol: float) -> float:
    """What all neurons together may add to outputs without notice, for one of them."""
    return float(np.log(rtol * problem.output_scale / len(problem.sign)))
