"""The inbox and the outbox as chat channels use them."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.domain.chats import InboundMessage, OutgoingMessage
from internal.agent.domain.events.types import ResultCancelled
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.store.stores import Stores
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.store_records import T0, a_run, a_session, a_task, append

MESSAGE = InboundMessage("echo", "a", "m1", "chat", "echo:a:mei", "{}", T0)
REPLY = OutgoingMessage("m1:note", "echo", "a", "chat", "m1", "hello")


class MovableClock(SystemClock):
    """A clock that tests can set forward."""

    offset = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset


class Delivery(ChatDelivery):
    """The service and what it works on."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database, self.stores, self.clock = database, Stores(), MovableClock()
        super().__init__(database, self.stores, self.clock)

    async def add(self, outgoing: OutgoingMessage) -> int:
        await self.database.write(partial(self.stores.outbox.add, outgoing, T0))
        pending = await self.list_due(outgoing.channel, outgoing.app, 10)
        return next(each.number for each in pending if each.outgoing.key == outgoing.key)


@pytest.fixture
async def delivery(tmp_path: Path) -> AsyncGenerator[Delivery]:
    async with open_database(tmp_path / "larkspur.db") as database:
        yield Delivery(database)


async def test_a_message_is_accepted_once(delivery: Delivery) -> None:
    assert not await delivery.is_known("echo", "a", "m1")
    assert await delivery.accept(MESSAGE)
    assert not await delivery.accept(MESSAGE)
    assert await delivery.is_known("echo", "a", "m1")
    assert await delivery.list_accepted("echo", "a", 10) == [MESSAGE]
    assert await delivery.list_accepted("echo", "b", 10) == []


async def test_a_postponed_message_is_due_later(delivery: Delivery) -> None:
    number = await delivery.add(REPLY)
    assert await delivery.begin_attempt(number)
    await delivery.postpone(number, 60.0, "busy")
    assert await delivery.list_due("echo", "a", 10) == []
    delivery.clock.offset = timedelta(seconds=61)
    [pending] = await delivery.list_due("echo", "a", 10)
    assert pending.attempts == 1
    assert pending.first_attempt is not None


async def test_a_sent_message_is_settled(delivery: Delivery) -> None:
    number = await delivery.add(REPLY)
    await delivery.mark_sent(number, "post-1")
    assert not await delivery.begin_attempt(number)
    assert await delivery.list_due("echo", "a", 10) == []


async def test_dead_letters_are_counted_by_app(delivery: Delivery) -> None:
    number = await delivery.add(REPLY)
    await delivery.give_up(number, "rejected", unconfirmed=False)
    assert await delivery.count_dead_letters("echo", "a") == 1
    assert await delivery.count_dead_letters("echo", "b") == 0


async def test_the_context_of_a_reply_has_the_reason_of_a_stop(delivery: Delivery) -> None:
    stores, run = delivery.stores, a_run()
    cancelled = ResultCancelled(
        reason="no longer needed", requested_by="local", requested_via="web"
    )
    for work in (
        partial(stores.sessions.add, a_session()),
        partial(stores.tasks.add, a_task(), None),
        partial(stores.runs.add, run, T0),
        partial(append, stores, run, 1, cancelled),
    ):
        await delivery.database.write(work)
    reply = OutgoingMessage("k", "echo", "a", "chat", "m1", "", run.id, "user_stop")
    assert await delivery.get_reply_context(reply) == ("count", "no longer needed")
    final = OutgoingMessage("k", "echo", "a", "chat", "m1", "", run.id, "final_answer")
    assert await delivery.get_reply_context(final) == ("count", "")


async def test_without_a_run_or_a_question_there_is_no_context(delivery: Delivery) -> None:
    assert await delivery.get_reply_context(REPLY) == ("", "")
    other = OutgoingMessage("k", "echo", "a", "chat", "m1", "", RunId("run-9"), "error")
    assert await delivery.get_reply_context(other) == ("", "")
    assert await delivery.get_question(QuestionId("question-9")) is None
    assert await delivery.find_question("post-9") == ""
