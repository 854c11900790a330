"""The HTTP connection: uvicorn's, with bounds on what a client may make it hold.

uvicorn neither bounds the head of a request nor gives up on a client that does not read; both are
seen here, and swept by `WebServer` over all connections at once. Errors below HTTP are told in the
door's own shape.
"""

import asyncio
from typing import Any, Protocol

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from internal.channels.web.errors import HttpRefusal, refusal_response

LARGEST_HEAD = 65_536
LINE = "larkspur.line"
"""The key of the scope's state under which an endpoint finds its `Line`."""


class Line(Protocol):
    """The connection under a stream."""

    @property
    def unfinished(self) -> bool:
        """Say whether what was written last is still on its way."""
        ...

    @property
    def closed(self) -> bool:
        """Say whether nothing can be written any more."""
        ...

    def write_through(self) -> None:
        """Keep one write at most: the next one waits until the client took it."""
        ...

    async def put(self, chunk: bytes) -> None:
        """Write a chunk of the body as it is, once the client took what was written before."""
        ...


class Connection(HttpToolsProtocol):
    """A connection that knows since when it waits for its client, to read or to send a head."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_bytes = 0
        self._in_head = True
        self._head_since: float | None = None
        self._write_since: float | None = None

    @property
    def unfinished(self) -> bool:
        """Say whether what was written last is still on its way."""
        return self._write_since is not None

    @property
    def closed(self) -> bool:
        """Say whether nothing can be written any more."""
        return self.transport.is_closing()

    def write_through(self) -> None:
        """Keep one write at most: paused now means that the last write is not finished."""
        self.transport.set_write_buffer_limits(high=0)

    async def put(self, chunk: bytes) -> None:
        """Write a chunk of the body as it is, once the client took what was written before.

        Past uvicorn's `send`, which would frame and copy the same bytes again for every reader.
        """
        if self._write_since is not None:
            await self.flow.drain()
        if not self.closed:
            self.transport.write(chunk)

    def stuck(self, now: float, stall_seconds: float, head_seconds: float) -> bool:
        """Say whether the client has kept a write or the head of its request too long."""
        if self._write_since is not None:
            return now - self._write_since >= stall_seconds
        return self._head_since is not None and now - self._head_since >= head_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the head of a request has a bound."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_since is None:
                self._head_since = self.loop.time()
        super().data_received(data)
        if self._in_head and self._head_bytes > LARGEST_HEAD and not self.transport.is_closing():
            self._refuse(
                HttpRefusal(431, "head_too_large", f"The head exceeds {LARGEST_HEAD:,} bytes.")
            )

    def on_headers_complete(self) -> None:
        """Start the request, with this connection at hand for a stream."""
        self._in_head, self._head_bytes, self._head_since = False, 0, None
        self.scope["state"][LINE] = self
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What comes next is another head."""
        self._in_head = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Note since when the client has not read."""
        self._write_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self._write_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours says it in JSON
        """Refuse what is not HTTP."""
        self._refuse(HttpRefusal(400, "bad_request", "This is not an HTTP request."))

    def _refuse(self, refusal: HttpRefusal) -> None:
        response = refusal_response(refusal, "")
        head = [STATUS_LINE[refusal.status], b"connection: close\r\n"]
        head += [b"%s: %s\r\n" % header for header in response.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(response.body)]))
        self.transport.close()
