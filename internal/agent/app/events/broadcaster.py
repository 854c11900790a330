"""The broadcaster: stored and live events as one stream, for any number of subscribers."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from msgspec import UNSET

from internal.agent.app.background_task import background_task
from internal.agent.app.events.live_buffer import LiveBuffer, LiveSink, SessionFilter
from internal.agent.app.events.relay import ANNOUNCE_SECONDS, LiveRelay
from internal.agent.app.events.subscription import (
    Cursor,
    EventFeed,
    StreamItem,
    Subscription,
    check_cursor,
)
from internal.agent.app.supervision import Supervisor
from internal.agent.domain.events.control import Connected, StreamReset
from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read
from internal.agent.store.events import LogBounds
from internal.agent.store.stores import Stores

POLL_INTERVAL_SECONDS = 0.5
"""Time at most between two checks for events of other processes while there are subscribers."""

CATCH_UP_SIZE = 500
"""How many events of other processes are read and delivered at once."""


class EventBroadcaster:
    """Delivers every stored event to every subscriber once, in log order.

    Events that another process stored are read from the log. They are detected by a gap in the
    positions, or while there are subscribers by watching the database, and by polling.
    """

    def __init__(self, database: Database, stores: Stores, clock: Clock, version: str) -> None:
        self._database = database
        self._log = stores.events
        self._runs = stores.runs
        self._feed = EventFeed(database, stores.events, clock)
        self._version = version
        self._buffers: dict[SessionId | None, LiveBuffer] = {}
        self._held: deque[EventRecord] = deque()
        self._gap = asyncio.Event()
        self._listeners: list[Callable[[EventRecord], None]] = []
        self._relay: LiveRelay | None = None
        if database.messages is not None:
            self._relay = LiveRelay(database.messages, self._append, self._feed.partials)

    @property
    def epoch(self) -> str:
        """The name of the log, as it stands in event ids."""
        return self._feed.epoch

    @property
    def closed(self) -> bool:
        """True once streams end because the process stops."""
        return self._feed.closed

    @property
    def head(self) -> Cursor:
        """The position of the newest event that was delivered in this process."""
        return Cursor(self.epoch, self._feed.head)

    async def start(self) -> None:
        """Read the end of the log. Must be called before the first `publish` and `watch`."""
        bounds = await self._bounds()
        self._feed.epoch, self._feed.head = bounds.epoch, bounds.head

    async def follow(self, supervisor: Supervisor) -> None:
        """Deliver the events of other processes until cancelled."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._database.watch(self._gap.set))
            if self._relay is not None:
                stack.enter_context(self._relay.open())
                announce = partial(self._announce, self._relay)
                repeat = supervisor.repeat("announcer", announce, interval=ANNOUNCE_SECONDS)
                await stack.enter_async_context(background_task(repeat))
            await supervisor.repeat(
                "event follower", self._follow_log, interval=POLL_INTERVAL_SECONDS, wake=self._gap
            )

    async def _announce(self, relay: LiveRelay) -> None:
        relay.announce(self._buffers)

    def close(self) -> None:
        """End all streams: every `watch` returns after the events it already has."""
        self._feed.closed = True
        for buffer in self._buffers.values():
            buffer.release()

    def forget(self, run_id: RunId) -> None:
        """Discard the partial outputs of a run that left this process."""
        self._feed.outputs.forget(run_id)

    def forget_session(self, session_id: SessionId) -> None:
        """Deliver no event of a deleted session any more that is still in memory."""
        self._feed.recent.forget_session(session_id)
        self._feed.outputs.forget_session(session_id)
        self._held = deque(held for held in self._held if held.session_id != session_id)
        for buffer in self._buffers.values():
            buffer.forget_session(session_id)

    def publish(self, records: Sequence[EventRecord]) -> None:
        """Deliver events of one run, in order. The durable ones must be stored already."""
        if self._held or self._leaves_gap(records):
            # events of another process come first: `follow` reads them and keeps the order
            self._held.extend(records)
            self._gap.set()
            return
        for record in records:
            self._deliver(record)

    def poke(self) -> None:
        """Check the log for events that were stored but not published."""
        self._gap.set()

    @contextmanager
    def listen(self, listener: Callable[[EventRecord], None]) -> Generator[None]:
        """Call a function with every stored event that is delivered, for the length of a block.

        It must not block. Events of other processes are delivered only while there are subscribers.
        """
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def watch(
        self, sessions: SessionFilter, start: Cursor | None, sink: LiveSink | None = None
    ) -> AsyncGenerator[list[StreamItem]]:
        """Yield the items of a stream in batches, as soon as there are any.

        The order is: Connected, the stored events after `start`, ReplayDone, the partial outputs,
        then new events. `start` None means the end of the log. New events that a `sink` writes are
        not yielded. Returns when the broadcaster is closed.
        """
        with self._buffer(sessions) as buffer:
            connected, bounds, reason = await self._database.read(
                partial(self._open, sessions, start)
            )
            opening: list[StreamItem] = [connected]
            cursor = bounds.head if start is None else start.position
            if reason:
                earliest, head = self._event_id(bounds.earliest), self._event_id(bounds.head)
                opening.append(StreamReset(reason=reason, earliest=earliest, head=head))
                cursor = 0
            yield opening
            subscription = Subscription(self._feed, sessions, buffer, cursor)
            async for batch in subscription.replay():
                yield batch
            if self._relay is not None:  # not before: a replay skips what is not stored
                self._relay.announce(self._buffers, [_only_session(sessions)])
            async for batch in subscription.live(sink):
                yield batch

    async def _follow_log(self) -> None:
        if self._held or (self._buffers and (await self._bounds()).head > self._feed.head):
            await self._catch_up()

    def _leaves_gap(self, records: Sequence[EventRecord]) -> bool:
        first = next((record.position for record in records if record.position), 0)
        return bool(self._buffers) and first > self._feed.head + 1

    def _deliver(self, record: EventRecord) -> None:
        if record.envelope is not None:
            self._feed.outputs.add(record.envelope)
            if self._relay is not None and not record.position:
                self._relay.offer(record)
        if record.position and record.position <= self._feed.head:
            return  # read from the log already
        self._append(record)

    def _append(self, record: EventRecord) -> None:
        if record.position:
            self._feed.recent.append(record, contiguous=record.position == self._feed.head + 1)
            self._feed.head = record.position
            for listener in self._listeners:
                listener(record)
        for key in (record.session_id, None):
            if buffer := self._buffers.get(key):
                buffer.append(record)
        record.envelope = None  # what is kept for subscribers is its JSON

    async def _catch_up(self) -> None:
        """Deliver the stored events after the head, and those held back meanwhile, in order."""
        while True:
            stored = deque(
                await self._database.read(
                    partial(self._log.list_after, self._feed.head, None, CATCH_UP_SIZE)
                )
            )
            is_last = len(stored) < CATCH_UP_SIZE
            newest = stored[-1].position if stored else self._feed.head
            while self._held and self._held[0].position <= newest:
                held = self._held.popleft()
                while stored and stored[0].position <= held.position:
                    self._append_stored(stored.popleft())
                self._deliver(held)
            while stored:
                self._append_stored(stored.popleft())
            if is_last and not self._held:
                return

    def _append_stored(self, record: EventRecord) -> None:
        if record.position > self._feed.head:
            # the log returns all events, so a hole in the positions is not a missing event
            self._feed.head = record.position - 1
            self._append(record)

    @contextmanager
    def _buffer(self, sessions: SessionFilter) -> Generator[LiveBuffer]:
        key = _only_session(sessions)
        buffer = self._buffers.setdefault(key, LiveBuffer())
        buffer.subscribers += 1
        if self._relay is not None:
            self._relay.announce(self._buffers)
        try:
            yield buffer
        finally:
            buffer.subscribers -= 1
            if not buffer.subscribers:
                del self._buffers[key]

    def _open(
        self, sessions: SessionFilter, start: Cursor | None
    ) -> Read[tuple[Connected, LogBounds, str]]:
        """Return the first frame of a stream, and why it cannot continue at its cursor."""
        only, active = _only_session(sessions), None
        bounds, reason = yield from check_cursor(self._log, start)
        if only is not None:
            active = yield from self._runs.get_active(only)
        names = tuple(sorted(sessions)) if sessions is not None else ("*",)
        connected = Connected(
            session_id=UNSET if only is None else only,
            sessions=UNSET if only is not None else names,
            head=self._event_id(bounds.head),
            earliest=self._event_id(bounds.earliest),
            active_run_id=active.id if active else None,
            server_version=self._version,
        )
        return connected, bounds, reason

    async def _bounds(self) -> LogBounds:
        return await self._database.read(self._log.get_bounds, is_short=True)

    def _event_id(self, position: int) -> str:
        return str(Cursor(self.epoch, position))


def _only_session(sessions: SessionFilter) -> SessionId | None:
    return next(iter(sessions)) if sessions is not None and len(sessions) == 1 else None
