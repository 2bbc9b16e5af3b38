r"""When the limit is known: a bound on all motion still to come.

With the modes fixed the outputs obey :math:`\dot h = \hat K c`. In the eigenvectors of the linear
system the residual decays at the rates :math:`\lambda_k`, so a neuron turns by at most

.. math:: Q = \int_0^\infty |g|\,dt \le \kappa \|X\| \sum_k |r_k| / \lambda_k .

Once Q is below the tolerance and below every margin of a pair that does not slide, no event can
happen and the weights are within ``expm1(Q)`` of their limit. Residuals in the null space of the
kernel never move: with them the limit has non-zero loss.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from reluflow.engines.flow import decayed
from reluflow.engines.flow.clock import log_slowness
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.tolerances import PATH
from reluflow.kernels.flow.forces import speeds
from reluflow.trajectory import Status

# eigenvalues below this share of the largest are zero up to rounding
RANK_CUTOFF = 1e-12
# a loss that falls by less than this share in an e-fold of time has reached its limit
AT_REST = 1e-5
# residuals below this multiple of the outputs' rounding carry no information
ROUNDING = 50.0


@dataclass(frozen=True)
class Limit:
    """A recognised limit and the bound on the distance to it."""

    status: Status
    error: float


class Stagnation:
    """Recognises a limit that cannot be certified: on a plane, or with rounding in the way.

    Over ``STEPS`` steps the loss has not moved by more than rounding although every neuron's speed
    is far below the tolerance; or it has hardly moved, by points whose small share fades. The limit
    is then stated without a bound (error inf).
    """

    STEPS = 60

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=self.STEPS)

    def find_limit(self, problem: Problem, at: Start, rtol: float) -> Limit | None:
        """Note one more step and judge the last ones."""
        self._losses.append(at.log_loss)
        if len(self._losses) < self.STEPS:
            return None
        moved = max(self._losses) - min(self._losses)
        if problem.decay:
            still = moved <= max(1e-12, 0.1 * rtol)
            return _with_decay(decayed.bound_at_rest(at, rtol)) if still else None
        slow = not problem.is_square and moved <= AT_REST
        if slow and _faded(problem, at, rtol, float(np.sqrt(rtol))):
            return Limit(Status.STATIONARY, np.inf)
        if moved > max(1e-12, 0.1 * rtol):
            return None
        if at.fastest > 0.1 * rtol * problem.rate:
            return None
        resting = _square(problem, at.whole, rtol, at_rest=True) if problem.is_square else None
        return resting or _unbounded(problem, at)


def find_limit(problem: Problem, at: Start, rtol: float) -> Limit | None:
    """The limit the run is about to reach, if it can be certified now."""
    if problem.decay:
        return _with_decay(decayed.bound(at, rtol))
    if not len(at.classes.face):
        perfect = problem.is_square and np.abs(problem.y - at.h).max() <= ROUNDING * at.rounding
        return Limit(Status.CONVERGED if perfect else Status.STATIONARY, 0.0)
    # a speed is at most the path still to go times the fastest rate: most steps end the test here
    noise = 2.0 * ROUNDING * at.rounding * problem.kappa * problem.spectral_norm
    if problem.is_square and at.fastest > max(PATH * rtol * at.stiffness, noise):
        return None
    at_rest = at.fastest <= 1e-15 * problem.rate
    if problem.is_square:
        found = _square(problem, at.whole, rtol, at_rest)
    else:
        found = _margin(problem, at, rtol)
    return _unbounded(problem, at) if found is None and at_rest else found


def _with_decay(error: float | None) -> Limit | None:
    """With weight decay no limit has loss zero."""
    return None if error is None else Limit(Status.STATIONARY, error)


def _unbounded(problem: Problem, at: Start) -> Limit:
    """A limit without a bound on the distance to it."""
    return Limit(Status.CONVERGED if _fits(problem, at) else Status.STATIONARY, np.inf)


def _fits(problem: Problem, at: Start) -> bool:
    """Whether the loss is zero up to rounding."""
    if not problem.is_square:
        return False
    small = max(1e-10 * problem.output_scale, ROUNDING * at.rounding)
    return bool(np.abs(problem.y - at.h).max() <= small)


def _square(problem: Problem, at: Start, rtol: float, at_rest: bool) -> Limit | None:
    """The bound from the linear system; ``at_rest`` takes it even where rounding is in the way."""
    values, vectors = at.eigen
    residual = vectors.T @ (problem.y - at.h)
    moving = values > RANK_CUTOFF * max(float(values.max()), 1e-300)
    still = vectors[:, ~moving] @ residual[~moving]
    if len(at.classes.face):
        # dormant neurons hardly enter the kernel, yet a force on one of them means escape
        speed = float(speeds(problem.kappa * still, at.classes, problem.planes).max())
        if speed > 1e-12 * problem.rate:
            return None
    path = (
        problem.kappa
        * problem.spectral_norm
        * float((np.abs(residual[moving]) / values[moving]).sum())
    )
    floor = at_rest or float(np.abs(residual[moving]).max(initial=0.0)) <= ROUNDING * at.rounding
    if path > PATH * rtol and not floor:
        return None
    if path > 0.5 * _smallest_margin(problem, at) and not floor:
        return None
    with np.errstate(over="ignore"):  # at rest without a bound: infinite
        error = float(np.expm1(path)) * _norm(at)
    zero_loss = float(np.abs(still).max(initial=0.0)) <= max(
        1e-10 * problem.output_scale, ROUNDING * at.rounding
    )
    return Limit(Status.CONVERGED if zero_loss else Status.STATIONARY, error)


def _margin(problem: Problem, at: Start, rtol: float) -> Limit | None:
    """A limit of a classification loss away from zero: a minimum, or points that cannot be fitted.

    Where some points stay behind, the others' shares fade like one over the clock and the weights
    grow without end, ever more slowly: the loss has a limit, the weights have none (error inf).
    """
    if _faded(problem, at, rtol, rtol):
        return Limit(Status.STATIONARY, np.inf)
    if at.fastest > PATH * rtol * at.stiffness:  # no rate is larger, as no share is
        return None
    at = at.whole
    values, vectors = np.linalg.eigh(at.kernel)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    jacobian = problem.force_jacobian(at.h)
    rates, modes = np.linalg.eigh(0.5 * root.T @ (jacobian + jacobian.T) @ root)
    moving = rates > RANK_CUTOFF * max(float(rates.max()), 1e-300)
    # along the others the shares do not change: what moves there goes on for ever
    endless = (modes.T @ (root.T @ at.c))[~moving]
    if not moving.any() or np.linalg.norm(endless) > PATH * rtol * problem.rate * _norm(at):
        return None
    path = at.fastest / float(rates[moving].min())
    if path > PATH * rtol or path > 0.5 * _smallest_margin(problem, at):
        return None
    return Limit(Status.STATIONARY, float(np.expm1(2 * path)) * _norm(at))


def _faded(problem: Problem, at: Start, rtol: float, least: float) -> bool:
    """Whether points with shares of at most ``least`` together are all that moves the weights."""
    shares = np.abs(at.c)
    order = np.argsort(shares)
    fading = np.zeros(len(shares), np.bool_)
    fading[order] = np.cumsum(shares[order]) <= least
    if not fading.any():
        return False
    lasting = speeds(np.where(fading, 0.0, at.c), at.classes, problem.planes).max()
    return bool(lasting <= 10.0 * rtol * problem.rate and _fall(problem, at.whole) <= AT_REST)


def _fall(problem: Problem, at: Start) -> float:
    r"""How fast a classification loss still falls: :math:`-d \log L / d \log t`.

    With forces :math:`G c` in time, :math:`-\dot L = G^2 c^T \hat K c`; formed in logs.
    """
    power = float(at.c @ at.kernel @ at.c)
    if power <= 0.0:
        return 0.0
    log_g = -log_slowness(problem, at.h)
    log_fall = 2.0 * log_g + float(np.log(power)) + at.state.log_t - at.log_loss
    return float(np.exp(min(log_fall, 700.0)))


def _smallest_margin(problem: Problem, at: Start) -> float:
    """Smallest boost that could bring a living neuron to a plane it does not slide on."""
    living = at.classes.cid >= 0
    sizes = np.maximum(at.state.sizes(problem.hidden), 1e-300)[:, None]
    margins = np.where(at.state.mode >= 2, np.inf, np.abs(at.neurons.z) / sizes)
    return float(margins[living].min(initial=np.inf))


def _norm(at: Start) -> float:
    squares = at.neurons.weight * (at.state.a**2 + np.einsum("jd,jd->j", at.state.w, at.state.w))
    return float(np.sqrt(squares[at.classes.cid >= 0].sum()))
