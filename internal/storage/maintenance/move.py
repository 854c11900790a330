"""The move of a database into another one, which may be of another kind.

Rows are copied in pages in the order of their keys. Each transaction of the target stores a page
and how far the move has come, so a move that was killed continues where it was. At the end the rows
of every table are compared by a checksum; a table that changed in between is copied again.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from internal.agent.domain.errors import Conflict, StoreError, StoreUnavailable
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.maintenance.reports import MoveResult
from internal.storage.maintenance.tables import (
    PAGE_ROWS,
    Table,
    TableConnection,
    count_rows,
    take_fingerprint,
)

NOT_MOVED: Mapping[str, str] = {
    "schema_migrations": "each database has its own",
    "database_moves": "the move itself",
    "database_move_tables": "the move itself",
    "processes": "those that serve the source",
    "leaderships": "what those lead",
}
"""Tables whose rows stay where they are, and why."""

Report = Callable[[str], None]
"""Receives a line about the progress."""


class _Begun(NamedTuple):
    """A move that the target knows: where from, which log, and when it was finished, or ""."""

    place: str
    epoch: str
    finished: str


async def move(
    source: TableConnection, target: TableConnection, report: Report, *, page_rows: int = PAGE_ROWS
) -> MoveResult:
    """Move all rows from one database to another one, or continue to.

    The caller makes sure that nobody else uses the source. At the end both databases record the
    move: the source is not opened any more, except to cancel that.

    Raises:
        Conflict: the target has other content, or is the target of another move.
        StoreError: a database cannot be used, or the rows differ. The source is not changed.
    """
    tables = await _moved_tables(source, target)
    ((epoch,),) = await source.fetch("select epoch from event_log")
    begun = await _find_begun(target)
    if begun is None:
        await _begin(source, target, tables, str(epoch))
    elif begun.epoch != epoch:
        raise Conflict(
            f"The database {target.place} has the content of another database, {begun.place}, that"
            " was or is moved there. Choose another target."
        )
    was_finished = begun is not None and begun.finished != ""
    if not was_finished:
        for table in tables:
            await _copy(source, target, table, report, page_rows=page_rows)
        for table in tables:
            await _verify(source, target, table, report, page_rows=page_rows)
        await _finish(target, tables)
    await _mark_source(source, target, str(epoch))
    rows = sum([await count_rows(source, table) for table in tables])
    return MoveResult(source.place, target.place, rows, was_finished)


async def cancel_move(source: TableConnection) -> bool:
    """Let a database be used again that was moved away. Return False if it was not."""
    moved = await source.fetch("select place from database_moves where direction = 'to'")
    if moved:
        await source.fetch("delete from database_moves where direction = 'to'")
    return bool(moved)


async def _moved_tables(source: TableConnection, target: TableConnection) -> list[Table]:
    """Return the tables of the source, in the order in which they are copied.

    Raises:
        StoreError: the target has other tables or columns.
    """
    theirs = {table.name: table for table in await target.list_tables()}
    tables = [one for one in await source.list_tables() if one.name not in NOT_MOVED]
    for table in tables:
        other = theirs.get(table.name)
        if other is None or set(other.columns) != set(table.columns) or other.key != table.key:
            raise StoreError(
                f"The table {table.name} is not the same in {source.place} and {target.place}."
                " Use the same version of Larkspur for both. Nothing was moved."
            )
    return tables


async def _find_begun(target: TableConnection) -> _Begun | None:
    rows = await target.fetch(
        "select place, epoch, finished from database_moves where direction = 'from'"
    )
    return _Begun(*rows[0]) if rows else None


async def _begin(
    source: TableConnection, target: TableConnection, tables: list[Table], epoch: str
) -> None:
    async with target.transaction():
        await _check_empty(target, tables)
        await target.fetch("delete from event_log")
        await target.fetch(
            "insert into database_moves (direction, place, epoch, started)"
            " values ('from', $1, $2, $3)",
            *(source.place, epoch, rfc3339(datetime.now(UTC))),
        )


async def _check_empty(target: TableConnection, tables: list[Table]) -> None:
    """Check that the target contains only the rows that its creation stored.

    Raises:
        Conflict: it contains other rows.
    """
    used = [
        table.name
        for table in tables
        if table.name != "event_log" and await count_rows(target, table)
    ]
    ((head, arrivals),) = await target.fetch("select head, arrivals from event_log")
    if used or head or arrivals:
        raise Conflict(
            f"The database {target.place} is not empty (it has rows in {', '.join(used[:3])}"
            f"{' …' * (len(used) > 3)}). Nothing was moved. Choose an empty one."  # noqa: PLR2004 - shown
        )


async def _copy(
    source: TableConnection,
    target: TableConnection,
    table: Table,
    report: Report,
    *,
    page_rows: int,
) -> None:
    """Copy the rows of a table that are not there yet."""
    rows = await target.fetch(
        "select state, last_key from database_move_tables where name = $1", table.name
    )
    state, last = rows[0] if rows else ("", "")
    if state == "copied":
        return
    if not rows:
        await target.fetch(
            "insert into database_move_tables (name, state, last_key) values ($1, 'copying', '')",
            table.name,
        )
    try:
        copied = await _copy_after(source, target, table, last, page_rows=page_rows)
    except StoreUnavailable:
        raise
    except StoreError:  # the source was changed since, so that rows contradict each other
        if not last:
            raise
        await _clear(target, table)
        await _copy(source, target, table, report, page_rows=page_rows)
    else:
        if copied:
            report(f"{table.name}: {copied:,} rows copied")


async def _copy_after(
    source: TableConnection,
    target: TableConnection,
    table: Table,
    last: str,
    *,
    page_rows: int,
) -> int:
    """Copy the rows after a key, "" for all, and return their number."""
    copied = 0
    after = tuple(json.loads(last)) if last else None
    async for page in source.stream(table, after, page_rows=page_rows):
        key = json.dumps(table.key_of(page[-1]), ensure_ascii=False)
        async with target.transaction():
            await target.insert(table, page)
            await _record(target, table, last, key, state="copying")
        last, copied = key, copied + len(page)
    async with target.transaction():
        await _record(target, table, last, last, state="copied")
    return copied


async def _clear(target: TableConnection, table: Table) -> None:
    async with target.transaction():
        await target.fetch(f"delete from {table.name}")  # noqa: S608 - of the schema
        await target.fetch("delete from database_move_tables where name = $1", table.name)


async def _record(
    target: TableConnection, table: Table, before: str, last: str, *, state: str
) -> None:
    """Store how far the move of a table has come.

    Raises:
        Conflict: another process continues the same move.
    """
    rows = await target.fetch(
        "update database_move_tables set state = $2, last_key = $4"
        " where name = $1 and last_key = $3 returning name",
        *(table.name, state, before, last),
    )
    if not rows:
        raise Conflict(f"Another process moves rows to {target.place}. Wait until it has ended.")


async def _verify(
    source: TableConnection,
    target: TableConnection,
    table: Table,
    report: Report,
    *,
    page_rows: int,
) -> None:
    """Compare the rows of a table, after copying it again if the source changed meanwhile.

    Raises:
        StoreError: they differ nevertheless.
    """
    expected = await take_fingerprint(source, table)
    if await take_fingerprint(target, table) == expected:
        return
    report(f"{table.name}: changed since it was copied; copied again")
    await _clear(target, table)
    await _copy(source, target, table, report, page_rows=page_rows)
    if await take_fingerprint(target, table) != expected:
        raise StoreError(
            f"The rows of {table.name} in {target.place} differ from those in {source.place}."
            " The source was not changed and remains in use. Please report this."
        )


async def _finish(target: TableConnection, tables: list[Table]) -> None:
    async with target.transaction():
        for table in tables:
            await target.continue_numbers(table)
        await target.fetch("delete from database_move_tables")
        await target.fetch(
            "update database_moves set finished = $1 where direction = 'from'",
            rfc3339(datetime.now(UTC)),
        )


async def _mark_source(source: TableConnection, target: TableConnection, epoch: str) -> None:
    await source.fetch("delete from database_moves where direction = 'to'")
    await source.fetch(
        "insert into database_moves (direction, place, epoch, started, finished)"
        " values ('to', $1, $2, $3, $3)",
        *(target.place, epoch, rfc3339(datetime.now(UTC))),
    )
