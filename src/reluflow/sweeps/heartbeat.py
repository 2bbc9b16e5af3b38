"""Signs of life of a sweep: who computes, what is under way and since when.

The driver writes them into the index about twice a second; they are the only rows there that no
file holds, and they are removed when the sweep ends. A driver that is killed leaves its last ones.
One that computes by itself cannot write while it does, so it notes each point in a small file
before: what hangs is known, however short the points before it were.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reluflow.sweeps.point import Point

BEAT_S = 0.5


@dataclass(frozen=True)
class UnderWay:
    """Points that were handed out together: the id of the first, how many, since when."""

    id: str
    count: int
    since: float


@dataclass(frozen=True)
class Pulse:
    """The last sign of life; times are those of the driver's clock, in seconds since 1970."""

    pid: int
    host: str
    began: float
    time: float
    tried: int
    under_way: tuple[UnderWay, ...]

    @property
    def is_gone(self) -> bool:
        """Whether its process ran on this machine and is no more."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Pulse:
        """Inverse of `to_dict`."""
        groups = tuple(UnderWay(**group) for group in stored.pop("under_way"))
        return cls(**stored, under_way=groups)


class Mark:
    """The file with the point that the driver computes by itself; removed at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def put(self, point: Point) -> None:
        """Note a point: a write of one length to a file that stays open, a few microseconds."""
        os.pwrite(self._handle, f"{point.id} {time.time():20.6f}".encode(), 0)

    def close(self) -> None:
        """Remove the file."""
        os.close(self._handle)
        self._path.unlink(missing_ok=True)


def read_mark(path: Path) -> tuple[UnderWay, ...]:
    """The point of the file; nothing if there is none, or nothing in it."""
    try:
        point_id, since = path.read_text(encoding="ascii").split()
        return (UnderWay(point_id, 1, float(since)),)
    except (OSError, ValueError):
        return ()


class Heart:
    """What is under way, told to ``write`` now and then; as a context, None at the end.

    Parameters
    ----------
    write : callable
        Takes a `Pulse`, or None when nobody computes any more.
    """

    def __init__(self, write: Callable[[Pulse | None], None]) -> None:
        self._write, self._began, self._last = write, time.time(), float("-inf")
        self._under_way: dict[str, UnderWay] = {}

    def __enter__(self) -> Heart:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self._write(None)

    def begin(self, points: Sequence[Point]) -> None:
        """Points were handed out."""
        first = points[0].id
        self._under_way[first] = UnderWay(first, len(points), time.time())

    def end(self, points: Sequence[Point]) -> None:
        """Points came back, well or not."""
        self._under_way.pop(points[0].id, None)

    def beat(self, tried: int) -> None:
        """Write, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._last < BEAT_S:
            return
        self._last = now
        groups = tuple(self._under_way.values())
        self._write(
            Pulse(os.getpid(), socket.gethostname(), self._began, time.time(), tried, groups)
        )
