"""The status of every kind of database."""

from functools import partial

from internal.agent.store.runs import ProcessEntry
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from internal.storage.maintenance.interface import DatabaseMaintenance
from internal.storage.maintenance.status import read_content
from tests.support.new_databases import NewDatabase
from tests.support.store_records import T0, a_run, a_session, add_running_run, append_events


async def test_an_empty_database(maintenance: DatabaseMaintenance) -> None:
    async with maintenance.snapshot() as tables:
        content = await read_content(tables, (await maintenance.read_sizes()).tables)
    assert content.schema == maintenance.newest_version
    assert (content.oldest_event, content.newest_event) == ("", "")
    assert (content.runs, content.processes) == ({}, [])
    assert all(table.size for table in content.tables)


async def test_rows_runs_events_and_processes_are_shown_beside_a_process(
    new_database: NewDatabase,
) -> None:
    stores = Stores()
    async with open_database(new_database.address) as database:
        await database.write(partial(stores.sessions.add, a_session()))
        run = await add_running_run(database, stores, a_run(), owner="worker")
        await database.write(partial(append_events, stores, run, 3))
        entry = ProcessEntry("gateway-1", "gateway", "host", 1, "1.2.3", T0, T0)
        await database.write(partial(stores.processes.add, entry))
        async with new_database.maintenance.snapshot() as tables:
            content = await read_content(tables, {})
    rows = {table.name: table.rows for table in content.tables}
    assert (rows["sessions"], rows["events"], rows["inbox"]) == (1, 3, 0)
    assert content.oldest_event == content.newest_event == T0
    assert content.runs == {"running": 1}
    assert content.processes == ["gateway-1", "worker"]
    assert {table.size for table in content.tables} == {None}
