"""The queue of the writer thread."""

import math
import os
import select
import threading
from collections import deque
from queue import Empty

from internal.storage.pending_work import PendingWork


class WorkQueue:
    """Units of work for one thread, which waits for them and for a descriptor at the same time.

    Args:
        descriptor: ends the wait when it can be read.
    """

    def __init__(self, descriptor: int | None) -> None:
        # Held while the pipe is used or closed: the number of a closed descriptor is given to the
        # next file that is opened, and a late byte would be written into that file.
        self._lock = threading.Lock()
        self._items: deque[PendingWork | None] = deque()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)
        if descriptor is not None:
            self._poll.register(descriptor, select.POLLIN)
        self._is_waiting = False
        self._is_closed = False

    def put(self, item: PendingWork | None) -> None:
        """Add a unit of work; None ends the queue. From any thread.

        Raises:
            RuntimeError: the queue is closed; nothing was added.
        """
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the queue is closed")
            self._items.append(item)
            if self._is_waiting:
                self._is_waiting = False
                os.write(self._wake_writer, b"\0")

    def get(self, seconds: float) -> PendingWork | None:
        """Wait up to `seconds` for the next item, remove it and return it.

        Only the thread of the queue calls this, `get_nowait` and `close`.

        Raises:
            Empty: the time is over, or the descriptor can be read.
        """
        with self._lock:
            if self._items:
                return self._items.popleft()
            self._is_waiting = True
        for ready, _ in self._poll.poll(math.ceil(seconds * 1000)):
            if ready == self._wake_reader:
                os.read(self._wake_reader, 64)
        with self._lock:
            self._is_waiting = False
        return self.get_nowait()

    def get_nowait(self) -> PendingWork | None:
        """Remove the next item and return it.

        Raises:
            Empty: there is none.
        """
        with self._lock:
            if not self._items:
                raise Empty
            return self._items.popleft()

    def close(self) -> None:
        """Close the descriptors of the queue. Nothing can be added any more."""
        with self._lock:
            self._is_closed = True
            os.close(self._wake_reader)
            os.close(self._wake_writer)
