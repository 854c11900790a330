"""The tail: the newest frames of a session, shared by all who watch it."""

import asyncio
from collections import deque
from itertools import islice

from internal.agent.app.events.stream_items import Frame

MOST_FRAMES = 1024
MOST_BYTES = 1_000_000
PACE_SECONDS = 0.02
"""Ephemerals wake the watchers at once, then at most this often."""


class LiveBuffer:
    """Frames in delivery order, durable and ephemeral, each at a place that only rises.

    Frames from `base` up to `end` are here; who stands before `base` has fallen off.
    """

    def __init__(self) -> None:
        self.base = 0
        self.watchers = 0
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._woken = 0.0
        self._asked = (0, 0, 0)
        self._since: list[Frame] = []

    @property
    def end(self) -> int:
        """The place behind the newest frame."""
        return self.base + len(self._frames)

    def append(self, frame: Frame) -> None:
        """Add a frame and wake the watchers, for an ephemeral one in a steady pace."""
        self._frames.append(frame)
        self._bytes += len(frame.json)
        while len(self._frames) > MOST_FRAMES or self._bytes > MOST_BYTES:
            self._bytes -= len(self._frames.popleft().json)
            self.base += 1
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        wait = 0.0 if frame.position else self._woken + PACE_SECONDS - loop.time()
        if wait <= 0:
            self.wake()
        elif self._timer is None:
            self._timer = loop.call_later(wait, self.wake)

    def wake(self) -> None:
        """Wake all who wait in `changed`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._woken = asyncio.get_running_loop().time()
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():  # a watcher that was cancelled waits no more
                    future.set_result(None)

    def since(self, place: int, cursor: int) -> list[Frame]:
        """Return the frames from a place on, without durable ones at or below the cursor.

        The place must not lie before `base`. The list is made once for all who stand at a place:
        nobody changes it.
        """
        asked = (place, cursor, self.end)
        if asked != self._asked:
            frames = islice(self._frames, place - self.base, None)
            self._since = [frame for frame in frames if not 0 < frame.position <= cursor]
            self._asked = asked
        return self._since

    async def changed(self) -> None:
        """Wait until a frame is added behind what is there now, or `wake` is called."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future
