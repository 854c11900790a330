"""The newest events of a session in memory, and their delivery to the subscribers that wait."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from internal.agent.domain.events.envelope import EventRecord
from internal.agent.domain.ids import SessionId

MAX_LIVE_EVENTS = 1024
MAX_LIVE_BYTES = 1_000_000
WAKE_INTERVAL_SECONDS = 0.02
"""Minimum time between two wake-ups for ephemeral events."""

SessionFilter = frozenset[SessionId] | None
"""The sessions of a subscription; None: all."""

_Left = asyncio.Future[tuple[int, int]]

logger = logging.getLogger(__name__)


class LiveSink(Protocol):
    """Writes the live events of one subscriber without waiting."""

    def write_events(self, events: Sequence[EventRecord], /) -> bool:
        """Write events; return False, without effect, if the subscriber is not ready for them."""
        ...


class LiveBuffer:
    """The newest stored and ephemeral events of a session, in delivery order.

    Each event has an index that only increases. The buffer holds the indices from `base` up to
    `end`; a subscriber whose index is below `base` has to read the log again.

    Subscribers either wait in `changed` and read by themselves, or the buffer writes to their
    sinks: all sinks stand at one index and get the same bytes in one pass, without a task for each.
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
        self._sinks: dict[SessionFilter, dict[_Left, LiveSink]] = {}
        self._written = 0
        self._position = 0

    @property
    def end(self) -> int:
        """The index after the newest event."""
        return self.base + len(self._records)

    @property
    def has_unwritten(self) -> bool:
        """Whether there are sinks that wait for the next wake-up."""
        return bool(self._sinks) and self._written < self.end

    def append(self, record: EventRecord) -> None:
        """Add an event and wake the subscribers: at once, or paced for an ephemeral event.

        At once means in the next iteration of the event loop, together with the events that are
        added in this one.
        """
        self._records.append(record)
        self._bytes += len(record.json)
        while len(self._records) > MAX_LIVE_EVENTS or self._bytes > MAX_LIVE_BYTES:
            oldest = self._records.popleft()
            self._bytes -= 0 if oldest is None else len(oldest.json)
            self.base += 1
        if not (self._waiters or self._sinks):
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
        """Write to the sinks and wake everyone who waits in `changed`."""
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

        Must not be called while `has_unwritten`. `sessions` selects the events; None: all.

        Returns:
            The index of the first event that was not written, and the position of the last stored
            event before it; 0 if there is none.
        """
        left: _Left = asyncio.get_running_loop().create_future()
        if not self._sinks:
            self._written = self.end
        self._sinks.setdefault(sessions, {})[left] = sink
        try:
            return await left
        finally:
            self._remove(sessions, [left])

    def release(self) -> None:
        """Write to the sinks for the last time, and wake everyone."""
        self.wake()
        self._leave_all()

    def _write(self) -> None:
        """Write the events since the last pass to all sinks; those that are not ready leave."""
        if self._written < self.base:
            self._leave_all()
        elif self._sinks and self._written < self.end:
            events = self.since(self._written, 0)
            for sessions, sinks in list(self._sinks.items()):
                shown = events
                if sessions is not None:
                    shown = [record for record in events if record.session_id in sessions]
                if shown:
                    self._leave(sessions, _write_to_each(sinks, shown))
            self._position = next(
                (record.position for record in reversed(events) if record.position), self._position
            )
        self._written = self.end

    def _leave_all(self) -> None:
        for sessions, sinks in list(self._sinks.items()):
            self._leave(sessions, list(sinks))

    def _leave(self, sessions: SessionFilter, leaving: Sequence[_Left]) -> None:
        for left in leaving:
            if not left.done():  # its task was cancelled
                left.set_result((self._written, self._position))
        self._remove(sessions, leaving)

    def _remove(self, sessions: SessionFilter, leaving: Sequence[_Left]) -> None:
        if (sinks := self._sinks.get(sessions)) is None:
            return
        for left in leaving:
            sinks.pop(left, None)
        if not sinks:
            del self._sinks[sessions]


def _write_to_each(sinks: dict[_Left, LiveSink], events: Sequence[EventRecord]) -> list[_Left]:
    """Write events to sinks, and return those that are not ready."""
    leaving: list[_Left] = []
    for left, sink in sinks.items():
        try:
            if not sink.write_events(events):
                leaving.append(left)
        except Exception:  # must not affect the other subscribers; its own task continues
            logger.exception("events cannot be written to a subscriber")
            leaving.append(left)
    return leaving
