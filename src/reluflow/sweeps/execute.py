"""Executing a plan: what is missing is computed, here or on workers, and stored as it comes."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike

from reluflow import files, interrupts
from reluflow.checks import whole
from reluflow.engines.progress import bar
from reluflow.errors import InputError
from reluflow.interrupts import Interrupted
from reluflow.sweeps import tasks
from reluflow.sweeps.cell import closed_afterwards
from reluflow.sweeps.cluster import Place, compute_on
from reluflow.sweeps.compute import Computed, chosen, pinned
from reluflow.sweeps.heartbeat import Heart, Mark
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.outcome import FAILED_RUN
from reluflow.sweeps.plan import Plan
from reluflow.sweeps.point import Point
from reluflow.sweeps.security import Certificates
from reluflow.sweeps.store import Store
from reluflow.sweeps.upkeep import FAILED, SET_ASIDE

BATCH_S = 0.05


@dataclass(frozen=True)
class Summary:
    """What an execution did: each planned point is counted once.

    Attributes
    ----------
    planned : int
        Points of the plan: the sum of the next four.
    done_before, computed : int
        Results that were there already; results of this call.
    failed, set_aside : int
        Points whose last attempt raised an error; points that ended their worker.
    tried : int
        Points computed in this call, well or not; 0 if there was nothing to do.
    damaged : int
        Run files that did not pass their check and were put aside before the start.
    outdated : int
        Results of another numerics version, moved to ``older`` and computed again.
    reused : mapping
        For each set of versions, how many of the results that were there come from it.
    seconds : float
        Time of the call.
    """

    planned: int
    done_before: int
    computed: int
    failed: int
    set_aside: int
    tried: int
    damaged: int
    outdated: int
    reused: Mapping[str, int]
    seconds: float

    def reuse(self) -> str:
        """What the results that were there before had been computed with."""
        return "; ".join(f"{count} by {made}" for made, count in self.reused.items())


class Tally:
    """Counts while a plan is executed."""

    def __init__(self, planned: int) -> None:
        self.planned = planned
        self.done_before = self.computed = self.failed = self.set_aside = self.tried = 0
        self.damaged = self.outdated = 0
        self.reused: Counter[str] = Counter()
        self.began = time.monotonic()
        self.pending: set[str] = set()

    @property
    def counted(self) -> int:
        """Points whose outcome is known."""
        return self.done_before + self.computed + self.failed + self.set_aside

    def note(self) -> str:
        """Rate, failures and time left, for the bar."""
        rate = self.tried / max(time.monotonic() - self.began, 1e-9)
        left = (self.planned - self.counted) / rate if rate else 0.0
        minutes, seconds = divmod(round(left), 60)
        lost = self.failed + self.set_aside
        return f"{rate:.3g}/s, {lost} failed, {minutes}:{seconds:02d} left"

    def summary(self) -> Summary:
        """The counts as they are now."""
        return Summary(
            planned=self.planned,
            done_before=self.done_before,
            computed=self.computed,
            failed=self.failed,
            set_aside=self.set_aside,
            tried=self.tried,
            damaged=self.damaged,
            outdated=self.outdated,
            reused=dict(self.reused),
            seconds=time.monotonic() - self.began,
        )


def execute(
    plan: Plan,
    store: Store | str | PathLike[str],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    certificates: Certificates | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    progress: bool = False,
) -> Summary:
    """Compute the points of a plan that the store lacks, or has from another numerics version.

    Parameters
    ----------
    plan : Plan
        What to compute.
    store : Store or path
        Where results are, and go.
    workers : int, optional
        Processes of this machine: one for each core by default; 0 computes in this process.
    cluster : str, optional
        Address of a running Dask scheduler, such as "tls://10.0.0.1:8786", instead of ``workers``.
    certificates : Certificates, optional
        What opens a ``tls://`` address; those of Dask's configuration by default.
    retry_failed : bool
        Compute failed points, those set aside, and runs that the engine could not complete, once
        more.
    fresh : bool
        Compute every point again; results that are there are moved to the folder ``older``.
    progress : bool
        Show a bar on work over two seconds.

    Returns
    -------
    Summary
        How many points were computed, taken from the store, or failed.

    Examples
    --------
    >>> import tempfile
    >>> from reluflow.sweeps import Plan, Point, execute
    >>> plan = Plan.of("two", [Point("reluflow.sweeps.tasks:echo", {"x": x}, 0) for x in (1, 2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = execute(plan, folder, workers=0), execute(plan, folder, workers=0)
    >>> first.computed, second.computed, second.done_before
    (2, 0, 2)
    """
    if cluster is not None and workers is not None:
        raise InputError(
            f"`workers` is {workers} and `cluster` is {cluster!r}. A cluster has workers of its "
            "own. Give one of the two."
        )
    if workers is not None:
        workers = whole(workers, "workers", at_least=0, at_most=1024)
    place = Place(workers, cluster, certificates)
    store = store if isinstance(store, Store) else Store(store)
    tally = Tally(len(plan))
    try:
        with interrupts.deferred(grace=None) as pending, store.writer() as index:
            tally.damaged = len(store.refresh())
            if fresh:
                store.withdraw(plan.points)
            todo = _todo(plan.points, store, retry_failed, tally)
            with (
                Heart(index.beat) as heart,
                closing(_stream(todo, place, plan.limits, store, heart)) as batches,
                bar(progress, plan.name, tally.planned) as update,
            ):
                for batch in batches:
                    _keep(batch, store, tally)
                    update(tally.counted, note=tally.note())
                    heart.beat(tally.tried)
                    pending.check()
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"stopped after {tally.tried} points of this call; all of them are stored in "
            f"{store.path}. Run the same again{' without fresh' if fresh else ''} to continue.",
            signal=getattr(error, "signal", signal.SIGINT),
        ) from None
    return tally.summary()


def _todo(
    points: Iterable[Point], store: Store, retry_failed: bool, tally: Tally
) -> Iterator[Point]:
    """The points to compute; the others are counted as they pass."""
    checked: set[str] = set()
    now = files.numerics_of(files.versions())
    with store.writer() as index:
        for point in points:
            interrupts.check()
            if point.task not in checked:
                tasks.resolve(point.task)
                checked.add(point.task)
            status, made = index.made(point.id) or (None, "{}")
            if status is not None and point.id not in tally.pending and _numerics(made) != now:
                store.withdraw([point])
                tally.outdated += status not in (FAILED, SET_ASIDE)
                status = None
            again = retry_failed and status == FAILED_RUN
            lacking = status in (None, FAILED, SET_ASIDE) or again
            if point.id in tally.pending or not lacking:
                tally.done_before += 1
                if status is not None:
                    tally.reused[_made_by(made)] += 1
            elif status is None or retry_failed:
                tally.pending.add(point.id)
                yield point
            elif status == FAILED:
                tally.failed += 1
            else:
                tally.set_aside += 1


@lru_cache(maxsize=64)
def _numerics(made: str) -> int:
    """The numerics version among versions in JSON."""
    return files.numerics_of(json.loads(made))


@lru_cache(maxsize=64)
def _made_by(made: str) -> str:
    return files.made_by(json.loads(made))


def _stream(
    todo: Iterator[Point], place: Place, limits: Limits | None, store: Store, heart: Heart
) -> Generator[list[Computed], None, None]:
    """Outcomes as they come, in any order; now and then nothing, for a sign of life."""
    first = next(todo, None)
    if first is None:  # nothing to do: no worker is started for it
        return
    points = _chained(first, todo)
    if place.workers == 0:
        with closing(Mark(store.mark_path)) as mark:
            yield from _inline(points, limits, mark)
    else:
        with closing(compute_on(points, place, limits, heart)) as batches:
            yield from batches


def _inline(
    points: Iterator[Point], limits: Limits | None, mark: Mark
) -> Generator[list[Computed], None, None]:
    """Compute here; points that take a few milliseconds are stored together."""
    one, batch, began = chosen(limits), [], time.monotonic()
    with pinned(), closed_afterwards():
        yield []
        try:
            for point in points:
                mark.put(point)
                batch.append(one(point))
                if time.monotonic() - began > BATCH_S:
                    yield batch
                    batch, began = [], time.monotonic()
        except GeneratorExit:
            raise
        except BaseException:
            yield batch  # what ends the sweep does not undo what was computed
            raise
        yield batch


def _chained(first: Point, rest: Iterator[Point]) -> Iterator[Point]:
    yield first
    yield from rest


def _keep(batch: list[Computed], store: Store, tally: Tally) -> None:
    """Store the outcomes of a batch, results first."""
    store.put_encoded([item.result for item in batch if item.result is not None])
    for item in batch:
        if item.result is None:
            store.fail(item.point, item.error, set_aside=item.is_set_aside)
        tally.pending.discard(item.point.id)
        tally.tried += 1
        tally.computed += item.result is not None
        tally.set_aside += item.is_set_aside
        tally.failed += item.result is None and not item.is_set_aside
