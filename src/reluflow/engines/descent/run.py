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
from reluflow.engines import checkpoints
from reluflow.engines.descent.forms import Form, Record, Rule
from reluflow.engines.request import announce_time
from reluflow.kernels.descent.weights import DIVERGED, DONE, STOPPED, UNCHANGED
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

BLOW_UP = math.log(1e15)  # the loss may grow by this factor before the run counts as diverged
CHUNK_S = 0.1  # time between two looks at the clock
MEASURE_S = 0.2  # of steps, to know how long all will take

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
    net: Network
    options: dict[str, Any]
    t: list[int] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    states: dict[str, NDArray[Any]] = field(default_factory=dict)
    now: int = 0
    log_loss_now: float = math.inf
    least_now: float = math.inf
    reason: str = ""
    is_under_way: bool = False
    is_announced: bool = False
    began: int = 0  # the iteration it began at
    resumed: Record | None = None  # where a run that was interrupted goes on

    def go(self, steps: int, seconds: float, update: Any) -> Status:
        """Iterate from record to record until something ends the run, or a signal comes."""
        with interrupts.deferred() as pending:
            try:
                return self._go(steps, seconds, update, pending)
            except KeyboardInterrupt:
                if self.is_under_way:
                    checkpoints.offer_last(self.so_far)
                raise

    def _go(self, steps: int, seconds: float, update: Any, pending: interrupts.Pending) -> Status:
        # the first call compiles, so the clock starts after it
        _, _, start_loss, _ = self.form.advance(0, 0, math.nan, math.inf)
        top = ceiling(self.rule, start_loss, self.data)
        started, chunk, planned = time.monotonic(), 64, set(self.plan.tolist())
        worked = time.thread_time()  # beside other work the clock runs on
        if self.resumed is not None:
            self.form.restore(self.resumed)
        self.began = self.now
        self.is_under_way = True
        for target in self._targets(steps):
            while True:
                before, done = time.monotonic(), min(chunk, target - self.now)
                with interrupts.deferred(grace=None):  # a step cut in two could not be saved
                    outcome, self.now, self.log_loss_now, least = self.form.advance(
                        self.now, done, self.stop, top
                    )
                self.least_now = min(self.least_now, least)
                if outcome == DIVERGED:
                    self._go_back()
                if outcome != DONE:
                    return self._end(ENDS[outcome])
                checkpoints.offer(self.so_far)
                pending.check()
                clock = time.monotonic()
                chunk = max(1, int(min(4 * max(done, 16), done * CHUNK_S / (clock - before))))
                self._announce(time.thread_time() - worked, steps, seconds)
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

    def _announce(self, spent: float, steps: int, limit_s: float) -> None:
        """Say how long it will take, once, when enough steps are done to know."""
        if self.is_announced or spent < MEASURE_S:
            return
        self.is_announced = True
        left = spent * (steps - self.now) / max(self.now - self.began, 1)
        if math.isnan(self.stop):  # else it ends when it ends
            announce_time(
                f"a descent of {steps:.3g} steps",
                min(left, limit_s),
                "Take fewer steps, or set `stop_loss` or `max_seconds`",
            )

    def _targets(self, steps: int) -> list[int]:
        """Iterations to stop at, for a record or for the end."""
        targets: list[int] = np.union1d(self.plan, [steps]).tolist()
        return [t for t in targets if t > self.now] if self.resumed is not None else targets

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

    def take_up(self, earlier: Trajectory) -> None:
        """Go on from the last record of an interrupted run, bitwise as if nothing had happened.

        That record stays only if the plan asks for it, as for all others.
        """
        least = earlier.kept["least"]
        records = {name: array for name, array in earlier.kept.items() if name != "least"}
        rows = np.flatnonzero(np.isin(earlier.t, self.plan))
        for name, array in records.items():
            self.states[name] = np.empty((len(self.plan) + 1, *array.shape[1:]), array.dtype)
            self.states[name][: len(rows)] = array[rows]
        self.t = earlier.t[rows].astype(int).tolist()
        self.log_loss, self.least = earlier.log_loss[rows].tolist(), least[rows].tolist()
        self.now, self.log_loss_now = int(earlier.t[-1]), float(earlier.log_loss[-1])
        self.least_now = math.inf if self.now in self.plan else float(least[-1])
        self.resumed = {name: array[-1] for name, array in records.items()}

    def so_far(self, reason: str) -> Trajectory:
        """The run up to here, with a record of where it stands."""
        t, log_loss, least = list(self.t), list(self.log_loss), list(self.least)
        states = {name: array[: len(t)] for name, array in self.states.items()}
        if self.now not in t:
            t, log_loss = [*t, self.now], [*log_loss, self.log_loss_now]
            least = [*least, self.least_now]
            for name, array in self.form.record().items():
                before = states.get(name, np.empty((0, *array.shape), array.dtype))
                states[name] = np.concatenate([before, array[None]])
        return self._packed(Status.INTERRUPTED, reason, t, log_loss, least, states)

    def trajectory(self, status: Status) -> Trajectory:
        """The finished run."""
        states = {name: array[: len(self.t)] for name, array in self.states.items()}
        return self._packed(status, self.reason, self.t, self.log_loss, self.least, states)

    def _packed(
        self,
        status: Status,
        reason: str,
        t: list[int],
        log_loss: list[float],
        least: list[float],
        states: dict[str, NDArray[Any]],
    ) -> Trajectory:
        times = np.array(t, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_t = np.log(times)
        return Trajectory(
            engine="descent",
            data=self.data,
            net=self.net,
            loss_function=self.rule.loss,
            t=times,
            log_t=log_t,
            log_loss=np.array(log_loss),
            kept=states | {"least": np.array(least)},
            final=Network.from_arrays(self.form.record()),
            status=status,
            reason=reason,
            stats={
                "form": self.form.name,
                "iterations": self.now,
                "final_log_loss": self.log_loss_now,
            },
            options=self.options,
        )
