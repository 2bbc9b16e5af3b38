"""Records of a flow: states kept while it runs, thinned to what was asked, packed at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

if TYPE_CHECKING:
    from reluflow.engines.flow.run import Flow

MEMORY_BYTES = 256 * 2**20


class Stats(dict[str, Any]):
    """Counts of work, and under ``stats["seconds"]`` the time of each phase.

    The seconds are no item of the mapping: they stay in memory, so equal runs save equal bytes.
    """

    def __init__(self, counts: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
        super().__init__(counts)
        self.seconds = dict(seconds)

    def __missing__(self, name: str) -> dict[str, float]:
        if name == "seconds":
            return self.seconds
        raise KeyError(name)


class Records:
    """At most ``count`` states of a run, spread over its steps, first and last included."""

    def __init__(
        self, problem: Problem, net: Network, count: int, earlier: Trajectory | None
    ) -> None:
        self.problem, self.net, self.earlier = problem, net, earlier
        size = 8 * net.width * (net.d + 4) + net.width * problem.n
        self.count = int(max(2, min(count, MEMORY_BYTES // size)))
        self.kept: list[tuple[State, float, float]] = []
        self.stride = 1
        self.seen = 0
        self.last: tuple[State, float, float] | None = None

    def add(self, state: State, log_loss: float, step: float) -> None:
        """Offer a state; the stride doubles whenever twice the wanted number is kept."""
        self.last = (state, log_loss, step)
        if self.seen % self.stride == 0:
            self.kept.append(self.last)
        self.seen += 1
        if len(self.kept) >= 2 * self.count:
            self.kept = self.kept[::2]
            self.stride *= 2

    def _chosen(self) -> list[tuple[State, float, float]]:
        assert self.last is not None
        rows = self.kept if self.kept[-1] is self.last else [*self.kept, self.last]
        if len(rows) > self.count:
            pick = np.unique(np.linspace(0, len(rows) - 1, self.count).round().astype(int))
            rows = [rows[k] for k in pick]
        return rows

    def pack(
        self,
        run: Flow,
        status: Status,
        error: float,
        options: dict[str, Any],
        times: Array | None,
    ) -> Trajectory:
        """The Trajectory of a finished run, joined to the run it continues."""
        rows = self._chosen()
        states = _stack(self.problem, self.net, rows)
        t = np.array([row[0].t for row in rows])
        log_t = np.array([row[0].log_t for row in rows])
        log_loss = np.array([row[1] for row in rows])
        events = run.log.array()
        if self.earlier is not None:
            old = self.earlier
            states = {k: np.concatenate([old.states[k][:-1], v]) for k, v in states.items()}
            t = np.concatenate([old.t[:-1], t])
            log_t = np.concatenate([old.log_t[:-1], log_t])
            log_loss = np.concatenate([old.log_loss[:-1], log_loss])
            events = np.concatenate([old.events, events])
        trajectory = Trajectory(
            engine="flow",
            data=self.problem.data,
            net=self.net,
            loss_function=self.problem.loss,
            t=t,
            log_t=log_t,
            log_loss=log_loss,
            states=states,
            final=rows[-1][0].network(self.problem, self.net),
            status=status,
            events=events,
            limit_error=error,
            stats=_stats(run, events),
            options=options,
        )
        return trajectory if times is None else _at_times(trajectory, times)


def _stack(
    problem: Problem, net: Network, rows: list[tuple[State, float, float]]
) -> dict[str, NDArray[Any]]:
    states = [state for state, _, _ in rows]
    scale = np.stack([state.sigma for state in states])
    hidden = problem.hidden
    stacked: dict[str, NDArray[Any]] = {
        "a": np.stack([net.a if hidden else state.a for state in states]),
        "W": np.stack([state.hidden_weights(problem) for state in states]),
        "log_scale": scale,
        "log_scale_out": np.stack([net.log_scale_out] * len(rows)) if hidden else scale.copy(),
    }
    stacked["mode"] = np.stack([state.mode for state, _, _ in rows])
    stacked["clock"] = np.array([state.clock for state, _, _ in rows])
    stacked["step"] = np.array([step for _, _, step in rows])
    return stacked


def _stats(run: Flow, events: NDArray[Any]) -> Stats:
    kinds = Counter(events["kind"].tolist())
    counts = {
        "steps": run.counters.steps,
        "rejected": run.counters.rejected,
        "evaluations": run.counters.evaluations,
        "plateaus": run.plateaus,
        "events": dict(sorted(kinds.items())),
    }
    return Stats(counts, run.seconds)


def _at_times(run: Trajectory, times: Array) -> Trajectory:
    """The same run with records at chosen times only (those it reached)."""
    from dataclasses import replace

    from reluflow.engines.flow.run import Flow, Stops

    reached = times[times <= run.t[-1]]
    rows: list[tuple[State, float, float]] = []
    problem = Problem(run.data, run.loss_function, str(run.options["train"]))
    for t in reached:
        k = int(np.searchsorted(run.t, t, side="right")) - 1
        state, step = restore(problem, run, k)
        if state.t < t:
            part = Flow(
                problem, state, float(run.options["rtol"]), Stops(float(t), -np.inf, np.inf, np.inf)
            )
            part.coupled.step = step
            part.run(Records(problem, run.net, 2, None), lambda *_: None)
            state, step = part.state, part.coupled.step
        h = state.outputs(problem)
        rows.append((state, problem.log_loss(h), step))
    return replace(
        run,
        t=np.array([row[0].t for row in rows]),
        log_t=np.array([row[0].log_t for row in rows]),
        log_loss=np.array([row[1] for row in rows]),
        states=_stack(problem, run.net, rows),
    )


def restore(problem: Problem, run: Trajectory, k: int) -> tuple[State, float]:
    """The k-th record of a run as a state of the solver, and the step size used there."""
    network = run.network(k)
    rest = None
    a, sigma = network.a.copy(), network.log_scale.copy()
    if problem.hidden:
        a = network.flat().a.copy()
    w = network.W.copy()
    if problem.basis is not None:
        w = network.W @ problem.basis
        rest = network.W - w @ problem.basis.T
    state = State(
        a,
        np.ascontiguousarray(w),
        sigma,
        run.states["mode"][k].copy(),
        float(run.t[k]),
        float(run.log_t[k]),
        float(run.states["clock"][k]),
        rest,
        sigma.copy(),
    )
    return state, float(run.states["step"][k])
