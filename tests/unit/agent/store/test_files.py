"""Uses of attachments and pending removals, on every kind of database."""

from functools import partial

from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, T2

A, B = SessionId("session-a"), SessionId("session-b")


async def removals(database: Database, stores: Stores) -> list[str]:
    return await database.read(partial(stores.files.list_removals, "attachment"))


async def test_what_only_a_deleted_session_used_is_to_be_removed(
    database: Database, stores: Stores
) -> None:
    files = stores.files
    for sha256, session_id in (("1", A), ("2", A), ("2", B), ("3", A), ("3", A)):
        await database.write(partial(files.add_use, sha256, session_id))
    await database.write(partial(files.release_session, A))
    assert await removals(database, stores) == ["1", "3"]
    assert await database.read(partial(files.list_removals, "workspace")) == [A]
    await database.write(partial(files.add_use, "1", B))
    begin = partial(files.begin_removal, lost_before=T0)
    assert not await database.write(partial(begin, "1", T1))
    assert await database.write(partial(begin, "3", T1))
    assert await removals(database, stores) == ["3"]
    await database.write(partial(files.end_removal, "attachment", "3"))
    assert await removals(database, stores) == []


async def test_an_upload_ends_with_its_task_or_its_time(database: Database, stores: Stores) -> None:
    files = stores.files
    for sha256 in ("1", "2"):
        await database.write(partial(files.add_upload, sha256, "local", T0))
    await database.write(partial(files.add_use, "1", A))
    await database.write(partial(files.end_upload, "1", "local"))
    assert not await database.read(partial(files.has_expired, T0))
    assert await database.read(partial(files.has_expired, T1))
    await database.write(partial(files.release_expired, T1))
    assert await removals(database, stores) == ["2"]
    assert not await database.read(partial(files.has_expired, T1))


async def test_a_removal_is_done_by_one_process_until_it_is_lost(
    database: Database, stores: Stores
) -> None:
    files = stores.files
    first = partial(files.begin_removal, "1", T1, lost_before=T0)
    again = partial(files.begin_removal, "1", T2, lost_before=T1)
    listed = partial(files.list_removals, "attachment", lost_before=T0)
    assert await database.write(first)
    assert not await database.write(first)
    assert await database.read(partial(files.is_being_removed, "1", T0))
    assert not await database.read(partial(files.is_being_removed, "1", T1))
    assert await database.read(listed) == []
    assert await database.write(again)
    await database.write(partial(files.add_use, "1", A))  # while it is being removed
    assert not await database.write(partial(files.begin_removal, "1", T2, lost_before=T1))
    assert await removals(database, stores) == ["1"]
    assert not await database.write(partial(files.begin_removal, "1", T2, lost_before=T2))
    assert await removals(database, stores) == []
