"""The newest events of a session in memory, and their delivery to the subscribers that wait."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.events.types import OutputDelta
from internal.agent.domain.ids import SessionId

MAX_LIVE_EVENTS = 1024
MAX_LIVE_BYTES = 1_000_000
WAKE_INTERVAL_SECONDS = 0.02
"""Minimum time between two wake-ups for ephemeral events."""

SessionFilter = frozenset[SessionId] | None
"""The sessions of a subscription; None: all."""

logger = logging.getLogger(__name__)


class LiveWriter(Protocol):
    """Takes bytes without waiting."""

    def write(self, data: bytes, /) -> None:
        """Write all of them, now or later."""
        ...


class LiveEncoder(Protocol):
    """Encodes live events. The subscribers with the same encoder get the same bytes."""

    def encode(self, events: Sequence[EventRecord], /) -> bytes | None:
        """Return the bytes to write, b"" without any; None if they are too many for one write."""
        ...


class LiveSink(Protocol):
    """One subscriber whose live events are written without waiting."""

    @property
    def encoder(self) -> LiveEncoder:
        """The encoder of its events."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether bytes can be written without waiting."""
        ...

    def start_live(self, leave: Callable[[], None], /) -> LiveWriter:
        """Return the writer. `leave` must be called once the writer would have to wait."""
        ...

    def stop_live(self) -> None:
        """Nothing more is written, beginning now."""
        ...


class _Follower:
    """A sink and the end of its `follow`."""

    writer: LiveWriter

    def __init__(self, sink: LiveSink) -> None:
        self.sink = sink
        self.left: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()


class _Group:
    """The sinks that get the same bytes."""

    def __init__(self, encoder: LiveEncoder, sessions: SessionFilter) -> None:
        self.encoder = encoder
        self._sessions = sessions
        self._followers: dict[LiveWriter, _Follower] = {}

    @property
    def followers(self) -> list[_Follower]:
        """The sinks that have not left."""
        return list(self._followers.values())

    def add(self, follower: _Follower) -> None:
        """Write the later events to a follower too."""
        self._followers[follower.writer] = follower

    def remove(self, follower: _Follower) -> bool:
        """Write no more events to a follower; return False if it has left already."""
        return self._followers.pop(follower.writer, None) is not None

    def write(self, events: Sequence[EventRecord]) -> list[_Follower]:
        """Write events to all sinks, and return the followers that did not get them."""
        if self._sessions is not None:
            events = [record for record in events if record.session_id in self._sessions]
        try:
            data = self.encoder.encode(events)
        except Exception:
            logger.exception("events cannot be encoded for subscribers")
            data = None
        if data is None:
            return self.followers
        return self._write_to_each(data) if data else []

    def _write_to_each(self, data: bytes) -> list[_Follower]:
        failed: list[LiveWriter] = []
        for writer in list(self._followers):  # most of the cost of an event that many watch
            try:
                writer.write(data)
            except Exception:  # must not affect the other subscribers; its own task continues
                logger.exception("events cannot be written to a subscriber")
                failed.append(writer)
        return [self._followers[writer] for writer in failed if writer in self._followers]


class LiveBuffer:
    """The newest stored and ephemeral events of a session, in delivery order.

    Each event has an index that only increases. The buffer holds the indices from `base` up to
    `end`; a subscriber whose index is below `base` has to read the log again.

    Subscribers either wait in `changed` and read by themselves, or the buffer writes to their
    sinks: all sinks stand at one index. Those with the same encoder get the same bytes in one pass,
    without a task or a check for each: a sink that is not ready has left.
    """

    def __init__(self) -> None:
        self.base = 0
        self.subscribers = 0
        self._records: deque[EventRecord | None] = deque()  # None: of a deleted session
        self._bytes = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.Handle | None = None
        self._is_delayed = False
        self._woken_at = 0.0
        self._cached_key = (0, 0, 0)
        self._cached: list[EventRecord] = []
        self._groups: dict[LiveEncoder, _Group] = {}
        self._written = 0
        self._position = 0

    @property
    def end(self) -> int:
        """The index after the newest event."""
        return self.base + len(self._records)

    @property
    def has_unwritten(self) -> bool:
        """Whether there are sinks that wait for the next wake-up."""
        return bool(self._groups) and self._written < self.end

    def append(self, record: EventRecord) -> None:
        """Add an event and wake the subscribers.

        A stored event wakes them in the next iteration of the event loop, together with the events
        that are added in this one; the first words of a reply, for which people wait, now; other
        ephemeral events are paced.
        """
        self._records.append(record)
        self._bytes += len(record.json)
        while len(self._records) > MAX_LIVE_EVENTS or self._bytes > MAX_LIVE_BYTES:
            oldest = self._records.popleft()
            self._bytes -= 0 if oldest is None else len(oldest.json)
            self.base += 1
        if not (self._waiters or self._groups):
            return
        if _begins_reply(record):
            self.wake()
            return
        if self._timer is not None and not self._is_delayed:
            return
        loop = asyncio.get_running_loop()
        delay = 0.0
        if not record.position:
            delay = self._woken_at + WAKE_INTERVAL_SECONDS - loop.time()
        if delay <= 0:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._is_delayed = loop.call_soon(self.wake), False
        elif self._timer is None:
            self._timer, self._is_delayed = loop.call_later(delay, self.wake), True

    def forget_session(self, session_id: SessionId) -> None:
        """Remove the events of a session. Indices do not change."""
        for index, record in enumerate(self._records):
            if record is not None and record.session_id == session_id:
                self._bytes -= len(record.json)
                self._records[index] = None
        self._cached_key = (0, 0, 0)

    def wake(self) -> None:
        """Write to the sinks and wake all subscribers that wait in `changed`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._woken_at = asyncio.get_running_loop().time()
        self._write()
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():  # the waiter was cancelled
                future.set_result(None)

    def since(self, index: int, cursor: int) -> list[EventRecord]:
        """Return the events from an index on, without stored ones at or below the cursor.

        The index must not be below `base`. Subscribers at the same index share the returned list;
        it must not be changed.
        """
        key = (index, cursor, self.end)
        if key != self._cached_key:
            records = islice(self._records, index - self.base, None)
            self._cached = [
                record
                for record in records
                if record is not None and not 0 < record.position <= cursor
            ]
            self._cached_key = key
        return self._cached

    async def changed(self) -> None:
        """Wait until an event is appended or `wake` is called."""
        future = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        await future

    async def follow(self, sink: LiveSink, sessions: SessionFilter) -> tuple[int, int]:
        """Write all later events to a sink until it is not ready, falls behind or is released.

        Must not be called while `has_unwritten`, and only with a sink that is ready. `sessions`
        selects the events; None: all. Sinks with the same encoder must have the same.

        Returns:
            The index of the first event that was not written, and the position of the last stored
            event before it; 0 if there is none.
        """
        if not self._groups:
            self._written = self.end
        group = self._groups.get(sink.encoder) or _Group(sink.encoder, sessions)
        follower = _Follower(sink)
        leave = partial(self._leave, group, follower)
        follower.writer = sink.start_live(leave)
        group.add(follower)
        self._groups[sink.encoder] = group
        try:
            return await follower.left
        finally:
            leave()

    def release(self) -> None:
        """Write to the sinks for the last time, and wake everyone."""
        self.wake()
        self._leave_all()

    def _write(self) -> None:
        """Write the events since the last pass to all sinks."""
        if self._written < self.base:
            self._leave_all()
        elif self._groups and self._written < self.end:
            before = self._written, self._position
            events = self.since(self._written, 0)
            # moved first: a sink that leaves because its write was not sent at once has the events
            self._written = self.end
            self._position = next(
                (record.position for record in reversed(events) if record.position), self._position
            )
            for group in list(self._groups.values()):
                for follower in group.write(events):
                    self._leave(group, follower, before)
        self._written = self.end

    def _leave_all(self) -> None:
        for group in list(self._groups.values()):
            for follower in group.followers:
                self._leave(group, follower)

    def _leave(
        self, group: _Group, follower: _Follower, place: tuple[int, int] | None = None
    ) -> None:
        """Let a follower go on by itself, from where it is or from another place."""
        if not group.remove(follower):
            return
        follower.sink.stop_live()
        if not follower.left.done():  # its task was cancelled
            follower.left.set_result(place or (self._written, self._position))
        if not group.followers and self._groups.get(group.encoder) is group:
            del self._groups[group.encoder]


def _begins_reply(record: EventRecord) -> bool:
    """Return whether an event has the first words of a reply."""
    event = None if record.envelope is None else record.envelope.payload
    return isinstance(event, OutputDelta) and event.k == event.n
