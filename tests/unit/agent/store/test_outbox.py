"""The outbox."""

from functools import partial

import msgspec

from internal.agent.domain.chats import DeadLetter, OutgoingMessage, PendingMessage
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, T2, T3


def reply(number: int, chat: str = "chat", app: str = "app") -> OutgoingMessage:
    return OutgoingMessage(
        f"run-{number}:answer", "lark", app, chat, f"om_{number}", "body", f"run-{number}"
    )


async def add_messages(database: Database, stores: Stores, *replies: OutgoingMessage) -> None:
    for each in replies:
        assert await database.write(partial(stores.outbox.add, each, T0))


async def due(database: Database, stores: Stores, now: str = T1) -> list[PendingMessage]:
    return await database.read(lambda: stores.outbox.list_due("lark", "app", now=now, limit=10))


async def test_a_message_is_added_once(database: Database, stores: Stores) -> None:
    first = msgspec.structs.replace(
        reply(1), body=HOSTILE, error=HOSTILE, stop_reason="final_answer"
    )
    await add_messages(database, stores, first)
    assert not await database.write(lambda: stores.outbox.add(first, T1))
    ((number, outgoing, attempts, first_attempt),) = await due(database, stores)
    assert outgoing == msgspec.structs.replace(first, body=CLEANED, error=CLEANED)
    assert (number, attempts, first_attempt) == (1, 0, None)


async def test_messages_of_a_chat_are_due_in_order(database: Database, stores: Stores) -> None:
    await add_messages(
        database, stores, reply(1), reply(2), reply(3, "other"), reply(4, app="app-2")
    )

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
    await add_messages(database, stores, reply(1), reply(2), reply(3))
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


async def test_the_question_of_a_sent_message_is_found(database: Database, stores: Stores) -> None:
    question = OutgoingMessage(
        "question-1:asked", "lark", "cli_a", "oc_1", "om_0", "May I?", question_id="question-1"
    )
    answer = msgspec.structs.replace(question, key="run-1:answer", question_id="")
    for number, outgoing in enumerate((question, answer), 1):
        await database.write(partial(stores.outbox.add, outgoing, T0))
        assert await database.read(partial(stores.outbox.find_question, f"om_{number}")) == ""
        await database.write(partial(stores.outbox.mark_sent, number, f"om_{number}", T1))
    assert await database.read(partial(stores.outbox.find_question, "om_1")) == "question-1"
    assert await database.read(partial(stores.outbox.find_question, "om_2")) == ""
    assert await database.read(partial(stores.outbox.find_question, "")) == ""
