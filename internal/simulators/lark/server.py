"""The server under the simulator: uvicorn, whose connections can be cut or made ignores_input."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

CONNECTION_KEY = "larksim.connection"
"""The key of the scope's state under which an endpoint finds its connection."""
MAX_FRAME_BYTES = 1 << 20
_GRACE_SECONDS = 2.0
_ACCEPT_STEPS = 8


class TitleCaseTransport:
    """A transport that writes `Content-Type` where uvicorn writes `content-type`.

    Lark does, and callers that keep headers in a plain dict, as lark-oapi does, rely on it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write; the names in the head of an answer begin with capitals."""
        if data.startswith(b"HTTP/1.1 "):
            head, gap, body = data.partition(b"\r\n\r\n")
            status, *lines = head.split(b"\r\n")
            data = b"\r\n".join([status, *map(_titled, lines)]) + gap + body
        self._transport.write(data)


def _titled(line: bytes) -> bytes:
    name, colon, value = line.partition(b":")
    return name.title() + colon + value


class AbortableHttpProtocol(HttpToolsProtocol):
    """A connection that an endpoint can cut."""

    def connection_made(self, transport: Any) -> None:
        """Begin, writing through `TitleCaseTransport`."""
        super().connection_made(TitleCaseTransport(transport))  # type: ignore[arg-type] # it has all of one

    def on_headers_complete(self) -> None:
        """Start the request, with this connection at hand."""
        self.scope["state"][CONNECTION_KEY] = self
        super().on_headers_complete()

    def abort(self) -> None:
        """Close the connection without another byte."""
        self.transport.abort()


class AbortableWebSocketProtocol(WebSocketsSansIOProtocol):
    """A websocket that can be cut, and made ignores_input."""

    ignores_input = False

    def handle_connect(self, event: Request) -> None:
        """Start the handshake, with this connection at hand."""
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["state"][CONNECTION_KEY] = self

    def data_received(self, data: bytes) -> None:
        """Process received bytes, pings included, unless input is ignored."""
        if not self.ignores_input:
            super().data_received(data)

    def abort(self) -> None:
        """Close the connection without another byte."""
        self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn on the caller's loop: no signals, no clock, and an end that waits for nobody."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
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
        """Serve until cancelled; `cut` and `finish` then end what is under way."""
        await self.serve([self._listening])

    async def abort_connections(self) -> None:
        """Stop listening and cut what is open."""
        await self._end_accepting()
        for server in self.servers:
            server.close()
        self._listening.close()
        for line in list(self.server_state.connections):
            if isinstance(line, AbortableHttpProtocol | AbortableWebSocketProtocol):
                line.abort()

    async def finish(self) -> None:
        """Wait until nothing works on a request any more; what does not end is cancelled."""
        if tasks := set(self.server_state.tasks):
            _, slow = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in slow:
                task.cancel()

    async def _end_accepting(self) -> None:
        """Take no more connections, and let those that were taken become lines that can be cut.

        asyncio loses a connection whose server closes in between: its client would wait for ever.
        """
        for server in self.servers:
            for listening in server.sockets:
                with contextlib.suppress(RuntimeError):  # uvloop keeps its own; it loses none
                    asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.open.set()

    async def main_loop(self) -> None:
        """Wait for the cancel; uvicorn would look ten times a second."""
        await asyncio.get_running_loop().create_future()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone."""
        yield


def listen(port: int) -> socket.socket:
    """Return a listening socket of 127.0.0.1; port 0 takes any free one.

    Raises:
        OSError: the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
