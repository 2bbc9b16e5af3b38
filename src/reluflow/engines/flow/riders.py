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
from reluflow.engines.flow import tableau
from reluflow.engines.flow.clock import panels
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start, begin_at
from reluflow.engines.flow.state import Modes, State
from reluflow.engines.flow.step import Stretch
from reluflow.engines.flow.tolerances import BURDEN, EVEN, FAR, GONE, LAG
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import ABOVE, SLIDE
from reluflow.kernels.flow.planes import land, multipliers
from reluflow.kernels.flow.plateau import any_below

MONOMIALS = np.asarray(tableau.START_RADAU_MONOMIALS)
# derivatives, at the start and the Radau nodes, of the polynomial through values there
SLOPES = (
    np.array(
        [
            [k * node ** (k - 1) if k else 0.0 for k in range(len(tableau.START_RADAU))]
            for node in tableau.START_RADAU
        ]
    )
    @ MONOMIALS
)


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
    found = small & on_rays(at)
    for k in np.unique(rows.cid[small & ~found]).tolist():
        own = np.flatnonzero(small & ~found & (rows.cid == k))
        beside = _beside(state, own, _pulls(problem, rows.face[k], at.c[None])[0])
        found[own] = np.linalg.norm(beside, axis=1) <= _most(rtol)
    return np.asarray(found)


def on_rays(at: Start) -> NDArray[np.bool_]:
    """The neurons (m,) all of which lies on the line of the pulls, in balance since the start."""
    state, rows = at.state, at.classes
    whole = ~state.still.any(axis=1) & ~np.isnan(state.still_sigma)
    return np.asarray(rows.ray[rows.cid] & whole & (at.problem.sign == 0.0) & (rows.cid >= 0))


def _beside(state: State, own: NDArray[np.int64], g: Array) -> Array:
    """How far (k, d) the directions of the neurons ``own`` are beside their pull."""
    u = state.w[own] / np.linalg.norm(state.w[own], axis=1)[:, None]
    return np.asarray(np.sign(state.a[own])[:, None] * u - g / np.linalg.norm(g))


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
    problem, was, rows = at.problem, at.state, at.classes
    forces = np.vstack([at.c, stretch.c])
    weights = stretch.step * tableau.RADAU_A[-1]
    end.a[ride], end.w[ride], end.mode[ride] = was.a[ride], was.w[ride], was.mode[ride]
    end.still_sigma[ride] = was.still_sigma[ride] - problem.decay * stretch.step
    end.sigma = end.sigma.copy()
    rays = on_rays(at)
    for k, straight in {*zip(rows.cid[ride].tolist(), rays[ride].tolist(), strict=True)}:
        own = np.flatnonzero(ride & (rows.cid == k) & (rays == straight))
        row, sign = rows.face[k], np.sign(was.a[own])
        if not all(_holds(problem, row, c) for c in forces):
            return Ride(None)
        pulls = _pulls(problem, row, forces)
        sizes = np.linalg.norm(was.w[own], axis=1)
        if straight:
            along = (weights @ pulls[1:]) @ was.w[own].T / sizes
            end.sigma[own] += sign * along
            continue
        speed = np.linalg.norm(pulls, axis=1)
        if speed.min() <= 0.0:
            return Ride(None)
        heading = pulls / speed[:, None]
        lag = _lag(heading, speed, stretch.step, _beside(was, own, pulls[0]))
        if lag.size > _most(rtol):
            return Ride(None, shorter=False)
        off = max(lag.size, rtol * problem.rate / speed.min())
        if not _clear(problem, row, heading, sign, 10.0 * off):
            return Ride(None)
        end.sigma[own] += weights @ speed[1:] - lag.missed
        turned = sign[:, None] * (heading[-1] + lag.end)
        for direction in turned if (row == SLIDE).any() else ():
            land(direction, row == SLIDE, problem.planes)
        end.w[own] = turned * (sizes / np.linalg.norm(turned, axis=1))[:, None]
        if not rows.ray[k]:
            end.still_sigma[own] = np.nan
    near = end.log_outputs(problem)[ride].max() > _level(problem, rtol) - 0.25 * FAR
    return Ride(None) if near else Ride(end)


class Lag(NamedTuple):
    """Its largest size in a step, that of each neuron at the end, and what sizes miss by it."""

    size: float
    end: Array
    missed: Array


def _lag(heading: Array, speed: Array, step: float, beside: Array) -> Lag:
    """How directions follow the headings (S + 1, d), from ``beside`` (k, d) at the start."""
    path = _smooth_lag(heading, speed, step)
    rest, pace = beside - path[0], MONOMIALS @ speed
    boost = step * float(tableau.RADAU_A[-1] @ speed[1:])
    # what began beside the path fades near the start: panels shrink towards it
    tau, share = panels(int(np.clip(np.ceil(np.log2(boost)), 0, 60)))
    powers = (1.0 - tau)[:, None] ** np.arange(len(pace))
    turned = step * (1.0 - tau) * (powers @ (pace / np.arange(1, len(pace) + 1)))
    there, weights = powers @ (MONOMIALS @ path), step * np.exp(share) * (powers @ pace)
    missed = 0.5 * weights @ np.square(there).sum(axis=1)
    missed = missed + rest @ ((weights * np.exp(-turned)) @ there)
    missed -= 0.25 * np.expm1(-2.0 * boost) * np.square(rest).sum(axis=1)
    size = max(np.linalg.norm(part, axis=1).max() for part in (path, beside))
    return Lag(float(size), path[-1] + np.exp(-boost) * rest, missed)


def _smooth_lag(heading: Array, speed: Array, step: float) -> Array:
    """A lag (S + 1, d) at the start and the nodes that nothing fades from.

    In a short step it begins with zero and is that of Radau collocation; in a long one it is the
    polynomial that obeys the equation at the start, too.
    """
    slopes, A = SLOPES @ heading / step, tableau.RADAU_A
    if step * speed.max() > 1.0:
        return np.asarray(np.linalg.solve(SLOPES / step + np.diag(speed), -slopes))
    nodes = np.linalg.solve(np.eye(len(A)) + step * A * speed[1:], -step * A @ slopes[1:])
    return np.vstack([np.zeros_like(slopes[:1]), nodes])


def lasting(at: Start, rtol: float) -> Start:
    """The start without the riders that clearly shrink: where the others rest, these fade away.

    If there are no others it is a plateau.
    """
    problem, state, rows = at.problem, at.state, at.classes
    fading = riders(at, rtol, GONE)
    if not fading.any():
        return at
    for k in np.unique(rows.cid[fading]).tolist():
        own = np.flatnonzero(fading & (rows.cid == k))
        g, w = _pulls(problem, rows.face[k], at.c[None])[0], state.w[own]
        growth = np.sign(state.a[own]) * (w @ g) / np.linalg.norm(w, axis=1)
        fading[own] = growth - problem.decay < -rtol * problem.rate
    alone = fading[rows.cid >= 0].all()
    return at if alone or not fading.any() else begin_at(problem, without(state, fading))


def _pulls(problem: Problem, row: Modes, forces: Array) -> Array:
    """Pulls (S, d) on a neuron of this row in forces (S, n)."""
    planes = problem.planes
    low, high = on_planes(np.ascontiguousarray(forces), planes)
    return np.array(
        [multipliers(low[k], high[k], row, planes.gram) @ planes.U for k in range(len(low))]
    )


def _holds(problem: Problem, row: Modes, c: Array) -> bool:
    """Whether a neuron that slides goes on to do so in forces ``c``: weights in [0, 1]."""
    slides = row == SLIDE
    if not slides.any():
        return True
    low, high = (pair[0] for pair in on_planes(c[None], problem.planes))
    f = multipliers(low, high, row, problem.planes.gram)[slides]
    ends = np.sort([low[slides], high[slides]], axis=0)
    return bool((f >= ends[0]).all() and (f <= ends[1]).all())


def _clear(problem: Problem, row: Modes, heading: Array, sign: Array, off: float) -> bool:
    """Whether neurons of these signs stay on their sides of planes, as far as ``off`` the headings.

    These (S + 1, d) are at the start and the nodes; Bernstein coefficients enclose them on the way.
    """
    z = tableau.TABLES.force @ (heading @ problem.planes.U[row != SLIDE].T)
    side = np.where(row[row != SLIDE] == ABOVE, 1.0, -1.0)
    return all(bool((s * side * z > off).all()) for s in np.unique(sign))


def _level(problem: Problem, rtol: float) -> float:
    """What all neurons together may add to outputs without notice, for one of them."""
    return float(np.log(rtol * problem.output_scale / len(problem.sign)))
