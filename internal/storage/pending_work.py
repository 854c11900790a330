"""Units of work that wait for the thread of a database, and the futures of their callers."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.store.database import DatabaseState, Row, Step

Work = Callable[[], Generator[Step, list[Row], Any]]


class PendingWork:
    """A unit of work, the future of its caller, and its result or error.

    An asyncio future belongs to the loop of the database, any other one to no loop.
    """

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work, future: asyncio.Future[Any] | Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: Exception | None = None


def state_after(before: DatabaseState, failure: str) -> DatabaseState:
    """Return the state after a write, whose `failure` is "" if it succeeded.

    `since` changes when writes begin to fail or to succeed.
    """
    if failure == before.failure:
        return before
    is_same = bool(failure) == bool(before.failure)
    return DatabaseState(failure, before.since if is_same else rfc3339(datetime.now(UTC)))


def resolve_from_thread(items: Sequence[PendingWork], loop: asyncio.AbstractEventLoop) -> None:
    """Resolve the futures from a database thread; `loop` is the event loop of the database."""
    resolve_futures([item for item in items if isinstance(item.future, Future)])
    of_loop = [item for item in items if not isinstance(item.future, Future)]
    if of_loop:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(resolve_futures, of_loop)


def resolve_futures(items: Sequence[PendingWork]) -> None:
    """Set the results of the futures, in the thread of their event loop. Skips cancelled ones."""
    for item in items:
        if item.future.done():
            continue
        if item.error is None:
            item.future.set_result(item.result)
        else:
            item.future.set_exception(item.error)
