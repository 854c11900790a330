"""Transport to the web application in this process, without a socket."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, MutableMapping
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import unquote

from internal.channels.cli.transports.interface import USER_AGENT, RefusedStream, Response, Upload

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_ERROR_STATUS = 400
_MAX_UNREAD_PIECES = 16
"""A stream waits for a reader that is behind by this many pieces."""


class MemoryTransport:
    """Calls an ASGI application in the event loop that all of its methods are awaited in.

    Args:
        app: the application.
        host: a Host header that the application accepts.
        token: the bearer token of the local owner.
        adopt: executes a queued run in this process; see `Transport.adopt`.
    """

    via: Literal["gateway", "process"] = "process"
    address = "This process"

    def __init__(
        self, app: AsgiApp, *, host: str, token: str, adopt: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._app = app
        self._adopt = adopt
        self._headers = {
            "host": host,
            "authorization": f"Bearer {token}",
            "user-agent": USER_AGENT,
        }
        self._loop = asyncio.get_running_loop()
        self._started: set[asyncio.Task[None]] = set()

    async def request(self, method: str, path: str, body: bytes | Upload | None = None) -> Response:
        """Send a request."""
        more = {} if body is None else {"content-type": "application/json"}
        if isinstance(body, Upload):
            more = {"content-type": body.media_type, "content-length": str(body.size)}
        chunks = body.chunks() if isinstance(body, Upload) else iter((body or b"",))
        exchange = _Exchange(chunks)
        await self._app(self._scope(method, path, more), exchange.receive, exchange.send)
        if exchange.failure is not None:
            raise exchange.failure
        return Response(exchange.status, b"".join(exchange.drain()))

    async def stream(self, path: str, last_id: str | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of a response."""
        exchange = _Exchange(iter(()), _MAX_UNREAD_PIECES)
        more = {"last-event-id": last_id} if last_id else {}
        accept = "*/*" if last_id is None else "text/event-stream"
        scope = self._scope("GET", path, {"accept": accept, **more})
        serving = self._loop.create_task(exchange.serve(self._app, scope))
        try:
            async for piece in exchange.pieces():
                if exchange.status >= _ERROR_STATUS:
                    rest = [received async for received in exchange.pieces()]
                    raise RefusedStream(Response(exchange.status, b"".join([piece, *rest])))
                yield piece
            await serving
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([serving])

    async def reconnect(self) -> bool:
        """Return True: the application is always reachable."""
        return True

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """Run the work in a thread: runs of this process execute in the event loop."""
        await asyncio.to_thread(work)

    def start_from_signal(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the work in the event loop."""
        self._loop.call_soon_threadsafe(self._start, work)

    async def adopt(self, run_id: str) -> bool:
        """Execute a queued run in this process."""
        return await self._adopt(run_id)

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._loop.create_task(work())
        self._started.add(task)
        task.add_done_callback(self._started.discard)

    def _scope(self, method: str, path: str, headers: dict[str, str]) -> dict[str, Any]:
        """Return the ASGI scope of a request (ASGI specification, HTTP connection scope)."""
        raw, _, query = path.partition("?")
        sent = {**self._headers, **headers}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 0),
            "state": {},
        }


class _Exchange:
    """The ASGI messages of one request. `status` is 0 until the response begins.

    If `body` fails, the application sees a disconnected client, and `failure` is set.
    """

    def __init__(self, body: Iterator[bytes], max_pieces: int = 0) -> None:
        self.status = 0
        self.failure: Exception | None = None
        self._body: Iterator[bytes] | None = body
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue(max_pieces)

    async def serve(self, app: AsgiApp, scope: dict[str, Any]) -> None:
        """Run the application for this request."""
        try:
            await app(scope, self.receive, self.send)
        except Exception:
            await self._received.put(None)
            raise
        await self._received.put(None)

    async def receive(self) -> Message:
        """Return the next part of the body; after that wait until the request is cancelled."""
        if self.failure is not None:
            return {"type": "http.disconnect"}
        if self._body is None:
            await asyncio.get_running_loop().create_future()
            raise AssertionError  # the future is never done
        await asyncio.sleep(0)  # other tasks run between the parts of a long body
        try:
            part = next(self._body, None)
        except Exception as error:  # noqa: BLE001 - raised again by the request
            self.failure = error
            return {"type": "http.disconnect"}
        if part is None:
            self._body = None
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(self, message: Message) -> None:
        """Receive a message of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif body := message.get("body"):
            await self._received.put(body)

    def drain(self) -> list[bytes]:
        """Return the chunks of the body that have arrived."""
        pieces: list[bytes] = []
        while not self._received.empty():
            if piece := self._received.get_nowait():
                pieces.append(piece)
        return pieces

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield chunks of the body until the application has returned."""
        while (piece := await self._received.get()) is not None:
            yield piece
