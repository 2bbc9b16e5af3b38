r"""The next change of the activation pattern, or the proof that none will come.

A pair (neuron, point) moves by :math:`p(t) = p + \sum_e D_e (1 - \rho_e^t)` (`modes`).
Over an interval of iterations its values are enclosed twice, and the tighter bounds count:

1. each :math:`\rho_e^t` lies between its values at the ends (in :math:`\pm|\rho_e|^s` from s on,
   for negative :math:`\rho_e`);
2. the chord through the exact values at the ends, from which p differs by at most
   :math:`(e - s)^2/8` times the largest curvature, :math:`p'' = -\sum_e D_e \ln^2(\rho_e) \rho_e^t`
   enclosed as in 1. This is what decides pairs that come close to zero.

Intervals are examined earliest first, from ``[1, inf)``: pairs whose bounds keep their sign are
done with, for the others the interval is split, down to single iterations, which are evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.descent.limit.modes import EPS, Modes

SLACK = 1e-12  # relative size below which a pre-activation counts as possibly zero
MAX_INTERVALS = 4000
CHUNK = 2**20  # numbers of a block of pairs

Rows = NDArray[np.intp]


class Ahead(NamedTuple):
    """First change of the pattern, and the first iteration of which nothing is known.

    Both count from the present state and are infinite where there is none. Before the smaller of
    them the pattern is what it is now.
    """

    change: float
    undecided: float


def look_ahead(modes: Modes) -> Ahead:
    r"""Find the first t >= 1 at which the pattern differs, or the proof that it never does.

    Numerics
    --------
    Signs are trusted down to 1e-12 of the sizes that make up a pre-activation. Undecided: values
    or limits closer to zero than that, a mode that does not decay, or more than 4000 intervals. A
    pair whose distance to zero is a part q of its motion takes about ``q**-0.5`` intervals.
    """
    if modes.slowest >= 1.0:
        return Ahead(math.inf, 1.0)
    change = undecided = math.inf
    neurons, points = np.nonzero(_moving(modes))
    size = max(1, CHUNK // max(1, len(modes.rho)))
    for k in range(0, len(neurons), size):
        pairs = _pairs(modes, neurons[k : k + size], points[k : k + size])
        found = _search(pairs, modes, min(change, undecided))
        change, undecided = min(change, found.change), min(undecided, found.undecided)
    return Ahead(math.inf, undecided) if undecided < change else Ahead(change, math.inf)


@dataclass(frozen=True)
class _Pairs:
    """Pairs (neuron, point): value, sign, coefficients ``D`` and what rounding may hide."""

    p: Array
    active: NDArray[np.bool_]
    D: Array
    tol: Array

    def keep(self, rows: Rows) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(self.p[rows], self.active[rows], self.D[rows], self.tol[rows])


def _moving(modes: Modes) -> NDArray[np.bool_]:
    """Pairs whose bounds over all iterations allow a change of sign."""
    ends = np.where(modes.rho < 0.0, 1.0 - modes.rho, 1.0)  # largest 1 - rho^t
    up = (np.maximum(modes.Q, 0.0) @ ends)[modes.classes] * modes.a[:, None]
    down = (np.minimum(modes.Q, 0.0) @ ends)[modes.classes] * modes.a[:, None]
    reach = SLACK * (np.abs(modes.P) + np.abs(up) + np.abs(down))
    lowest = modes.P + np.minimum(np.minimum(up, down), 0.0)
    highest = modes.P + np.maximum(np.maximum(up, down), 0.0)
    return np.asarray(np.where(modes.active, lowest <= reach, highest > -reach))


def _pairs(modes: Modes, neurons: Rows, points: Rows) -> _Pairs:
    D = modes.a[neurons, None] * modes.Q[modes.classes[neurons], points]
    p = modes.P[neurons, points]
    return _Pairs(p, modes.active[neurons, points], D, SLACK * (np.abs(p) + np.abs(D).sum(axis=1)))


def _search(pairs: _Pairs, modes: Modes, horizon: float) -> Ahead:
    """Look for the first change before ``horizon``."""
    stack: list[tuple[float, float, _Pairs]] = [(1.0, math.inf, pairs)]
    for _ in range(MAX_INTERVALS):
        if not stack or stack[-1][0] >= horizon:
            return Ahead(math.inf, math.inf)
        begin, end, pairs = stack.pop()
        if begin == end:
            p = pairs.p + pairs.D @ modes.progress(begin)
            if (np.where(pairs.active, -p, p) > pairs.tol).any():
                return Ahead(begin, math.inf)
            if (np.abs(p) <= pairs.tol).any():
                return Ahead(math.inf, begin)
            continue
        open_pairs = np.flatnonzero(~_keep_signs(pairs, modes, begin, end))
        if not len(open_pairs):
            continue
        if math.isinf(end) and modes.slowest**begin < EPS * SLACK:
            return Ahead(math.inf, begin)
        middle = 2.0 * begin if math.isinf(end) else begin + math.floor((end - begin) / 2.0)
        left = pairs.keep(open_pairs)
        stack += [(middle + 1.0, end, left), (begin, middle, left)]
    return Ahead(math.inf, stack[-1][0] if stack else math.inf)


def _keep_signs(pairs: _Pairs, modes: Modes, begin: float, end: float) -> NDArray[np.bool_]:
    """Which pairs keep their sign over ``begin .. end``, by the bounds of this module's head."""
    early, late = modes.progress(begin), modes.progress(end)
    swings = modes.rho < 0.0
    size = np.abs(modes.rho) ** begin
    first, last = np.where(swings, 1.0 - size, early), np.where(swings, 1.0 + size, late)
    up, down = np.maximum(pairs.D, 0.0), np.minimum(pairs.D, 0.0)
    lowest, highest = up @ first + down @ last, up @ last + down @ first
    if math.isfinite(end):
        low, high = _chord(pairs.D, modes, begin, end, size)
        lowest, highest = np.maximum(lowest, low), np.minimum(highest, high)
    below, above = pairs.p + lowest, pairs.p + highest
    return np.asarray(np.where(pairs.active, below > pairs.tol, above <= -pairs.tol))


def _chord(D: Array, modes: Modes, begin: float, end: float, size: Array) -> tuple[Array, Array]:
    """Bounds of ``D (1 - rho^t)`` from its values at the ends and its curvature."""
    swings = modes.rho < 0.0
    steady, mean = np.where(swings, 0.0, D), np.where(swings, D, 0.0).sum(axis=1)
    jitter = np.abs(D) @ np.where(swings, size, 0.0)
    values = steady @ modes.progress(begin), steady @ modes.progress(end)
    square = np.log(modes.rho, where=modes.rho > 0.0, out=np.zeros_like(modes.rho)) ** 2
    bend = -steady * square
    up, down = np.maximum(bend, 0.0), np.minimum(bend, 0.0)
    first, last = np.maximum(modes.rho, 0.0) ** begin, np.maximum(modes.rho, 0.0) ** end
    sag = (end - begin) ** 2 / 8.0
    low = np.minimum(*values) - sag * np.maximum(up @ first + down @ last, 0.0)
    high = np.maximum(*values) - sag * np.minimum(up @ last + down @ first, 0.0)
    return mean + low - jitter, mean + high + jitter
