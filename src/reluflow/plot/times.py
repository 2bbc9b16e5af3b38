"""Times as pictures of runs show them: decimal logarithms, paced by events where these crowd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis
from reluflow.trajectory import Trajectory

LN10 = math.log(10.0)
START = math.log10(0.5)  # where iteration 0 is drawn
BEFORE, EARLY = 1.5, 24  # decades before the first record that are looked at, and times there
MOVED = 0.1  # logarithms of norms that differ by more have moved between two records
CROWDED = 0.35  # distance of the events from an even spread, as a share of the axis
FEWEST = 8  # times of events; fewer are not a crowd
KNOTS, TICKS = 33, 7


def axis(runs: Sequence[Trajectory]) -> Axis:
    """The axis of log10 time or iterations of these runs; iteration 0 stands at one half.

    Where events crowd, a third each of the axis is shared out by time, by events, and by what the
    loss changes.
    """
    low, high = span(runs)
    happened = np.concatenate([_finite(run.events["log_t"]) for run in runs])
    happened = np.unique(happened[(happened > low) & (happened < high)])
    share = (happened - low) / (high - low)
    even = (np.arange(len(share)) + 0.5) / max(1, len(share))
    flow = runs[0].engine == "flow"
    name = "log10 of time" if flow else "iteration"
    if len(share) < FEWEST or np.abs(share - even).max() < CROWDED:
        return Axis(name) if flow else Axis(name, ticks=_decades(low, high))
    pace = _pace(low, high, happened, [_changes(run) for run in runs])
    return Axis(f"{name}, paced by events", pace=pace, ticks=_ticks(pace, flow))


def span(runs: Sequence[Trajectory]) -> tuple[float, float]:
    """The first and the last log10 time that is drawn."""
    seen = [np.concatenate([_drawn(run), _finite(run.events["log_t"])]) for run in runs]
    times = np.concatenate(seen)
    if not len(times):
        return 0.0, 1.0
    low, high = float(times.min()), float(times.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def series(run: Trajectory, measure: Callable[[Trajectory, int], Any]) -> tuple[Array, Array]:
    """log10 of the times that are drawn, and what ``measure(run, k)`` finds at each.

    These are the records, and some times before the first of them if much has happened until then
    (a plateau is one long step). The start of a flow has no logarithm: NaN.
    """
    listed = [(run, k) for k in range(len(run.t))]
    before = early(run)
    if before is not None:
        listed[1:1] = [(before, k) for k in range(len(before.t))]
    found = np.array([measure(one, k) for one, k in listed])
    return np.array([of_record(one, k) for one, k in listed]), found


def of_record(run: Trajectory, k: int) -> float:
    """log10 of the time of a record, as drawn."""
    if run.t[k] > 0.0:
        return float(run.log_t[k]) / LN10
    return math.nan if run.engine == "flow" else START


def early(run: Trajectory) -> Trajectory | None:
    """The run at times before its first record after the start, where it has moved until then."""
    wanted = _early_log_times(run)
    return run.sample(wanted) if len(wanted) else None


def _early_log_times(run: Trajectory) -> Array:
    if run.engine != "flow" or len(run.t) < 2 or not np.isfinite(run.log_t[1]):
        return np.empty(0)
    ends = [np.asarray(run.network(k).log_norms) for k in (0, 1)]
    alive = np.isfinite(ends[0]) & np.isfinite(ends[1])
    if not np.abs(ends[1] - ends[0])[alive].max(initial=0.0) > MOVED:
        return np.empty(0)
    first = float(run.log_t[1])
    happened = run.events["log_t"][np.isfinite(run.events["log_t"])]
    low = min([first - BEFORE * LN10, *happened[:1]])
    return np.linspace(low, first, EARLY + 1)[:-1]


def _drawn(run: Trajectory) -> Array:
    start = [np.array([START])] if run.engine == "descent" else []
    return np.concatenate([*start, _finite(_early_log_times(run)), _finite(run.log_t)])


def _finite(log_times: Array) -> Array:
    return np.asarray(log_times[np.isfinite(log_times)], float) / LN10


def _changes(run: Trajectory) -> tuple[Array, Array]:
    """Times, and the share of all change of the logarithm of the loss until then, 0 to 1."""
    kept = np.isfinite(run.log_t) & np.isfinite(run.log_loss)
    if kept.sum() < 2:
        return np.zeros(1), np.zeros(1)
    path = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(run.log_loss[kept])))])
    return run.log_t[kept] / LN10, path / (path[-1] if path[-1] > 0.0 else 1.0)


def _pace(
    low: float, high: float, happened: Array, changes: Sequence[tuple[Array, Array]]
) -> tuple[tuple[float, float], ...]:
    """Places 0 to 1 of times: the mean of an even pace, one of the events, one of the losses."""
    shares = np.linspace(0.0, 1.0, KNOTS)
    moments = [np.interp(shares, path, times) for times, path in changes]
    knots = np.unique([low, *np.quantile(happened, shares), *np.concatenate(moments), high])
    knots = knots[(knots >= low) & (knots <= high)]
    events = np.interp(knots, happened, np.linspace(0.0, 1.0, len(happened)))
    losses = np.mean([np.interp(knots, *change) for change in changes], axis=0)
    places = ((knots - low) / (high - low) + events + losses) / (1.0 + events[-1] + losses[-1])
    return tuple(zip(knots.tolist(), places.tolist(), strict=True))


def _ticks(pace: tuple[tuple[float, float], ...], flow: bool) -> tuple[tuple[float, str], ...]:
    """Times at nearly even places, no longer than their distance asks for."""
    times, places = np.array(pace).T
    wanted = np.interp(np.linspace(0.0, 1.0, TICKS), places, times)
    found: dict[float, str] = {}
    for k, time in enumerate(wanted):
        gap = min(abs(time - other) for j, other in enumerate(wanted) if j != k)
        digits = -math.floor(math.log10(gap / 2.0))
        value = round(float(time), digits)
        if times[0] <= value <= times[-1]:
            found[value] = f"{value:.{max(0, digits)}f}" if flow else f"{10.0**value:.3g}"
    return tuple(found.items())


def _decades(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Iteration 0, and whole powers of ten, eight at most."""
    step = max(1, math.ceil(high / 8.0))
    powers = range(0, math.floor(high) + 1, step)
    named = [(float(k), str(10**k) if k < 5 else f"10^{k}") for k in powers]
    return ((START, "0"), *named) if low <= START else tuple(named)
