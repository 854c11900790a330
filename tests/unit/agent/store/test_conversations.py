"""Transcripts of conversations, and the sessions that continue them."""

from functools import partial

from internal.agent.domain.ids import RunId, SessionId
from internal.agent.store.conversations import StoredConversation
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1

FIRST = StoredConversation(SessionId("session-1"), RunId("run-1"), asks=False, is_taken=False)
SECOND = StoredConversation(SessionId("session-2"), RunId("run-2"), asks=True, is_taken=False)


async def test_a_session_is_taken_once_the_newest_first(database: Database, stores: Stores) -> None:
    store = stores.conversations

    async def take(principal: str = "ann") -> StoredConversation | None:
        return await database.write(partial(store.take, principal, "abc"))

    await database.write(partial(store.put, "ann", ["abc", "abd"], FIRST, now=T0))
    await database.write(partial(store.put, "ann", ["abc"], SECOND, now=T1))
    assert await take("ben") is None
    assert await database.read(partial(store.is_known, "ann", "abd"))
    assert not await database.read(partial(store.is_known, "ben", "abd"))
    assert await take() == SECOND
    assert await take() == FIRST
    assert await take() == SECOND._replace(is_taken=True)
    await database.write(partial(store.put, "ann", ["abc"], FIRST, now=T1))  # said once more
    assert await take() == SECOND._replace(is_taken=True)
    await database.write(partial(store.release, "ann", "abc", FIRST.session_id))
    assert await take() == FIRST


async def test_a_later_run_with_the_same_transcript_is_new(
    database: Database, stores: Stores
) -> None:
    store, later = stores.conversations, FIRST._replace(run_id=RunId("run-3"))
    await database.write(partial(store.put, "ann", ["abc"], FIRST, now=T0))
    await database.write(partial(store.take, "ann", "abc"))
    await database.write(partial(store.put, "ann", ["abc"], later, now=T1))
    assert await database.write(partial(store.take, "ann", "abc")) == later
