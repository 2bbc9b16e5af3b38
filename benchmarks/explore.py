"""The explorer while a point is dragged: n = 6, 50 neurons, rtol 1e-6, fifty moves."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Any

from reluflow.explore import compute, frames, presets
from reluflow.explore.server import Server
from reluflow.explore.session import Session
from reluflow.explore.state import State, from_json, to_json

MOVES = 50
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def rows() -> Iterator[dict[str, Any]]:
    """Medians in milliseconds; a ratio is the budget over what was used."""
    states = list(_dragged())
    compute.draft(states[0], _never)  # compile
    yield _row("engine of a draft, CPU", 25.0, [_engine(state) for state in states])
    yield _row("full run at rtol 1e-8 with its samples", None, [_full(s) for s in states[::10]])
    yield _row("draft that cancels a full run, beyond its engine", 150.0, _cancelled(states))
    yield from _in_browser()
    yield from _cold()


def _cancelled(states: list[State]) -> list[float]:
    """From the question for a draft, while a full run is on its way, to its answer; wall ms."""
    told: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
    session = Session(lambda frame: told.put((perf_counter(), _header(frame))), states[0])
    found = []
    try:
        for k, state in enumerate(states[:20]):
            wide = from_json({**to_json(state), "net": {"kind": "drawn", "width": 90, "seed": k}})
            session.receive(_question(2 * k + 1, "full", wide))
            time.sleep(0.02)  # the full run has begun
            began = perf_counter()
            session.receive(_question(2 * k + 2, "draft", state))
            while True:
                at, header = told.get(timeout=60)
                if header["id"] == 2 * k + 2 and header["kind"] == "run":
                    break
            found.append(1e3 * (at - began) - header["ms"]["engine"])
    finally:
        session.close()
    return found


def _question(id: int, kind: str, state: State) -> str:
    return json.dumps({"v": 1, "id": id, "kind": kind, "state": to_json(state)})


def _header(frame: bytes) -> dict[str, Any]:
    found: dict[str, Any] = frames.decode(frame)[0]
    return found


def _cold() -> Iterator[dict[str, Any]]:
    """From the command, with an empty cache of compiled code, to the page; wall and CPU ms."""
    before = _children_ms()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        began = perf_counter()
        command = [sys.executable, "-m", "reluflow", "explore", "--no-browser", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            with urllib.request.urlopen(address, timeout=60) as page:
                page.read()
            yield _row("cold start: command to page, nothing compiled", 1000.0, [_since(began)])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    yield _row("the same, CPU until its end", 1000.0, [_children_ms() - before])


def _children_ms() -> float:
    used = os.times()
    return 1e3 * (used.children_user + used.children_system)


def _since(began: float) -> float:
    return 1e3 * (perf_counter() - began)


def _row(name: str, budget: float | None, values: list[float]) -> dict[str, Any]:
    middle = median(values)
    late = sorted(values)[int(0.95 * (len(values) - 1))]
    found: dict[str, Any] = {"name": name, "median ms": middle, "p95 ms": late}
    return found if budget is None else found | {"ratio": budget / middle, "target": 1.0}


def _dragged() -> Iterator[State]:
    first = to_json(presets.first())
    for k in range(MOVES):
        y = [*first["y"]]
        y[2] += 0.01 * k
        yield from_json({**first, "y": y})


def _never() -> bool:
    return False


def _engine(state: State) -> float:
    began = process_time()
    compute.train(state, compute.DRAFT_RTOL, compute.DRAFT_SECONDS, None)
    return 1e3 * (process_time() - began)


def _full(state: State) -> float:
    began = perf_counter()
    compute.full(state, _never)
    return 1e3 * (perf_counter() - began)


@contextmanager
def _served() -> Iterator[Server]:
    server, loop = Server(presets.first()), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.listen(), loop).result(30)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def _in_browser() -> Iterator[dict[str, Any]]:
    """From the movement of the mouse to the painted draft, less the engine's time."""
    name = "move to paint beyond the engine"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield {"name": name, "note": "needs reluflow[browser] and Chromium"}
        return
    if not os.path.exists(CHROMIUM):
        yield {"name": name, "note": f"there is no {CHROMIUM}; set CHROMIUM"}
        return
    with _served() as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(server.url, timeout=120_000)
        page.wait_for_selector("#app[data-slow~=done]", timeout=300_000)
        box = page.locator(".card-line .handle").nth(2).bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        for k in range(MOVES):
            page.mouse.move(x, y - k)
            page.wait_for_timeout(30)
        page.mouse.up()
        log = page.evaluate("() => document.getElementById('app').explorer.link.log")
        browser.close()
    drafts = [e for e in log if e["kind"] == "draft" and "painted" in e]
    yield _row(name, 50.0, [e["painted"] - e["moved"] - e["ms"]["engine"] for e in drafts])
    yield _row("move to paint, all of it", None, [e["painted"] - e["moved"] for e in drafts])
