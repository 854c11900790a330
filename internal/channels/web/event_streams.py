"""Open event streams: live delivery, heartbeats and limits."""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from typing import Protocol
from weakref import WeakValueDictionary

from starlette.types import Receive, Scope, Send

from internal.agent.app.events.live_buffer import LiveWriter, SessionFilter
from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.events.control import Bye, Heartbeat
from internal.agent.domain.events.envelope import rfc3339
from internal.channels.web import sse
from internal.channels.web.auth import token_id
from internal.channels.web.endpoints import StreamRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.middleware import CONTEXT_KEY, ResponseSender
from internal.channels.web.requests import RequestContext
from internal.channels.web.services import WebServices

TRANSPORT_KEY = "larkspur.transport"
"""Key in `scope["state"]` under which an event stream finds its `StreamTransport`."""
MAX_TICK_SECONDS = 1.0
"""Maximum interval at which filtered events move the client's cursor."""


class StreamTransport(Protocol):
    """Writes the body of an event stream."""

    @property
    def is_writing(self) -> bool:
        """Return True while the client has not read the last write."""
        ...

    @property
    def is_closed(self) -> bool:
        """Return True if nothing can be written anymore."""
        ...

    def disable_buffering(self) -> None:
        """Keep at most one write in memory."""
        ...

    async def write_chunk(self, chunk: bytes) -> None:
        """Write a chunk as `sse.encode_chunk` returns it, after the client has read the last."""
        ...

    @property
    def writer(self) -> LiveWriter | None:
        """Writer that accepts a chunk without waiting; None if that is not possible."""
        ...

    def on_unready(self, callback: Callable[[], None] | None) -> None:
        """Call a function, instead of the last one, once there is no `writer` any more."""
        ...


class AsgiTransport:
    """Writes through ASGI `send`; used without a server, by clients in the same process."""

    is_writing = False
    is_closed = False
    writer = None  # `send` must be awaited

    def __init__(self, send: Send) -> None:
        self._send = send

    def disable_buffering(self) -> None:
        """Do nothing: the caller's `send` does not buffer."""

    async def write_chunk(self, chunk: bytes) -> None:
        """Send the content of a chunk."""
        body = sse.decode_chunk(chunk)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    def on_unready(self, callback: Callable[[], None] | None) -> None:
        """Do nothing: writes without waiting were never possible."""


class OpenStream:
    """One open stream. Nothing is queued: a batch is fetched when the last one is written.

    A `LiveSink`: the newest events are written at once while the client reads fast enough.
    """

    def __init__(
        self,
        request: StreamRequest,
        transport: StreamTransport,
        sender: ResponseSender,
        *,
        context: RequestContext,
        renderer: sse.FrameRenderer,
        frames: sse.LiveFrames,
    ) -> None:
        self.request = request
        self.context = context
        self.encoder = frames
        self._renderer = renderer
        self.opened = asyncio.get_running_loop().time()
        self.last_heartbeat = self.opened
        self._transport = transport
        self._sender = sender
        self._seen = 0
        self._acknowledged = 0
        self._leave_live: Callable[[], None] | None = None
        self._ended = False

    @property
    def is_idle(self) -> bool:
        """Return True if the stream is open and its last write is finished."""
        return not (self._ended or self._transport.is_writing or self._transport.is_closed)

    @property
    def is_ready(self) -> bool:
        """Return True if live events can be written without waiting."""
        return not self._ended and self._transport.writer is not None

    def start_live(self, leave: Callable[[], None]) -> LiveWriter:
        """Return the writer of live events, valid until `leave` is called."""
        writer = self._transport.writer
        if writer is None:
            raise RuntimeError("The stream is not ready for live events.")
        self._leave_live = leave
        self._transport.on_unready(leave)
        return writer

    def stop_live(self) -> None:
        """Record the events written since `start_live`."""
        self._leave_live = None
        self._transport.on_unready(None)
        self._note(self.encoder)

    def filtered_position(self) -> int:
        """Return the position of filtered events behind the client's cursor, or 0 if none."""
        if self._leave_live is not None:
            self._note(self.encoder)
        return self._seen if self._seen > self._acknowledged else 0

    def set_cursor(self, position: int) -> None:
        """Record that the client's cursor is at a position."""
        self._acknowledged = position

    async def start(self) -> None:
        """Send the response head and the reconnection delay, which the first frame completes."""
        self._transport.disable_buffering()
        head = {"type": "http.response.start", "status": 200, "headers": list(sse.HEADERS)}
        await self._sender(head)
        await self.write(sse.render_retry(sse.retry_ms()))

    async def send_batch(self, batch: list[StreamItem]) -> None:
        """Send the frames of a batch that the client wants."""
        rendered = self._renderer.render_batch(batch, debug=self.request.debug)
        for chunk in rendered.chunks:
            if not self._ended:
                await self._transport.write_chunk(chunk)
        self._note(rendered)

    def _note(self, sent: sse.RenderedBatch | sse.LiveFrames) -> None:
        self._seen = max(self._seen, sent.last_position)
        self._acknowledged = max(self._acknowledged, sent.last_shown_position)

    async def write(self, data: bytes) -> None:
        """Send bytes unless the stream has ended; waits until the client has read the last ones."""
        if not self._ended:
            message = {"type": "http.response.body", "body": data, "more_body": True}
            await self._sender.send(message)

    async def end(self) -> None:
        """Send `bye` and end the response; the client reconnects with its cursor."""
        if not (self._ended or self._transport.is_closed):
            self._ended = True
            if self._leave_live is not None:
                self._leave_live()
            bye = sse.render_control(Bye(retry=sse.retry_ms()), named=self.request.named)
            message = {"type": "http.response.body", "body": bye, "more_body": False}
            await self._sender.send(message)


class EventStreams:
    """All open streams."""

    def __init__(self, services: WebServices) -> None:
        self._services = services
        self._open: dict[OpenStream, None] = {}
        self._count: Counter[str] = Counter()
        self._renderers: dict[bool, sse.FrameRenderer] = {}  # by `named`
        self._frames: WeakValueDictionary[tuple[SessionFilter, bool, bool], sse.LiveFrames] = (
            WeakValueDictionary()
        )

    @contextmanager
    def reserve(self, principal_id: str) -> Generator[None]:
        """Count a stream of a principal while the block runs.

        Raises:
            HttpError: The principal has `streams_per_user` open streams.
        """
        limit = self._services.settings.streams_per_user
        if self._count[principal_id] >= limit:
            raise HttpError(
                429,
                "too_many_streams",
                f"The limit of {limit} open event streams is reached. Close one and try again.",
                {"retry-after": "5"},
                reason_code="too_many_streams",
                limit=limit,
            )
        self._count[principal_id] += 1
        try:
            yield
        finally:
            self._count[principal_id] -= 1
            if not self._count[principal_id]:
                del self._count[principal_id]

    async def serve(
        self, request: StreamRequest, scope: Scope, receive: Receive, sender: ResponseSender
    ) -> None:
        """Serve a stream until it ends or the client disconnects."""
        transport = scope.get("state", {}).get(TRANSPORT_KEY) or AsgiTransport(sender.send)
        renderer = self._renderer(named=request.named)
        key = request.watched, request.debug, request.named
        frames = self._frames.setdefault(key, sse.LiveFrames(renderer, debug=request.debug))
        stream = OpenStream(
            request,
            transport,
            sender,
            context=scope[CONTEXT_KEY],
            renderer=renderer,
            frames=frames,
        )
        await stream.start()
        self._open[stream] = None
        try:
            async with asyncio.TaskGroup() as tasks:
                delivery = tasks.create_task(self._deliver(stream))
                while (await receive())["type"] != "http.disconnect":
                    pass
                delivery.cancel()
        finally:
            del self._open[stream]

    def _renderer(self, *, named: bool) -> sse.FrameRenderer:
        if named not in self._renderers:
            epoch = self._services.broadcaster.epoch
            self._renderers[named] = sse.FrameRenderer(epoch, named=named)
        return self._renderers[named]

    async def keep_alive(self, supervisor: Supervisor) -> None:
        """Send heartbeats, advance cursors past filtered events and end old streams, forever.

        Streams whose credentials were revoked are ended within `MAX_TICK_SECONDS`.
        """
        max_seconds = self._services.settings.stream_max_seconds
        heartbeat_seconds = self._services.timeouts.heartbeat_seconds
        interval = min(MAX_TICK_SECONDS, heartbeat_seconds / 4, max_seconds / 4)
        await supervisor.repeat("event streams", self._tick, interval=interval)

    async def _tick(self) -> None:
        now, heartbeat = asyncio.get_running_loop().time(), self._heartbeat()
        max_seconds = self._services.settings.stream_max_seconds
        valid_token_id = self._valid_token_id()
        for stream in [stream for stream in self._open if stream.is_idle]:
            if now - stream.opened >= max_seconds or self._is_revoked(stream, valid_token_id):
                await stream.end()
            elif frame := self._due_frame(stream, now, heartbeat):
                await stream.write(frame)

    def _valid_token_id(self) -> str | None:
        try:
            return token_id(self._services.local_token())
        except HttpError:
            return None

    def _is_revoked(self, stream: OpenStream, valid_token_id: str | None) -> bool:
        context, logins = stream.context, self._services.logins
        is_logged_out = context.login_id != "" and not logins.is_valid(context.login_id)
        return is_logged_out or context.token_id != valid_token_id

    def _due_frame(self, stream: OpenStream, now: float, heartbeat: Heartbeat) -> bytes:
        """Return a heartbeat, which moves the cursor past filtered events; b"" if none is due."""
        position = stream.filtered_position()
        interval = self._services.timeouts.heartbeat_seconds
        if not position and now - stream.last_heartbeat < interval:
            return b""
        stream.last_heartbeat = now
        frame = sse.render_control(heartbeat, named=stream.request.named)
        if position:
            stream.set_cursor(position)
            cursor = Cursor(self._services.broadcaster.epoch, position)
            frame = sse.render_id(str(cursor)) + frame
        return frame

    def _heartbeat(self) -> Heartbeat:
        now = rfc3339(self._services.clock.now())
        return Heartbeat(t=now, head=str(self._services.broadcaster.head))

    async def _deliver(self, stream: OpenStream) -> None:
        request = stream.request
        batches = self._services.gateway.watch(request.watched, request.start, stream)
        async with aclosing(batches):
            async for batch in batches:
                await stream.send_batch(batch)
        await stream.end()
