r"""The path of a hidden-layer descent under the square loss, stretch by stretch.

While the activation pattern is fixed the motion is a sum of modes (`modes`), so a stretch
reaches from one change of the pattern to the next, or for ever. Where changes come in quick
succession it is iterated instead, in bursts that grow as long as that lasts. A state is a triple
``(t, B, burst)`` of iteration, duals and length of the next burst: all that follows is a function
of it, so a path can be repeated bitwise from any of its states.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.engines.descent.forms import GramForm, Rule
from reluflow.engines.descent.limit.boundary import boundary_limit
from reluflow.engines.descent.limit.events import EventLog
from reluflow.engines.descent.limit.modes import EPS, Modes, modes
from reluflow.engines.descent.limit.next import look_ahead
from reluflow.engines.descent.record import LARGEST
from reluflow.engines.descent.run import ENDS, ceiling, time_is_up
from reluflow.kernels.descent.weights import DIVERGED, DONE
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.trajectory import Status

DENSE = 64  # changes closer than this make the next burst longer
LONGEST_BURST = 4096
SMALL = 1e-9  # residuals below this, relative to the labels, may belong to a limit on a boundary
MAX_ITERATED = 10_000_000  # iterations in bursts after which a run that proves nothing is given up


class Mark(NamedTuple):
    """A state from which the run can be continued."""

    t: int
    B: Array
    burst: int


class Stretch(NamedTuple):
    """A part of the run: ``length`` steps (inf at the end) by modes, or iterated if None."""

    mark: Mark
    length: float
    modes: Modes | None


class Limit(NamedTuple):
    """Where a run goes: duals, a bound on their distance to the limit, whether it fits all."""

    B: Array
    error: float
    fits_all: bool


@dataclass(frozen=True)
class End:
    """How and where a run ended; its limit, and since when the pattern stays, where known."""

    status: Status
    t: int
    B: Array
    limit: Limit | None = None
    frozen_from: int | None = None
    reason: str = ""


class Path:
    """The motion of one network: stretches, and states on them."""

    def __init__(self, data: Dataset, net: Network, rule: Rule) -> None:
        assert isinstance(rule.loss, Square)
        self.form = GramForm(data, net, rule)
        self.y, self.loss = data.y, rule.loss
        self.eta = rule.lr * rule.loss.kappa(data.n)
        self.origin = Mark(0, np.zeros((net.width, data.n)), 1)
        self.ceiling = ceiling(rule, self.log_loss(self.origin.B), data)

    def event_log(self) -> EventLog:
        """An empty log of the changes of the pattern from the origin on."""
        return EventLog(self.form.preactivations(self.origin.B) > 0.0)

    def log_loss(self, B: Array) -> float:
        """The log-loss with duals B."""
        P = self.form.preactivations(B)
        return self.loss.log_value(self.form.a @ np.maximum(P, 0.0), self.y)

    def stretch(self, mark: Mark) -> Stretch:
        """What happens next from a state."""
        P = self.form.preactivations(mark.B)
        found = modes(self.form.gram, self.form.a, P, self.y, self.eta)
        change, undecided = look_ahead(found)
        ahead = min(change, undecided - 1.0)
        if ahead >= mark.burst:
            return Stretch(mark, ahead, found)
        return Stretch(mark, float(mark.burst), None)

    def on_boundary(self, mark: Mark, stop: float) -> End | None:
        """The end of a run that approaches a boundary without ever settling, if that is proved.

        A run that will meet its ``stop`` on the way goes on.
        """
        P = self.form.preactivations(mark.B)
        r = self.y - self.form.a @ np.maximum(P, 0.0)
        if np.abs(r[(P > 0.0).any(axis=0)]).max(initial=0.0) > SMALL * np.abs(self.y).max():
            return None
        found = boundary_limit(self.form.gram, self.form.a, P, mark.B, self.y, self.eta)
        if found is None or self.log_loss(found.B) <= stop:
            return None
        status = Status.CONVERGED if found.fits_all else Status.STATIONARY
        return End(status, mark.t, mark.B, Limit(*found))

    def duals(self, stretch: Stretch, steps: int) -> Array:
        """Duals some steps into a stretch."""
        if steps == 0:
            return stretch.mark.B
        if stretch.modes is not None:
            return stretch.mark.B + stretch.modes.duals(float(steps))
        self.form.set_duals(stretch.mark.B)
        self.form.advance(stretch.mark.t, steps, math.nan, math.inf)
        return self.form.duals

    def follow(self, stretch: Stretch, stop: float, log: EventLog | None = None) -> Mark | End:
        """Go through a stretch of finite length; the state after it, or how it ended the run."""
        mark, steps = stretch.mark, int(stretch.length)
        burst = min(2 * mark.burst, LONGEST_BURST) if steps < DENSE else 1
        if stretch.modes is not None:
            B = self.duals(stretch, steps)
            if not self.log_loss(B) <= stop:
                return Mark(mark.t + steps, B, burst)
            steps = self.first_below(stretch, steps, stop)
            return End(Status.STOP_LOSS, mark.t + steps, self.duals(stretch, steps))
        self.form.set_duals(mark.B)
        (outcome, t, log_loss, _), changes = self.form.watch(mark.t, steps, stop, self.ceiling)
        if log is not None:
            log.add(changes)
        if outcome == DONE:
            burst = min(2 * mark.burst, LONGEST_BURST)
            return Mark(t, self.form.duals, burst)
        if outcome == DIVERGED and not math.isfinite(log_loss):
            t = max(t - 1, mark.t)
        return End(ENDS[outcome], t, self.duals(stretch, t - mark.t))

    def first_below(self, stretch: Stretch, high: int, stop: float) -> int:
        """The first step of a stretch by modes with log-loss at most ``stop``, which ``high`` has.

        The loss falls along a stretch, since every mode decays.
        """
        low = -1
        while high - low > 1:
            middle = (low + high) // 2
            if self.log_loss(self.duals(stretch, middle)) <= stop:
                high = middle
            else:
                low = middle
        return high

    def travel(
        self,
        stop: float,
        seconds: float,
        until: float,
        visit: Callable[[Mark], None],
        log: EventLog | None = None,
        begin: Mark | None = None,
    ) -> End:
        """Go from the origin to the end; ``visit`` sees every state between stretches.

        Changes of the pattern on the way go into ``log``. A run that was interrupted begins at its
        last state.

        The status is ``budget`` after so many seconds, or past the iteration ``until``; ``failed``
        after `MAX_ITERATED` iterations that proved nothing.
        """
        started, iterated, mark = time.monotonic(), 0, begin or self.origin
        visit(mark)
        if self.log_loss(mark.B) <= stop:
            return End(Status.STOP_LOSS, mark.t, mark.B)
        while True:
            stretch = self.stretch(mark)
            if math.isinf(stretch.length):
                return self.for_ever(stretch, stop)
            if stretch.modes is None:
                iterated += int(stretch.length)
                end = self.on_boundary(mark, stop)
                if end is not None:
                    return end
            after = self.follow(stretch, stop, log)
            if isinstance(after, End):
                still = after.status == Status.UNCHANGED
                at_end = Mark(after.t, after.B, 1)
                return (self.on_boundary(at_end, math.nan) if still else None) or after
            mark = after
            if log is not None:
                log.reach(mark.t, self.form.preactivations(mark.B) > 0.0)
            visit(mark)
            if time.monotonic() - started > seconds or mark.t > until:
                return End(Status.BUDGET, mark.t, mark.B, reason=time_is_up(seconds, mark.t))
            if iterated > MAX_ITERATED:
                why = f"no limit is proved after {iterated} iterations of changing patterns"
                return End(Status.FAILED, mark.t, mark.B, reason=why)

    def for_ever(self, stretch: Stretch, stop: float) -> End:
        """The end of a run whose pattern no longer changes: its limit, or the stop before it."""
        assert stretch.modes is not None
        slowest, start = stretch.modes.slowest, stretch.mark
        steps = 1.0 if slowest == 0.0 else math.ceil(math.log(EPS) / math.log(slowest))
        steps = int(min(max(steps, 1.0), LARGEST - start.t))
        last = self.duals(stretch, steps)
        if self.log_loss(last) <= stop:
            steps = self.first_below(stretch, steps, stop)
            return End(Status.STOP_LOSS, start.t + steps, self.duals(stretch, steps))
        nothing = stretch.modes.still <= 1e-12 * math.sqrt(self.y @ self.y)
        status = Status.CONVERGED if nothing else Status.STATIONARY
        return End(status, start.t + steps, last, limit(self, stretch, nothing), start.t)


def state_at(path: Path, mark: Mark, t: int, known: Stretch | None = None) -> tuple[Array, Stretch]:
    """Duals at iteration t, going on from a mark; and the stretch t lies in."""
    while True:
        same = known is not None and known.mark is mark
        stretch = known if same and known is not None else path.stretch(mark)
        if t - mark.t < stretch.length or t == mark.t:
            return path.duals(stretch, t - mark.t), stretch
        after = path.follow(stretch, math.nan)
        if isinstance(after, End):
            return path.duals(stretch, t - mark.t), stretch
        mark = after


def limit(path: Path, stretch: Stretch, fits_all: bool) -> Limit:
    r"""The limit of a run whose pattern stays, and a bound on the distance of the computed one.

    A residual r of the moving modes moves the weights by at most
    :math:`|r| / \sqrt{\kappa_{\min}}`; one correction is applied, the rest bounds the error.
    """
    found = stretch.modes
    assert found is not None
    B = stretch.mark.B + found.duals(math.inf)
    if not len(found.kappa):
        return Limit(B, 0.0, fits_all)
    a, active = path.form.a, found.active

    def left(B: Array) -> Array:
        r = path.y - a @ np.where(active, path.form.preactivations(B), 0.0)
        return np.asarray(found.U.T @ r[found.points])

    correction = np.zeros(len(path.y))
    correction[found.points] = found.U @ (left(B) / found.kappa)
    B = B + a[:, None] * active * correction
    sizes = np.abs(path.y).max() + (np.abs(a) @ np.abs(path.form.preactivations(B))).max()
    residual = math.sqrt(float((left(B) ** 2).sum())) + len(path.y) * EPS * float(sizes)
    return Limit(B, residual / math.sqrt(float(found.kappa.min())), fits_all)
