"""The queue of the writer thread."""

import math
import os
import select
from collections import deque
from queue import Empty

from internal.storage.pending_work import PendingWork


class WorkQueue:
    """Units of work for one thread, which waits for them and for a descriptor at the same time.

    Args:
        descriptor: ends the wait when it can be read.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._items: deque[PendingWork | None] = deque()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)
        if descriptor is not None:
            self._poll.register(descriptor, select.POLLIN)
        self._is_waiting = False

    def put(self, item: PendingWork | None) -> None:
        """Add a unit of work, or None for the end. From any thread."""
        self._items.append(item)
        if self._is_waiting:
            self._is_waiting = False
            os.write(self._wake_writer, b"\0")

    def get(self, seconds: float) -> PendingWork | None:
        """Wait up to `seconds` for the next item, remove it and return it.

        Raises:
            Empty: the time is over, or the descriptor can be read.
        """
        self._is_waiting = not self._items
        if self._is_waiting and not self._items:  # not even one that was added meanwhile
            for ready, _ in self._poll.poll(math.ceil(seconds * 1000)):
                if ready == self._wake_reader:
                    os.read(self._wake_reader, 64)
        self._is_waiting = False
        return self.get_nowait()

    def get_nowait(self) -> PendingWork | None:
        """Remove the next item and return it.

        Raises:
            Empty: there is none.
        """
        if not self._items:
            raise Empty
        return self._items.popleft()

    def close(self) -> None:
        """Close the descriptors of the queue. Nothing may be added any more."""
        os.close(self._wake_reader)
        os.close(self._wake_writer)
