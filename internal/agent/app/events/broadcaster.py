"""The broadcaster: the stored log and the live tail, as one stream for any number of watchers."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from msgspec import UNSET

from internal.agent.app.events.cursor import Cursor
from internal.agent.app.events.live_buffer import LiveBuffer
from internal.agent.app.events.partials import PartialOutputs
from internal.agent.app.events.recent import RecentEvents
from internal.agent.app.events.stream_items import Frame, from_envelope, from_log
from internal.agent.app.events.subscription import PAGE, Shown, Subscription, Watched
from internal.agent.domain.events.control import Connected, StreamReset
from internal.agent.domain.events.envelope import WorkflowEventEnvelope, rfc3339, wrap_event
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.ports.runtime import Clock
from internal.agent.store.database import Database
from internal.agent.store.events import LogBounds, StoredEvent
from internal.agent.store.stores import Stores

POLL_SECONDS = 0.5
"""How often the log is asked for events of other processes while somebody watches."""


class Delivery(NamedTuple):
    """An envelope of a run of this process. An ephemeral one has position 0 and no JSON yet."""

    envelope: WorkflowEventEnvelope
    position: int = 0
    json: bytes | None = None


class EventBroadcaster:
    """Shows every durable event to every watcher once, in the order of the log.

    Events that this process did not write are found in the log: a gap in the positions, or the
    poll while somebody watches, says that there are some.
    """

    def __init__(self, database: Database, stores: Stores, clock: Clock, version: str) -> None:
        self.database = database
        self.log = stores.events
        self.recent = RecentEvents()
        self.epoch = ""
        self.closed = False
        self._runs = stores.runs
        self._clock = clock
        self._version = version
        self._seen = 0
        self._tails: dict[SessionId | None, LiveBuffer] = {}
        self._open = PartialOutputs()
        self._held: deque[Delivery] = deque()
        self._gap = asyncio.Event()

    @property
    def head(self) -> Cursor:
        """The newest place that this process has shown."""
        return Cursor(self.epoch, self._seen)

    async def start(self) -> None:
        """Find the log's end. Must come before the first `publish` and `watch`."""
        bounds = await self._bounds()
        self.epoch, self._seen = bounds.epoch, bounds.head

    async def follow(self) -> None:
        """Fill the gaps that other writers leave, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._gap.wait()
            except TimeoutError:
                if not self._tails or (await self._bounds()).head <= self._seen:
                    continue
            self._gap.clear()
            await self._catch_up()

    def close(self) -> None:
        """End all streams: every `watch` returns after what it has."""
        self.closed = True
        for tail in self._tails.values():
            tail.wake()

    def forget(self, run_id: RunId) -> None:
        """Drop what is open of a run that left this process."""
        self._open.forget(run_id)

    def publish(self, deliveries: Sequence[Delivery]) -> None:
        """Show envelopes of one run, in order. The durable ones are stored."""
        if self._held or self._leaves_gap(deliveries):
            # one of another writer comes before: `follow` finds it, and keeps the order
            self._held.extend(deliveries)
            self._gap.set()
            return
        for delivery in deliveries:
            self._show(delivery)

    def poke(self) -> None:
        """Say that something was stored that nobody will publish."""
        self._gap.set()

    async def watch(self, watched: Watched, start: Cursor | None) -> AsyncGenerator[list[Shown]]:
        """Yield what a stream shows, batch by batch, as soon as there is something.

        Connected, the backlog behind `start`, ReplayDone, the open nodes, then what happens.
        `start` None begins at the end of the log. Ends when the broadcaster is closed.
        """
        with self._tail(watched) as tail:
            bounds = await self._bounds()
            opening: list[Shown] = [await self._connected(watched, bounds)]
            cursor = bounds.head if start is None else start.position
            if start is not None and (reason := self._unknown(start, bounds)):
                earliest, head = self._id(bounds.earliest), self._id(bounds.head)
                opening.append(StreamReset(reason=reason, earliest=earliest, head=head))
                cursor = 0
            yield opening
            watcher = Subscription(self, watched, tail, cursor)
            async for batch in watcher.replay():
                yield batch
            async for batch in watcher.live():
                yield batch

    def partials(self, watched: Watched) -> list[Frame]:
        """Return a frame for every open node of the watched sessions."""
        now = rfc3339(self._clock.now())
        return [
            from_envelope(wrap_event(ids, partial, now, None), 0, None)
            for ids, partial in self._open.partials()
            if watched is None or ids.session_id in watched
        ]

    def _leaves_gap(self, deliveries: Sequence[Delivery]) -> bool:
        first = next((delivery.position for delivery in deliveries if delivery.position), 0)
        return bool(self._tails) and first > self._seen + 1

    def _show(self, delivery: Delivery) -> None:
        self._open.take(delivery.envelope)
        if 0 < delivery.position <= self._seen:
            return  # shown from the log already
        if delivery.position or self._watched(delivery.envelope.session_id):
            self._add(from_envelope(delivery.envelope, delivery.position, delivery.json))

    def _add(self, frame: Frame) -> None:
        if frame.position:
            self.recent.append(frame, unbroken=frame.position == self._seen + 1)
            self._seen = frame.position
        for key in (frame.session_id, None):
            if tail := self._tails.get(key):
                tail.append(frame)

    async def _catch_up(self) -> None:
        """Show what the log has behind the newest shown position, and what was held meanwhile."""
        while True:
            rows = await self._rows()
            newest = rows[-1].position if rows else self._seen
            while self._held and self._held[0].position <= newest:
                delivery = self._held.popleft()
                while rows and rows[0].position <= delivery.position:
                    self._add_row(rows.popleft())
                self._show(delivery)
            while rows:
                self._add_row(rows.popleft())
            if not self._held:
                return

    async def _rows(self) -> deque[StoredEvent]:
        rows: deque[StoredEvent] = deque()
        while True:
            position = rows[-1].position if rows else self._seen
            page = await self.database.read(partial(self.log.list_after, position, None, PAGE))
            rows.extend(page)
            if len(page) < PAGE:
                return rows

    def _add_row(self, row: StoredEvent) -> None:
        if row.position > self._seen:
            # a hole in the positions is no event: what the log gave is unbroken
            self._seen = row.position - 1
            self._add(from_log(row))

    def _watched(self, session_id: SessionId) -> bool:
        return session_id in self._tails or None in self._tails

    @contextmanager
    def _tail(self, watched: Watched) -> Generator[LiveBuffer]:
        key = next(iter(watched)) if watched is not None and len(watched) == 1 else None
        tail = self._tails.setdefault(key, LiveBuffer())
        tail.watchers += 1
        try:
            yield tail
        finally:
            tail.watchers -= 1
            if not tail.watchers:
                del self._tails[key]

    async def _connected(self, watched: Watched, bounds: LogBounds) -> Connected:
        one = next(iter(watched)) if watched is not None and len(watched) == 1 else None
        active = None
        if one is not None:
            active = await self.database.read(lambda: self._runs.get_active(one))
        many = tuple(sorted(watched)) if watched is not None else ("*",)
        return Connected(
            session_id=UNSET if one is None else one,
            sessions=UNSET if one is not None else many,
            head=self._id(bounds.head),
            earliest=self._id(bounds.earliest),
            active_run_id=active.id if active else None,
            server_version=self._version,
        )

    def _unknown(self, start: Cursor, bounds: LogBounds) -> str:
        """Say in a word why a cursor means nothing here; "" when it does."""
        if start.epoch != bounds.epoch:
            return "unknown_epoch"
        if start.position > bounds.head:
            return "ahead_of_log"
        return "too_old" if start.position < bounds.earliest - 1 else ""

    async def _bounds(self) -> LogBounds:
        return await self.database.read(self.log.get_bounds)

    def _id(self, position: int) -> str:
        return str(Cursor(self.epoch, position))
