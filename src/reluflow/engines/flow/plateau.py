r"""Plateaus: while the outputs stand still, dormant neurons move in closed form.

At a small start all outputs are negligible and the forces are constants; between two saddles the
neurons that count are at rest and the forces are constants again. Each dormant neuron then follows
its own chain of boosts (`kernels.flow.plateau`), whatever its scale: a plateau costs its events,
not its length. It ends when the dormant neurons' outputs reach a hundredth of the tolerance.

With weight decay :math:`\mu` a dormant neuron grows at :math:`|g| - \mu`, and may fade for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.decayed import FADED, unrest
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.redirect import redirect
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.state import State
from reluflow.engines.flow.tolerances import CLEAR, DORMANT, RESTING, WORTHWHILE
from reluflow.kernels.flow.forces import on_planes
from reluflow.kernels.flow.layout import Neurons
from reluflow.kernels.flow.neuron import Log
from reluflow.kernels.flow.plateau import PAUSED, THROUGH, Forces, any_below, drift_all
from reluflow.losses import logsumexp

# products of numbers in one call of compiled code, about: some tenths of a second, in which no
# signal is seen
WORK = 1e8


class Plateau:
    """Decides whether a plateau begins here, and walks along it.

    On a long walk ``pause`` is called now and then; it may end it by an exception.
    """

    def __init__(
        self, problem: Problem, rtol: float, log: EventLog, pause: Callable[[], None]
    ) -> None:
        self.problem, self.rtol, self.log, self.pause = problem, rtol, log, pause
        self.endless = False  # the dormant neurons shrink for ever: the plateau is the limit
        self.log_level = float(np.log(DORMANT * rtol * problem.output_scale))
        self.log_width = float(np.log(problem.net.width))
        self.log_scale = float(np.log(0.5 * problem.longest * problem.net.width))

    def dormant(self, at: Start) -> NDArray[np.bool_] | None:
        """The neurons that move alone, or None where no worthwhile plateau begins."""
        if self.problem.hidden or not self._any_asleep(at):
            return None
        sizes = at.state.log_outputs(self.problem)
        asleep = np.asarray(sizes < self.log_level - self.log_width)
        living = at.classes.cid >= 0
        if not (asleep & living).any():
            return None
        pace = np.where(living, at.speeds[at.classes.cid], 0.0)
        # a plateau is so long that a dormant neuron would grow in a pull that is rounding
        rounding = RESTING * self._noise(at)
        pace[pace <= np.where(asleep, CLEAR, 1.0) * rounding] = 0.0
        decay = self.problem.decay
        moving = asleep & (living if decay else pace > 0.0)
        if not moving.any():
            return None
        length = self._length(self.log_level - sizes[moving], pace[moving])
        if length * (float(pace[moving].max()) + decay) < WORTHWHILE:
            return None
        if decay:
            if self._total(at.state, moving) > self.log_level - WORTHWHILE:
                return None
            pace = unrest(at)
            pace[pace <= rounding] = 0.0
        if float(pace[~asleep].max(initial=0.0)) * length > DORMANT * self.rtol:
            return None
        return np.asarray(moving)

    def _length(self, rise: Array, pace: Array) -> float:
        """How long until the first of the dormant neurons has grown, at the pace of now."""
        decay = self.problem.decay
        if not decay:
            with np.errstate(over="ignore"):
                return float((0.5 * rise / pace).min())
        grows = pace > decay
        ends = 0.5 * rise[grows] / (pace - decay)[grows]
        return float(ends.min(initial=FADED / decay))

    def _noise(self, at: Start) -> float:
        """The rounding of a pull: that of the outputs in the forces, or of their sum."""
        problem = self.problem
        if problem.is_square:
            return at.rounding * problem.kappa * problem.spectral_norm
        return 2e-16 * float(np.abs(at.c * problem.planes.length).sum())

    def _any_asleep(self, at: Start) -> bool:
        """Whether some living neuron is small: a cheap test that spares most steps the rest."""
        state = at.state
        level = self.log_level - self.log_scale
        return bool(any_below(state.a, state.w, state.sigma, at.classes.cid, level))

    def walk(self, at: Start, moving: NDArray[np.bool_], limit: float) -> State:
        """Move the dormant neurons to the end of the plateau, or by ``limit`` of clock time."""
        state = at.state.copy()
        decay, fades = self.problem.decay, moving | (at.classes.cid < 0)
        left = limit
        gap = self.log_level - self._total(state, moving)
        patience = gap + 2.0 * FADED if self.problem.decay else 100.0 * gap + 1e6
        for _ in range(2000):
            gap = self.log_level - self._total(state, moving)
            # those that have come to rest on the way do not grow
            if self.log_level - self._total(state, moving & self._pulled(state, at.c)) > patience:
                self.endless = not decay
                break
            longest = self._longest(state, at.c, moving, gap)
            if gap < 0.5 or left <= 0.0 or np.isinf(longest):
                break
            span = min(longest, left)
            while True:
                trial = state.copy()
                log = EventLog()
                self._drift(trial, at.c, moving, span, log)
                trial.fade(decay * span, fades)
                if self._total(trial, moving) <= self.log_level + 0.5:
                    break
                span *= 0.5
            self.log.take(log)
            trial.clock = state.clock + span
            if decay:
                trial.t = state.t + span
            left -= span
            state = trial
            if span < 2e-3 * longest:
                break
        return state

    def carried(self, at: Start, moving: NDArray[np.bool_], span: float) -> State:
        """Move neurons that fade for ever by ``span``; the dead fade as well."""
        state = at.state.copy()
        if moving.any():
            self._drift(state, at.c, moving, span, self.log)
        state.fade(self.problem.decay * span, moving | (at.classes.cid < 0))
        return state

    def _drift(
        self, state: State, c: Array, moving: NDArray[np.bool_], span: float, log: EventLog
    ) -> None:
        """Carry the dormant neurons by ``span``; one that comes to a crossroads is told its way."""
        problem = self.problem
        low, high = (pair[0] for pair in on_planes(c[None], problem.planes))
        noise = float(np.abs(c * problem.planes.length).sum())
        forces = Forces(low, high, noise)
        z = state.w @ problem.planes.U.T
        z[state.mode >= 2] = 0.0
        neurons = Neurons(
            state.a, state.w, state.sigma, state.mode, z, np.exp(2.0 * state.sigma), problem.sign,
            problem.log_balance_at(state.t), state.still, state.still_sigma,
        )  # fmt: skip
        reached = np.zeros(len(state.a))
        clock, turns = state.clock, 0
        while turns < 64 * len(state.a) + 64:
            capacity = 256
            while True:
                rows = Log(np.empty((capacity, 5)), np.zeros(1, np.int64))
                before, far = state.copy(), reached.copy()
                stopped = drift_all(
                    neurons, moving, forces, problem.planes, reached, span, rows, np.array([WORK])
                )
                if rows.used[0] <= capacity:
                    break
                capacity = 2 * int(rows.used[0])
                for name in ("a", "w", "sigma", "mode", "still", "still_sigma"):
                    getattr(state, name)[:] = getattr(before, name)
                reached[:] = far
                z[:] = state.w @ problem.planes.U.T
                z[state.mode >= 2] = 0.0
            log.extend(clock, 1.0, rows.rows[: int(rows.used[0])])
            if stopped == THROUGH:
                return
            if stopped == PAUSED:
                self.pause()
                continue
            turns += 1
            state.clock = clock + float(reached[stopped])
            redirect(problem, state, c, stopped, log, came_from=state)
            state.clock = clock
            z[stopped] = np.where(
                state.mode[stopped] >= 2, 0.0, problem.planes.U @ state.w[stopped]
            )
        raise FloatingPointError("a plateau's neurons do not get past a crossroads")

    def _living(self, state: State) -> NDArray[np.bool_]:
        both = self.problem.planes.both
        return np.asarray(((state.mode != 0) | both).any(axis=1))

    def _total(self, state: State, moving: NDArray[np.bool_]) -> float:
        living = moving & self._living(state)
        return logsumexp(state.log_outputs(self.problem)[living]) if living.any() else -np.inf

    def _paces(self, state: State, c: Array) -> Array:
        """Sizes (m,) of the pulls, slides not counted."""
        low, high = (pair[0] for pair in on_planes(c[None], self.problem.planes))
        f = np.where(state.mode == 1, high, np.where(state.mode == 0, low, 0.0))
        g = f @ self.problem.planes.U
        return np.asarray(np.sqrt(np.einsum("jd,jd->j", g, g)))

    def _pulled(self, state: State, c: Array) -> NDArray[np.bool_]:
        """The neurons (m,) whose pull is more than rounding."""
        rounding = 1e-15 * float(np.abs(c * self.problem.planes.length).sum())
        return np.asarray(self._paces(state, c) > rounding)

    def _longest(self, state: State, c: Array, moving: NDArray[np.bool_], gap: float) -> float:
        """The span in which no moving neuron can reach its share of the level, ``gap`` above all.

        An output grows at twice ``|g|`` less the decay at most, slides not counted. One that
        shrinks gets more and more time.
        """
        living = moving & self._living(state)
        pace = self._paces(state, c)[living]
        rise = (
            self.log_level - np.log(max(living.sum(), 1)) - state.log_outputs(self.problem)[living]
        )
        pace = np.where(pace > self.problem.decay, pace - self.problem.decay, pace)
        with np.errstate(divide="ignore", over="ignore"):
            return float((np.maximum(rise, gap) / (2.0 * pace)).min(initial=np.inf))
