"""Maintenance of a SQLite file. Calls block: they are for commands."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

from internal.agent.domain.text import format_size
from internal.storage.maintenance import sqlite_files
from internal.storage.maintenance.interface import DatabaseSizes, OnApplied
from internal.storage.maintenance.sqlite_tables import (
    SqliteTables,
    open_snapshot,
    open_source,
    open_target,
)
from internal.storage.migrations import Migration, newest_version
from internal.storage.sqlite.schema import list_pending, prepare_file

_MAX_SERVED_BYTES = 64 * 1024 * 1024
"""Larger files are not vacuumed beside a gateway, whose writes would wait for seconds."""


class SqliteMaintenance:
    """`DatabaseMaintenance` of a file. The caller keeps gateways away where that is necessary."""

    kind: Literal["sqlite"] = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.newest_version = newest_version("sqlite")
        self.place = f"sqlite:///{path}"

    def snapshot(self) -> AbstractAsyncContextManager[SqliteTables]:
        """Open the tables for reading."""
        return open_snapshot(self._path)

    def source(self) -> AbstractAsyncContextManager[SqliteTables]:
        """Open the tables for a move, alone."""
        sqlite_files.check_exists(self._path)
        return open_source(self._path)

    def target(self) -> AbstractAsyncContextManager[SqliteTables]:
        """Open tables that rows are moved into."""
        return open_target(self._path)

    async def read_sizes(self) -> DatabaseSizes:
        """Return the sizes of the database and its tables."""
        return sqlite_files.read_sizes(self._path)

    async def list_pending(self) -> list[Migration]:
        """Return the migrations that are not applied yet."""
        return list_pending(self._path)

    async def migrate(self, on_applied: OnApplied) -> None:
        """Apply the pending migrations."""
        prepare_file(self._path, on_applied)

    async def vacuum(self, *, is_served: bool) -> str:
        """Give unused space back, for a large file only without a gateway."""
        sqlite_files.check_exists(self._path)
        size = self._path.stat().st_size
        if is_served and size > _MAX_SERVED_BYTES:
            sqlite_files.checkpoint(self._path)
            return (
                "The log was written to the file. To give unused space back, stop the gateway and"
                f" repeat this: with {format_size(size)} its writes would wait for too long."
            )
        freed = sqlite_files.vacuum(self._path)
        used = format_size(self._path.stat().st_size)
        return f"{format_size(freed)} were given back; {used} are used."

    async def back_up(self, target: Path) -> str:
        """Copy the database to a new file while it is used."""
        size = sqlite_files.back_up(self._path, target)
        return f"{target} is a checked copy of the database ({format_size(size)})."
