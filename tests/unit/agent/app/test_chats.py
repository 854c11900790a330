"""Settings of chats, and delivery of messages."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.app.chat_delivery import Acceptance, ChatDelivery, MessageFacts, ReplyContext
from internal.agent.app.chats import Chats
from internal.agent.domain.chats import (
    AcceptedMessage,
    ChatSettings,
    InboundMessage,
    OutgoingMessage,
)
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.events.types import (
    DiagnosticError,
    InputReceived,
    Notice,
    ResultCancelled,
)
from internal.agent.domain.ids import QuestionId, RunId
from internal.agent.domain.principals import RoleAssignment
from internal.agent.domain.tasks import Origin
from internal.agent.store.database import Database
from internal.agent.store.runs import LeaderFence
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.movable_clock import MovableClock
from tests.support.store_records import T0, a_run, a_session, a_task, append


@pytest.fixture
async def chats(tmp_path: Path) -> AsyncGenerator[Chats]:
    stores = Stores()
    async with open_database(tmp_path / "larkspur.db") as database:
        session = a_session(channel="echo", scope="echo-1")
        await database.write(partial(stores.sessions.add, session))
        await database.write(partial(stores.tasks.add, a_task(), None))
        await database.write(partial(stores.runs.add, a_run(), T0))
        yield Chats(database, stores)


async def test_a_direct_chat_is_found_by_its_person(chats: Chats) -> None:
    person = "echo:a:mei"
    assert await chats.find_direct("echo", "a", person) == ""
    await chats.count_bot_turn("echo", "a", "direct")  # the chat was known without its person
    for _ in range(2):
        await chats.add_direct("echo", "a", "direct", person)
    assert await chats.find_direct("echo", "a", person) == "direct"
    assert await chats.find_direct("echo", "b", person) == ""


async def test_messages_of_bots_are_counted_until_a_person_writes(chats: Chats) -> None:
    place = ("echo", "a", "group")
    await chats.end_bot_turns(*place)
    assert [await chats.count_bot_turn(*place) for _ in range(3)] == [1, 2, 3]
    await chats.end_bot_turns(*place)
    assert await chats.count_bot_turn(*place) == 1
    assert await chats.count_bot_turn("echo", "a", "other") == 1


async def test_settings_are_replaced(chats: Chats) -> None:
    assert await chats.get_settings("echo:a:1") == ChatSettings()
    await chats.save_settings("echo:a:1", ChatSettings("always", "big-1"))
    assert await chats.get_settings("echo:a:1") == ChatSettings("always", "big-1")
    assert await chats.get_settings("echo:a:2") == ChatSettings()


async def test_the_current_session_and_its_unfinished_runs(chats: Chats) -> None:
    assert [task.id for task in await chats.list_newest("echo", "echo-1", 5)] == ["task-1"]
    assert await chats.get_usage("echo", "echo-1") is None
    [(run, task)] = await chats.list_unfinished("echo", "echo-1")
    assert (run.id, task.instruction) == ("run-1", "count")
    assert await chats.list_newest("echo", "echo-2", 5) == []
    assert await chats.get_usage("echo", "echo-2") is None
    assert await chats.list_unfinished("echo", "echo-2") == []


@pytest.mark.parametrize(("name", "found"), [("run-1", True), ("task-1", True), ("run-9", False)])
async def test_a_run_is_found_by_its_id_or_its_task(chats: Chats, name: str, found: bool) -> None:
    assert (await chats.find_run(name) is not None) is found


MESSAGE = InboundMessage("echo", "a", "m1", "chat", "echo:a:mei", "{}", T0)
REPLY = OutgoingMessage("m1:note", "echo", "a", "chat", "m1", "hello")


class Delivery(ChatDelivery):
    """The service with its database, stores and clock."""

    def __init__(self, database: Database) -> None:
        self.database, self.stores, self.clock = database, Stores(), MovableClock()
        super().__init__(database, self.stores, self.clock)

    async def add(self, outgoing: OutgoingMessage) -> int:
        now = rfc3339(self.clock.now())
        await self.database.write(partial(self.stores.outbox.add, outgoing, now))
        pending = await self.list_due(outgoing.channel, outgoing.app, 10)
        return next(each.number for each in pending if each.outgoing.key == outgoing.key)


@pytest.fixture
async def delivery(tmp_path: Path) -> AsyncGenerator[Delivery]:
    async with open_database(tmp_path / "larkspur.db") as database:
        yield Delivery(database)


async def test_a_message_is_accepted_once(delivery: Delivery) -> None:
    assert await asyncio.wrap_future(delivery.accept(MESSAGE)) is Acceptance.WAITS
    assert await asyncio.wrap_future(delivery.accept(MESSAGE)) is Acceptance.KNOWN
    assert await delivery.list_accepted("echo", "a", 10) == [AcceptedMessage(MESSAGE)]
    assert await delivery.list_accepted("echo", "b", 10) == []


async def test_the_first_attempt_begins_with_the_acceptance_of_the_leader(
    delivery: Delivery,
) -> None:
    claim = partial(delivery.stores.leaderships.claim, "echo:a", "this process", "9999", None)
    fence = await delivery.database.write(claim)
    assert fence is not None
    later = structs.replace(MESSAGE, message_id="m2")
    elsewhere = structs.replace(MESSAGE, message_id="m3", chat_id="other")
    of_another = LeaderFence(fence.name, fence.fence + 1)
    accept = partial(delivery.accept, wait=5.0)
    for message, leader, outcome in (
        (MESSAGE, fence, Acceptance.BEGUN),
        (later, fence, Acceptance.WAITS),  # until the earlier message of the chat is settled
        (elsewhere, of_another, Acceptance.WAITS),
        (MESSAGE, fence, Acceptance.KNOWN),
    ):
        assert await asyncio.wrap_future(accept(message, leader=leader)) is outcome
    found = await delivery.list_accepted("echo", "a", 10)
    assert [each.attempts for each in found] == [1, 0, 0]
    assert 0 < delivery.seconds_until_due(found[0]) <= 5
    assert await delivery.get_facts(MESSAGE) == MessageFacts(False, frozenset(), [], ChatSettings())


async def test_a_message_waits_for_its_next_attempt(delivery: Delivery) -> None:
    await asyncio.wrap_future(delivery.accept(MESSAGE))

    async def accepted() -> AcceptedMessage:
        [found] = await delivery.list_accepted("echo", "a", 10)
        return found

    assert delivery.seconds_until_due(await accepted()) == 0
    assert await delivery.begin_processing(await accepted(), 5.0)
    assert 0 < delivery.seconds_until_due(await accepted()) <= 5
    delivery.clock.offset = timedelta(seconds=6)
    assert delivery.seconds_until_due(await accepted()) < 0
    delivery.clock.offset = timedelta(hours=-1)
    assert delivery.seconds_until_due(await accepted()) == 0, "the clock was set back"


async def test_the_messages_of_a_chat_are_processed_in_order(delivery: Delivery) -> None:
    later, elsewhere = (
        structs.replace(MESSAGE, message_id="m2"),
        structs.replace(MESSAGE, message_id="m3", chat_id="other"),
    )
    for each in (MESSAGE, later, elsewhere):
        await asyncio.wrap_future(delivery.accept(each))
    assert await delivery.begin_processing(AcceptedMessage(later), 5.0) is None
    assert await delivery.begin_processing(AcceptedMessage(elsewhere), 5.0) is not None
    assert await delivery.begin_processing(AcceptedMessage(MESSAGE), 5.0) is not None
    await delivery.set_aside(AcceptedMessage(MESSAGE, 1), "broke")
    assert await delivery.begin_processing(AcceptedMessage(later), 5.0) is not None


async def test_what_is_stored_of_a_message_is_known_when_its_processing_begins(
    delivery: Delivery,
) -> None:
    recall = structs.replace(MESSAGE, message_id="recall:m1")
    stores, role = delivery.stores, RoleAssignment(MESSAGE.principal, "Mei", "operate", "cli", T0)
    for each in (MESSAGE, recall):
        await asyncio.wrap_future(delivery.accept(each))
    await delivery.database.write(partial(stores.roles.assign, role))
    settings = ChatSettings(model="big-1")
    await delivery.database.write(partial(stores.chats.save_settings, "echo:a:chat", settings))
    begin = partial(delivery.begin_processing, AcceptedMessage(MESSAGE), 5.0)
    facts = await begin(recall="recall:m1")
    assert facts == MessageFacts(True, frozenset({"talk", "operate"}), [], settings)
    facts = await begin(recall="recall:m2")
    assert facts is not None
    assert not facts.is_recalled


async def test_an_attempt_that_was_stopped_does_not_count(delivery: Delivery) -> None:
    await asyncio.wrap_future(delivery.accept(MESSAGE))
    before = AcceptedMessage(MESSAGE)
    assert await delivery.begin_processing(before, 5.0)
    delivery.undo_attempt(before)
    await delivery.drop("echo", "a", "chat", "the writes before it are stored when it is")
    assert await delivery.list_accepted("echo", "a", 10) == [before]


async def test_a_message_that_is_set_aside_is_answered_once(delivery: Delivery) -> None:
    await asyncio.wrap_future(delivery.accept(MESSAGE))
    accepted = AcceptedMessage(MESSAGE, 3)
    for _ in range(2):
        await delivery.set_aside(accepted, "broke", text="words", reply=REPLY)
    [due] = await delivery.list_due("echo", "a", 10)
    assert due.outgoing == REPLY
    assert await delivery.list_accepted("echo", "a", 10) == []
    assert not await delivery.begin_processing(accepted, 5.0)


async def test_a_postponed_message_is_due_later(delivery: Delivery) -> None:
    number = await delivery.add(REPLY)
    assert [each.pending.number for each in await delivery.begin_due("echo", "a", 10)] == [number]
    await delivery.postpone(number, 60.0, "busy", unconfirmed=False)
    assert await delivery.list_due("echo", "a", 10) == []
    delivery.clock.offset = timedelta(seconds=61)
    [pending] = await delivery.list_due("echo", "a", 10)
    assert pending.attempts == 1
    assert pending.first_attempt is not None


async def test_messages_are_due_after_the_clock_was_set_back(delivery: Delivery) -> None:
    delivery.clock.offset = timedelta(hours=1)
    tried = await delivery.add(REPLY)
    await delivery.postpone(tried, 60.0, "busy", unconfirmed=False)
    await delivery.add(structs.replace(REPLY, key="m2:note", chat_id="other"))
    delivery.clock.offset = timedelta()
    due = await delivery.list_due("echo", "a", 10)
    assert [each.outgoing.key for each in due] == ["m1:note", "m2:note"]


async def test_due_messages_are_begun_once_by_the_leader(delivery: Delivery) -> None:
    first = await delivery.add(REPLY)
    second = await delivery.add(structs.replace(REPLY, key="m2:note", chat_id="other"))
    other = LeaderFence("echo:a", 7)
    assert await delivery.begin_due("echo", "a", 10, leader=other) == []
    begun = await delivery.begin_due("echo", "a", 10, busy={first})
    assert [each.pending.number for each in begun] == [second]
    assert begun[0].context == ReplyContext("", "")


async def test_a_sent_message_tells_whether_its_chat_has_more(delivery: Delivery) -> None:
    first = await delivery.add(REPLY)
    await delivery.add(structs.replace(REPLY, key="m2:note", chat_id="other"))
    later = structs.replace(REPLY, key="m3:note")
    await delivery.database.write(partial(delivery.stores.outbox.add, later, T0))
    assert await delivery.mark_sent(first, "post-1")
    due = await delivery.list_due("echo", "a", 10)
    [second] = [each.number for each in due if each.outgoing == later]
    assert not await delivery.mark_sent(second, "post-2")


async def test_a_sent_message_is_settled(delivery: Delivery) -> None:
    number = await delivery.add(REPLY)
    assert not await delivery.mark_sent(number, "post-1")
    assert await delivery.begin_due("echo", "a", 10) == []


async def test_a_message_that_waits_for_over_a_minute_is_a_backlog(delivery: Delivery) -> None:
    await delivery.add(REPLY)
    assert await delivery.backlog("echo", "a") == (0, 0)
    delivery.clock.offset = timedelta(seconds=61)
    assert await delivery.backlog("echo", "a") == (1, 0)
    assert await delivery.backlog("echo", "b") == (0, 0)


async def test_a_message_that_was_given_up_is_a_backlog_for_a_day(delivery: Delivery) -> None:
    await delivery.give_up(await delivery.add(REPLY), "rejected", unconfirmed=False)
    assert await delivery.backlog("echo", "a") == (0, 1)
    assert await delivery.backlog("echo", "b") == (0, 0)
    delivery.clock.offset = timedelta(hours=25)
    assert await delivery.backlog("echo", "a") == (0, 0)


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
    here = run.session_id
    stopped = ReplyContext("count", "no longer needed", session_id=here, person="local")
    assert await delivery.get_reply_context(reply) == stopped
    final = OutgoingMessage("k", "echo", "a", "chat", "m1", "", run.id, "final_answer")
    plain = ReplyContext("count", "", session_id=here, person="local")
    assert await delivery.get_reply_context(final) == plain


async def test_without_a_run_or_a_question_there_is_no_context(delivery: Delivery) -> None:
    assert await delivery.get_reply_context(REPLY) == ReplyContext("", "")
    other = OutgoingMessage("k", "echo", "a", "chat", "m1", "", RunId("run-9"), "error")
    assert await delivery.get_reply_context(other) == ReplyContext("", "")
    assert await delivery.get_question(QuestionId("question-9")) is None
    assert await delivery.find_question("post-9") == ""


async def test_the_context_of_a_reply_names_the_others_and_the_files_that_were_not_read(
    delivery: Delivery,
) -> None:
    stores, run, origin = delivery.stores, a_run(), Origin("echo", "echo:a:mei", "a", "chat", "m1")
    events = [
        InputReceived(task="count", channel="echo", sender=sender, steer=True)
        for sender in ("echo:a:mei", "echo:a:lin", "echo:a:mei", "local", "echo:a:lin")
    ]
    problems = [
        Notice(about="input_files", text="a.pdf: it is damaged"),
        DiagnosticError(phase="gate", error="no plan"),
    ]
    for work in (
        partial(stores.sessions.add, a_session()),
        partial(stores.tasks.add, a_task(origin=origin), None),
        partial(stores.runs.add, run, T0),
        partial(append, stores, run, 1, *events, *problems),
    ):
        await delivery.database.write(work)
    reply = OutgoingMessage("k", "echo", "a", "chat", "m1", "", run.id, "final_answer")
    context = await delivery.get_reply_context(reply)
    others, damaged = ("echo:a:lin", "local"), ("a.pdf: it is damaged",)
    expected = ReplyContext("count", "", others, damaged, run.session_id, person="echo:a:mei")
    assert context == expected
    unfinished = await Chats(delivery.database, stores).list_unfinished_in("echo:a:chat")
    assert [task.origin for _, task in unfinished] == [origin]
    assert await Chats(delivery.database, stores).list_unfinished_in("echo:a:other") == []
