"""The server: loopback, exact names, a token; files from a list; refusals that say nothing more."""

import http.client
import os
import signal
import socket
import subprocess
import sys

import pytest

from reluflow.explore import frames
from reluflow.explore.server import ADDRESS

from .helpers import served

websockets = pytest.importorskip("websockets.sync.client")


@pytest.fixture(scope="module")
def server():
    with served() as found:
        yield found


def get(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection(ADDRESS, server.port, timeout=600)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": server.host, **headers}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def connect(server, *, token=None, origin="own", host=None):
    key = server.token if token is None else token
    return websockets.connect(
        f"ws://{server.host}/ws?token={key}",
        origin=f"http://{server.host}" if origin == "own" else origin,
        additional_headers={} if host is None else {"Host": host},
        compression=None,
        open_timeout=600,
    )


def refusal(server, **more):
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as caught, connect(server, **more):
        pass
    return caught.value.response.status_code


def test_it_listens_on_loopback_only(server):
    (listening,) = server._listening.sockets
    assert listening.family == socket.AF_INET
    assert listening.getsockname()[0] == "127.0.0.1"


def test_files_come_with_a_strict_policy(server):
    status, headers, body = get(server, "/")
    assert status == 200
    assert b"main.js" in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert f"connect-src ws://{server.host};" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert get(server, "/scenes/line.js")[1]["Content-Type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "path",
    [
        "/../state.py", "/..%2fstate.py", "/scenes/../../state.py", "/static/main.js",
        "//etc/passwd",
        "/scenes/", "/index.html/", "/%2e%2e/", "/main.js%00", "/state.py", "/ws/../main.js",
    ],
)  # fmt: skip
def test_anything_else_is_not_found(server, path):
    assert get(server, path)[0] == 404


@pytest.mark.parametrize(
    "host",
    ["localhost:{port}", "127.0.0.1", "127.0.0.1:1", "example.org", "127.0.0.1.example.org:{port}",
     "127.0.0.1:{port}.example.org", "[::1]:{port}", "0.0.0.0:{port}", "", None],
)  # fmt: skip
def test_a_foreign_host_is_refused(server, host):
    named = host if host is None else host.format(port=server.port)
    status, _, body = get(server, "/", Host=named)
    assert status in (400, 403)
    assert b"<script" not in body


def test_two_hosts_are_refused(server):
    status, _, _ = get(server, "/", host=server.host)
    assert status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT"])
def test_other_methods_get_nothing(server, method):
    try:
        status, headers, _ = get(server, "/", method=method)
    except (http.client.HTTPException, ConnectionError):
        return
    assert status >= 400
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://localhost:{port}", "https://127.0.0.1:{port}", "http://127.0.0.1",
     "http://127.0.0.1:{port}.example.org", "http://127.0.0.1:{port}@example.org", "http://example.org",
     "http://127.0.0.1:1", "http://127.0.0.1:{port}/"],
)  # fmt: skip
def test_a_foreign_origin_is_refused(server, origin):
    named = origin if origin is None else origin.format(port=server.port)
    assert refusal(server, origin=named) == 403


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 5000])
def test_a_wrong_token_is_refused(server, token):
    assert refusal(server, token=token) == 403
    assert refusal(server, token=server.token[:-1]) == 403
    assert refusal(server, token=server.token + "x") == 403


def test_the_token_is_long_and_not_in_the_files(server):
    assert len(server.token) >= 22
    assert not any(server.token.encode() in body for _, body in server._files.values())


def test_the_owner_is_greeted_and_an_oversized_message_ends_the_connection(server):
    from websockets.exceptions import ConnectionClosed

    with connect(server) as page:
        page.send('{"v": 1, "id": 3, "kind": "hello"}')
        header, _ = frames.decode(page.recv(timeout=600))
        assert header["kind"] == "hello"
        page.send(b"\x00\x01")
        header, _ = frames.decode(page.recv(timeout=600))
        assert "not JSON" in header["error"]
        page.send("x" * (256 * 1024 + 1))
        with pytest.raises(ConnectionClosed):
            page.recv(timeout=600)
        assert page.close_code == 1009


def test_malformed_frames_end_the_connection_and_not_the_server(server):
    request = (
        f"GET /ws?token={server.token} HTTP/1.1\r\nHost: {server.host}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nOrigin: http://{server.host}\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    for junk in (b"\xff\xff\xff\xff", b"\x81\x05hello", b"\x81\xff" + b"\xff" * 8):
        with socket.create_connection((ADDRESS, server.port), timeout=600) as raw:
            raw.sendall(request.encode())
            assert b"101" in raw.recv(4096).split(b"\r\n")[0]
            raw.sendall(junk)
            while raw.recv(4096):
                pass
    assert get(server, "/")[0] == 200


def test_a_second_tab_takes_over(server):
    from websockets.exceptions import ConnectionClosed

    with connect(server) as first, connect(server) as second:
        with pytest.raises(ConnectionClosed):
            first.recv(timeout=600)
        assert first.close_code == 4001
        second.send('{"v": 1, "id": 1, "kind": "hello"}')
        assert frames.decode(second.recv(timeout=600))[0]["kind"] == "hello"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_its_processes(number):
    command = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, "
         "signal.default_int_handler); from reluflow.cli import main; import sys; "
         "sys.argv = ['reluflow', 'explore', '--no-browser']; main()"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        line = command.stdout.readline()
        while "http://" not in line:
            assert line
            line = command.stdout.readline()
        command.send_signal(number)
        _, errors = command.communicate(timeout=600)
        assert command.returncode == 0
        assert "Traceback" not in errors
        with pytest.raises(ProcessLookupError):
            os.killpg(command.pid, 0)
    finally:
        if command.poll() is None:
            command.kill()
            command.wait()


def test_a_port_in_use_is_said(server):
    done = subprocess.run(
        [sys.executable, "-m", "reluflow.cli", "explore", "--no-browser",
         "--port", str(server.port)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"port {server.port} is in use" in done.stderr
