"""A process of its own for points with limits: it is watched from outside and may be killed.

Compiled code that does not return cannot be stopped by the process it runs in. So each process of a
sweep, the driver or a worker, hands points with limits to a child, its cell, one at a time through
a pipe, looks at the clock and at the memory of the child meanwhile, and ends it when a point
exceeds a limit. That point is known, and the next ones go to a new cell.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from reluflow import interrupts
from reluflow.errors import MissingExtraError
from reluflow.sweeps import tasks
from reluflow.sweeps.compute import ONE_THREAD, Computed, compute, one_thread, pack, unpack
from reluflow.sweeps.limits import Limits, shown
from reluflow.sweeps.orphans import die_with_parent
from reluflow.sweeps.point import Point

ATTEMPTS = 3
LOOK_S = 0.05  # between two looks at the child
_PROGRAM = "import sys; from reluflow.sweeps.cell import serve; serve(int(sys.argv[1]))"
_STOPPED = (
    "{fact}, the limit of this sweep. It was stopped and set aside; raise `limits.{field}` and "
    "compute it again with --retry-failed (retry_failed=True)."
)
_DIED = (
    "the process that computed it died {times} times ({how}): out of memory, killed from outside, "
    "or a crash in compiled code. It was set aside; compute it again with --retry-failed "
    "(retry_failed=True)."
)


class Cell:
    """The parent's side of a child process; started with the first point, and again when needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def compute(self, point: Point, limits: Limits) -> Computed:
        """What becomes of a point within its limits; three deaths of the child end the attempts."""
        began, how = time.perf_counter(), ""
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(point, limits, began)
            except (EOFError, OSError):
                how = self._ending()
            except BaseException:
                self.close()
                raise
        seconds = time.perf_counter() - began
        cause = _DIED.format(times=ATTEMPTS, how=how)
        return Computed(point, error=cause, is_set_aside=True, seconds=seconds)

    def close(self) -> None:
        """End the child at once: it holds nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _attempt(self, point: Point, limits: Limits, began: float) -> Computed:
        process, pipe = self._running()
        pipe.send((point.to_dict(), tasks.allowed()))
        clock = _Clock()
        while True:
            interrupts.check()
            if pipe.poll(LOOK_S):
                answer = pipe.recv()
                if not isinstance(answer, bool):
                    break
                clock.stop() if answer else clock.go_on()
            fact = _excess(process.pid, clock.seconds, limits)
            if fact is not None:
                self.close()
                text = _STOPPED.format(fact=fact[1], field=fact[0])
                return Computed(point, error=text, is_set_aside=True, seconds=clock.seconds)
        if limits.memory is not None and _memory(process.pid) > limits.memory / 2:
            self.close()  # what this point has left behind is not the next one's
        return unpack(point, answer)

    def _running(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """The child, once it has loaded everything that is not the point's."""
        if self._process is None or self._pipe is None:
            self._pipe, theirs = Pipe()
            with theirs:
                self._process = _started(theirs.fileno())
            while not self._pipe.poll(LOOK_S):
                interrupts.check()
            self._pipe.recv()
        return self._process, self._pipe

    def _ending(self) -> str:
        """How a child that is gone came to its end; the next attempt starts another."""
        code = self._process.wait() if self._process is not None else 0
        self.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class _Clock:
    """Seconds of a point, without those of compilation."""

    def __init__(self) -> None:
        self._kept, self._since = 0.0, time.monotonic()
        self._is_stopped = False

    @property
    def seconds(self) -> float:
        return self._kept + (0.0 if self._is_stopped else time.monotonic() - self._since)

    def stop(self) -> None:
        self._kept, self._is_stopped = self.seconds, True

    def go_on(self) -> None:
        self._since, self._is_stopped = time.monotonic(), False


_own = threading.local()


def compute_within(point: Point, limits: Limits) -> Computed:
    """Compute a point in the cell of this thread."""
    if not hasattr(_own, "cell"):
        _own.cell = Cell()
    cell: Cell = _own.cell
    return cell.compute(point, limits)


@contextmanager
def closed_afterwards() -> Iterator[None]:
    """End the cell of this thread with the block."""
    try:
        yield
    finally:
        if hasattr(_own, "cell"):
            _own.cell.close()


def _started(handle: int) -> subprocess.Popen[bytes]:
    """A child that finds what this process finds, and leaves signals to this one."""
    environment = {
        **os.environ,
        **ONE_THREAD,
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.SIGNALS)
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(handle)],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[handle],
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _excess(pid: int, seconds: float, limits: Limits) -> tuple[str, str] | None:
    """Which limit is exceeded, and the sentence that says so."""
    if limits.seconds is not None and seconds > limits.seconds:
        return "seconds", f"it ran for more than {limits.seconds:g} s"
    if limits.memory is not None and _memory(pid) > limits.memory:
        return "memory", f"it needed more than {shown(limits.memory)} of memory"
    return None


def _memory(pid: int) -> int:
    """Resident bytes of a process; 0 if it is gone."""
    if not Path("/proc/self/statm").exists():
        return _memory_elsewhere(pid)
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _memory_elsewhere(pid: int) -> int:
    """The same on systems without ``/proc``."""
    try:
        import psutil
    except ImportError:
        raise MissingExtraError(
            "a limit of memory needs psutil here. Install it with: pip install 'reluflow[sweep]'."
        ) from None
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def serve(handle: int) -> None:
    """The child: compute points as they come, until the pipe or the parent is gone."""
    die_with_parent()
    pipe = Connection(handle)
    from reluflow.engines import progress
    from reluflow.kernels.compiling import listen

    progress.silence()
    listen(pipe.send)
    pipe.send("ready")
    with one_thread(), suppress(EOFError, ConnectionError):
        while True:
            stored, packages = pipe.recv()
            for package in packages:
                tasks.allow(package)
            pipe.send(pack(compute(Point.from_dict(stored))))
