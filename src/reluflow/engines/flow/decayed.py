r"""Limits with weight decay: stationary points of :math:`L + \mu |\theta|^2 / 2`.

At rest a neuron that counts has :math:`w \cdot g = \mu a` and :math:`a g = \mu w`: it is balanced,
aligned with its pull, and :math:`|g| = \mu`. All others fade, at :math:`\mu - |g|` or faster. On a
piece where no neuron crosses a plane the Hessian of the neurons that count is

.. math:: J^T C J + \mathrm{diag}_j \begin{pmatrix} 0 & -g_j^T \\ -g_j & 0 \end{pmatrix} + \mu I,

with the Jacobian J of the outputs and :math:`C = -dc/dh`. At rest each block with the decay has the
eigenvalues 0, :math:`\mu` and :math:`2\mu`: no saddle is made by neurons that count. The velocity v
decays at the eigenvalues, so the way still to go is at most :math:`\sum_k |v_k| / \lambda_k`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow import riders
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.tolerances import DORMANT, NOISE, PATH, RESTING
from reluflow.kernels.flow.forces import on_planes, spread
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE

# in so many e-folds of the decay a neuron that fades is gone
FADED = 100.0
# up to so many weights the Hessian is formed; beyond, a limit is stated without a bound
WEIGHTS = 600
# eigenvalues below this share of the decay are zero: neurons of one row can exchange their sizes
FLAT = 1e-6


class Motion(NamedTuple):
    """Velocities ``(a', w')`` of all neurons, in units of their log scales, and pulls (m, d)."""

    a: Array
    w: Array
    g: Array


def motion(at: Start) -> Motion:
    """The velocities at the start of a step; those of neurons that nothing moves are the decay."""
    planes, rows, state, decay = at.problem.planes, at.classes, at.state, at.problem.decay
    g = np.zeros_like(state.w)
    if len(rows.face):
        low, high = on_planes(at.c[None], planes)
        pulls = spread(low, high, rows)[:, 0] @ planes.U
        living = rows.cid >= 0
        g[living] = pulls[rows.cid[living]]
    da = np.einsum("jd,jd->j", state.w, g) - decay * state.a
    return Motion(da, state.a[:, None] * g - decay * state.w, g)


def unrest(at: Start) -> Array:
    """How fast each neuron changes, in e-folds (m,)."""
    moved = motion(at)
    speed = np.sqrt(moved.a**2 + np.square(moved.w).sum(axis=1))
    return np.asarray(speed / np.maximum(at.state.sizes(False), 1e-300))


def awake(at: Start, rtol: float) -> NDArray[np.bool_]:
    """The living neurons whose outputs count."""
    level = np.log(DORMANT * rtol * at.problem.output_scale / len(at.state.a))
    return np.asarray((at.classes.cid >= 0) & (at.state.log_outputs(at.problem) >= level))


def counting(at: Start, rtol: float) -> NDArray[np.bool_]:
    """The neurons of a limit: those whose outputs count, and small ones that rest with them."""
    slow = max(PATH * rtol * at.problem.decay, RESTING * _noise(at.problem, at))
    rests = (at.classes.cid >= 0) & (unrest(at) <= slow)
    return np.asarray(awake(at, rtol) | rests)


def bound(at: Start, rtol: float) -> float | None:
    """A bound on the distance to the limit the run is about to reach, if that can be told now."""
    problem = at.problem
    counts = counting(at, rtol)
    speed = float(unrest(at)[counts].max(initial=0.0))
    rounding = RESTING * _noise(problem, at)
    if speed > max(0.1 * rtol * problem.decay, rounding) or not fades(at, ~counts):
        return None
    norm, left = _norm(at, counts), _left(at, counts)
    if left > PATH * rtol * max(norm, 1.0):  # what fades is not gone: see `time_to_fade`
        return None
    if not counts.any():
        return left
    way = _way_to_go(at, counts, rtol)
    if way is None:
        return None
    short = way <= PATH * rtol * norm
    error = _bound(at, counts, way + left) if short else np.inf
    if np.isfinite(error) or np.isinf(way) or speed <= rounding:
        return error
    # a way that is known will be short enough, but for one who rests on a plane without a slide
    return error if short and _distance_to_planes(at, counts) <= 1e-15 * norm else None


def bound_at_rest(at: Start, rtol: float) -> float | None:
    """The same where the loss stands still: as near as rounding lets it, or infinite."""
    counts = counting(at, rtol)
    norm, left = _norm(at, counts), _left(at, counts)
    if left > PATH * rtol * max(norm, 1.0) or not fades(at, ~counts):
        return None
    way = _way_to_go(at, counts, rtol)
    if way is not None and way <= NOISE * rtol * norm:
        return _bound(at, counts, way + left)
    slow = unrest(at)[counts].max(initial=0.0) <= PATH * rtol * at.problem.decay
    return np.inf if slow else None


def time_to_fade(at: Start, rtol: float) -> float:
    """How long until all that fades is gone, where nothing else happens any more; else 0."""
    problem, counts = at.problem, counting(at, rtol)
    slow = max(PATH * rtol * problem.decay, RESTING * _noise(problem, at))
    if unrest(at)[counts].max(initial=0.0) > slow or not fades(at, ~counts):
        return 0.0
    gone = PATH * rtol * max(_norm(at, counts), 1.0)
    small = ~counts & (at.classes.cid >= 0)
    pace = np.linalg.norm(motion(at).g[small], axis=1).max(initial=0.0)
    rate = problem.decay - pace if pace < problem.decay else problem.decay
    return max(float(np.log(max(_left(at, counts), 1e-300) / gone)) + 1.0, 0.0) / rate


def _bound(at: Start, counts: NDArray[np.bool_], way: float) -> float:
    """The way to a limit, if it leads to no plane and the decay is more than rounding."""
    unknown = at.problem.decay * _norm(at, counts) <= _noise(at.problem, at)
    return np.inf if unknown or way > 0.5 * _distance_to_planes(at, counts) else way


def _norm(at: Start, counts: NDArray[np.bool_]) -> float:
    """The norm of the weights that count."""
    return float(np.linalg.norm((np.exp(at.state.sigma) * at.state.sizes(False))[counts]))


def _left(at: Start, counts: NDArray[np.bool_]) -> float:
    """The norm of what fades: the other neurons, and all that is outside the span of the points."""
    state, outside = at.state, 0.0
    if state.rest is not None:
        outside = float(np.linalg.norm(np.exp(state.rest_sigma)[:, None] * state.rest))
    return float(np.hypot(_norm(at, ~counts), outside))


def fades(at: Start, small: NDArray[np.bool_]) -> bool:
    """Whether the neurons ``small`` fade for ever: pulled less than they decay, to no plane."""
    problem, rows, state = at.problem, at.classes, at.state
    small = small & (rows.cid >= 0)
    if not small.any() or float(at.pulls.sum()) <= problem.decay:  # no pull is larger
        return True
    moved = motion(at)
    # in balance on the line of its pulls a neuron that does not grow shrinks for ever
    small &= ~(riders.on_rays(at) & (state.a * moved.a < 0.0))
    pull = moved.g[small]
    pace = np.linalg.norm(pull, axis=1)
    if (pace > problem.decay + _noise(problem, at)).any():
        return False
    # one whose output weight is the smaller may come to change its sign, and turn round
    falls = state.a * np.einsum("jd,jd->j", state.w, moved.g) < 0.0
    if (falls & (problem.sign < 0.0))[small].any():
        return False
    # it turns to its pull, and stays on its sides of planes if that is where the pull leads
    heading = np.sign(state.a[small])[:, None] * pull
    side = np.where(state.mode[small] == ABOVE, 1.0, -1.0)
    side[state.mode[small] == SLIDE] = 0.0
    towards = side * (heading @ problem.planes.U.T)
    return bool((towards >= -1e-12 * problem.rate).all())


def _noise(problem: Problem, at: Start) -> float:
    """The rounding of a pull: that of the outputs in the forces, or of their sum."""
    answer = problem.kappa if problem.is_square else float(np.abs(at.c).max())
    summed = 2e-16 * float(np.abs(at.c * problem.planes.length).sum())
    return max(at.rounding * answer * problem.spectral_norm, summed)


def _way_to_go(at: Start, counts: NDArray[np.bool_], rtol: float) -> float | None:
    """A bound on the way still to go of the neurons that count; None where some of it grows."""
    if counts.sum() * (at.problem.d + 1) > WEIGHTS:
        return np.inf
    problem, moved, scale = at.problem, motion(at), np.exp(at.state.sigma[counts])
    velocity = np.concatenate([scale * moved.a[counts], (scale[:, None] * moved.w[counts]).ravel()])
    values, vectors = np.linalg.eigh(hessian(at, counts, moved.g[counts]))
    part = np.abs(vectors.T @ velocity)
    still = part <= np.maximum(1e-3 * PATH * rtol * problem.decay, _noise(problem, at))
    if (values < -FLAT * problem.decay)[~still].any():
        return None
    flat = values <= FLAT * problem.decay
    if (flat & ~still).any():
        return np.inf
    return float((part[~flat] / values[~flat]).sum())


def hessian(at: Start, counts: NDArray[np.bool_], g: Array) -> Array:
    """The Hessian (k (d + 1), ..) of the neurons ``counts``: output weights first, then hidden."""
    problem, state, planes = at.problem, at.state, at.problem.planes
    k, d = int(counts.sum()), problem.d
    scale, mode = np.exp(state.sigma[counts]), state.mode[counts][:, planes.owner]
    side = np.where(planes.length > 0.0, ABOVE, BELOW)
    seen = np.where(mode == side, 1.0, np.where(mode == SLIDE, 0.0, planes.slope))
    points = planes.length[:, None] * planes.U[planes.owner]
    outer = seen * (state.w[counts] @ points.T) * scale[:, None]
    inner = (scale * state.a[counts])[:, None, None] * seen[:, :, None] * points[None]
    for j, row in enumerate(state.mode[counts]):
        held = planes.U[row == SLIDE]
        if len(held):
            inner[j] -= (inner[j] @ np.linalg.pinv(held)) @ held
    jacobian = np.concatenate([outer.T, inner.transpose(1, 0, 2).reshape(problem.n, k * d)], axis=1)
    if problem.is_square:
        matrix = problem.kappa * jacobian.T @ jacobian
    else:
        matrix = jacobian.T @ problem.force_jacobian(at.h) @ jacobian
    for j in range(k):
        own = slice(k + j * d, k + (j + 1) * d)
        matrix[j, own] -= g[j]
        matrix[own, j] -= g[j]
    return np.asarray(matrix + problem.decay * np.eye(len(matrix)))


def _distance_to_planes(at: Start, counts: NDArray[np.bool_]) -> float:
    """The distance of the nearest neuron to a plane that it does not slide on."""
    z = np.abs(at.neurons.z[counts]) * np.exp(at.state.sigma[counts])[:, None]
    return float(np.where(at.state.mode[counts] == SLIDE, np.inf, z).min(initial=np.inf))
