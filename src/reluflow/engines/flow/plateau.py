r"""Plateaus: while the outputs stand still, dormant neurons move in closed form.

At a small start all outputs are negligible and the forces are constants; between two saddles the
neurons that count are at rest and the forces are constants again. Each dormant neuron then follows
its own chain of boosts (`kernels.frozen`), whatever its scale: a plateau costs its events, not its
length. It ends when the dormant neurons' outputs reach a hundredth of the tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.collocation import Start
from reluflow.engines.flow.events import EventLog
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.kernels.frozen import any_below, drift
from reluflow.losses import logsumexp

# a plateau shorter than this many e-foldings is left to the coupled phase
WORTHWHILE = 3.0


class Plateau:
    """Decides whether a plateau begins here, and walks along it."""

    def __init__(self, problem: Problem, rtol: float, log: EventLog) -> None:
        self.problem, self.rtol, self.log = problem, rtol, log
        self.endless = False  # the dormant neurons shrink for ever: the plateau is the limit
        self.log_level = float(np.log(0.01 * rtol * problem.output_scale))

    def dormant(self, at: Start) -> NDArray[np.bool_] | None:
        """The neurons that move alone, or None where no worthwhile plateau begins."""
        if self.problem.hidden or not self._any_asleep(at):
            return None
        sizes = self._log_outputs(at.state)
        asleep = np.asarray(sizes < self.log_level - np.log(len(sizes)))
        living = at.classes.cid >= 0
        if not (asleep & living).any():
            return None
        pace = self._speeds(at)
        fastest = float(pace[asleep & living].max())
        if fastest <= 0.0:
            return None
        rise = (self.log_level - sizes[asleep & living]) / 2.0
        with np.errstate(divide="ignore"):
            length = float((rise / pace[asleep & living]).min())
        if length * fastest < WORTHWHILE:
            return None
        awake = ~asleep & living
        if awake.any() and float(pace[awake].max()) * length > 0.01 * self.rtol:
            return None
        return asleep & living

    def _any_asleep(self, at: Start) -> bool:
        """Whether some living neuron is small: a cheap test that spares most steps the rest."""
        state = at.state
        level = self.log_level - float(np.log(0.5 * self.problem.longest * len(state.a)))
        return bool(any_below(state.a, state.w, state.sigma, at.classes.cid, level))

    def walk(self, at: Start, moving: NDArray[np.bool_], limit: float) -> State:
        """Move the dormant neurons to the end of the plateau, or by ``limit`` of clock time."""
        state = at.state.copy()
        z = at.neurons.z.copy()
        left = limit
        patience = 100.0 * (self.log_level - self._total(state, moving)) + 1e6
        for _ in range(2000):
            gap = self.log_level - self._total(state, moving)
            if gap > patience:
                self.endless = True
                break
            fastest = self._fastest(state, at.c, moving)
            if gap < 0.5 or left <= 0.0 or fastest <= 0.0:
                break
            span = min(gap / (2.0 * fastest), left)
            while True:
                trial, trial_z = state.copy(), z.copy()
                rows = self._drift(trial, trial_z, moving, at.c, span)
                if self._total(trial, moving) <= self.log_level + 0.5:
                    break
                span *= 0.5
            self._record(state, rows)
            trial.clock = state.clock + span
            left -= span
            state, z = trial, trial_z
            if span < 1e-3 * gap / fastest:
                break
        return state

    def _drift(
        self, state: State, z: Array, moving: NDArray[np.bool_], c: Array, span: float
    ) -> Array:
        capacity = 256 + 2 * len(z) * z.shape[1]
        while True:
            log = np.empty((capacity, 5))
            work = state.copy()
            work_z = z.copy()
            used = drift(
                work.a, work.w, work_z, work.sigma, work.mode, moving, c,
                self.problem.X, self.problem.gram, span, log,
            )  # fmt: skip
            if used >= 0:
                break
            capacity *= 4
        state.a, state.w, state.sigma, state.mode = work.a, work.w, work.sigma, work.mode
        z[:] = work_z
        return log[:used]

    def _record(self, before: State, rows: Array) -> None:
        mode = before.mode
        lively = (mode == 1).sum(axis=1)
        for time, j, i, old, new in rows:
            clock = before.clock + time
            self.log.change(clock, int(j), int(i), int(old), int(new))
            lively[int(j)] += int(new == 1) - int(old == 1)
            if lively[int(j)] == 0 and old == 1:
                self.log.add(clock, int(j), -1, "die")

    def _log_outputs(self, state: State) -> Array:
        """Logarithm of a bound on the output of each neuron on a point, ``(a^2 + |w|^2) |x| / 2``.

        Not ``|a||w||x|``: that vanishes where an output weight passes zero.
        """
        squares = state.a**2 + np.einsum("jd,jd->j", state.w, state.w)
        with np.errstate(divide="ignore"):
            return np.asarray(
                2.0 * state.sigma + np.log(0.5 * squares) + np.log(self.problem.lengths.max())
            )

    def _total(self, state: State, moving: NDArray[np.bool_]) -> float:
        living = moving & (state.mode == 1).any(axis=1)
        return logsumexp(self._log_outputs(state)[living]) if living.any() else -np.inf

    def _speeds(self, at: Start) -> Array:
        """``|g_j|`` of every neuron (0 for dead ones)."""
        return np.where(at.classes.cid >= 0, at.speeds[at.classes.cid], 0.0)

    def _fastest(self, state: State, c: Array, moving: NDArray[np.bool_]) -> float:
        g = np.where((state.mode == 1) & moving[:, None], c, 0.0) @ self.problem.X
        return float(np.sqrt(np.einsum("jd,jd->j", g, g).max()))
