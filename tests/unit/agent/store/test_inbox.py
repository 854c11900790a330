"""The inbox."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Channel
from internal.agent.store.database import Database, Row
from internal.agent.store.inbox import Steering
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0

SESSION, RUN, NEXT = SessionId("session-1"), RunId("run-1"), RunId("run-2")


def said(
    text: str, message_id: str = "", channel: Channel = "web", app: str = ""
) -> InboundMessage:
    raw = msgspec.json.encode({"text": text, "more": 1}).decode()
    return InboundMessage(channel, app, message_id or f"msg-{text}", "chat", "ana", raw, T0)


async def take(
    database: Database,
    stores: Stores,
    message: InboundMessage,
    run: RunId = RUN,
    *,
    steer: bool = True,
) -> None:
    await database.write(lambda: stores.inbox.assign(message, SESSION, run, steer=steer))


async def untold(database: Database, stores: Stores, run: RunId = RUN) -> list[Steering]:
    return await database.read(lambda: stores.inbox.list_undelivered(run))


async def test_a_message_is_accepted_once(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    message = said("hi", "om_1", "lark", "app")

    async def accept(message: InboundMessage) -> bool:
        return await database.write(lambda: stores.inbox.accept(message))

    assert await accept(message)
    assert not await accept(msgspec.structs.replace(message, raw="{}"))
    assert await accept(msgspec.structs.replace(message, app="another"))
    assert await accept(msgspec.structs.replace(message, channel="web"))
    assert select("select raw, status from inbox order by number")[0] == (message.raw, "accepted")


async def test_steering_is_delivered_in_order_of_arrival(
    database: Database, stores: Stores
) -> None:
    for text in ("c", "a", "b"):
        await take(database, stores, said(text))
    await take(database, stores, said("start"), steer=False)
    await take(database, stores, said("other"), NEXT)

    waiting = await untold(database, stores)
    assert [words[1:] for words in waiting] == [
        (text, "ana", "web", "", "chat", f"msg-{text}") for text in ("c", "a", "b")
    ]

    await database.write(
        lambda: stores.inbox.mark_delivered([waiting[0].number, waiting[1].number])
    )
    assert await untold(database, stores) == [waiting[2]]
    await database.write(lambda: stores.inbox.mark_delivered([]))
    assert await untold(database, stores) == [waiting[2]]


async def test_an_accepted_message_is_assigned_once(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    raw = '{"content": "{}"}'
    message = msgspec.structs.replace(said("hello", "om_1", "lark"), raw=raw)
    await database.write(lambda: stores.inbox.accept(message))
    understood = said("hello", "om_1", "lark")

    await take(database, stores, understood)

    assert [words.text for words in await untold(database, stores)] == ["hello"]
    assert select("select raw from inbox") == [(raw,)], "what came stays as it came"
    with pytest.raises(Conflict):
        await take(database, stores, understood, NEXT)
    assert await untold(database, stores, NEXT) == []


async def test_invalid_characters_of_a_message_are_replaced(
    database: Database, stores: Stores
) -> None:
    raw = '{"text":"' + HOSTILE.replace("\0", "\\u0000").replace("\a", "\\u0007") + '"}'
    await take(database, stores, InboundMessage("web", "", "msg-1", "", "ana", raw, T0))

    assert [words.text for words in await untold(database, stores)] == [CLEANED]


async def test_delivered_steering_is_handled_and_undelivered_steering_is_reassigned(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    await take(database, stores, said("start"), steer=False)
    for text in ("delivered", "late"):
        await take(database, stores, said(text))
    told, late = await untold(database, stores)
    await database.write(lambda: stores.inbox.mark_delivered([told.number]))

    await database.write(lambda: stores.inbox.reassign([late.number], NEXT))
    await database.write(lambda: stores.inbox.mark_handled(RUN))

    assert await untold(database, stores) == []
    assert await untold(database, stores, NEXT) == [], "it starts the next run, it does not steer"
    rows = select("select text, run_id, status from inbox order by number")
    assert rows == [
        ("start", RUN, "handled"), ("delivered", RUN, "handled"), ("late", NEXT, "assigned"),
    ]  # fmt: skip
    await database.write(lambda: stores.inbox.mark_handled(NEXT))
    assert select("select distinct status from inbox") == [("handled",)]


async def test_undelivered_steering_is_not_handled(database: Database, stores: Stores) -> None:
    await take(database, stores, said("late"))

    await database.write(lambda: stores.inbox.mark_handled(RUN))

    assert [words.text for words in await untold(database, stores)] == ["late"]


async def test_accepted_messages_are_listed_until_assigned(
    database: Database, stores: Stores
) -> None:
    messages = [said(text, channel="lark", app="a") for text in ("one", "two", "three")]
    for message in (*messages, said("other", channel="lark", app="b"), said("web")):
        await database.write(partial(stores.inbox.accept, message))

    async def waiting(limit: int = 9) -> list[InboundMessage]:
        return await database.read(lambda: stores.inbox.list_accepted("lark", "a", limit))

    assert await waiting() == messages
    assert await waiting(1) == messages[:1]
    await take(database, stores, messages[0])
    assert await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-two"))
    assert not await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-two"))
    assert not await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-one"))
    assert await waiting() == messages[2:]
