"""A watcher: a cursor in the log, then a place in a tail."""

from collections.abc import AsyncGenerator
from typing import Protocol

from internal.agent.app.events.cursor import Cursor
from internal.agent.app.events.live_buffer import LiveBuffer
from internal.agent.app.events.recent import RecentEvents
from internal.agent.app.events.stream_items import Frame, from_log
from internal.agent.domain.events.control import ControlFrame, ReplayDone, StreamDropped
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.events import EventStore

PAGE = 500

Watched = frozenset[SessionId] | None
"""The sessions that a watcher wants; None: all."""

Shown = Frame | ControlFrame


class Source(Protocol):
    """What a watcher reads from."""

    database: Database
    log: EventStore
    recent: RecentEvents
    epoch: str
    closed: bool

    def partials(self, watched: Watched, /) -> list[Frame]:
        """Return a frame for every open node."""
        ...


class Subscription:
    """Reads for one watcher. Nothing is queued for it: it takes what is there when it is ready."""

    def __init__(self, source: Source, watched: Watched, tail: LiveBuffer, cursor: int) -> None:
        self._source = source
        self._watched = watched
        self._chooses = watched is not None and len(watched) > 1  # else all of the tail is wanted
        self._tail = tail
        self._cursor = cursor
        self._place = tail.end

    async def replay(self) -> AsyncGenerator[list[Shown]]:
        """Yield what is stored behind the cursor, then say that the rest is live."""
        async for page in self._backlog():
            yield page
        yield self._landing()

    async def live(self) -> AsyncGenerator[list[Shown]]:
        """Yield what happens, until the source is closed."""
        while not self._source.closed:
            if self._place < self._tail.base:  # fallen off: back to the log, by the cursor
                since = self._id()
                async for page in self._backlog():
                    yield page
                yield self._landing(since)
            elif self._place == self._tail.end:
                await self._tail.changed()
            elif frames := self._take(self._tail.since(self._place, self._cursor)):
                yield [*frames]

    async def _backlog(self) -> AsyncGenerator[list[Shown]]:
        """Yield pages of the log until it has no more and the tail reaches back to that moment."""
        while True:
            place = self._tail.end  # before the read: what is stored meanwhile is in the tail
            page = await self._page()
            if page:
                self._cursor = page[-1].position
                yield list[Shown](page)
            elif place >= self._tail.base:
                self._place = place
                return

    async def _page(self) -> list[Frame]:
        recent = self._source.recent.after(self._cursor)
        if recent is not None:
            return [frame for frame in recent if self._wants(frame)]
        sessions = None if self._watched is None else sorted(self._watched)
        rows = await self._source.database.read(
            lambda: self._source.log.list_after(self._cursor, sessions, PAGE)
        )
        return [from_log(row) for row in rows]

    def _landing(self, dropped_since: str = "") -> list[Shown]:
        """Step onto the tail: what is durable there, the word about it, the open nodes."""
        late = self._take(
            [frame for frame in self._tail.since(self._place, self._cursor) if frame.position]
        )
        partials = self._source.partials(self._watched)
        word: ControlFrame = ReplayDone(head=self._id())
        if dropped_since:
            nodes = tuple(frame.node_id for frame in partials)
            word = StreamDropped(since=dropped_since, nodes=nodes)
        return [*late, word, *partials]

    def _take(self, frames: list[Frame]) -> list[Frame]:
        self._place = self._tail.end
        wanted = [one for one in frames if self._wants(one)] if self._chooses else frames
        # an ephemeral frame has position 0 and must not move the cursor
        durable = (frame.position for frame in reversed(wanted) if frame.position)
        self._cursor = next(durable, self._cursor)
        return wanted

    def _wants(self, frame: Frame) -> bool:
        return self._watched is None or frame.session_id in self._watched

    def _id(self) -> str:
        return str(Cursor(self._source.epoch, self._cursor))
