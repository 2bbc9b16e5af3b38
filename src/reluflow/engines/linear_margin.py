r"""Gradient flow of models with fixed features under the exponential and logistic losses.

With features ``U diag(sigma) V^T`` weights are :math:`\theta_0 + V \zeta` and outputs
:math:`h_0 + U \sigma \zeta`. In the clock s of the total force, :math:`ds = G\,dt`,

.. math:: \frac{d\zeta}{ds} = \sigma\, U^\top (y \circ p), \qquad
          \frac{d \log t}{ds} = \frac{1}{t\, G},

with shares p that sum to one: margins grow at an even pace and nothing underflows. The equations
are smooth and, late, stiff. They are solved by extrapolation of the linearly implicit Euler method
(Deuflhard 1985): ``ORDER`` runs of 1, 2, 3, ... steps over the same stretch, whose error is a power
series in the step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array
from reluflow.engines import checkpoints
from reluflow.geometry.linear_model import EPS, LinearModel
from reluflow.losses import Exponential, Loss, Square
from reluflow.statuses import Status

ORDER = 8
FIRST = 1e-2  # the first step, in units of the fastest mode
LATE = 0.1  # share of an e-fold of time in which G falls by one, late in training it is 1
MOST_REJECTED = 60  # steps in a row
LONG, LEVEL, LITTLE = 1e6, 1e-8, 1e-3  # see `_is_level`
REST = 1e-13  # a total pull below this share of its parts is none
LATEST = 1e15  # log t at which a run that cannot reach its stop is given up


class Point(NamedTuple):
    """A moment of a run: displacement in the modes, logarithms of time and loss."""

    zeta: Array
    log_t: float
    log_loss: float


@dataclass(frozen=True)
class Stops:
    """Where a run ends, at the latest."""

    log_t: float
    log_loss: float
    seconds: float = math.inf


@dataclass(frozen=True, eq=False)
class Margins:
    """The flow of one linear model: outputs, pulls, and one step of the solver."""

    model: LinearModel
    loss: Loss
    rtol: float

    def margins(self, zeta: Array) -> Array:
        """Margins of the points."""
        spectrum = self.model.spectrum
        h = self.model.start_outputs + spectrum.U @ (spectrum.sigma * zeta)
        return np.asarray(self.model.data.y * h)

    def point(self, zeta: Array, log_t: float) -> Point:
        """A moment with its loss."""
        y = self.model.data.y
        return Point(zeta, log_t, self.loss.log_value(y * self.margins(zeta), y))

    def pull(self, zeta: Array) -> tuple[Array, float]:
        """``dzeta/ds`` and the logarithm of the total force."""
        assert not isinstance(self.loss, Square)
        spectrum, q = self.model.spectrum, self.margins(zeta)
        shares = self.model.data.y * self.loss.shares(q)
        return spectrum.sigma * (spectrum.U.T @ shares), self.loss.log_total_force(q)

    def rounding(self, zeta: Array) -> float:
        """A total pull below this is none: that of outputs rounded as sums of this size."""
        longest = float(self.model.spectrum.sigma[0])
        size = float(np.abs(self.model.start_outputs).max() + longest * np.linalg.norm(zeta))
        return longest * max(REST, 64.0 * EPS * size)

    def jacobian(self, zeta: Array) -> tuple[Array, Array]:
        """Derivatives of the pull, and of minus the logarithm of the total force.

        Shares change by ``p_i (sum_j w_j dq_j) - w_i dq_i``, the logarithm by ``-sum_j w_j dq_j``.
        """
        assert not isinstance(self.loss, Square)
        spectrum, q = self.model.spectrum, self.margins(zeta)
        p = self.loss.shares(q)
        w = p if isinstance(self.loss, Exponential) else p / (1.0 + np.exp(-q))
        rows = self.model.data.y[:, None] * spectrum.U * spectrum.sigma
        fall = w @ rows
        return np.outer(rows.T @ p, fall) - rows.T @ (w[:, None] * rows), fall

    def step(self, start: Point, size: float) -> tuple[Point, float]:
        """The point after ``size`` of the clock, and its error in units of the tolerance.

        Time is carried as ``t G_0``, and as a logarithm where G falls while t grows as much.
        """
        linear, (pull, log_force) = self.jacobian(start.zeta), self.pull(start.zeta)
        passed = start.log_t + log_force  # log of t G
        falls = float(linear[1] @ pull)  # minus the derivative of log G
        is_late = falls > 0.0 and passed + math.log(falls) > math.log(LATE)
        table: list[Array] = []
        for j in range(1, ORDER + 1):
            row = [self._euler(start, linear, size / j, j, log_force, is_late)]
            for k in range(1, j):
                row.append(row[-1] + (row[-1] - table[k - 1]) / (j / (j - k) - 1.0))
            table = row
        change, error = table[-1], np.abs(table[-1] - table[-2])
        zeta = start.zeta + change[:-1]
        least = 1.0 / float(self.model.spectrum.sigma[0])
        size_of = max(float(np.linalg.norm(zeta)), least)
        if is_late:
            log_t = start.log_t + float(change[-1])
            unit = max(1.0, abs(log_t))  # relative, as for the weights: log t is a margin
        else:
            before = math.exp(passed)
            unit = before + float(change[-1])
            log_t = math.log(unit) - log_force if unit > 0.0 else -math.inf
        wrong = max(
            float(np.linalg.norm(error[:-1])) / size_of, float(error[-1]) / max(unit, 1e-300)
        )
        found = self.point(zeta, log_t)
        good = np.isfinite(zeta).all() and log_t > start.log_t and math.isfinite(wrong)
        return found, wrong / (0.1 * self.rtol) if good else math.inf

    def _euler(
        self,
        start: Point,
        linear: tuple[Array, Array],
        size: float,
        count: int,
        log_force: float,
        is_late: bool,
    ) -> Array:
        """The change after ``count`` linearly implicit steps; the last entry is that of time."""
        J, fall = linear
        inverse = np.linalg.inv(np.eye(len(J)) - size * J)
        zeta, moved, clock = start.zeta, np.zeros(len(J)), 0.0
        rate = math.exp(-log_force - start.log_t) if is_late else 0.0
        for _ in range(count):
            pull, now = self.pull(zeta)
            change = inverse @ (size * pull)
            if is_late:
                speed = math.exp(min(-now - start.log_t - clock, 700.0))
                clock += size * (speed + rate * float(fall @ change)) / (1.0 + size * rate)
            else:
                clock += size * math.exp(min(log_force - now, 700.0))
            moved = moved + change
            zeta = start.zeta + moved
        return np.append(moved, clock)

    def landed(self, start: Point, size: float, wanted: Callable[[Point], float]) -> Point:
        """The point within a step of ``size`` where a rising function passes zero (Illinois)."""
        low, high, low_value = 0.0, size, wanted(start)
        point = self.step(start, size)[0]
        high_value = wanted(point)
        for _ in range(60):
            if high_value == low_value or not math.isfinite(low_value):
                middle = 0.5 * (low + high)
            else:
                middle = high - high_value * (high - low) / (high_value - low_value)
            if not low < middle < high or high - low <= 1e-15 * high:
                break
            point = self.step(start, middle)[0]
            value = wanted(point)
            if value >= 0.0:
                low_value *= 0.5 if value * high_value > 0.0 else 1.0
                high, high_value = middle, value
            else:
                high_value *= 0.5
                low, low_value = middle, value
            if abs(value) <= 1e-13:
                break
        return point


class Result(NamedTuple):
    """What a run came to; ``limit`` is the displacement in a limit."""

    points: list[Point]
    status: Status
    reason: str = ""
    limit: Array | None = None
    error: float = math.nan


class _StoppedError(Exception):
    """The caller's ``stop`` said so; never leaves this module."""


def follow(
    flow: Margins,
    begin: Point,
    stops: Stops,
    *,
    stop: Callable[[], bool] | None = None,
    forgiving: bool = False,
) -> Result:
    """Integrate to the first stop, or to rest; a signal raises, or ends the run if forgiving."""
    points = [begin]
    with interrupts.deferred() as pending:

        def ask() -> None:
            pending.check()
            if stop is not None and stop():
                raise _StoppedError

        try:
            return _follow(flow, points, stops, ask)
        except _StoppedError:
            return Result(points, Status.INTERRUPTED, "the caller's `stop` asked for it")
        except KeyboardInterrupt:
            if not forgiving:
                raise
            pending.answer()
            return Result(points, Status.INTERRUPTED, checkpoints.STOPPED)


def _follow(flow: Margins, points: list[Point], stops: Stops, ask: Callable[[], None]) -> Result:
    started, longest = time.monotonic(), float(flow.model.spectrum.sigma[0])
    size, rejected = FIRST / longest**2, 0
    while True:
        start = points[-1]
        if start.log_loss <= stops.log_loss:
            return Result(points, Status.STOP_LOSS)
        if start.log_t >= stops.log_t:
            return Result(points, Status.T_END)
        if np.linalg.norm(flow.pull(start.zeta)[0]) <= flow.rounding(start.zeta):
            return _at_rest(flow, points)
        if _is_level(flow, start):
            return Result(points, Status.STATIONARY, "", start.zeta, math.inf)
        if start.log_t >= LATEST:
            reason = f"the loss asked for is not reached at log t = {LATEST:g}; it may never be"
            return Result(points, Status.FAILED, reason)
        if time.monotonic() - started > stops.seconds:
            return Result(points, Status.BUDGET, f"max_seconds = {stops.seconds:g} is used up")
        found, error = flow.step(start, size)
        rejected = rejected + 1 if error > 1.0 else 0
        if rejected > MOST_REJECTED:
            return Result(points, Status.FAILED, f"steps shrink to {size:g} without an end")
        if error > 1.0:
            size *= max(0.1, 0.9 * error ** (-1.0 / ORDER)) if math.isfinite(error) else 0.1
            continue
        points.append(_cut(flow, start, size, found, stops))
        size *= min(4.0, 0.9 * max(error, 1e-12) ** (-1.0 / ORDER))
        ask()


def _cut(flow: Margins, start: Point, size: float, found: Point, stops: Stops) -> Point:
    """The end of a step, or where it passes a stop: exactly there, so that the run sees it."""
    if found.log_loss <= stops.log_loss:
        found = flow.landed(start, size, lambda point: stops.log_loss - point.log_loss)
        found = found._replace(log_loss=min(found.log_loss, stops.log_loss))
    if found.log_t >= stops.log_t:
        found = flow.landed(start, size, lambda point: point.log_t - stops.log_t)
        found = found._replace(log_t=stops.log_t)
    return found


def _is_level(flow: Margins, point: Point) -> bool:
    """Whether the loss stays above zero while the margins of some points still grow.

    Then weights have no limit. Those points have faded, t is long beside the fastest mode, and an
    e-fold of time takes less than `LEVEL` of the loss; or little, where the pull is so small that
    its rounding moves the weights in that time by more than the tolerance.
    """
    assert not isinstance(flow.loss, Square)
    shares, (pull, log_force) = flow.loss.shares(flow.margins(point.zeta)), flow.pull(point.zeta)
    if shares.min() * len(shares) > math.sqrt(flow.rtol):
        return False
    passed = point.log_t + log_force + 2.0 * math.log(flow.model.spectrum.sigma[0])
    if passed < math.log(LONG):
        return False
    fall = point.log_t + 2.0 * log_force - point.log_loss + 2.0 * math.log(np.linalg.norm(pull))
    drift = EPS * flow.model.spectrum.sigma[0] * math.exp(min(point.log_t + log_force, 700.0))
    is_lost = drift > flow.rtol * float(np.linalg.norm(point.zeta))
    return fall <= math.log(LITTLE if is_lost else LEVEL)


def _at_rest(flow: Margins, points: list[Point]) -> Result:
    """A minimum with a finite loss: Newton's last step says how far it is."""
    zeta, gap = points[-1].zeta, math.inf
    for _ in range(4):
        try:
            move = np.linalg.solve(flow.jacobian(zeta)[0], flow.pull(zeta)[0])
        except np.linalg.LinAlgError:  # points have faded beyond the range of floats
            return Result(points, Status.STATIONARY, "", points[-1].zeta, math.inf)
        zeta, gap = zeta - move, float(np.linalg.norm(move))
    error = 2.0 * gap + 1e-15 * float(np.linalg.norm(zeta))
    return Result(points, Status.STATIONARY, "", zeta, error)
