"""The newest durable frames of the process: a watcher who is almost up to date costs no read."""

from collections import deque

from internal.agent.app.events.stream_items import Frame

MOST_FRAMES = 2000
MOST_BYTES = 16_000_000


class RecentEvents:
    """An unbroken piece of the log, up to its newest shown position."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def append(self, frame: Frame, *, unbroken: bool) -> None:
        """Add the next durable frame; a broken row of positions makes what was there useless."""
        if not unbroken:
            self._frames.clear()
            self._bytes = 0
        self._frames.append(frame)
        self._bytes += len(frame.json)
        while len(self._frames) > MOST_FRAMES or self._bytes > MOST_BYTES:
            self._bytes -= len(self._frames.popleft().json)

    def after(self, position: int) -> list[Frame] | None:
        """Return the frames behind a position; None when older ones would be missing."""
        if not self._frames or position < self._frames[0].position - 1:
            return None
        return [frame for frame in self._frames if frame.position > position]
