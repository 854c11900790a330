"""Open streams: what a reader is sent, and the one clock that keeps all of them alive."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import aclosing, contextmanager

from starlette.types import Receive, Scope

from internal.agent.app.events.subscription import Cursor, StreamItem
from internal.agent.domain.events.control import Bye, Heartbeat
from internal.agent.domain.events.envelope import rfc3339
from internal.channels.web import sse
from internal.channels.web.channel import WebDoor
from internal.channels.web.endpoints import StreamPlan
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.http_protocol import LINE, Line
from internal.channels.web.middleware import EXCHANGE
from internal.channels.web.responses import Sender

TICK_SECONDS = 1.0
"""How often a filtered event may move a cursor; also the clock's step at most."""


class Stream:
    """One open stream. Nothing is queued: a batch is taken when the one before is written."""

    def __init__(self, plan: StreamPlan, login: str, line: Line, sender: Sender) -> None:
        self.plan = plan
        self.login = login
        self.opened = asyncio.get_running_loop().time()
        self.heard = self.opened
        self._line = line
        self._begin = sender
        self._send = sender.raw
        self._seen = 0
        self._told = 0
        self._ended = False

    @property
    def free(self) -> bool:
        """Say whether a word can be put in now: the last write is done and the stream is open."""
        return not (self._ended or self._line.unfinished or self._line.closed)

    def unseen(self) -> int:
        """Return the position of filtered events that the reader's cursor has not passed, or 0."""
        return self._seen if self._seen > self._told else 0

    def told(self, position: int) -> None:
        """Note that the reader's cursor is at a position."""
        self._told = position

    async def begin(self) -> None:
        """Send the head and the first word."""
        self._line.write_through()
        head = {"type": "http.response.start", "status": 200, "headers": list(sse.HEADERS)}
        await self._begin(head)
        await self.write(sse.render_retry(sse.retry_ms()))

    async def show(self, batch: list[StreamItem], renderer: sse.Renderer) -> None:
        """Send what of a batch the reader wants to see."""
        rendered = renderer.rendered(batch, debug=self.plan.debug)
        for piece in rendered.chunks:
            if not self._ended:
                await self._line.put(piece)
        self._seen = rendered.seen or self._seen
        self._told = rendered.told or self._told

    async def write(self, piece: bytes) -> None:
        """Send bytes, unless the stream has ended; waits while the reader keeps the last ones."""
        if not self._ended:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def say_bye(self) -> None:
        """End the stream in order: the reader comes back by its cursor."""
        if not (self._ended or self._line.closed):
            self._ended = True
            bye = sse.render_control(Bye(retry=sse.retry_ms()))
            await self._send({"type": "http.response.body", "body": bye, "more_body": False})


class Streams:
    """All open streams of the door."""

    def __init__(self, door: WebDoor) -> None:
        self._door = door
        self._open: dict[Stream, None] = {}
        self._of_person: Counter[str] = Counter()
        self._renderer: sse.Renderer | None = None

    @contextmanager
    def place(self, person: str) -> Generator[None]:
        """Hold one of a person's places.

        Raises:
            HttpRefusal: all of them are taken.
        """
        most = self._door.settings.streams_per_user
        if self._of_person[person] >= most:
            raise HttpRefusal(
                429,
                "too_many_streams",
                f"You have {most} open streams, as many as are allowed; close one of them.",
                {"retry-after": "5"},
            )
        self._of_person[person] += 1
        try:
            yield
        finally:
            self._of_person[person] -= 1
            if not self._of_person[person]:
                del self._of_person[person]

    async def serve(self, plan: StreamPlan, scope: Scope, receive: Receive, sender: Sender) -> None:
        """Show a stream until it ends or the reader goes away."""
        line: Line = scope["state"][LINE]
        login = scope[EXCHANGE].login
        stream = Stream(plan, login, line, sender)
        await stream.begin()
        self._open[stream] = None
        try:
            async with asyncio.TaskGroup() as tasks:
                pump = tasks.create_task(self._pump(stream))
                while (await receive())["type"] != "http.disconnect":
                    pass
                pump.cancel()
        finally:
            del self._open[stream]

    async def keep_alive(self) -> None:
        """Send heartbeats, move cursors past what is filtered and end old streams, for ever."""
        settings, loop = self._door.settings, asyncio.get_running_loop()
        step = min(TICK_SECONDS, settings.heartbeat_seconds / 4, settings.stream_max_seconds / 4)
        while True:
            await asyncio.sleep(step)
            now = loop.time()
            beat = self._heartbeat()
            for stream in [stream for stream in self._open if stream.free]:
                if now - stream.opened >= settings.stream_max_seconds or self._is_over(stream):
                    await stream.say_bye()
                elif piece := self._due(stream, now, beat):
                    await stream.write(piece)

    def _is_over(self, stream: Stream) -> bool:
        """Say whether the login that opened a stream has ended."""
        return stream.login != "" and not self._door.logins.good(stream.login)

    def _due(self, stream: Stream, now: float, beat: bytes) -> bytes:
        piece = b""
        if position := stream.unseen():
            stream.told(position)
            piece = sse.render_id(str(Cursor(self._door.broadcaster.epoch, position)))
        if now - stream.heard >= self._door.settings.heartbeat_seconds:
            stream.heard = now
            piece += beat
        return piece

    def _heartbeat(self) -> bytes:
        now = rfc3339(self._door.clock.now())
        return sse.render_control(Heartbeat(t=now, head=str(self._door.broadcaster.head)))

    async def _pump(self, stream: Stream) -> None:
        if self._renderer is None:
            self._renderer = sse.Renderer(self._door.broadcaster.epoch)
        plan = stream.plan
        async with aclosing(self._door.gateway.watch(plan.watched, plan.start)) as batches:
            async for batch in batches:
                await stream.show(batch, self._renderer)
        await stream.say_bye()
