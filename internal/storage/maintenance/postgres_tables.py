"""The tables of a PostgreSQL database."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager

import asyncpg

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.agent.store.database import Row, SqlValue
from internal.database_address.address import PostgresAddress, shown_url
from internal.storage.maintenance.tables import PAGE_ROWS, Column, Table, portable, value_kind
from internal.storage.postgres import errors
from internal.storage.postgres.connection import Connection, disconnect
from internal.storage.postgres.database import connect_first
from internal.storage.postgres.schema import LOCK, check_server, prepare, read_version

_GONE_SECONDS = 3.0
_TIMEOUT_SECONDS = 86_400.0  # of one statement: a table may be large
_SETTINGS = """
select set_config('idle_in_transaction_session_timeout', '0', false),
    set_config('statement_timeout', '0', false)
"""
_COLUMNS = """
select relname::text, attname::text, format_type(atttypid, atttypmod),
    coalesce(array_position(indkey::int2[], attnum) + 1, 0)
from pg_class
    join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped
    left join pg_index on pg_index.indrelid = pg_class.oid and indisprimary
        and attnum = any (indkey::int2[])
where relnamespace = current_schema()::regnamespace and relkind = 'r' and relpersistence = 'p'
    and not exists (
        select 1 from pg_depend
        where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e'
    )
order by relname collate "C", attnum
"""
_OTHERS = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name = 'larkspur'
"""


class PostgresTables:
    """A `TableConnection` on a connection."""

    def __init__(self, address: PostgresAddress, connection: Connection) -> None:
        self.place = shown_url(address.url)
        self._address = address
        self._connection = connection

    async def list_tables(self) -> list[Table]:
        """Return all tables, by name."""
        columns: dict[str, list[Column]] = {}
        keys: dict[str, list[tuple[int, str]]] = {}
        for table, name, declared, place in await self.fetch(_COLUMNS):
            columns.setdefault(table, []).append(Column(name, value_kind(table, name, declared)))
            keys.setdefault(table, []).extend([(place, name)] if place else [])
        return [
            Table(table, tuple(found), tuple(name for _, name in sorted(keys[table])))
            for table, found in columns.items()
        ]

    async def fetch(self, sql: str, *values: SqlValue) -> list[Row]:
        """Execute a statement and return its rows."""
        with self._translated_errors(sql):
            rows = await self._connection.fetch(sql, *values, timeout=_TIMEOUT_SECONDS)
        return [tuple(row) for row in rows]

    async def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows with values for all columns."""
        with self._translated_errors(f"insert into {table.name}"):
            await self._connection.copy_records_to_table(
                table.name,
                records=[portable(row) for row in rows],
                columns=[column.name for column in table.columns],
                timeout=_TIMEOUT_SECONDS,
            )

    async def stream(
        self, table: Table, after: Row | None = None, *, page_rows: int = PAGE_ROWS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows after a key in pages, in the order of the key, in a transaction."""
        key = ", ".join(table.key)
        where, values = "", after or ()
        if after is not None:
            marks = ", ".join(f"${number}" for number, _ in enumerate(after, 1))
            where = f"where ({key}) > ({marks})"
        sql = f"select {table.names} from {table.name} {where} order by {key}"  # noqa: S608 - of the schema
        begun = not self._connection.is_in_transaction()
        if begun:
            await self.fetch("begin isolation level repeatable read read only")
        with self._translated_errors(sql):
            cursor = await self._connection.cursor(sql, *values, timeout=_TIMEOUT_SECONDS)
            while page := await cursor.fetch(page_rows, timeout=_TIMEOUT_SECONDS):
                yield [tuple(row) for row in page]
        if begun:
            await self.fetch("commit")

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit the changes of a block, or none of them if it fails."""
        await self.fetch("begin")
        try:
            yield
            await self.fetch("commit")
        except BaseException:
            if not self._connection.is_closed():
                await self._connection.execute("rollback")
            raise

    async def continue_numbers(self, table: Table) -> None:
        """Advance the sequence of the key past the inserted numbers."""
        (key, *others) = table.key
        if others:
            return
        ((sequence,),) = await self.fetch(
            "select pg_get_serial_sequence($1, $2)", f"{table.name}", key
        )
        if sequence is not None:
            await self.fetch(
                f"select setval($1::text::regclass, coalesce(max({key}), 0) + 1, false)"  # noqa: S608 - as above
                f" from {table.name}",
                sequence,
            )

    @contextmanager
    def _translated_errors(self, statement: str) -> Generator[None]:
        try:
            yield
        except errors.DRIVER_ERRORS as error:
            is_closed = self._connection.is_closed()
            if errors.is_lost(error, is_closed=is_closed):
                raise errors.unreachable(error, self._address) from error
            if errors.is_environment(error):
                raise errors.unavailable(error, self._address) from error
            raise errors.statement_error(error, " ".join(statement.split())) from error


@asynccontextmanager
async def open_connection(address: PostgresAddress) -> AsyncGenerator[Connection]:
    """Open a connection without limits of time.

    Raises:
        StoreUnavailable: the server cannot be reached or used.
    """
    connection = await connect_first(address)
    try:
        await connection.execute(_SETTINGS)
        yield connection
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise errors.unavailable(error, address) from error
    finally:
        await disconnect(connection)


@asynccontextmanager
async def open_snapshot(address: PostgresAddress) -> AsyncGenerator[PostgresTables]:
    """Open a database for reading; every statement sees the same state. Nothing is changed.

    Raises:
        StoreCorrupt: it is not a database of Larkspur, or has a newer schema.
        StoreUnavailable: it cannot be reached or read.
    """
    async with open_connection(address) as connection:
        await check_version(connection, address)
        await connection.execute("begin isolation level repeatable read read only")
        yield PostgresTables(address, connection)


@asynccontextmanager
async def open_source(address: PostgresAddress) -> AsyncGenerator[PostgresTables]:
    """Open a database for a move: no other process writes to it until the block is left.

    Raises:
        Conflict: another process of Larkspur is connected to it.
        StoreCorrupt, StoreUnavailable: it cannot be used.
    """
    async with open_connection(address) as connection:
        await check_version(connection, address)
        await prepare(connection, address)
        await check_alone(connection, address)
        await connection.execute("begin isolation level repeatable read")
        if not await connection.fetchval(f"select pg_try_advisory_xact_lock({LOCK})"):
            raise _in_use(address, 1)
        yield PostgresTables(address, connection)
        await connection.execute("commit")


@asynccontextmanager
async def open_target(address: PostgresAddress) -> AsyncGenerator[PostgresTables]:
    """Open a database that rows are moved into, after creating or migrating its tables.

    Raises:
        Conflict: another process of Larkspur is connected to it.
        StoreCorrupt, StoreUnavailable: it cannot be used.
    """
    async with open_connection(address) as connection:
        await prepare(connection, address)
        await check_alone(connection, address)
        yield PostgresTables(address, connection)


async def check_version(connection: Connection, address: PostgresAddress) -> int:
    """Return the version of the schema.

    Raises:
        StoreCorrupt: it is not a database of Larkspur, or has a newer schema.
        StoreUnavailable: it has no tables yet.
    """
    await check_server(connection, address)
    version = await read_version(connection, address)
    if version == 0:
        raise StoreUnavailable(
            f"The database {address} has no tables of Larkspur yet; the first start creates them."
        )
    return version


async def check_alone(connection: Connection, address: PostgresAddress) -> None:
    """Check, outside of a transaction, that no other process of Larkspur is connected.

    The server needs a moment to notice that a killed process is gone.

    Raises:
        Conflict: one is.
    """
    deadline = time.monotonic() + _GONE_SECONDS
    while others := await connection.fetchval(_OTHERS):
        if time.monotonic() > deadline:
            raise _in_use(address, others)
        await asyncio.sleep(0.1)


def _in_use(address: PostgresAddress, others: int) -> Conflict:
    connections = "connection" if others == 1 else "connections"
    return Conflict(
        f"Other processes of Larkspur use the database {address} ({others} {connections}). Stop"
        " all gateways and workers, close all terminals, and try again."
    )
