"""Rows for every table of a database, made from its schema."""

from collections.abc import Sequence

from internal.agent.store.database import Row, SqlValue
from internal.storage.maintenance.move import NOT_MOVED
from internal.storage.maintenance.tables import Column, Table, TableConnection

SINGLE_ROW = "event_log"
"""A table with one row, which the creation of a database inserts."""


async def fill_tables(tables: TableConnection, rows: int) -> None:
    """Insert rows into every table that moves copy. The values are valid for no store."""
    for table in await moved_tables(tables):
        async with tables.transaction():
            await tables.insert(table, [_row(table, number) for number in range(1, rows + 1)])
            await tables.continue_numbers(table)
    await tables.fetch("update event_log set head = $1, arrivals = $2", 10 * rows, rows)


async def moved_tables(tables: TableConnection) -> Sequence[Table]:
    """Return the tables that moves copy, without the one that always has a row."""
    found = await tables.list_tables()
    return [one for one in found if one.name not in {*NOT_MOVED, SINGLE_ROW}]


async def all_rows(tables: TableConnection, table: Table) -> list[Row]:
    """Return all rows of a table in the order of its key."""
    return [row async for page in tables.stream(table) for row in page]


def _row(table: Table, number: int) -> Row:
    return tuple(_value(column, number) for column in table.columns)


def _value(column: Column, number: int) -> SqlValue:
    match column.kind:
        case "text":  # the order by code points differs from that of most locales
            return f"{'aBä半🐦'[number % 5]} '{column.name}' {number}"
        case "integer":
            return number
        case "real":
            return number / 3
        case "bytes":
            return bytes([number % 256])
