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
from reluflow.explore.state import from_json, to_json

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


def never():
    return False


def on_the_edge(label, rtol=1e-4):
    """Five points and six neurons; the third label decides between two fits far from each other."""
    x = [-1.9890459993194076, -1.8656576987781426, 0.9186217857197763]
    x += [1.2634142164861286, 1.4296171063502774]
    y = [-0.648688758794882, 0.7263578446997732, label, -0.40057621892523043, -0.1546255576046831]
    return from_json(
        {"v": 1, "X": [[each, 1.0] for each in x], "y": y, "line": True, "log_scale": -2.0}
        | {"rtol": rtol, "net": {"kind": "drawn", "width": 6, "seed": 1}}
    )


def between_two_ways():
    """A label at which the tolerance of the state goes one way and a hundredth of it the other.

    Each tolerance has a label of its own where its runs change over; the middle of both is found
    anew in every run, whatever the last digits of the engine are.
    """

    def change_over(rtol):
        low, high = 0.1255, 0.1265
        first, last = outputs(low, rtol), outputs(high, rtol)
        assert abs(first - last).max() > 0.1
        for _ in range(17):
            middle = (low + high) / 2.0
            now = outputs(middle, rtol)
            is_first = abs(now - first).max() < abs(now - last).max()
            low, high = (middle, high) if is_first else (low, middle)
        return (low + high) / 2.0

    def outputs(label, rtol):
        state = on_the_edge(label)
        return compute.train(state, rtol, 10.0, never).final.predict(state.dataset().X)

    coarse, fine = change_over(1e-4), change_over(1e-6)
    assert abs(coarse - fine) > 1e-9
    return (coarse + fine) / 2.0
