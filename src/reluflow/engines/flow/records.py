"""Records of a flow: states kept while it runs, thinned to what was asked, packed at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.driver import Ending, Flow
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.state import State, to_planes, to_points
from reluflow.trajectory import Trajectory

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

    def __init__(self, problem: Problem, count: int, earlier: Trajectory | None) -> None:
        self.problem, self.earlier = problem, earlier
        net = problem.net
        size = 8 * net.width * (net.d + problem.d + 5) + net.width * problem.n
        self.count = int(max(2, min(count, MEMORY_BYTES // size)))
        self.kept: list[tuple[State, float]] = []
        self.stride = 1
        self.seen = 0
        self.last: tuple[State, float] | None = None

    def add(self, state: State, log_loss: float) -> None:
        """Offer a state; the stride doubles whenever twice the wanted number is kept."""
        self.last = (state, log_loss)
        if self.seen % self.stride == 0:
            self.kept.append(self.last)
        self.seen += 1
        if len(self.kept) >= 2 * self.count:
            self.kept = self.kept[::2]
            self.stride *= 2

    def _chosen(self) -> list[tuple[State, float]]:
        assert self.last is not None
        rows = self.kept if self.kept[-1] is self.last else [*self.kept, self.last]
        if len(rows) > self.count:
            pick = np.unique(np.linspace(0, len(rows) - 1, self.count).round().astype(int))
            rows = [rows[k] for k in pick]
        return rows

    def pack(self, run: Flow, ending: Ending, options: dict[str, Any]) -> Trajectory:
        """The Trajectory of a finished run, joined to the run it continues."""
        problem = self.problem
        rows = self._chosen()
        states = stack(problem, [state for state, _ in rows])
        t, log_t = times_of(problem, [state for state, _ in rows])
        log_loss = np.array([loss for _, loss in rows])
        events = run.log.array(problem.planes)
        events["t"] = problem.units.to_time(events["t"])
        events["log_t"] += problem.units.log_time
        if self.earlier is not None:
            old = self.earlier
            states = {
                k: np.concatenate([old.kept.get(k, v[:0])[:-1], v]) for k, v in states.items()
            }
            t = np.concatenate([old.t[:-1], t])
            log_t = np.concatenate([old.log_t[:-1], log_t])
            log_loss = np.concatenate([old.log_loss[:-1], log_loss])
            events = np.concatenate([old.events, events])
        stats = _stats(run, events, self.earlier)
        # where the error decided on the way, another limit may be the true one
        unbounded = stats["grazes"] > 0 and not np.isnan(ending.error)
        error = np.inf if unbounded else ending.error
        return Trajectory(
            engine="flow",
            data=problem.data,
            net=problem.net,
            loss_function=problem.loss,
            t=t,
            log_t=log_t,
            log_loss=log_loss,
            kept=states,
            final=rows[-1][0].network(problem),
            status=ending.status,
            reason=ending.reason,
            events=events,
            limit_error=float(np.ldexp(error, problem.units.hidden)),
            stats=stats,
            options=options,
        )


def times_of(problem: Problem, states: list[State]) -> tuple[Array, Array]:
    """Times of states and their logarithms in the units of the data.

    The logarithm of the time where that is within floats: then the two agree to the last bit.
    """
    t = problem.units.to_time(np.array([state.t for state in states]))
    log_t = np.array([state.log_t for state in states]) + problem.units.log_time
    inside = (t > 1e-300) & (t < 1e300)
    return t, np.where(inside, np.log(np.where(inside, t, 1.0)), log_t)


def stack(problem: Problem, states: list[State]) -> dict[str, NDArray[Any]]:
    """The arrays of a run's records, in the units of the data but for what the solver restarts."""
    net = problem.net
    a, W, scale = (
        np.stack(part) for part in zip(*(s.weights(problem) for s in states), strict=True)
    )
    out = {
        "a": a,
        "W": W,
        "log_scale": scale,
        "log_scale_out": scale.copy(),
        "mode": to_points(np.stack([state.mode for state in states]), problem.planes),
        "still": np.stack([state.still for state in states]),
        "still_sigma": np.stack([state.still_sigma for state in states]),
        "clock": np.array([state.clock for state in states]),
        "step": np.array([state.step for state in states]),
    }
    if problem.hidden:
        out["a"] = np.stack([net.mantissa.a] * len(states))
        out["log_scale_out"] = np.stack([net.log_scale_out] * len(states))
    return out


def restore(problem: Problem, run: Trajectory, k: int) -> State:
    """The k-th record of a run as a state of the solver."""
    network, units = run.network(k), problem.units
    a = network.flat().a if problem.hidden else network.mantissa.a
    W = np.ldexp(network.mantissa.W, -units.hidden)
    rest, w = None, W
    if problem.basis is not None:
        w = W @ problem.basis
        rest = W - w @ problem.basis.T
    sigma = network.log_scale.copy()
    m, states = len(a), run.kept
    still = states["still"][k].copy() if "still" in states else np.zeros((m, problem.d))
    scale = states["still_sigma"][k].copy() if "still" in states else np.full(m, np.nan)
    with np.errstate(under="ignore"):
        t = problem.units.from_time(float(run.t[k]))
    return State(
        np.ldexp(a, -units.output),
        np.ascontiguousarray(w),
        sigma,
        to_planes(states["mode"][k], problem.planes),
        still,
        scale,
        t,
        float(run.log_t[k]) - units.log_time,
        float(states["clock"][k]),
        float(states["step"][k]),
        rest,
        sigma.copy(),
    )


def _stats(run: Flow, events: NDArray[Any], earlier: Trajectory | None) -> Stats:
    kinds = Counter(events["kind"].tolist())
    counts: dict[str, Any] = {
        "steps": run.counters.steps,
        "rejected": run.counters.rejected,
        "evaluations": run.counters.evaluations,
        "plateaus": run.plateaus,
        "grazes": run.log.grazes,
    }
    if earlier is not None:
        counts = {name: count + int(earlier.stats.get(name, 0)) for name, count in counts.items()}
    return Stats({**counts, "events": dict(sorted(kinds.items()))}, run.seconds)
