"""The tables of every kind of database have the same shape and the same values."""

import pytest

from internal.agent.domain.errors import StoreError
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.tables import (
    TableConnection,
    portable,
    take_fingerprint,
    value_kind,
)
from tests.support.database_rows import all_rows, fill_tables, moved_tables


async def test_rows_are_streamed_after_a_key(maintenance: DatabaseMaintenance) -> None:
    async with maintenance.target() as tables:
        await fill_tables(tables, 600)
    async with maintenance.snapshot() as tables:
        for table in await moved_tables(tables):
            rows = await all_rows(tables, table)
            assert rows == sorted(rows, key=table.key_of)
            key = table.key_of(rows[550])
            after = [row async for page in tables.stream(table, key) for row in page]
            assert after == rows[551:]


async def test_a_fingerprint_depends_on_every_value(maintenance: DatabaseMaintenance) -> None:
    async with maintenance.target() as tables:
        await fill_tables(tables, 3)
        table = next(one for one in await tables.list_tables() if one.name == "usage")
        before = await take_fingerprint(tables, table)
        assert before.rows == 3
        assert await take_fingerprint(tables, table) == before
        await tables.fetch("update usage set cost = null where number = 2")
        changed = await take_fingerprint(tables, table)
        assert (changed.rows, changed.checksum == before.checksum) == (3, False)
        await tables.fetch("delete from usage where number = 3")
        assert (await take_fingerprint(tables, table)).rows == 2


async def test_a_failed_transaction_changes_nothing(maintenance: DatabaseMaintenance) -> None:
    async with maintenance.target() as tables:
        with pytest.raises(StoreError):
            await fail_in_transaction(tables)
        assert await tables.fetch("select head from event_log") == [(0,)]


async def fail_in_transaction(tables: TableConnection) -> None:
    async with tables.transaction():
        await tables.fetch("update event_log set head = 77")
        await tables.fetch("select nothing from nowhere")


def test_text_has_no_nul() -> None:
    assert portable(("a\0b", 1, None, b"\0")) == ("a\ufffdb", 1, None, b"\0")


def test_an_unknown_type_is_refused() -> None:
    assert value_kind("t", "c", "BIGINT") == "integer"
    with pytest.raises(StoreError, match=r"The column t\.c has the unexpected type json"):
        value_kind("t", "c", "json")
