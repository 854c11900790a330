"""The outbox."""

from functools import partial

import msgspec

from internal.agent.domain.chats import DeadLetter, OutgoingMessage, PendingMessage, RunDisplay
from internal.agent.domain.ids import RunId
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_facts import HARMLESS, HOSTILE, T0, T1, T2, T3

DOOR = "lark:app"
RUN = RunId("run-1")


def reply(number: int, chat: str = "chat", app: str = "app") -> OutgoingMessage:
    return OutgoingMessage(
        f"run-{number}:answer", "lark", app, chat, f"om_{number}", "body", f"run-{number}"
    )


async def promised(database: Database, stores: Stores, *replies: OutgoingMessage) -> None:
    for each in replies:
        assert await database.write(partial(stores.outbox.add, each, T0))


async def due(database: Database, stores: Stores, now: str = T1) -> list[PendingMessage]:
    return await database.read(lambda: stores.outbox.list_due("lark", "app", now=now, limit=10))


async def test_a_message_is_added_once(database: Database, stores: Stores) -> None:
    first = msgspec.structs.replace(
        reply(1), body=HOSTILE, error=HOSTILE, stop_reason="final_answer"
    )
    await promised(database, stores, first)
    assert not await database.write(lambda: stores.outbox.add(first, T1))
    ((number, outgoing, attempts, first_attempt),) = await due(database, stores)
    assert outgoing == msgspec.structs.replace(first, body=HARMLESS, error=HARMLESS)
    assert (number, attempts, first_attempt) == (1, 0, None)


async def test_messages_of_a_chat_are_due_in_order(database: Database, stores: Stores) -> None:
    await promised(database, stores, reply(1), reply(2), reply(3, "other"), reply(4, app="app-2"))

    async def numbers(now: str = T1) -> list[int]:
        return [pending.number for pending in await due(database, stores, now)]

    assert await numbers() == [1, 3]
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T1)) == 1
    await database.write(lambda: stores.outbox.postpone(1, T2, "busy"))
    assert await numbers() == [3]
    assert await numbers(T2) == [1, 3]
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T2)) == 2
    first = (await due(database, stores, T2))[0]
    assert (first.attempts, first.first_attempt) == (2, T1)
    assert await database.write(lambda: stores.outbox.mark_sent(1, "om_reply", T2))
    assert not await database.write(lambda: stores.outbox.mark_sent(1, "om_again", T2))
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T3)) is None
    assert await numbers(T2) == [2, 3]


async def test_dead_letters_are_listed_and_do_not_block(database: Database, stores: Stores) -> None:
    await promised(database, stores, reply(1), reply(2), reply(3))
    assert await database.write(
        lambda: stores.outbox.give_up(1, "no such chat", T1, unconfirmed=False)
    )
    assert await database.write(lambda: stores.outbox.give_up(2, "no answer", T2, unconfirmed=True))
    assert not await database.write(lambda: stores.outbox.give_up(2, "again", T2, unconfirmed=True))
    assert [pending.number for pending in await due(database, stores)] == [3]
    assert await database.read(lambda: stores.outbox.list_dead_letters(9)) == [
        DeadLetter(2, reply(2), unconfirmed=True, failure="no answer", settled=T2),
        DeadLetter(1, reply(1), unconfirmed=False, failure="no such chat", settled=T1),
    ]


async def test_a_run_display_has_one_owner(database: Database, stores: Stores) -> None:
    async def claim(owner: str, now: str, until: str = T2) -> RunDisplay | None:
        return await database.write(
            lambda: stores.run_displays.claim(RUN, DOOR, owner, lease_until=until, now=now)
        )

    assert await claim("one", T0) == RunDisplay(RUN, 0, "")
    assert await claim("two", T1) is None
    kept = RunDisplay(RUN, 7, '{"card": "om_1"}')
    assert await database.write(lambda: stores.run_displays.save(kept, DOOR, "one", lease_until=T2))
    assert not await database.write(
        lambda: stores.run_displays.save(kept, DOOR, "two", lease_until=T2)
    )
    assert await claim("one", T1) == kept
    assert await claim("two", T3, "2027") == kept
    assert not await database.write(
        lambda: stores.run_displays.save(kept, DOOR, "one", lease_until=T2)
    )
    assert not await database.write(lambda: stores.run_displays.close(kept, DOOR, "one"))
    assert await database.write(lambda: stores.run_displays.close(kept, DOOR, "two"))
    assert await claim("two", T3, "2028") is None


async def test_an_abandoned_run_display_is_listed(database: Database, stores: Stores) -> None:
    for run, owner, until in (("run-1", "dead", T1), ("run-2", "alive", T3)):
        claim = partial(
            stores.run_displays.claim, RunId(run), DOOR, owner, lease_until=until, now=T0
        )
        await database.write(claim)
    found = await database.read(lambda: stores.run_displays.list_abandoned(DOOR, T2))
    assert found == [RunDisplay(RUN, 0, "")]
    assert await database.read(lambda: stores.run_displays.list_abandoned("elsewhere", T2)) == []
