"""The loopback server: a whitelist of files and one WebSocket, for the owner of the token only.

It listens on 127.0.0.1 and nowhere else. Any program of the machine can reach that address, and so
can any page the browser has open, so: ``Host`` must be exactly ours (a foreign name that resolves
to 127.0.0.1 is refused), the WebSocket's ``Origin`` too, and its address carries a token of 128
random bits that only the printed or opened URL has. The policy of the page forbids every request
but those to this server.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import http
import secrets
import signal
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from reluflow.errors import InputError, MissingExtraError
from reluflow.explore.session import Session
from reluflow.explore.slow import Lane
from reluflow.explore.state import MAX_MESSAGE_BYTES, State

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

ADDRESS = "127.0.0.1"
PORTS = range(8642, 8662)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
MAX_QUEUED = 64  # frames that wait for a slow reader; then its connection is closed


def assets() -> dict[str, tuple[str, bytes]]:
    """The files of the page by path: type and contents."""
    found: dict[str, tuple[str, bytes]] = {}
    root = resources.files("reluflow.explore") / "static"
    for folder, prefix in ((root, "/"), (root / "scenes", "/scenes/")):
        for item in folder.iterdir():
            suffix = "." + item.name.rpartition(".")[2]
            if item.is_file() and suffix in TYPES:
                found[prefix + item.name] = (TYPES[suffix], item.read_bytes())
    found["/"] = found.pop("/index.html")
    return found


class Server:
    """One explorer on one port."""

    def __init__(self, first: State, *, token: str | None = None) -> None:
        self.first = first
        self.token = token or secrets.token_urlsafe(16)
        self.port = 0
        self._files = assets()
        self._session: Session | None = None
        self._lane: Lane | None = None  # outlives a page: loading its kernels takes seconds
        self._connection: ServerConnection | None = None
        self._listening: Any = None

    @property
    def host(self) -> str:
        """The only ``Host`` that is answered."""
        return f"{ADDRESS}:{self.port}"

    @property
    def url(self) -> str:
        """The address to open, token included."""
        return f"http://{self.host}/?token={self.token}"

    async def listen(self, port: int | None = None) -> None:
        """Take the port asked for, or the first free one."""
        try:
            from websockets.asyncio.server import serve
        except ImportError:
            raise MissingExtraError(
                "the explorer needs websockets. Install it with: pip install 'reluflow[explore]'"
            ) from None
        for candidate in [port] if port is not None else [*PORTS, 0]:
            try:
                self._listening = await serve(
                    self._talk,
                    ADDRESS,
                    candidate,
                    process_request=self._request,
                    max_size=MAX_MESSAGE_BYTES,
                    max_queue=16,
                    compression=None,
                    server_header=None,
                    open_timeout=10,
                )
                break
            except OSError:
                continue
        else:
            raise InputError(f"port {port} is in use. Choose another with --port, or leave it out.")
        self.port = next(iter(self._listening.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Close the connection, the session and the port."""
        if self._listening is not None:
            self._listening.close()
            await self._listening.wait_closed()
        if self._session is not None:
            await asyncio.to_thread(self._session.close)
        if self._lane is not None:
            await asyncio.to_thread(self._lane.close)
            self._lane = None

    # ---------------------------------------------------------------- HTTP

    def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request for a file; None lets a WebSocket begin."""
        hosts = request.headers.get_all("Host")
        if hosts != [self.host]:
            return self._response(http.HTTPStatus.FORBIDDEN, "this host is not served\n")
        if getattr(request, "method", "GET") != "GET":
            return self._response(http.HTTPStatus.METHOD_NOT_ALLOWED, "only GET is served\n")
        address = urlsplit(request.path)
        if address.path == "/ws":
            return self._refusal(request, address.query)
        if address.path not in self._files:
            return self._response(http.HTTPStatus.NOT_FOUND, "there is no such file\n")
        kind, body = self._files[address.path]
        return self._response(http.HTTPStatus.OK, body, kind)

    def _refusal(self, request: Request, query: str) -> Response | None:
        if request.headers.get_all("Origin") != [f"http://{self.host}"]:
            return self._response(http.HTTPStatus.FORBIDDEN, "this origin is not served\n")
        given = parse_qs(query).get("token", [""])
        if not hmac.compare_digest(given[0].encode(), self.token.encode()):
            return self._response(
                http.HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the printed URL\n"
            )
        return None

    def _response(
        self, status: http.HTTPStatus, body: str | bytes, kind: str = "text/plain; charset=utf-8"
    ) -> Response:
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        content = body.encode() if isinstance(body, str) else body
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
            f"connect-src ws://{self.host}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        headers = Headers(
            {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cache-Control": "no-store",
                "Connection": "close",
            }
        )
        return Response(status.value, status.phrase, headers, content)

    # ---------------------------------------------------------------- WebSocket

    async def _talk(self, connection: ServerConnection) -> None:
        """Serve one page; a second one with the token takes over from the first."""
        from websockets.exceptions import ConnectionClosed

        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes] = asyncio.Queue()

        def send(frame: bytes) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, frame)

        earlier, older = self._connection, self._session
        if self._lane is None:
            self._lane = Lane(send)
        session = Session(send, self.first, self._lane)
        self._connection, self._session = connection, session
        if earlier is not None:
            await earlier.close(4001, "opened in another tab")
        if older is not None:
            await asyncio.to_thread(older.close)
        sender = asyncio.create_task(_forward(connection, queue))
        try:
            async for message in connection:
                session.receive(message)
        except ConnectionClosed:
            pass
        finally:
            sender.cancel()
            await asyncio.to_thread(session.close)
            if self._session is session:
                self._session = self._connection = None


async def _forward(connection: ServerConnection, queue: asyncio.Queue[bytes]) -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            frame = await queue.get()
            if queue.qsize() > MAX_QUEUED:
                await connection.close(1008, "the page reads too slowly")
                return
            await connection.send(frame)
    except ConnectionClosed:
        return


def run(
    first: State, *, port: int | None, ready: Callable[[Server], None], token: str | None = None
) -> None:
    """Serve until Ctrl-C or SIGTERM; ``ready`` is called once the port is taken."""

    async def serve() -> None:
        server = Server(first, token=token)
        await server.listen(port)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises instead
                loop.add_signal_handler(number, stopped.set)
        ready(server)
        try:
            await stopped.wait()
        finally:
            await server.close()

    asyncio.run(serve())
