"""The part of a database that queues units of work, independent of their execution."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar, cast

from internal.agent.domain.errors import StoreUnavailable
from internal.agent.store.database import Read, Write
from internal.storage.pending_work import PendingWork

T = TypeVar("T")


class QueuedDatabase:
    """Queues writes and reads for the threads of a database, and awaits their results.

    Belongs to the event loop in which it is created. A subclass that closes calls `_refuse_work`
    before it queues the end.

    Args:
        put_write: queues a unit of work for the writer; may be called from any thread.
        put_read: queues one for the readers.
    """

    def __init__(
        self, put_write: Callable[[PendingWork], None], put_read: Callable[[PendingWork], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._submitting = threading.Lock()
        self._put_write, self._put_read = put_write, put_read

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        """Execute the work in a transaction and return its result when it is on disk.

        Cancelling the caller does not undo the work. Exceptions of the work are raised here.

        Raises:
            StoreUnavailable: disk full, read-only or locked, server gone, or the database is
                closed; nothing was written.
        """
        future = self._make_future()
        self._put_write(PendingWork(work, future))
        return cast(T, await future)

    def submit(self, work: Callable[[], Write[T]], /) -> Future[T]:
        """Queue work as `write` does, from any thread.

        The future cannot be cancelled; its callbacks are called in the writer's thread.

        Raises:
            StoreUnavailable: the database is closed.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        # Work that another thread queued behind the end would never be resolved.
        with self._submitting:
            self._check_open()
            self._put_write(PendingWork(work, future))
        return future

    async def read(
        self,
        work: Callable[[], Read[T]],
        /,
        *,
        is_short: bool = False,  # noqa: ARG002 - a server is asked in any case
    ) -> T:
        """Execute the work on one snapshot of the database and return its result.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        future = self._make_future()
        self._put_read(PendingWork(work, future))
        return cast(T, await future)

    def _make_future(self) -> "asyncio.Future[object]":
        self._check_open()
        return self._loop.create_future()

    def _refuse_work(self) -> None:
        """Let every later call raise StoreUnavailable. Work that was queued before is executed."""
        with self._submitting:
            self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("The database is closed.")
