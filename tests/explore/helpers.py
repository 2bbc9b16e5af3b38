"""A session and its answers, and a server in a thread."""

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from unittest.mock import patch

from reluflow.explore import compute, frames, presets
from reluflow.explore.server import Server
from reluflow.explore.session import Session
from reluflow.explore.state import to_json

PATIENCE_S = 600.0


class Talk:
    """A session with everything it said."""

    def __init__(self, first=None):
        self.said = []
        self.heard = threading.Condition()
        self.session = Session(self._hear, first or presets.first())

    def _hear(self, frame):
        with self.heard:
            self.said.append(frames.decode(frame))
            self.heard.notify_all()

    def send(self, id, kind, **fields):
        self.session.receive(json.dumps({"v": 1, "id": id, "kind": kind, **fields}))

    def wait(self, wanted):
        """The first answer, header and arrays, for which ``wanted(header)`` holds."""
        end = time.monotonic() + PATIENCE_S
        with self.heard:
            while True:
                for header, arrays in self.said:
                    if wanted(header):
                        return header, arrays
                assert self.heard.wait(end - time.monotonic()), [h for h, _ in self.said]

    def answer(self, id):
        return self.wait(lambda header: header["id"] == id)


@contextmanager
def patient():
    """Runs are not cut short by a busy machine: what is tested is not how fast it is."""
    with patch.multiple(compute, DRAFT_SECONDS=600.0, FULL_SECONDS=600.0):
        yield


@contextmanager
def talk(first=None):
    with patient():
        found = Talk(first)
        try:
            yield found
        finally:
            found.session.close()


@contextmanager
def served(first=None):
    """A server that listens on a free port, in a thread of its own."""
    server = Server(first or presets.first())
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.listen(), loop).result(PATIENCE_S)
    try:
        with patient():
            yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def state(name="sliding", **fields):
    return {**to_json(presets.named(name)), **fields}
