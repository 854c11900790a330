"""A subscription: reads the log from a cursor, then the live buffer."""

import re
from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol

from internal.agent.app.events.buffers import LiveBuffer, RecentEvents
from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.events.control import ControlFrame, ReplayDone, StreamDropped
from internal.agent.domain.events.record import EventRecord
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.events import EventStore

PAGE_SIZE = 500

SessionFilter = frozenset[SessionId] | None
"""The sessions of a subscription; None: all."""

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
        raise InvalidRequest(f"“{text[:40]}” is not an event id such as k3x9ap-17.")
    return Cursor(match[1], int(match[2]))


class EventSource(Protocol):
    """What a subscription reads from."""

    database: Database
    log: EventStore
    recent: RecentEvents
    epoch: str
    closed: bool

    def partials(self, sessions: SessionFilter, /) -> list[EventRecord]:
        """Return the text so far of every output that is still being written."""
        ...


class Subscription:
    """Reads for one subscriber. Nothing is queued: it reads when the subscriber is ready."""

    def __init__(
        self, source: EventSource, sessions: SessionFilter, buffer: LiveBuffer, cursor: int
    ) -> None:
        self._source = source
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

    async def live(self) -> AsyncGenerator[list[StreamItem]]:
        """Yield new events until the source is closed."""
        while not self._source.closed:
            if self._index < self._buffer.base:  # overrun: read the log again from the cursor
                since = self._event_id()
                async for page in self._backlog():
                    yield page
                yield self._switch_to_live(since)
            elif self._index == self._buffer.end:
                await self._buffer.changed()
            elif records := self._advance(self._buffer.since(self._index, self._cursor)):
                yield [*records]

    async def _backlog(self) -> AsyncGenerator[list[StreamItem]]:
        """Yield pages of the log until there are no more and the buffer covers what follows."""
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
        recent = self._source.recent.after(self._cursor)
        if recent is not None:
            return [record for record in recent if self._matches(record)]
        sessions = None if self._sessions is None else sorted(self._sessions)
        return await self._source.database.read(
            lambda: self._source.log.list_after(self._cursor, sessions, PAGE_SIZE)
        )

    def _switch_to_live(self, dropped_since: str = "") -> list[StreamItem]:
        """Return the stored events of the buffer, the control message and the partial outputs."""
        late = self._advance(
            [record for record in self._buffer.since(self._index, self._cursor) if record.position]
        )
        partials = self._source.partials(self._sessions)
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
        return str(Cursor(self._source.epoch, self._cursor))
