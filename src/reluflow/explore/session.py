"""One user at one page: messages in, frames out, and always the newest state.

Messages are JSON, ``{v, id, kind, ...}``:

* ``hello``: the presets, the limits and the state to begin with;
* ``draft``, ``full``: compute ``state``; a draft that runs is finished, since a hand that moves on
  would otherwise never see one, a full run is stopped by anything newer;
* ``slow``: begin the slow lane with ``state``; any draft or full run abandons it;
* ``cancel``: stop what runs;
* ``download`` (``what``, ``state``): a file; ``table`` (``text``): read a pasted table.

Answers carry the id of the question. Work is done by one thread; ``send`` is called from it.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from reluflow._version import __version__
from reluflow.errors import InputError, ReluflowError
from reluflow.explore import frames
from reluflow.explore.slow import Lane
from reluflow.explore.state import (
    MAX_MESSAGE_BYTES,
    MAX_POINTS,
    MAX_WIDTH,
    VERSION,
    State,
    StateError,
    from_json,
    to_json,
)
from reluflow.wording import cut, printable

KINDS = ("hello", "draft", "full", "slow", "cancel", "download", "table")
TICK_S, PAUSE_S = 0.2, 2.0  # between two kernels nothing is compiled for a moment
MAX_WAITING = 20


class Session:
    """Computes what a page asks for; ``close`` ends its thread and, if it is its own, its lane."""

    def __init__(
        self, send: Callable[[bytes], None], first: State, lane: Lane | None = None
    ) -> None:
        self._send, self._first = send, first
        self._changed = threading.Condition()
        self._newest: dict[str, Any] | None = None  # a draft or full run that waits
        self._others: deque[dict[str, Any]] = deque()
        self._running: dict[str, Any] | None = None
        self._cancelled = False
        self._closed = False
        self._ended = threading.Event()
        self._compiling = False
        self._owns_lane = lane is None
        self.lane = lane or Lane(send)
        self.lane.attach(send)
        self._thread = threading.Thread(target=self._work, name="explore", daemon=True)
        self._thread.start()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()

    def receive(self, text: str | bytes) -> None:
        """Take a message; what cannot be understood is answered with a sentence."""
        message = self._read(text)
        if message is None:
            return
        kind = message["kind"]
        with self._changed:
            if kind in ("draft", "full"):
                self._newest = message
            elif kind == "cancel":
                self._newest, self._cancelled = None, True
            elif len(self._others) >= MAX_WAITING:
                self._refuse(message["id"], "too many questions wait. Ask again in a moment.")
            else:
                self._others.append(message)
            self._changed.notify()
        if kind in ("draft", "full", "cancel"):
            self.lane.cancel()

    def close(self) -> None:
        """Stop what runs; end the slow lane, or leave one that belongs to the server."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._ended.set()
        if self._owns_lane:
            self.lane.close()
        else:
            self.lane.detach(self._send)
        self._thread.join(timeout=5.0)

    # ---------------------------------------------------------------- messages

    def _read(self, text: str | bytes) -> dict[str, Any] | None:
        id = 0
        try:
            if len(text) > MAX_MESSAGE_BYTES:
                raise InputError(
                    f"the message has {len(text)} bytes; at most {MAX_MESSAGE_BYTES} are taken."
                )
            message = json.loads(text)
            if not isinstance(message, dict) or message.get("v") != VERSION:
                raise InputError("this page and this server are of different versions. Reload it.")
            given = message.get("id")
            if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**53:
                raise InputError("the message has no id.")
            id = given
            if message.get("kind") not in KINDS:
                raise InputError(f"`kind` is {message.get('kind')!r:.40}; it is none of {KINDS}.")
        except (ValueError, RecursionError) as error:
            said = str(error) if isinstance(error, InputError) else "the message is not JSON."
            self._refuse(id, said)
            return None
        return message

    def _refuse(self, id: int, sentence: str, points: tuple[int, ...] = ()) -> None:
        header = {"id": id, "kind": "error", "error": printable(cut(sentence, 600))}
        self._send(frames.encode({**header, "points": list(points)}))

    # ---------------------------------------------------------------- work

    def _stop(self) -> bool:
        """Whether what runs should stop: the stop hook of the engine."""
        running = self._running
        newer = self._newest is not None and running is not None and running["kind"] != "draft"
        return self._closed or self._cancelled or newer

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._closed or self._newest is not None or self._others):
                    self._changed.wait()
                if self._closed:
                    return
                if self._newest is not None:
                    self._running, self._newest = self._newest, None
                else:
                    self._running = self._others.popleft()
                self._cancelled = False
                message = self._running
            try:
                self._answer(message)
            except StateError as error:
                self._refuse(message["id"], str(error), error.points)
            except ReluflowError as error:
                self._refuse(message["id"], str(error))
            except Exception as error:  # the page must not die of a defect of ours
                said = f"unexpected {type(error).__name__}: {error}. This is a defect of reluflow."
                self._refuse(message["id"], said)
            with self._changed:
                self._running = None

    def _answer(self, message: Mapping[str, Any]) -> None:
        id, kind = message["id"], message["kind"]
        if kind == "hello":
            self._send(self._hello(id))
        elif kind == "table":
            self._table(id, message.get("text"))
        elif kind == "slow":
            state = from_json(message.get("state"))
            if self._newest is None:
                self.lane.start(id, to_json(state))
        elif kind == "download":
            self._download(id, from_json(message.get("state")), message.get("what"))
        else:
            self._compute(id, kind, from_json(message.get("state")))

    def _hello(self, id: int) -> bytes:
        from reluflow.explore import presets

        return frames.encode(
            {
                "id": id,
                "kind": "hello",
                "version": __version__,
                "state": to_json(self._first),
                "presets": presets.listed(),
                "limits": {"points": MAX_POINTS, "width": MAX_WIDTH},
            }
        )

    def _compute(self, id: int, kind: str, state: State) -> None:
        self._watch_compiling()
        from reluflow.explore import compute

        if kind == "draft" and state.width > compute.DRAFT_WIDTH:
            self._send(frames.encode({"id": id, "kind": "skipped"}))
            return
        result = (compute.draft if kind == "draft" else compute.full)(state, self._stop)
        if self._stop():
            self._send(frames.encode({"id": id, "kind": "cancelled"}))
        else:
            self._send(frames.encode({"id": id, "kind": "run", **result.header}, result.arrays))

    def _download(self, id: int, state: State, what: Any) -> None:
        from reluflow.explore import documents

        name, body = documents.download(state, str(what))
        text = base64.b64encode(body).decode()
        self._send(frames.encode({"id": id, "kind": "download", "name": name, "body": text}))

    def _table(self, id: int, text: Any) -> None:
        from reluflow.explore import documents

        if not isinstance(text, str):
            raise InputError("there is no table. Paste one point a line.")
        X, y, is_line = documents.from_csv_text(text)
        self._send(frames.encode({"id": id, "kind": "table", "X": X, "y": y, "line": is_line}))

    # ---------------------------------------------------------------- compilation

    def _watch_compiling(self) -> None:
        """Know when numba compiles, which happens once on a machine and takes a minute or two."""
        if not hasattr(self, "_listening"):
            from reluflow.kernels import compiling

            self._listening = True
            compiling.listen(self._note_compiling)

    def _note_compiling(self, begins: bool) -> None:
        self._compiling = begins

    def _tick(self) -> None:
        """Tell the page that the engine is being compiled, soon and then five times a second."""
        began, last = 0.0, -PAUSE_S
        while not self._ended.wait(TICK_S):
            if self._compiling:
                now = time.monotonic()
                if now - last > PAUSE_S:
                    began = now
                last = now
                seconds = int(now - began)
                self._send(frames.encode({"id": 0, "kind": "compiling", "seconds": seconds}))
