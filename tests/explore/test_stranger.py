"""No other user gets into an explorer, with the browser open or not."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sweeps.helpers import listening

pytest.importorskip("websockets")
pytestmark = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user"
)
HERE = Path(__file__).parent


@pytest.fixture
def explorer(tmp_path):
    """The command as a user starts it, with a browser that stays open until the test is over."""
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho $$ > "$0.pid"\necho "$@" > "$0.given"\nexec sleep 600\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": ":99"}
    command = [sys.executable, "-m", "reluflow", "explore"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        found = (re.search(r"127.0.0.1:(\d+)/\?token=(\S+)", line) for line in process.stdout)
        address = next(filter(None, found))
        yield process, *address.groups(), Path(f"{browser}.given")
        process.terminate()
    opened = Path(f"{browser}.pid")
    if opened.exists():
        with suppress(ProcessLookupError):
            os.kill(int(opened.read_text()), signal.SIGTERM)


def tried(*ports):
    command = [sys.executable, HERE / "stranger.py", *ports]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    assert f"user 65534 tried {len(ports)}\n" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.endswith(("IN", "InvalidStatus"))]
    assert len(lines) >= 2, done.stdout  # each try was answered
    return [line for line in lines if line.endswith("IN")]


def test_nobody_else_gets_in(explorer):
    process, port, key, given = explorer
    assert listening(process.pid) == {("127.0.0.1", int(port))}
    while not (given.exists() and given.read_text()):
        assert process.poll() is None
    page = Path(given.read_text().strip().removeprefix("file://"))
    assert f"/?token={key}" in page.read_text()
    assert page.parent.stat().st_mode & 0o077 == 0
    assert tried(port) == []
    process.terminate()
    process.wait(timeout=120)
    assert not page.parent.exists()


def test_the_stranger_gets_in_where_the_key_is_shown(explorer):
    """Otherwise the test above would show nothing."""
    _, port, key, _ = explorer
    command = ["sh", "-c", "read end", f"token={key}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE):  # until the pipe is closed
        assert tried(port) == [f"{port} IN"]
