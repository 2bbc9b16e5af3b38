"""A descent in progress: from record to record until something ends it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import interrupts
from reluflow.dataset import Dataset
from reluflow.engines.descent_forms import Form, Rule
from reluflow.kernels.descent import DIVERGED, DONE, STOPPED, UNCHANGED
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

BLOW_UP = math.log(1e15)  # the loss may grow by this factor before the run counts as diverged
CHUNK_S = 0.1  # time between two looks at the clock

ENDS = {
    STOPPED: Status.STOP_LOSS,
    DIVERGED: Status.DIVERGED,
    UNCHANGED: Status.UNCHANGED,
}


def ceiling(rule: Rule, start_log_loss: float, data: Dataset) -> float:
    """The log-loss above which a run counts as diverged.

    Far above both the loss at the start and that of the zero network, so that a training that
    overshoots for a while is left alone.
    """
    zero = rule.loss.log_value(np.zeros(data.n), data.y)
    return max(start_log_loss, zero) + BLOW_UP


def time_is_up(seconds: float, iteration: int) -> str:
    """The reason of a run that its caller gave too little time."""
    return f"max_seconds = {seconds:g} is used up at iteration {iteration}"


@dataclass
class Run:
    """A run in progress: its form, and what it has kept so far."""

    form: Form
    data: Dataset
    rule: Rule
    stop: float
    plan: NDArray[np.int64]
    keep_end: bool
    t: list[int] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    states: dict[str, NDArray[Any]] = field(default_factory=dict)
    now: int = 0
    log_loss_now: float = math.inf
    least_now: float = math.inf
    reason: str = ""

    def go(self, steps: int, seconds: float, update: Any) -> Status:
        """Iterate from record to record until something ends the run, or a signal comes."""
        with interrupts.deferred() as pending:
            return self._go(steps, seconds, update, pending)

    def _go(self, steps: int, seconds: float, update: Any, pending: interrupts.Pending) -> Status:
        # the first call compiles, so the clock starts after it
        _, _, start_loss, _ = self.form.advance(0, 0, math.nan, math.inf)
        top = ceiling(self.rule, start_loss, self.data)
        started, chunk, planned = time.monotonic(), 64, set(self.plan.tolist())
        for target in np.union1d(self.plan, [steps]).tolist():
            while True:
                before, done = time.monotonic(), min(chunk, target - self.now)
                outcome, self.now, self.log_loss_now, least = self.form.advance(
                    self.now, done, self.stop, top
                )
                pending.check()
                self.least_now = min(self.least_now, least)
                if outcome == DIVERGED:
                    self._go_back()
                if outcome != DONE:
                    return self._end(ENDS[outcome])
                clock = time.monotonic()
                chunk = max(1, int(min(4 * max(done, 16), done * CHUNK_S / (clock - before))))
                update(self.now, note=f"log loss {self.log_loss_now:.3f}")
                if self.now == target:
                    break
                if clock - started > seconds:
                    return self._out_of_time(seconds)
            if target in planned:
                self._keep()
            if time.monotonic() - started > seconds and self.now < steps:
                return self._out_of_time(seconds)
        return self._end(Status.STEPS)

    def _out_of_time(self, seconds: float) -> Status:
        self.reason = time_is_up(seconds, self.now)
        return self._end(Status.BUDGET)

    def _keep(self) -> None:
        for name, array in self.form.record().items():
            if name not in self.states:
                room = (len(self.plan) + 1, *array.shape)
                self.states[name] = np.empty(room, array.dtype)
            self.states[name][len(self.t)] = array
        self.t.append(self.now)
        self.log_loss.append(self.log_loss_now)
        self.least.append(self.least_now)
        self.least_now = math.inf

    def _end(self, status: Status) -> Status:
        wanted = self.keep_end or self.now in self.plan
        if not self.t or (wanted and self.t[-1] != self.now):
            self._keep()
        return status

    def _go_back(self) -> None:
        """Return to the last iteration with a finite loss, from the last record before it."""
        last = self.now if math.isfinite(self.log_loss_now) else max(self.now - 1, 0)
        form, begin = self.form, 0
        if self.t:
            form.restore({name: array[len(self.t) - 1] for name, array in self.states.items()})
            begin = self.t[-1]
        else:
            form.restart()
        _, self.now, self.log_loss_now, least = form.advance(
            begin, last - begin, math.nan, math.inf
        )
        self.least_now = min(self.least_now, least)

    def trajectory(self, net: Network, status: Status, options: dict[str, Any]) -> Trajectory:
        """The finished run."""
        t = np.array(self.t, dtype=np.float64)
        states = {name: array[: len(t)] for name, array in self.states.items()}
        with np.errstate(divide="ignore"):
            log_t = np.log(t)
        return Trajectory(
            engine="descent",
            data=self.data,
            net=net,
            loss_function=self.rule.loss,
            t=t,
            log_t=log_t,
            log_loss=np.array(self.log_loss),
            states=states | {"least": np.array(self.least)},
            final=Network.from_arrays(self.form.record()),
            status=status,
            reason=self.reason,
            stats={
                "form": self.form.name,
                "iterations": self.now,
                "final_log_loss": self.log_loss_now,
            },
            options=options,
        )
