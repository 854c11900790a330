"""The database port: named statements, executed in one transaction.

A unit of work is a generator of statements. It is passed as a factory, so that it can be retried:

    def rename(session_id: str, title: str) -> Write[bool]:
        rows = yield Statement("rename_session", (session_id, title))
        return bool(rows)

    renamed = await database.write(lambda: rename(session_id, title))

The generator awaits nothing and has no side effects. An exception raised in it rolls back this unit
of work only.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from internal.agent.ports.runtime import ProcessMessages

T = TypeVar("T")

SqlValue = str | int | float | bytes | None
Row = tuple[Any, ...]


class Statement(NamedTuple):
    """A named query with the values of `$1`, `$2` and so on."""

    query: str
    arguments: tuple[SqlValue, ...] = ()


class Batch(NamedTuple):
    """A named query, executed once for each tuple of values. Returns no rows."""

    query: str
    arguments: Sequence[tuple[SqlValue, ...]]


class Lookup(NamedTuple):
    """A named query, executed once for each tuple of values, in one round trip to a server.

    Returns the rows of all of them, in the order of the tuples.
    """

    query: str
    arguments: Sequence[tuple[SqlValue, ...]]


Step = Statement | Batch | Lookup

Write = Generator[Step, list[Row], T]
"""Work that may change rows. Each `yield` evaluates to the rows that the statement returned."""

Read = Generator[Step, list[Row], T]
"""Work that changes nothing. All its statements see the same snapshot of the database."""


class DatabaseState(NamedTuple):
    """The failure of the last write ("" if it succeeded), and the start of this state (RFC 3339).

    Only failures of disk, file or lock count, which affect all writes.
    """

    failure: str
    since: str


class Database(Protocol):
    """A transactional database. Writes of one process are executed in call order."""

    @property
    def state(self) -> DatabaseState:
        """Whether the last write succeeded."""
        ...

    @property
    def messages(self) -> ProcessMessages | None:
        """The messages between the processes that use the database, None when it carries none."""
        ...

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        """Execute the work in a transaction and return its result when it is on disk.

        Cancelling the caller does not undo the work. Exceptions of the work are raised here.

        Raises:
            StoreUnavailable: disk full, read-only or locked; nothing was written.
        """
        ...

    def submit(self, work: Callable[[], Write[T]], /) -> Future[T]:
        """Queue work as `write` does, from any thread and without waiting for an event loop.

        The future has the result when it is on disk, or the exception that `write` would raise. It
        cannot be cancelled, and its callbacks may be called in a thread of the database.

        Raises:
            StoreUnavailable: the database is closed.
        """
        ...

    async def read(self, work: Callable[[], Read[T]], /, *, is_short: bool = False) -> T:
        """Execute the work on one snapshot of the database and return its result.

        Work that `is_short` reads a few rows by their keys: a file answers it in the event loop,
        in less time than a thread takes to begin.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        ...

    def watch(self, callback: Callable[[], None], /) -> AbstractContextManager[None]:
        """Call `callback` soon after another process has committed, for the length of a block.

        It is called in the event loop of the database. Calls may be joined, without cause and,
        rarely, missing: callers read again, and also poll.
        """
        ...
