"""How a sweep stands, from its store alone: for a look from outside while it runs or after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reluflow.sweeps.heartbeat import Pulse
from reluflow.sweeps.plan import Plan
from reluflow.sweeps.store import Store
from reluflow.sweeps.summary import summarise, values_of
from reluflow.sweeps.upkeep import FAILED, SET_ASIDE

NAMED = 5


@dataclass(frozen=True)
class Status:
    """A plan against its store.

    Attributes
    ----------
    planned : int
        Points of the plan.
    counts : mapping
        How many points ended how; ``missing`` for those without an outcome.
    pulse : Pulse or None
        The last sign of life of the driver; None if it ended by itself, or never began.
    """

    planned: int
    counts: dict[str, int]
    pulse: Pulse | None

    @property
    def done(self) -> int:
        """Points with a result."""
        lost = ("missing", FAILED, SET_ASIDE)
        return sum(count for name, count in self.counts.items() if name not in lost)


def status(plan: Plan, store: Store) -> Status:
    """How the plan stands in the store.

    Examples
    --------
    >>> status(Plan.of("none", []), Store("nowhere"))
    Status(planned=0, counts={}, pulse=None)
    """
    _, total = summarise(plan, store, limit=0)
    return Status(len(plan), dict(total.statuses), store.pulse())


def words(plan: Plan, store: Store) -> Iterator[str]:
    """The status in sentences: counts, who computes, what is under way, what was set aside."""
    found = status(plan, store)
    failed, aside, left = (found.counts.get(name, 0) for name in (FAILED, SET_ASIDE, "missing"))
    yield (
        f"{plan.name}: {found.done} of {found.planned} points done, {failed} failed, "
        f"{aside} set aside, {left} left"
    )
    yield from _life(found.pulse)
    if found.pulse is not None:
        yield from _under_way(plan, found.pulse)
    yield from culprits(plan, store)


def culprits(plan: Plan, store: Store, limit: int = NAMED) -> Iterator[str]:
    """The first points that were set aside, each with its values and the reason."""
    left = limit
    for point, row in zip(plan.points, store.rows_of(plan.points), strict=True):
        if row is not None and row["status"] == SET_ASIDE:
            yield f"set aside {_named(point.id, values_of(point, plan.paths))}: {row['error']}"
            left -= 1
            if not left:
                return


def _life(pulse: Pulse | None) -> Iterator[str]:
    if pulse is None:
        yield "nobody computes it now; the same command without --status does"
        return
    who, age = f"process {pulse.pid} on {pulse.host}", max(time.time() - pulse.time, 0.0)
    if pulse.is_gone:
        yield f"{who} computed it and was killed; the same command without --status continues"
        return
    rate = pulse.tried / max(pulse.time - pulse.began, 1e-9)
    yield f"{who} computes it, {rate:.3g} points/s; its last sign of life is {age:.1f} s old"


def _under_way(plan: Plan, pulse: Pulse) -> Iterator[str]:
    wanted = {group.id: group for group in pulse.under_way}
    for point in plan.points if wanted else ():
        group = wanted.pop(point.id, None)
        if group is not None:
            more = f" and {group.count - 1} more" if group.count > 1 else ""
            seconds = max(time.time() - group.since, 0.0)
            values = values_of(point, plan.paths)
            yield f"under way for {seconds:.1f} s: {_named(point.id, values)}{more}"
        if not wanted:
            return


def _named(point_id: str, values: dict[str, Any]) -> str:
    shown = ", ".join(f"{path} = {value!r}" for path, value in values.items())
    return f"{point_id} ({shown})" if shown else point_id
