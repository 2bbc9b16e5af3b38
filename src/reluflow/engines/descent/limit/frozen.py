r"""Gradient descent to its limit: hidden layer, square loss, ``steps=inf``.

The path (`path`) ends where the modes of the last pattern prove that no other will follow;
its limit is then known, and any iteration of it is computed from the last state before.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow import interrupts
from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.engines import checkpoints
from reluflow.engines.descent.forms import Rule, saved_rule
from reluflow.engines.descent.limit.events import EventLog
from reluflow.engines.descent.limit.path import End, Mark, Path, Stretch, state_at
from reluflow.engines.descent.record import LARGEST, iteration_of, schedule
from reluflow.engines.progress import bar
from reluflow.errors import InputError
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

MARKS_BYTES = 64 * 2**20
RESTARTS = 20  # states kept of a run that is interrupted


class Wishes(NamedTuple):
    """What a caller asks of a run beside the problem."""

    stop: float
    record: Any
    seconds: float
    progress: bool
    earlier: Trajectory | None


def descend(
    data: Dataset, net: Network, rule: Rule, options: dict[str, Any], wishes: Wishes
) -> Trajectory:
    """Train to the limit, or to what stops the run before.

    Numerics
    --------
    Change times and limits equal those of plain iteration (``tests/engines/
    descent/test_frozen.py``); signs are trusted down to 1e-12 of the sizes involved. Each stretch
    costs one eigendecomposition, O(n^3). If the limit lies on a boundary no certificate exists; the
    run then iterates until the weights no longer change, or gives up after 1e7 such iterations
    (status ``failed``). Recorded iterations reach to where the slowest mode has decayed by 2^-52.
    """
    path = Path(data, net, rule)
    marks, log, begin = _Marks(), path.event_log(), path.origin
    if wishes.earlier is not None:
        *before, begin = _marks_of(wishes.earlier)
        marks.all, marks.seen = before, int(wishes.earlier.stats["stretches"]) - 1
        start, now = (path.form.preactivations(mark.B) > 0.0 for mark in (path.origin, begin))
        log = EventLog.resumed(start, now, wishes.earlier)
    moment = log.moment()

    def so_far(reason: str) -> Trajectory:
        kept = _Keeper(path, marks)
        for mark in marks.some(RESTARTS):  # known states: nothing is computed while one waits
            kept.put(mark.t, mark.B, mark)
        end = End(Status.INTERRUPTED, mark.t, mark.B, reason=reason)
        return _trajectory(data, net, rule, options, path, end, kept, log.as_of(moment))

    with (
        bar(wishes.progress, "gradient descent to the limit", kernels=()) as update,
        interrupts.deferred() as pending,
    ):

        def visit(mark: Mark) -> None:
            nonlocal moment
            marks.add(mark)
            moment = log.moment()
            update(mark.t, note=f"iteration {mark.t}")
            checkpoints.offer(so_far)
            pending.check()

        try:
            end = path.travel(wishes.stop, wishes.seconds, math.inf, visit, log, begin)
        except KeyboardInterrupt:
            if marks.latest.t > 0:
                checkpoints.offer_last(so_far)
            raise
    last = LARGEST if end.frozen_from is not None and np.ndim(wishes.record) else end.t
    kept = _Keeper(path, marks)
    for t in schedule(wishes.record, last, path.form.state_bytes).tolist():
        kept.add(t)
    return _trajectory(data, net, rule, options, path, end, kept, log)


def _marks_of(run: Trajectory) -> list[Mark]:
    """The states that an interrupted run kept, its last one at the end."""
    rows = zip(*(run.kept[f"restart_{name}"] for name in ("t", "dual", "burst")), strict=True)
    found = {int(t): Mark(int(t), B, int(burst)) for t, B, burst in rows}
    return [found[t] for t in sorted(found)]


class _Marks:
    """States to restart from; every other one is dropped when they take too much memory."""

    def __init__(self) -> None:
        self.all: list[Mark] = []
        self.seen = 0
        self._stride = 1
        self.latest = Mark(0, np.empty(0), 1)

    def add(self, mark: Mark) -> None:
        self.latest = mark
        if self.seen % self._stride == 0:
            self.all.append(mark)
        self.seen += 1
        if len(self.all) * mark.B.nbytes > MARKS_BYTES:
            self.all = self.all[::2]
            self._stride *= 2

    def before(self, t: int) -> Mark:
        return [mark for mark in self.all if mark.t <= t][-1]

    def some(self, count: int) -> list[Mark]:
        """At most so many, the latest at the end."""
        pick = np.unique(np.linspace(0, len(self.all) - 1, count - 1).round().astype(int))
        found = [self.all[k] for k in pick]
        return found if found[-1] is self.latest else [*found, self.latest]


class _Keeper:
    """Recorded states, each with the mark it is recomputed from."""

    def __init__(self, path: Path, marks: _Marks) -> None:
        self.path, self.marks = path, marks
        self.t: list[int] = []
        self.log_loss: list[float] = []
        self.records: list[dict[str, NDArray[Any]]] = []
        self._last: Stretch | None = None

    def add(self, t: int) -> None:
        mark = self.marks.before(t)
        if self._last is not None and mark.t <= self._last.mark.t <= t:
            mark = self._last.mark
        B, self._last = state_at(self.path, mark, t, self._last)
        self.put(t, B, self._last.mark)

    def put(self, t: int, B: Array, mark: Mark) -> None:
        """Keep a state that is known."""
        self.t.append(t)
        self.log_loss.append(self.path.log_loss(B))
        self.records.append(
            self.path.form.network_arrays(B)
            | {
                "dual": B,
                "restart_t": np.array(mark.t),
                "restart_dual": mark.B,
                "restart_burst": np.array(mark.burst),
            }
        )


def _trajectory(
    data: Dataset,
    net: Network,
    rule: Rule,
    options: dict[str, Any],
    path: Path,
    end: End,
    kept: _Keeper,
    log: EventLog,
) -> Trajectory:
    B, error = (end.B, math.nan) if end.limit is None else end.limit[:2]
    t = np.array(kept.t, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_t = np.log(t)
    return Trajectory(
        engine="descent",
        data=data,
        net=net,
        loss_function=rule.loss,
        t=t,
        log_t=log_t,
        log_loss=np.array(kept.log_loss),
        kept={name: np.stack([r[name] for r in kept.records]) for name in kept.records[0]},
        final=Network.from_arrays(path.form.network_arrays(B)),
        status=end.status,
        reason=end.reason,
        limit_error=error,
        events=log.events(),
        stats={
            "form": "frozen",
            "iterations": end.t,
            "final_log_loss": path.log_loss(B),
            "stretches": kept.marks.seen,
            "frozen_from": end.frozen_from,
            "changes": log.iterations,
            "last_change": log.last,
            "events_until": log.complete_until,
        },
        options=options,
    )


def replay(run: Trajectory, **target: float) -> Network:
    """The network at an iteration (``t``, ``log_t``; ``t=inf`` is the limit) or a log-loss."""
    path = Path(run.data, run.net, saved_rule(run))
    certified = run.status in (Status.CONVERGED, Status.STATIONARY)
    if "log_loss" in target:
        level = number(target["log_loss"], "log_loss", infinite=True)
        frozen = run.stats["frozen_from"] is not None
        last = math.inf if frozen else run.stats["iterations"]
        end = path.travel(level, math.inf, last, lambda mark: None)
        if end.status != Status.STOP_LOSS or end.t > last:
            raise InputError(
                f"the log-loss of the run never falls to {level:g} (least: "
                f"{run.log_loss.min():g}). Ask for more, or train longer."
            )
        return Network.from_arrays(path.form.network_arrays(end.B))
    if certified and math.inf in target.values():
        return run.final
    frozen = run.stats["frozen_from"] is not None
    t = iteration_of(target, LARGEST if frozen else run.stats["iterations"])
    k = max(int(np.searchsorted(run.t, t, side="right")) - 1, -1)
    mark = (
        path.origin
        if k < 0
        else Mark(
            int(run.kept["restart_t"][k]),
            run.kept["restart_dual"][k],
            int(run.kept["restart_burst"][k]),
        )
    )
    B, _ = state_at(path, mark, t)
    return Network.from_arrays(path.form.network_arrays(B))
