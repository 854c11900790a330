"""Statements of retention, on every kind of database."""

from functools import partial

from internal.agent.domain.ids import SessionId
from internal.agent.store.database import Database
from internal.agent.store.retention.expired_rows import MAX_ROWS, IdleSession, RowPage
from internal.agent.store.stores import Stores
from tests.support.ended_runs import add_ended_run
from tests.support.store_records import (
    T0,
    T1,
    T2,
    a_run,
    a_session,
    add_running_run,
    append_events,
)

FIRST = IdleSession("", SessionId(""))


async def test_a_page_ends_after_the_limit_and_continues(
    database: Database, stores: Stores
) -> None:
    await database.write(partial(stores.sessions.add, a_session()))
    run = await add_running_run(database, stores, a_run())
    await database.write(partial(append_events, stores, run, MAX_ROWS + 1))

    async def page(after: int, before: str) -> RowPage:
        return await database.read(partial(stores.retention.list_page, "events", after, before))

    assert await page(0, T0) == RowPage(MAX_ROWS, [], has_old=False)
    assert await page(0, T1) == RowPage(MAX_ROWS, [], has_old=True), "the run is not finished"
    assert await page(MAX_ROWS, T1) == RowPage(MAX_ROWS + 1, [], has_old=True)
    assert await page(MAX_ROWS + 1, T1) == RowPage(None, [], has_old=False)


async def test_idle_sessions_are_listed_by_their_last_activity(
    database: Database, stores: Stores
) -> None:
    for name, updated in (("a", T1), ("b", T0), ("c", T2)):
        session = a_session(f"session-{name}", updated=updated)
        await database.write(partial(stores.sessions.add, session))

    async def idle(before: str, after: IdleSession = FIRST) -> list[IdleSession]:
        work = partial(stores.retention.list_idle_sessions, before, after, one_shot=False)
        return await database.read(work)

    first, second = IdleSession(T0, SessionId("session-b")), IdleSession(T1, SessionId("session-a"))
    assert await idle(T2) == [first, second]
    assert await idle(T2, first) == [second]
    assert await idle(T0) == []


async def test_the_content_of_a_session_is_removed_in_parts(
    database: Database, stores: Stores
) -> None:
    session_id = SessionId("session-1")
    await database.write(partial(stores.sessions.add, a_session(session_id)))
    remove = partial(stores.retention.remove_content, session_id, T1)
    assert await database.write(remove) is False
    run = await add_running_run(database, stores, a_run())
    await database.write(partial(append_events, stores, run, 3))
    assert await database.write(remove) is False, "its run is not finished"
    assert len(await database.read(partial(stores.events.list_by_run, run.id))) == 3


async def test_a_transaction_removes_few_rows_of_a_large_session(
    database: Database, stores: Stores
) -> None:
    run = await add_ended_run(database, stores, "a", events=2 * MAX_ROWS + 1)
    remove = partial(stores.retention.remove_content, run.session_id, T2)
    left = []
    while await database.write(remove):
        left.append(len(await database.read(partial(stores.events.list_by_run, run.id))))
    assert left[:3] == [MAX_ROWS + 1, 1, 0]
    assert await database.read(partial(stores.retention.is_idle, run.session_id, T2))
