"""Paths of yardsticks: the trace of all crossings, and the state at any time from it.

The trace stores, for each crossing, the step c of ``alpha -> alpha + |alpha| c g``. A state is then
a combination of the start and the points: no vector of R^d is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.limits.hypotheses import common_scale
from reluflow.network import Network, row_norms

_BLOCK = 2**21  # numbers in the largest temporary array of a block of neurons


@dataclass(frozen=True, eq=False)
class Paths:
    """Crossings of all neurons, flat: those of neuron j are ``offsets[j]:ends[j]``.

    ``order``, ``times``: crossed points and when. ``log_norms``: log-norm at the start of the stage
    that ends there, relative to time 0. ``steps``: the steps c. ``active`` (m, n): pattern at time
    0. ``start_log_norms``: ``log |z_j|``. Cosines are to the force: at time 0 and after the last
    crossing. ``closest``: smallest ``|ubar . xbar_i|`` of term 9 of delta.
    """

    X: Array
    force: Array
    directions: Array
    signs: Array
    start_log_norms: Array
    active: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    ends: NDArray[np.int64]
    order: NDArray[np.int32]
    times: Array
    log_norms: Array
    steps: Array
    first_cosine: Array
    first_sine: Array
    last_cosine: Array
    last_log_norm: Array
    closest: Array
    horizon: Array

    def last_times(self) -> Array:
        """Time of the last crossing of each neuron, 0 if it has none."""
        some = self.ends > self.offsets[:-1]
        last = np.zeros(len(self.ends))
        last[some] = self.times[self.ends[some] - 1]
        return last

    def state(self, t: Array) -> tuple[Array, Array]:
        """Unit directions (m, d) and log-norms (m,), neuron j at its own time ``t[j]``."""
        directions, logs = self.directions.copy(), self.start_log_norms.copy()
        moving = np.flatnonzero(self.active.any(axis=1))
        for block in _blocks(len(moving), self.X.shape[0]):
            rows = moving[block]
            unit, rho, force, elapsed = self._stage(rows, t[rows])
            directions[rows], growth = _boost(unit, force, self.signs[rows], elapsed)
            logs[rows] += rho + growth
        return directions, logs

    def _stage(self, rows: NDArray[np.intp], t: Array) -> tuple[Array, Array, Array, Array]:
        """Direction, log-norm and force at the last crossing before t, and the time since."""
        weights = np.zeros((len(rows), self.X.shape[0]))
        patterns = self.active[rows]
        rho, start = np.zeros(len(rows)), np.zeros(len(rows))
        for k, j in enumerate(rows):
            times = self.times[self.offsets[j] : self.ends[j]]
            stage = int(np.searchsorted(times, t[k], side="right"))
            last = self.offsets[j] + stage
            rho[k] = self.log_norms[last] if stage < len(times) else self.last_log_norm[j]
            start[k] = times[stage - 1] if stage else 0.0
            past = slice(self.offsets[j], last)
            done = self.order[past]
            moves = self.steps[past] * np.exp(self.log_norms[past] - rho[k])
            weights[k, patterns[k]] = moves.sum()
            # a point acts from its activation on (s = +1) or until its deactivation (s = -1)
            if self.signs[j] > 0:
                weights[k, done] = np.append(np.cumsum(moves[:0:-1])[::-1], 0.0)[:stage]
            else:
                weights[k, done] = np.cumsum(moves)
            patterns[k, done] = self.signs[j] > 0
        unit = np.exp(-rho)[:, None] * self.directions[rows] + (weights * self.force) @ self.X
        unit /= np.linalg.norm(unit, axis=1)[:, None]
        return unit, rho, (patterns * self.force) @ self.X, t - start


def trace(data: Dataset, net: Network) -> Paths:
    """Find every crossing of every neuron; see `reluflow.kernels.yardsticks`.

    A neuron that starts exactly on the plane of a point starts inactive there.
    """
    from reluflow.kernels import yardsticks as kernel

    m, n = net.width, data.n
    force, gram, norms = data.y / n, np.ascontiguousarray(data.gram), np.linalg.norm(data.X, axis=1)
    # products with W rather than with its directions: z.x may be tiny and exact, and rounding a
    # direction would blur it; a power of two keeps every digit
    W = np.ldexp(net.mantissa.W, -np.frexp(np.abs(net.mantissa.W).max(axis=1))[1][:, None])
    lengths = np.maximum(row_norms(W), np.finfo(float).tiny)[:, None]
    active = np.empty((m, n), dtype=np.bool_)
    for block in _blocks(m, n):
        active[block] = W[block] @ data.X.T > 0.0
    alive = active.sum(axis=1, dtype=np.int64)
    counts = np.where(net.signs > 0, n - alive, alive) * (alive > 0)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    order = np.full(offsets[-1], -1, dtype=np.int32)
    times, log_norms, steps = (np.full(offsets[-1], np.nan) for _ in range(3))
    summary, sines = np.empty((m, 6)), np.empty(m)
    points = kernel.Points(gram, force, 1.0 / norms)
    for block in _blocks(m, n):
        weights = active[block] * force
        sines[block] = _split(net.directions[block], weights @ data.X)[-1]
        kernel.crossings(
            (W[block] @ data.X.T) / lengths[block],
            weights @ gram,
            points,
            net.signs[block],
            sines[block],
            offsets[block.start : block.stop + 1],
            kernel.Trace(order, times, log_norms, steps, summary[block]),
        )
    for array in (order, times, log_norms, steps):
        array.setflags(write=False)
    return Paths(
        X=data.X,
        force=force,
        directions=net.directions,
        signs=net.signs,
        start_log_norms=net.with_scale(common_scale(net)[1]).log_norms,
        active=active,
        offsets=offsets,
        ends=offsets[:-1] + summary[:, kernel.DONE].astype(np.int64),
        order=order,
        times=times,
        log_norms=log_norms,
        steps=steps,
        first_cosine=summary[:, kernel.FIRST_COSINE],
        first_sine=sines,
        last_cosine=summary[:, kernel.LAST_COSINE],
        last_log_norm=summary[:, kernel.LAST_LOG_NORM],
        closest=summary[:, kernel.CLOSEST],
        horizon=summary[:, kernel.HORIZON],
    )


def _boost(unit: Array, force: Array, signs: Array, elapsed: Array) -> tuple[Array, Array]:
    """Directions and log growth after constant forces have acted for the times ``elapsed``."""
    size, along, cosine, perpendicular, sine = _split(unit, force)
    angle = size * elapsed
    # 1 +- cosine, the small one from the sine: the difference of two nearly equal numbers is lost
    far = 1.0 + np.abs(cosine)
    near = sine**2 / far
    ahead = np.where(signs * cosine >= 0, far, near)
    behind = np.where(signs * cosine >= 0, near, far)
    with np.errstate(divide="ignore"):
        up, down = np.log(ahead) + angle, np.log(behind) - angle
    twice = np.logaddexp(up, down)  # log of 2 |alpha|
    component = signs * (np.exp(up - twice) - np.exp(down - twice))
    sideways = 2.0 * np.exp(np.minimum(-twice, 700.0))
    moved = sideways[:, None] * perpendicular + component[:, None] * along
    still = size == 0.0
    moved[still] = unit[still]
    growth = np.where(still, 0.0, twice - np.log(2.0))
    return moved / np.linalg.norm(moved, axis=1)[:, None], growth


def _split(unit: Array, force: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Size and direction of the forces; cosine, perpendicular part and sine of the units."""
    size = np.linalg.norm(force, axis=1)
    along = np.divide(force, size[:, None], out=np.zeros_like(force), where=size[:, None] > 0)
    cosine = np.clip(np.einsum("ij,ij->i", unit, along), -1.0, 1.0)
    perpendicular = unit - cosine[:, None] * along
    return size, along, cosine, perpendicular, np.linalg.norm(perpendicular, axis=1)


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    height = max(1, _BLOCK // columns)
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))
