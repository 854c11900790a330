"""Maintenance of a PostgreSQL database."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal

from internal.agent.domain.errors import InvalidRequest
from internal.agent.domain.text import format_size
from internal.database_address.address import shown_url
from internal.storage.maintenance.interface import DatabaseSizes, OnApplied
from internal.storage.maintenance.postgres_tables import (
    PostgresTables,
    check_alone,
    check_version,
    open_connection,
    open_snapshot,
    open_source,
    open_target,
)
from internal.storage.migrations import Migration, migrations, newest_version
from internal.storage.postgres.database import parse_url
from internal.storage.postgres.schema import check_server, prepare, read_version

_TIMEOUT_SECONDS = 86_400.0
_TABLE_SIZES = """
select relname::text, pg_total_relation_size(oid) from pg_class
where relnamespace = current_schema()::regnamespace and relkind = 'r'
"""


class PostgresMaintenance:
    """`DatabaseMaintenance` of a database on a server."""

    kind: Literal["postgresql"] = "postgresql"

    def __init__(self, url: str) -> None:
        self._address = parse_url(url)
        self.newest_version = newest_version("postgres")
        self.place = shown_url(url)

    def snapshot(self) -> AbstractAsyncContextManager[PostgresTables]:
        """Open the tables for reading."""
        return open_snapshot(self._address)

    def source(self) -> AbstractAsyncContextManager[PostgresTables]:
        """Open the tables for a move, alone."""
        return open_source(self._address)

    def target(self) -> AbstractAsyncContextManager[PostgresTables]:
        """Open tables that rows are moved into."""
        return open_target(self._address)

    async def read_sizes(self) -> DatabaseSizes:
        """Return the sizes of the database and its tables; the unused space is unknown."""
        async with open_connection(self._address) as connection:
            size = await connection.fetchval("select pg_database_size(current_database())")
            tables = await connection.fetch(_TABLE_SIZES)
        return DatabaseSizes(size, 0, 0, dict(map(tuple, tables)))

    async def list_pending(self) -> list[Migration]:
        """Return the migrations that are not applied yet."""
        async with open_connection(self._address) as connection:
            await check_server(connection, self._address)
            version = await read_version(connection, self._address)
        return [step for step in migrations("postgres") if step.number > version]

    async def migrate(self, on_applied: OnApplied) -> None:
        """Apply the pending migrations in one transaction."""
        pending = await self.list_pending()
        async with open_connection(self._address) as connection:
            await check_alone(connection, self._address)
            await prepare(connection, self._address)
        for step in pending:
            on_applied(step)

    async def vacuum(self, *, is_served: bool) -> str:  # noqa: ARG002 - does not stop writes
        """Make the space of removed rows usable again, and update the planner's statistics."""
        async with open_connection(self._address) as connection:
            await check_version(connection, self._address)
            tables = await PostgresTables(self._address, connection).list_tables()
            for table in tables:
                await connection.execute(f"vacuum (analyze) {table.name}", timeout=_TIMEOUT_SECONDS)
        size = format_size((await self.read_sizes()).size)
        return (
            f"The space of removed rows can be used again; the database has {size}. To give it to"
            " the system, stop Larkspur and run VACUUM FULL in psql."
        )

    async def back_up(self, target: Path) -> str:
        """Name the program that does it.

        Raises:
            InvalidRequest: always.
        """
        host, _, port = self._address.host.partition(":")
        options = f"--host={host}{f' --port={port}' * bool(port)} --username={self._address.user}"
        raise InvalidRequest(
            "PostgreSQL has a program for backups, which works while Larkspur runs:"
            f" pg_dump --format=custom --file={target} {options} {self._address.name}"
        )
