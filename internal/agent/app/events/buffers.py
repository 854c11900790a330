"""Bounded buffers of recent events, shared by all subscribers."""

import asyncio
from collections import deque
from itertools import islice

from internal.agent.domain.events.record import EventRecord

MAX_RECENT_EVENTS = 2000
MAX_RECENT_BYTES = 16_000_000

MAX_LIVE_EVENTS = 1024
MAX_LIVE_BYTES = 1_000_000
WAKE_INTERVAL_SECONDS = 0.02
"""Minimum time between two wake-ups for ephemeral events."""


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

    def after(self, position: int) -> list[EventRecord] | None:
        """Return the events after a position, or None if the buffer does not reach back to it."""
        if not self._records or position < self._records[0].position - 1:
            return None
        return [record for record in self._records if record.position > position]


class LiveBuffer:
    """The newest stored and ephemeral events of a session, in delivery order.

    Each event has an index that only increases. The buffer holds the indices from `base` up to
    `end`; a subscriber whose index is below `base` has to read the log again.
    """

    def __init__(self) -> None:
        self.base = 0
        self.subscribers = 0
        self._records: deque[EventRecord] = deque()
        self._bytes = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._woken_at = 0.0
        self._cached_key = (0, 0, 0)
        self._cached: list[EventRecord] = []

    @property
    def end(self) -> int:
        """The index after the newest event."""
        return self.base + len(self._records)

    def append(self, record: EventRecord) -> None:
        """Add an event and wake the subscribers: at once, or paced for an ephemeral event."""
        self._records.append(record)
        self._bytes += len(record.json)
        while len(self._records) > MAX_LIVE_EVENTS or self._bytes > MAX_LIVE_BYTES:
            self._bytes -= len(self._records.popleft().json)
            self.base += 1
        if not self._waiters:
            return
        loop = asyncio.get_running_loop()
        delay = 0.0
        if not record.position:
            delay = self._woken_at + WAKE_INTERVAL_SECONDS - loop.time()
        if delay <= 0:
            self.wake()
        elif self._timer is None:
            self._timer = loop.call_later(delay, self.wake)

    def wake(self) -> None:
        """Wake everyone who waits in `changed`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiters:
            self._woken_at = asyncio.get_running_loop().time()
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
            self._cached = [record for record in records if not 0 < record.position <= cursor]
            self._cached_key = key
        return self._cached

    async def changed(self) -> None:
        """Wait until an event is appended or `wake` is called."""
        future = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        await future
