"""The tables of a SQLite file.

Calls block: they are for commands, whose process does nothing else.
"""

import sqlite3
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from internal.agent.domain.errors import Conflict
from internal.agent.store.database import Row, SqlValue
from internal.storage.maintenance.sqlite_files import check_exists
from internal.storage.maintenance.tables import PAGE_ROWS, Column, Table, portable, value_kind
from internal.storage.sqlite import errors
from internal.storage.sqlite.connection import connect, connect_read_only
from internal.storage.sqlite.schema import enable_wal, prepare_file


class SqliteTables:
    """A `TableConnection` on a file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    @property
    def place(self) -> str:
        """The URL of the file."""
        return f"sqlite:///{self._path}"

    async def list_tables(self) -> list[Table]:
        """Return all tables, by name."""
        names = self._execute(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
            " order by name"
        )
        return [self._table(name) for (name,) in names]

    async def fetch(self, sql: str, *values: SqlValue) -> list[Row]:
        """Execute a statement and return its rows."""
        return self._execute(sql, *values)

    async def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows with values for all columns."""
        marks = ", ".join("?" * len(table.columns))
        sql = f"insert into {table.name} ({table.names}) values ({marks})"  # noqa: S608 - of the schema
        with self._translated_errors():
            self._connection.executemany(sql, rows)

    async def stream(
        self, table: Table, after: Row | None = None, *, page_rows: int = PAGE_ROWS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows after a key in pages, in the order of the key."""
        key = ", ".join(table.key)
        where, values = "", after or ()
        if after is not None:
            where = f"where ({key}) > ({', '.join('?' * len(after))})"
        sql = f"select {table.names} from {table.name} {where} order by {key}"  # noqa: S608 - as above
        with self._translated_errors(), closing(self._connection.execute(sql, values)) as cursor:
            while page := cursor.fetchmany(page_rows):
                yield [portable(row) for row in page]

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit the changes of a block, or none of them if it fails."""
        self._execute("begin immediate")
        try:
            yield
            self._execute("commit")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("rollback")

    async def continue_numbers(self, table: Table) -> None:
        """Do nothing: SQLite numbers rows after the highest number."""

    def _table(self, name: str) -> Table:
        rows = self._execute(f"pragma table_info({name})")
        columns = tuple(Column(row[1], value_kind(name, row[1], row[2])) for row in rows)
        key = sorted((row[5], row[1]) for row in rows if row[5])
        return Table(name, columns, tuple(column for _, column in key))

    def _execute(self, sql: str, *values: SqlValue) -> list[Row]:
        with self._translated_errors():
            named = {str(number): value for number, value in enumerate(values, 1)}
            return self._connection.execute(sql, named).fetchall()

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise errors.unavailable(error, self._path) from error


@asynccontextmanager
async def open_snapshot(path: Path) -> AsyncGenerator[SqliteTables]:
    """Open a file for reading; every statement sees the same state. Nothing is changed.

    Raises:
        StoreCorrupt: it is damaged, not a database of Larkspur, or has a newer schema.
        StoreUnavailable: it cannot be read.
    """
    check_exists(path)
    with _connection(path, writes=None) as connection:
        connection.execute("begin")
        yield SqliteTables(path, connection)


@asynccontextmanager
async def open_source(path: Path) -> AsyncGenerator[SqliteTables]:
    """Open a file for a move. No other process can use it until the block ends.

    The schema is migrated first. Changes of the block are committed at its end.

    Raises:
        Conflict: another process has the file open.
        StoreCorrupt, StoreUnavailable: the file cannot be used.
    """
    prepare_file(path)
    with _connection(path, writes=True) as connection:
        try:
            # only the last connection to a file can end its WAL mode
            connection.execute("pragma busy_timeout = 1000")
            connection.execute("pragma journal_mode = delete")
            connection.execute("begin exclusive")
        except sqlite3.OperationalError as error:
            if not errors.is_lock(error):
                raise
            raise Conflict(
                f"Another process uses the database {path}. Stop the gateway, close all terminals"
                " of Larkspur, and try again."
            ) from error
        try:
            yield SqliteTables(path, connection)
            connection.execute("commit")
        finally:
            if connection.in_transaction:
                connection.execute("rollback")
            enable_wal(connection)


@asynccontextmanager
async def open_target(path: Path) -> AsyncGenerator[SqliteTables]:
    """Open a file that rows are moved into, after creating or migrating it.

    Raises:
        StoreCorrupt, StoreUnavailable: it cannot be used.
    """
    prepare_file(path)
    with _connection(path, writes=True) as connection:
        yield SqliteTables(path, connection)


@contextmanager
def _connection(path: Path, *, writes: bool | None) -> Generator[sqlite3.Connection]:
    """Open a file for writing, or with None without changing it or any file next to it."""
    try:
        if writes is None:
            has_wal = path.with_name(f"{path.name}-wal").exists()
            opened = connect_read_only(path, has_wal=has_wal)
        else:
            opened = connect(path, writes=writes)
    except sqlite3.Error as error:
        raise errors.unavailable(error, path) from error
    with closing(opened):
        try:
            yield opened
        except sqlite3.Error as error:
            raise errors.unavailable(error, path) from error
