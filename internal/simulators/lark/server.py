"""The HTTP server: uvicorn, with connections that can be aborted or ignore their input."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

CONNECTION_KEY = "larksim.connection"
"""Key of the ASGI scope's state that holds the connection."""
MAX_FRAME_BYTES = 1 << 20
_GRACE_SECONDS = 2.0
_ACCEPT_STEPS = 8


class TitleCaseTransport:
    """A transport that writes header names in title case, as Lark does.

    Clients that keep headers in a plain dict, such as lark-oapi, rely on it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write data; the header names of a response head are capitalised."""
        if data.startswith(b"HTTP/1.1 "):
            head, gap, body = data.partition(b"\r\n\r\n")
            status, *lines = head.split(b"\r\n")
            data = b"\r\n".join([status, *map(_titled, lines)]) + gap + body
        self._transport.write(data)


def _titled(line: bytes) -> bytes:
    name, colon, value = line.partition(b":")
    return name.title() + colon + value


class AbortableHttpProtocol(HttpToolsProtocol):
    """An HTTP connection that an endpoint can abort."""

    def connection_made(self, transport: Any) -> None:
        """Start with a `TitleCaseTransport`."""
        super().connection_made(TitleCaseTransport(transport))  # type: ignore[arg-type] # a full proxy of a transport

    def on_headers_complete(self) -> None:
        """Put the connection into the request's scope."""
        self.scope["state"][CONNECTION_KEY] = self
        super().on_headers_complete()

    def abort(self) -> None:
        """Close the connection without sending anything more."""
        self.transport.abort()


class AbortableWebSocketProtocol(WebSocketsSansIOProtocol):
    """A websocket that can be aborted or made to ignore its input."""

    ignores_input = False

    def handle_connect(self, event: Request) -> None:
        """Put the connection into the handshake's scope."""
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["state"][CONNECTION_KEY] = self

    def data_received(self, data: bytes) -> None:
        """Process received bytes, pings included, unless input is ignored."""
        if not self.ignores_input:
            super().data_received(data)

    def abort(self) -> None:
        """Close the connection without sending anything more."""
        self.transport.abort()


class TlsIdentity(NamedTuple):
    """The certificate of a host name and its key, as PEM files."""

    host: str
    certificate: Path
    key: Path


class Server(uvicorn.Server):
    """A uvicorn server in the caller's loop, without signal handlers or a timer."""

    def __init__(
        self, app: ASGIApp, listening: socket.socket, tls: TlsIdentity | None = None
    ) -> None:
        config = uvicorn.Config(
            app,
            ssl_certfile=tls and tls.certificate,
            ssl_keyfile=tls and tls.key,
            http=AbortableHttpProtocol,
            ws=AbortableWebSocketProtocol,
            ws_max_size=MAX_FRAME_BYTES,
            ws_ping_interval=None,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        super().__init__(config)
        self.servers: list[Any] = []
        self.open = asyncio.Event()
        self._listening = listening

    async def run_until_stopped(self) -> None:
        """Serve until cancelled; call `abort_connections` and `finish` afterwards."""
        await self.serve([self._listening])

    async def abort_connections(self) -> None:
        """Stop listening and abort open connections."""
        await self._end_accepting()
        for server in self.servers:
            server.close()
        self._listening.close()
        for line in list(self.server_state.connections):
            if isinstance(line, AbortableHttpProtocol | AbortableWebSocketProtocol):
                line.abort()

    async def finish(self) -> None:
        """Wait for running requests; cancel requests that exceed the grace period."""
        if tasks := set(self.server_state.tasks):
            _, slow = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in slow:
                task.cancel()

    async def _end_accepting(self) -> None:
        """Stop accepting, and let accepted connections reach their protocol.

        If asyncio closes a server in between, it loses the connection and its client waits forever.
        """
        for server in self.servers:
            for listening in server.sockets:
                with contextlib.suppress(RuntimeError):  # uvloop needs no workaround
                    asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and set `open`."""
        await super().startup(sockets)
        self.open.set()

    async def main_loop(self) -> None:
        """Wait for cancellation; uvicorn's own loop polls ten times a second."""
        await asyncio.get_running_loop().create_future()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers."""
        yield


def listen(port: int) -> socket.socket:
    """Return a listening socket on 127.0.0.1; port 0 selects a free port.

    Raises:
        OSError: The port is in use.
    """
    # asyncio sets TCP_NODELAY only where the protocol is named; without, responses of two writes
    # take 40 ms
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
