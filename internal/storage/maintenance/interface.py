"""Maintenance of a whole database, which each kind implements."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from internal.storage.maintenance.tables import TableConnection
from internal.storage.migrations import Migration

OnApplied = Callable[[Migration], None]
"""Receives each migration after it was applied."""


class DatabaseSizes(NamedTuple):
    """Bytes of a database, of its log, of the space that a vacuum frees, and of each table."""

    size: int
    unused: int
    wal_size: int
    tables: dict[str, int]


class DatabaseMaintenance(Protocol):
    """A database as a whole. Every method raises StoreError if the database cannot be used."""

    @property
    def kind(self) -> Literal["sqlite", "postgresql"]:
        """The kind of the database."""
        ...

    newest_version: int
    place: str
    """Its location, without a password."""

    def snapshot(self) -> AbstractAsyncContextManager[TableConnection]:
        """Open the tables for reading; every statement sees the same state."""
        ...

    def source(self) -> AbstractAsyncContextManager[TableConnection]:
        """Open the tables for a move. No other process can change them until the block ends.

        The schema is migrated first. Changes of the block are committed at its end.

        Raises:
            Conflict: another process uses the database.
        """
        ...

    def target(self) -> AbstractAsyncContextManager[TableConnection]:
        """Open tables that rows are moved into, after creating or migrating them.

        The caller keeps gateways away from a file.

        Raises:
            Conflict: another process uses the database of a server.
        """
        ...

    async def read_sizes(self) -> DatabaseSizes:
        """Return the sizes of the database and its tables."""
        ...

    async def list_pending(self) -> list[Migration]:
        """Return the migrations that are not applied yet. Changes nothing."""
        ...

    async def migrate(self, on_applied: OnApplied) -> None:
        """Apply the pending migrations.

        Raises:
            Conflict: another process uses the database.
        """
        ...

    async def vacuum(self, *, is_served: bool) -> str:
        """Give unused space back and return a sentence about the result.

        `is_served`: a gateway serves the database, whose writes must not wait for seconds.
        """
        ...

    async def back_up(self, target: Path) -> str:
        """Copy the database to a new file while it is used. Return a sentence about it.

        Raises:
            Conflict: the file exists.
        """
        ...
