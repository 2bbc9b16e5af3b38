"""What the claims read off runs and networks on orthonormal points: half times, errors, angles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.limits import SaddleToSaddle
from reluflow.losses import logsumexp
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

NOISE = 1e-12  # a coordinate below this part of its neuron's norm is rounding of X W^T


def log_outputs(run: Trajectory) -> Array:
    """Logarithms of ``|a_j|`` at the records, (k, m)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.abs(run.kept["a"])) + run.kept["log_scale_out"])


def network_at(run: Trajectory, t: float) -> Network:
    """The network at a time; the limit beyond the last record of a run that reached it."""
    ended = t >= run.t[-1] and run.status in (Status.CONVERGED, Status.STATIONARY)
    return run.final if ended else run.at(t)


def half_time(run: Trajectory, neurons: NDArray[np.intp], Y: float, share: float = 0.5) -> float:
    """First time at which the squared output weights of a group sum to ``Y/2``; nan if never.

    Or to another share of Y.

    Numerics
    --------
    Bracketed by the records, then found by Brent's method on the run's own dense output, to 1e-13
    of the time or the accuracy of the run.
    """
    from scipy.optimize import brentq

    target = np.log(Y * share)
    logs = 2.0 * log_outputs(run)[:, neurons]
    heights = np.array([logsumexp(row) for row in logs]) - target
    above = np.flatnonzero(heights >= 0.0)
    if not len(above):
        return float("nan")
    k = int(above[0])
    if k == 0:
        return float(run.t[0])

    def height(t: float) -> float:
        return float(logsumexp(2.0 * run.at(t).log_outputs[neurons])) - float(target)

    left, right = float(run.t[k - 1]), float(run.t[k])
    if height(left) >= 0.0 or height(right) < 0.0:  # within the accuracy of the run
        return left if height(left) >= 0.0 else right
    return float(brentq(height, left, right, xtol=1e-13 * right, rtol=1e-14))


def half_times(run: Trajectory, process: SaddleToSaddle) -> Array:
    """Half times of the jumps, in the order of the limit process; nan where there is none."""
    return np.array(
        [half_time(run, g, Y) for g, Y in zip(process.groups, process.norms, strict=True)]
    )


def coordinates(net: Network, X: Array) -> Array:
    """``c_ji = w_j . x_i / |w_j|`` (m, n), with rounding replaced by zero."""
    c = net.directions @ X.T
    return np.where(np.abs(c) <= NOISE, 0.0, c)


def gradient_norm(net: Network, X: Array, y: Array, kappa: float) -> float:
    """Norm of the gradient of ``kappa/2 sum (h - y)^2``, with relu'(0) = 0; ordinary scales.

    Of a network without a run: a coordinate below `NOISE` counts as zero, hence inactive.
    """
    flat = net.flat()
    c = coordinates(flat, X) * np.exp(flat.log_norms)[:, None]
    r = y - flat.a @ np.maximum(c, 0.0)
    outputs = kappa * np.maximum(c, 0.0) @ r
    hidden = kappa * (np.where(c > 0.0, r, 0.0) * flat.a[:, None]) @ X
    return float(np.sqrt((outputs**2).sum() + (hidden**2).sum()))


def parameter_error(net: Network, limit: Network) -> float:
    """Distance of the parameters, ``|theta - theta'|``."""
    mine, other = net.flat(), limit.flat()
    return float(np.sqrt(((mine.a - other.a) ** 2).sum() + ((mine.W - other.W) ** 2).sum()))


def cosines_with_force(run: Trajectory, t: float, neurons: Sequence[int]) -> Array:
    """Cosines of ``w_j`` and ``s_j D_j`` at a time of a run, ``D_j`` the force on neuron j then."""
    net, data = network_at(run, t), run.data
    c = coordinates(net, data.X)
    felt = np.where(run.active(t=t), data.y - net.predict(data.X), 0.0)
    force = net.signs[:, None] * felt
    along = np.einsum("ij,ij->i", c, force)
    size = np.linalg.norm(force, axis=1)
    return np.asarray((along / np.where(size > 0.0, size, 1.0))[list(neurons)])
