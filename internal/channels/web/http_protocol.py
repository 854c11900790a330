"""The HTTP/1.1 connection: uvicorn's protocol with limits for slow clients.

uvicorn limits neither the size of a request head nor the time that a client takes to send one or
to read a response. `HttpConnection` records both; `WebServer` closes stalled connections. Errors
below HTTP get the JSON body of all other errors.
"""

import asyncio
import resource
import sys
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from internal.agent.app.events.live_buffer import LiveWriter
from internal.channels.web.errors import HttpError, error_response
from internal.channels.web.event_streams import TRANSPORT_KEY
from internal.channels.web.middleware import NOTE_LOGIN_KEY, SECURITY_HEADERS

MAX_HEAD_BYTES = 65_536
MAX_WITHOUT_LOGIN = 256
"""Maximum number of open connections without a login."""
_RESERVED_DESCRIPTORS = 512


def max_connections() -> int:
    """Return how many connections leave enough descriptors to the database and the channels."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        sys.maxsize
        if limit == resource.RLIM_INFINITY
        else limit - min(_RESERVED_DESCRIPTORS, limit // 2)
    )


class OpenConnections(ServerState):
    """All connections; connections without a login are kept in order of opening.

    When there are too many, the oldest connection without a login is closed, preferably one
    that is not answering a request. A new connection has no login.
    """

    def __init__(self, most: int = sys.maxsize) -> None:
        super().__init__()
        self._most = most
        self._without_login: dict[HttpConnection, None] = {}

    def add_without_login(self, connection: "HttpConnection") -> None:
        """Add a connection, or one whose login has ended, and close another one if needed."""
        self._without_login[connection] = None
        count = len(self._without_login)
        if count > MAX_WITHOUT_LOGIN or len(self.connections) > self._most:
            oldest = next(iter(self._without_login))
            closed = next((each for each in self._without_login if not each.is_answering), oldest)
            self.forget(closed)
            closed.transport.abort()

    def forget(self, connection: "HttpConnection") -> None:
        """Forget a connection that is closed or has a login."""
        self._without_login.pop(connection, None)


class HttpConnection(HttpToolsProtocol):
    """A connection that measures how long its client takes to send a head or to read."""

    def __init__(
        self,
        config: Config,
        server_state: OpenConnections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open = server_state
        self._head_bytes = 0
        self._in_head = True
        self._received = b""
        self._head_started: float | None = None
        self._write_paused: float | None = None
        self._on_unready: Callable[[], None] | None = None

    @property
    def is_writing(self) -> bool:
        """Return True while the client has not read the last write."""
        return self._write_paused is not None

    @property
    def is_answering(self) -> bool:
        """Return True while a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_closed(self) -> bool:
        """Return True if nothing can be written anymore."""
        return self.transport.is_closing()

    def disable_buffering(self) -> None:
        """Keep at most one write in memory: the transport pauses until it is sent."""
        self.transport.set_write_buffer_limits(high=0)

    async def write_chunk(self, chunk: bytes) -> None:
        """Write a chunk, after the client has read the last one.

        Bypasses uvicorn's `send`, which would frame and copy the bytes again for every client.
        """
        if self._write_paused is not None:
            await self.flow.drain()
        if writer := self.writer:
            writer.write(chunk)

    @property
    def writer(self) -> LiveWriter | None:
        """Writer that accepts a chunk without waiting.

        None if the client has not read the last one, or the connection is closed.
        """
        if self._write_paused is not None or self.transport.is_closing():
            return None
        return self.transport

    def on_unready(self, callback: Callable[[], None] | None) -> None:
        """Call a function, instead of the last one, once there is no `writer` any more."""
        self._on_unready = callback

    def is_stalled(self, now: float, *, stall_seconds: float, head_seconds: float) -> bool:
        """Return True if the client takes too long to read a write or to send a request head."""
        if self._write_paused is not None:
            return now - self._write_paused >= stall_seconds
        return self._head_started is not None and now - self._head_started >= head_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Start to measure the first request head."""
        super().connection_made(transport)
        self._head_started = self.loop.time()
        self._open.add_without_login(self)

    def note_login(self, is_logged_in: bool, /) -> None:
        """Record whether the last request had credentials; a proxy forwards many people's."""
        self._open.forget(self)
        if not is_logged_in:
            self._open.add_without_login(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the requests."""
        super().connection_lost(exc)
        self._open.forget(self)
        if self._on_unready is not None:
            self._on_unready()

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and reject a request head larger than `MAX_HEAD_BYTES`."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_started is None:
                self._head_started = self.loop.time()
        self._received = data
        super().data_received(data)
        is_too_large = self._in_head and self._head_bytes > MAX_HEAD_BYTES
        if is_too_large and not self.transport.is_closing():
            message = f"The request head exceeds {MAX_HEAD_BYTES:,} bytes."
            self._reject(HttpError(431, "head_too_large", message))

    def on_headers_complete(self) -> None:
        """Start the request, with this connection as the transport of an event stream."""
        if self._is_offer:
            return
        self._in_head, self._head_bytes, self._head_started = False, 0, None
        self.scope["state"][TRANSPORT_KEY] = self
        self.scope["state"][NOTE_LOGIN_KEY] = self.note_login
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next request head."""
        if self._is_offer:
            return
        self._in_head = True
        super().on_message_complete()

    @property
    def _is_offer(self) -> bool:
        """True for a head that offers another protocol, as Java's client offers HTTP/2."""
        return self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """Read a request that offered another protocol as one of HTTP/1.1.

        The parser has read only its head: later data would belong to the other protocol.
        """
        error = sys.exception()
        if not self._is_offer or not isinstance(error, httptools.HttpParserUpgrade):
            return
        head = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        head += [b"%s: %s" % one for one in self.headers if one[0] != b"upgrade"]
        following = self._received[error.args[0] :]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn
        super().data_received(b"\r\n".join([*head, b"", following]))

    def pause_writing(self) -> None:
        """Record since when the client has not read."""
        self._write_paused = self.loop.time()
        super().pause_writing()
        if self._on_unready is not None:
            self._on_unready()

    def resume_writing(self) -> None:
        """Record that the client has read everything."""
        self._write_paused = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - replaced by a JSON body
        """Reject bytes that are not HTTP."""
        self._reject(HttpError(400, "bad_request", "Invalid HTTP request."))

    def _reject(self, error: HttpError) -> None:
        response = error_response(error, "")
        head = [STATUS_LINE[error.status], b"connection: close\r\n"]
        head += [b"%s: %s\r\n" % one for one in (*response.raw_headers, *SECURITY_HEADERS)]
        self.transport.write(b"".join([*head, b"\r\n", bytes(response.body)]))
        self.transport.close()
