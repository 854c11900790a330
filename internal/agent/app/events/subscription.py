"""Subscriptions: each reads the log from a cursor and then the live events from a buffer."""

import re
from collections import deque
from collections.abc import AsyncGenerator
from typing import NamedTuple

from internal.agent.app.events.live_buffer import LiveBuffer, LiveSink, SessionFilter
from internal.agent.app.events.partials import PartialOutputs
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.events.control import ControlFrame, ReplayDone, StreamDropped
from internal.agent.domain.events.envelope import EventRecord, rfc3339
from internal.agent.domain.ids import SessionId
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database, Read
from internal.agent.store.events import EventStore, LogBounds

PAGE_SIZE = 1000
"""How many events are read at once: a read costs as much as dozens of events."""
PAGE_BYTES = 256_000
"""About how many bytes of payloads are read at once, so that others wait for milliseconds only."""

MAX_RECENT_EVENTS = 2000
MAX_RECENT_BYTES = 16_000_000

StreamItem = EventRecord | ControlFrame
"""What a subscriber receives: events, and messages about the stream itself."""


class Cursor(NamedTuple):
    """A position in a log, written `<epoch>-<position>`. Positions increase and may have gaps."""

    epoch: str
    position: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.position}"


_EVENT_ID = re.compile(r"([0-9a-z]{1,16})-([0-9]{1,18})")  # 18 digits fit a 64-bit integer


def parse_cursor(text: str) -> Cursor:
    """Return the cursor of an event id.

    Raises:
        InvalidRequest: the text is not an event id.
    """
    match = _EVENT_ID.fullmatch(text)
    if match is None:
        raise InvalidRequest(
            f"“{text[:40]}” is not an event id such as k3x9ap-17.",
            reason_code="not_an_event_id",
            text=text[:40],
        )
    return Cursor(match[1], int(match[2]))


def check_cursor(log: EventStore, cursor: Cursor | None) -> Read[tuple[LogBounds, str]]:
    """Return the bounds of the log, and why reading cannot continue at a cursor, "" if it can.

    A cursor whose position was never assigned is from a log that went on differently: this
    database is a copy, or was restored from one.
    """
    bounds = yield from log.get_bounds()
    if cursor is None:
        return bounds, ""
    if cursor.epoch != bounds.epoch:
        return bounds, "unknown_epoch"
    if cursor.position > bounds.head:
        return bounds, "ahead_of_log"
    if 0 < cursor.position < bounds.earliest - 1:
        return bounds, "too_old"
    is_skipped = yield from log.is_skipped(cursor.position)
    return bounds, "restored_log" if is_skipped else ""


class RecentEvents:
    """The newest stored events of the process, without a gap.

    A subscriber that is almost up to date reads them here instead of in the database.
    """

    def __init__(self) -> None:
        self._records: deque[EventRecord] = deque()
        self._bytes = 0

    def append(self, record: EventRecord, *, contiguous: bool) -> None:
        """Add the next stored event. One that is not contiguous discards all earlier ones."""
        if not contiguous:
            self._records.clear()
            self._bytes = 0
        self._records.append(record)
        self._bytes += len(record.json)
        while len(self._records) > MAX_RECENT_EVENTS or self._bytes > MAX_RECENT_BYTES:
            self._bytes -= len(self._records.popleft().json)

    def forget_session(self, session_id: SessionId) -> None:
        """Remove the events of a session; the others stay without a gap."""
        kept = [record for record in self._records if record.session_id != session_id]
        self._bytes = sum(len(record.json) for record in kept)
        self._records = deque(kept)

    def after(self, position: int) -> list[EventRecord] | None:
        """Return the events after a position, or None if the buffer does not reach back to it."""
        if not self._records or position < self._records[0].position - 1:
            return None
        return [record for record in self._records if record.position > position]


class EventFeed:
    """The state that all subscriptions of a process share.

    `epoch` names the log; `head` is the position of the newest event that was delivered.
    """

    def __init__(self, database: Database, log: EventStore, clock: Clock) -> None:
        self.database = database
        self.log = log
        self.recent = RecentEvents()
        self.outputs = PartialOutputs()
        self.epoch = ""
        self.head = 0
        self.closed = False
        self._clock = clock

    def partials(self, sessions: SessionFilter) -> list[EventRecord]:
        """Return the text so far of every unfinished output of the sessions."""
        now = rfc3339(self._clock.now())
        return [
            EventRecord.ephemeral(envelope)
            for envelope in self.outputs.partials(now)
            if sessions is None or envelope.session_id in sessions
        ]


class Subscription:
    """Reads for one subscriber. Nothing is queued: it reads when the subscriber is ready."""

    def __init__(
        self, feed: EventFeed, sessions: SessionFilter, buffer: LiveBuffer, cursor: int
    ) -> None:
        self._feed = feed
        self._sessions = sessions
        # a buffer for one session or for all needs no filter
        self._filters_live = sessions is not None and len(sessions) > 1
        self._buffer = buffer
        self._cursor = cursor
        self._index = buffer.end

    async def replay(self) -> AsyncGenerator[list[StreamItem]]:
        """Yield the stored events after the cursor, then ReplayDone and the partial outputs."""
        async for page in self._backlog():
            yield page
        yield self._switch_to_live()

    async def live(self, sink: LiveSink | None = None) -> AsyncGenerator[list[StreamItem]]:
        """Yield new events until the feed is closed, except events that a sink writes."""
        while not self._feed.closed:
            if self._index < self._buffer.base:  # overrun: read the log again from the cursor
                since = self._event_id()
                async for page in self._backlog():
                    yield page
                yield self._switch_to_live(since)
            elif self._index < self._buffer.end:
                if records := self._advance(self._buffer.since(self._index, self._cursor)):
                    yield [*records]
            elif sink is None or not self._can_follow(sink):
                await self._buffer.changed()
            else:  # every later event of the buffer is new to the sink
                sessions = self._sessions if self._filters_live else None
                self._index, position = await self._buffer.follow(sink, sessions)
                self._cursor = max(self._cursor, position)

    def _can_follow(self, sink: LiveSink) -> bool:
        is_behind = self._cursor > self._feed.head or self._buffer.has_unwritten
        return sink.is_ready and not is_behind

    async def _backlog(self) -> AsyncGenerator[list[StreamItem]]:
        """Yield pages of the log until there are no more and the buffer covers later events."""
        while True:
            index = self._buffer.end  # before the read: later events are in the buffer
            page = await self._page()
            if page:
                self._cursor = page[-1].position
                yield list[StreamItem](page)
            elif index >= self._buffer.base:
                self._index = index
                return

    async def _page(self) -> list[EventRecord]:
        recent = self._feed.recent.after(self._cursor)
        if recent is not None:
            return [record for record in recent if self._matches(record)]
        sessions = None if self._sessions is None else sorted(self._sessions)
        return await self._feed.database.read(
            lambda: self._feed.log.list_after(self._cursor, sessions, PAGE_SIZE, PAGE_BYTES)
        )

    def _switch_to_live(self, dropped_since: str = "") -> list[StreamItem]:
        """Return the stored events of the buffer, the control message and the partial outputs."""
        late = self._advance(
            [record for record in self._buffer.since(self._index, self._cursor) if record.position]
        )
        partials = self._feed.partials(self._sessions)
        control: ControlFrame = ReplayDone(head=self._event_id())
        if dropped_since:
            nodes = tuple(
                record.envelope.node_id or "" for record in partials if record.envelope is not None
            )
            control = StreamDropped(since=dropped_since, nodes=nodes)
        return [*late, control, *partials]

    def _advance(self, records: list[EventRecord]) -> list[EventRecord]:
        self._index = self._buffer.end
        if self._filters_live:
            records = [record for record in records if self._matches(record)]
        # an ephemeral event has position 0 and must not move the cursor
        durable = (record.position for record in reversed(records) if record.position)
        self._cursor = next(durable, self._cursor)
        return records

    def _matches(self, record: EventRecord) -> bool:
        return self._sessions is None or record.session_id in self._sessions

    def _event_id(self) -> str:
        return str(Cursor(self._feed.epoch, self._cursor))
