"""The tables of a database, read from its own schema, with the same values on every kind."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from internal.agent.domain.errors import StoreError
from internal.agent.store.database import Row, SqlValue

ValueKind = Literal["text", "integer", "real", "bytes"]

PAGE_ROWS = 500
"""Number of rows that are read or written at once."""

_KINDS: dict[str, ValueKind] = {
    "text": "text",
    "integer": "integer",
    "bigint": "integer",
    "double precision": "real",
    "blob": "bytes",
    "bytea": "bytes",
}
_encoder = msgspec.msgpack.Encoder()


class Column(NamedTuple):
    """A column and the kind of its values."""

    name: str
    kind: ValueKind


class Table(NamedTuple):
    """A table with its columns in order, and the columns of its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> str:
        """The names of the columns as they stand in a statement."""
        return ", ".join(column.name for column in self.columns)

    def key_of(self, row: Row) -> Row:
        """Return the values of the primary key of a row."""
        places = {column.name: place for place, column in enumerate(self.columns)}
        return tuple(row[places[name]] for name in self.key)


def value_kind(table: str, column: str, declared: str) -> ValueKind:
    """Return the kind of a column by its declared type.

    Raises:
        StoreError: Larkspur does not use this type.
    """
    kind = _KINDS.get(declared.lower())
    if kind is None:
        raise StoreError(f"The column {table}.{column} has the unexpected type {declared}.")
    return kind


class TableConnection(Protocol):
    """The tables of one database. Statements have the placeholders `$1`, `$2` and so on."""

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        ...

    async def list_tables(self) -> list[Table]:
        """Return all tables of Larkspur, by name."""
        ...

    async def fetch(self, sql: str, *values: SqlValue) -> list[Row]:
        """Execute a statement and return its rows."""
        ...

    async def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows with values for all columns."""
        ...

    def stream(
        self, table: Table, after: Row | None = None, *, page_rows: int = PAGE_ROWS
    ) -> AsyncGenerator[list[Row]]:
        """Yield the rows after a key in pages, in the order of the key, text by code points."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit the changes of a block, or none of them if it fails."""
        ...

    async def continue_numbers(self, table: Table) -> None:
        """Advance the sequence of the key past the inserted numbers."""
        ...


async def count_rows(tables: TableConnection, table: Table) -> int:
    """Return the number of rows of a table."""
    ((count,),) = await tables.fetch(f"select count(*) from {table.name}")  # noqa: S608 - of the schema
    return int(count)


class Fingerprint(NamedTuple):
    """The number of rows of a table, and a checksum of them that does not depend on their order."""

    rows: int
    checksum: int


async def take_fingerprint(tables: TableConnection, table: Table) -> Fingerprint:
    """Return the fingerprint of a table, the same for equal rows in every kind of database."""
    rows = checksum = 0
    async for page in tables.stream(table):
        rows += len(page)
        for row in page:
            digest = hashlib.blake2b(_encoder.encode(row), digest_size=16).digest()
            checksum += int.from_bytes(digest)
    return Fingerprint(rows, checksum % 2**128)


def portable(row: Sequence[Any]) -> Row:
    """Return a row without NULs in text, which PostgreSQL cannot store."""
    return tuple(
        value.replace("\0", "\ufffd") if type(value) is str and "\0" in value else value
        for value in row
    )
