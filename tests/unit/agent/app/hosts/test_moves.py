"""Moving a session to another host."""

from functools import partial

import pytest

from internal.agent.app.hosts.moves import MovedSession, move_session
from internal.agent.domain.errors import Conflict, NotFound
from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.files import HostRow, WorkspaceArchive
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, a_run, a_session, add_running_run

ID = SessionId("session-1")
ARCHIVE = WorkspaceArchive("v1", "hash-1", T0)


async def move(database: Database, stores: Stores, host: str) -> MovedSession:
    return await database.write(
        partial(move_session, stores, ID, host, by="local", via="cli", now=T0, version="v2")
    )


@pytest.fixture
async def bound(database: Database, stores: Stores) -> None:
    await database.write(lambda: stores.sessions.add(a_session(ID)))
    await database.write(partial(stores.hosts.bind, ID, "one"))
    await database.write(partial(stores.hosts.save_archive, ID, ARCHIVE))
    for name in ("one", "two"):
        await database.write(partial(stores.hosts.save, HostRow(name, name, T0)))


@pytest.mark.usefixtures("bound")
async def test_a_move_tells_where_the_files_are_and_is_recorded(
    database: Database, stores: Stores
) -> None:
    assert await move(database, stores, "two") == MovedSession("one", ARCHIVE)
    assert (await move(database, stores, "")).previous == "two"
    entries = await database.read(partial(stores.audit.list_page, 9))
    details = [each.detail for each in entries]
    assert sorted(details) == ["one -> two", "two -> any"]


@pytest.mark.usefixtures("bound")
async def test_a_session_is_not_moved_to_an_unknown_host_or_from_a_running_run(
    database: Database, stores: Stores
) -> None:
    with pytest.raises(NotFound, match="There is no host six; known hosts: one, two"):
        await move(database, stores, "six")
    await add_running_run(database, stores, a_run(session_id=ID))
    with pytest.raises(Conflict, match="running on host one: wait for it, or stop it first"):
        await move(database, stores, "two")
    assert await database.read(partial(stores.hosts.get_of_session, ID)) == "one"
