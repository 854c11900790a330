"""The status of a database: its contents and the processes that use it."""

from collections.abc import Collection
from typing import NamedTuple

from internal.agent.ports.maintenance.reports import TableSize
from internal.storage.maintenance.tables import TableConnection, count_rows


class Content(NamedTuple):
    """Contents of the tables of a database; see `DatabaseStatus`."""

    schema: int
    tables: list[TableSize]
    oldest_event: str
    newest_event: str
    runs: dict[str, int]
    processes: list[str]


async def read_content(tables: TableConnection, sizes: dict[str, int]) -> Content:
    """Return the contents of the tables; `sizes` has the bytes of each table with a known size."""
    found = await tables.list_tables()
    names = {table.name for table in found}
    ((schema,),) = await tables.fetch("select max(number) from schema_migrations")
    sized = [
        TableSize(table.name, await count_rows(tables, table), sizes.get(table.name))
        for table in found
    ]
    runs = await tables.fetch("select status, count(*) from runs group by status order by status")
    owners = await tables.fetch(
        "select distinct owner from runs where status in ('queued', 'running', 'waiting')"
        " and owner <> ''"
    )
    if "processes" in names:
        owners += await tables.fetch("select owner from processes")
    return Content(
        int(schema),
        sized,
        await _event_time(tables, "", names),
        await _event_time(tables, "desc", names),
        {status: int(count) for status, count in runs},
        sorted({owner for (owner,) in owners}),
    )


async def _event_time(tables: TableConnection, order: str, names: Collection[str]) -> str:
    """Return the time of the first event in the order of positions, "" if there is none."""
    found = []
    for table in ("earlier_events", "events"):
        if table in names:
            sql = f"select position, ts from {table} order by position {order} limit 1"  # noqa: S608 - constants
            found += await tables.fetch(sql)
    found.sort(reverse=order == "desc")
    return str(found[0][1]) if found else ""
