"""Handing points to workers in groups, a bounded number at a time.

Short points travel in groups of about half a second, measured as they come back. At most two
groups for each worker are under way, so memory does not grow with the plan.

A worker that dies takes its group with it, and whatever was waiting for it: each of these points
is then computed alone, with no more points under way than workers, and the last time with nothing
else under way at all. A point under which three workers died is set aside; innocent ones finish.
Dask starts a new worker for each that dies, but gives up if that one dies while it starts.
"""

from __future__ import annotations

import itertools
import queue
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from reluflow import interrupts
from reluflow.errors import InputError, ReluflowError
from reluflow.sweeps import tasks
from reluflow.sweeps.compute import Computed, compute_group, unpack
from reluflow.sweeps.heartbeat import Heart
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.point import Point

ATTEMPTS = 3
GROUP_S = 0.5
GROUP_BYTES = 16 * 2**20
GROUP_LIMIT = 500
WAIT_S = 0.2  # between two looks at the signals
LOOK_S = 5.0  # between two looks at the number of workers
ABSENT_S = 20.0  # without any worker: a new one takes a few seconds to start


class ClusterError(ReluflowError):
    """There is nobody to compute; what was finished is stored."""


@dataclass(frozen=True)
class Group:
    """Points under way together, and how many workers died under them before."""

    points: tuple[Point, ...]
    deaths: int = 0


class NoWorkersError(Exception):
    """The client has had no worker for a while; what was under way must be handed out again."""


class Dispatcher:
    """The conversation with a Dask client: submits groups, collects outcomes.

    Parameters
    ----------
    points : iterator of Point
        What to compute; read only as far as needed.
    heart : Heart
        Is told what is under way.
    limits : Limits, optional
        What each may use.
    """

    def __init__(self, points: Iterator[Point], heart: Heart, limits: Limits | None = None) -> None:
        self._heart = heart
        self._client: Any = None
        self._limits = None if limits is None else limits.to_dict()
        self._points = points
        self._first: deque[Group] = deque()
        self._under_way: dict[Any, Group] = {}
        self._finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._size = 1
        self._width, self._looked, self._seen = 1, 0.0, 0.0

    def outcomes(self, client: Any) -> Generator[list[Computed], None, None]:
        """Yield outcomes as groups end; the next group is on its way before they are stored.

        While nothing ends, an empty list comes now and then.

        Raises `NoWorkersError` when the client loses its last worker; call it again with another.
        """
        self._client, self._finished = client, queue.SimpleQueue()
        self._looked, self._seen = float("-inf"), time.monotonic()
        self._first.extend(self._under_way.values())
        self._under_way.clear()
        self._fill()
        while self._under_way:
            with interrupts.deferred() as pending:
                pending.check()
                done = self._next()
                self._fill()
            yield done

    def _next(self) -> list[Computed]:
        """Wait a moment for a group to end; what became of its points."""
        try:
            future = self._finished.get(timeout=WAIT_S)
        except queue.Empty:
            self._workers()
            if time.monotonic() - self._seen > ABSENT_S:
                raise NoWorkersError from None
            return []
        group = self._under_way.pop(future)
        self._heart.end(group.points)
        return self._collect(future, group)

    def _fill(self) -> None:
        width = self._workers()
        while self._first:
            alone = self._first[0].deaths == ATTEMPTS - 1
            if len(self._under_way) >= (1 if alone else width):
                return
            self._submit(self._first.popleft())
        while len(self._under_way) < 2 * width:
            points = tuple(itertools.islice(self._points, self._size))
            if not points:
                return
            self._submit(Group(points))

    def _submit(self, group: Group) -> None:
        payload = [point.to_dict() for point in group.points]
        future = self._client.submit(
            compute_group, payload, tasks.allowed(), self._limits, pure=False
        )
        self._under_way[future] = group
        self._heart.begin(group.points)
        future.add_done_callback(self._finished.put)

    def _collect(self, future: Any, group: Group) -> list[Computed]:
        from distributed import KilledWorker

        try:
            answers = future.result(timeout=ABSENT_S)
        except TimeoutError:  # its worker died before it could answer: ask again
            self._first.append(group)
            return []
        except KilledWorker as error:
            return self._blame(group, error.allowed_failures + 1)
        except Exception as error:
            if future.status in ("cancelled", "lost"):
                raise ClusterError(
                    "the scheduler is gone. What was finished is stored; run the same again to "
                    "continue."
                ) from None
            raise InputError(
                f"the workers cannot compute ({type(error).__name__}: {error}). Give them the "
                "same packages as here."
            ) from error
        finally:
            future.release()
        done = [unpack(*pair) for pair in zip(group.points, answers, strict=True)]
        self._adapt(done)
        return done

    def _blame(self, group: Group, deaths: int) -> list[Computed]:
        """Points of a lost group are tried alone; one that was alone three times is set aside."""
        if len(group.points) > 1:
            self._first.extend(Group((point,), min(deaths, 1)) for point in group.points)
            return []
        total = group.deaths + deaths
        if total < ATTEMPTS:
            self._first.append(Group(group.points, total))
            return []
        cause = (
            f"the process that computed it died {total} times: out of memory, killed from outside, "
            "or a crash in compiled code. It was set aside; compute it again with --retry-failed "
            "(retry_failed=True) on a larger machine, or inline with --workers 0 to see it happen."
        )
        return [Computed(group.points[0], error=cause, is_set_aside=True)]

    def _adapt(self, done: list[Computed]) -> None:
        """Choose the size of the next groups by the time and the bytes of this one."""
        seconds = max(sum(item.seconds for item in done) / len(done), 1e-6)
        size_bytes = max(sum(len(item.result.body) for item in done if item.result) / len(done), 1)
        wanted = int(min(GROUP_S / seconds, GROUP_BYTES / size_bytes, GROUP_LIMIT))
        self._size = max(1, min(wanted, 2 * self._size))  # first calls of a task load and compile

    def _workers(self) -> int:
        """How many threads the cluster has; it may grow and shrink."""
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked, found = now, sum(self._client.nthreads().values())
            self._width = max(1, found)
            self._seen = now if found else self._seen
        return self._width
