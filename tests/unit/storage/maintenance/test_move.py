"""Moves between databases of the same and of different kinds."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreCorrupt
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.move import NOT_MOVED, cancel_move, move
from internal.storage.maintenance.tables import count_rows
from tests.support.database_rows import all_rows, fill_tables, moved_tables
from tests.support.new_databases import KINDS, POSTGRES, NewDatabase
from tests.support.store_records import a_session

PAGE_ROWS = 5
ROWS = 2 * PAGE_ROWS + 1


class Interrupted(Exception):
    """Ends a move as a crash does."""


class Pair:
    """The source of a move, with filled tables, and its target."""

    def __init__(self, source: NewDatabase, target: NewDatabase) -> None:
        self.source, self.target = source.maintenance, target.maintenance
        self.source_address, self.target_address = source.address, target.address
        self.reports: list[str] = []

    async def move(self, report: Callable[[str], None] | None = None) -> tuple[int, bool]:
        async with self.source.source() as source, self.target.target() as target:
            result = await move(source, target, report or self.reports.append, page_rows=PAGE_ROWS)
        assert (result.source, result.target) == (self.source.place, self.target.place)
        return result.rows, result.was_finished

    async def stop_after(self, table: str) -> None:
        """Move until a table is copied."""

        def report(line: str) -> None:
            if line.startswith(f"{table}:"):
                raise Interrupted

        with pytest.raises(Interrupted):
            await self.move(report)

    async def check_equal(self) -> None:
        async with self.source.snapshot() as source, self.target.snapshot() as target:
            for table in await moved_tables(source):
                assert await all_rows(source, table) == await all_rows(target, table)


@pytest.fixture(
    params=[
        ("sqlite", "sqlite"),
        pytest.param(("sqlite", "postgres"), marks=POSTGRES),
        pytest.param(("postgres", "sqlite"), marks=POSTGRES),
    ],
    ids="-to-".join,
)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Pair]:
    first, second = request.param
    async with (
        KINDS[first](tmp_path, "a.db") as source,
        KINDS[second](tmp_path, "b.db") as target,
    ):
        async with source.maintenance.target() as tables:
            await fill_tables(tables, ROWS)
        yield Pair(source, target)


async def fetch(database: DatabaseMaintenance, sql: str) -> list[tuple[object, ...]]:
    async with database.snapshot() as tables:
        return await tables.fetch(sql)


async def test_every_table_is_moved_with_all_rows(pair: Pair) -> None:
    """A table that a migration adds is in this test, and moved, without a change here."""
    rows, was_finished = await pair.move()
    async with pair.source.snapshot() as source:
        tables = await moved_tables(source)
        assert {table.name for table in tables} > {"sessions", "events", "outbox", "usage"}
        assert rows == ROWS * len(tables) + 1
        assert {await count_rows(source, table) for table in tables} == {ROWS}
    assert not was_finished
    await pair.check_equal()


@pytest.mark.first_rows(1)
async def test_positions_and_epoch_of_the_event_log_stay(pair: Pair) -> None:
    log = "select epoch, head, arrivals, pruned from event_log"
    before = await fetch(pair.source, log)
    await pair.move()
    assert await fetch(pair.target, log) == before


@pytest.mark.first_rows(1)
async def test_tables_that_are_not_moved_exist_and_have_a_reason(pair: Pair) -> None:
    async with pair.source.snapshot() as source:
        names = {table.name for table in await source.list_tables()}
    assert names >= NOT_MOVED.keys()
    assert all(NOT_MOVED.values())


@pytest.mark.first_rows(1)
async def test_new_rows_are_numbered_after_the_moved_ones(pair: Pair) -> None:
    await pair.move()
    async with pair.target.target() as tables:
        ((number,),) = await tables.fetch(
            "insert into audit_entries (at, principal, via, action, target, detail)"
            " values ('', '', '', '', '', '') returning number"
        )
    assert number == ROWS + 1


@pytest.mark.first_rows(1)
async def test_a_finished_move_is_not_repeated(pair: Pair) -> None:
    rows, _ = await pair.move()
    pair.reports.clear()
    assert await pair.move() == (rows, True)
    assert pair.reports == []


async def test_a_move_continues_where_it_was_interrupted(pair: Pair) -> None:
    await pair.stop_after("events")
    with pytest.raises(StoreCorrupt, match=r"The move from .* is not finished"):
        async with open_database(pair.target_address):
            pass
    assert (await pair.move())[1] is False
    copied = {line.partition(":")[0] for line in pair.reports}
    assert "outbox" in copied
    assert "artifacts" not in copied, "before events, so it was there already"
    await pair.check_equal()


@pytest.mark.first_rows(1)
async def test_a_table_that_changed_since_it_was_copied_is_copied_again(pair: Pair) -> None:
    await pair.stop_after("sessions")
    async with pair.source.target() as tables:
        await tables.fetch("update events set payload = 'changed' where position = 5")
        await tables.fetch("delete from inbox where number = 7")
    await pair.move()
    again = {line for line in pair.reports if "changed since" in line}
    assert again == {
        f"{table}: changed since it was copied; copied again" for table in ("events", "inbox")
    }
    await pair.check_equal()


@pytest.mark.first_rows(1)
async def test_the_source_is_kept_and_not_opened_until_the_move_is_cancelled(pair: Pair) -> None:
    await pair.move()
    with pytest.raises(StoreCorrupt) as caught:
        async with open_database(pair.source_address):
            pass
    assert f"was moved to {pair.target.place} at" in str(caught.value)
    assert "Set database.url to that one" in str(caught.value)
    async with open_database(pair.target_address):
        pass
    async with pair.source.source() as source:
        assert await cancel_move(source)
    async with pair.source.source() as source:
        assert not await cancel_move(source)
    async with open_database(pair.source_address):
        pass


@pytest.mark.first_rows(1)
async def test_a_target_with_content_is_refused(pair: Pair) -> None:
    stores = Stores()
    async with open_database(pair.target_address) as database:
        await database.write(partial(stores.sessions.add, a_session("session-1")))
    with pytest.raises(Conflict, match=r"is not empty \(it has rows in sessions\)"):
        await pair.move()
    assert await fetch(pair.target, "select id from sessions") == [("session-1",)]
    assert await fetch(pair.target, "select * from database_moves") == []
    async with open_database(pair.source_address):
        pass


@pytest.mark.first_rows(1)
async def test_the_target_of_another_move_is_refused(pair: Pair) -> None:
    await pair.stop_after("events")
    async with pair.source.target() as tables:
        await tables.fetch("update event_log set epoch = 'another'")
    with pytest.raises(Conflict, match="has the content of another database"):
        await pair.move()


@pytest.mark.first_rows(1)
async def test_a_source_that_is_used_is_refused(pair: Pair) -> None:
    async with open_database(pair.source_address):
        with pytest.raises(Conflict, match=r"(?i)other process"):
            await pair.move()
    await pair.move()
