"""What the agent asks of a database: named statements, driven in one transaction.

A piece of work is a generator of statements, handed over as a factory so that it can be run again:

    def rename(session_id: str, title: str) -> Write[bool]:
        rows = yield Statement("rename_session", (session_id, title))
        return bool(rows)

    renamed = await database.write(lambda: rename(session_id, title))

It awaits nothing, keeps nothing outside itself and may raise: then it is rolled back alone.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

SqlValue = str | int | float | bytes | None
Row = tuple[Any, ...]


class Statement(NamedTuple):
    """A query of `queries.sql` by its name, with the values of `$1`, `$2` and so on."""

    query: str
    arguments: tuple[SqlValue, ...] = ()


class Batch(NamedTuple):
    """One query run once for each tuple of values; it returns no rows."""

    query: str
    arguments: Sequence[tuple[SqlValue, ...]]


Write = Generator[Statement | Batch, list[Row], T]
"""Work that may change rows. Each `yield` gives the rows that the statement returned."""

Read = Generator[Statement | Batch, list[Row], T]
"""Work that only looks. All its statements see one state of the database."""


class Database(Protocol):
    """One database. Writes of one process are grouped into commits; order is call order."""

    async def write(self, work: Callable[[], Write[T]], /) -> T:
        """Run the work in a transaction and return its result once it is on disk.

        Cancelling the caller does not undo the work. What the work raises is raised here.

        Raises:
            StoreUnavailable: disk full, read-only or locked; nothing was written.
        """
        ...

    async def read(self, work: Callable[[], Read[T]], /) -> T:
        """Run the work on one state of the database and return its result.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        ...
