"""The slow lane: what takes longer than a hand waits, in a process of its own that can be killed.

`Lane` starts it and talks to it through its standard streams: length-prefixed JSON in, frames out.
The process works on the newest job only: a new message (or the end of the stream, when the
explorer is gone) abandons the old one at the next question of its stop hook. Parts that ask
nothing, such as a cone solver, are killed after a grace and the process starts anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

GRACE_S = 2.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Lane:
    """The side of the explorer: starts, feeds, kills the process; ``tell`` gets its frames."""

    def __init__(self, tell: Callable[[bytes], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0  # jobs and cancellations sent
        self._answered = 0  # of which the process has said that it saw them
        self._first = 0  # the first job of whoever listens now
        self._closed = False

    def attach(self, tell: Callable[[bytes], None]) -> None:
        """Tell somebody else from now on, of jobs begun from now on: a page was opened again."""
        with self._lock:
            self._tell, self._first = tell, self._asked + 1

    def detach(self, tell: Callable[[bytes], None]) -> None:
        """Stop telling ``tell``, unless somebody else listens already."""
        if self._tell is tell:
            self.attach(_nobody)
            self.cancel()

    def start(self, id: int, state: dict[str, Any]) -> None:
        """Work on this state; what was going on is abandoned."""
        self._send({"id": id, "state": state})

    def cancel(self) -> None:
        """Abandon what is going on."""
        with self._lock:
            if self._process is None:
                return
        self._send({"id": None})

    def close(self) -> None:
        """End the process for good."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        _end(process)

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        return self._process.pid if self._process is not None else None

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            if self._closed:
                return
            if self._process is None or self._process.poll() is not None:
                self._begin()
            self._asked += 1
            number, process = self._asked, self._process
            assert process is not None
            assert process.stdin is not None
            try:
                _write(process.stdin, json.dumps({**message, "number": number}).encode())
            except OSError:
                return
        timer = threading.Timer(GRACE_S, self._insist, (number, message))
        timer.daemon = True
        timer.start()

    def _begin(self) -> None:
        threads = dict.fromkeys(THREADS, "1")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore::RuntimeWarning", "-m", "reluflow.explore.slow"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this one
        )
        self._answered = self._asked
        self._seen_first = False
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while (body := _read(process.stdout)) is not None:
            if body[:1] == b"#":
                self._answered = max(self._answered, int(body[1:]))
                self._seen_first = True
            elif process is self._process and self._answered >= self._first:
                self._tell(body)

    def _insist(self, number: int, message: dict[str, Any]) -> None:
        """Kill a process that has not seen the newest job, and give the job to a new one."""
        with self._lock:
            newest = number == self._asked and self._answered < number
            if not newest or self._closed or not self._seen_first:
                return  # not seen yet at all: it is still loading
            process, self._process = self._process, None
        _end(process)
        if message["id"] is not None:
            self._send(message)


def _nobody(frame: bytes) -> None:
    """Nobody listens."""


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _write(stream: BinaryIO | Any, body: bytes) -> None:
    stream.write(len(body).to_bytes(4, "little") + body)
    stream.flush()


def _read(stream: BinaryIO | Any) -> bytes | None:
    try:
        size = stream.read(4)
        if len(size) < 4:
            return None
        body: bytes = stream.read(int.from_bytes(size, "little"))
    except (OSError, ValueError):
        return None
    return body


# -------------------------------------------------------------------- the process


class _Worker:
    """The side of the process: newest job first, others abandoned."""

    def __init__(self) -> None:
        self.newest: dict[str, Any] | None = None
        self.changed = threading.Condition()
        self.out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever prints must not print into the frames

    def listen(self) -> None:
        """Read messages until the explorer is gone."""
        while (body := _read(sys.stdin.buffer)) is not None:
            with self.changed:
                self.newest = json.loads(body)
                self.changed.notify()
        os._exit(0)

    def work(self) -> None:
        """Do jobs for ever."""
        from reluflow.explore import jobs

        seen: dict[str, Any] | None = None
        while True:
            with self.changed:
                while self.newest is seen or self.newest is None:
                    self.changed.wait()
                job = seen = self.newest
            _write(self.out, b"#%d" % job["number"])
            if job["id"] is None:
                continue
            for frame in jobs.parts(job["id"], job["state"], partial(self._is_old, job)):
                if self._is_old(job):
                    break
                _write(self.out, frame)

    def _is_old(self, job: dict[str, Any]) -> bool:
        return self.newest is not job


def main() -> None:
    """Run the process of the slow lane."""
    worker = _Worker()
    threading.Thread(target=worker.listen, daemon=True).start()
    worker.work()


if __name__ == "__main__":
    main()
