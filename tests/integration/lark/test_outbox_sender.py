"""What was promised is sent once, whatever time and faults do in between."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.chat_delivery import ChatDelivery
from internal.agent.domain.chats import DeadLetter, OutgoingMessage
from internal.agent.domain.errors import StoreUnavailable
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.store.stores import Stores
from internal.channels.chat.outbox_sender import OutboxSender
from internal.channels.chat.policy import ChatRules
from internal.channels.chat.transport import ReceivedMessage
from internal.channels.lark.api import (
    LarkClient,
    LarkRejected,
    LarkRequest,
    LarkUnavailable,
    SendPolicy,
)
from internal.channels.lark.channel import LarkTransport
from internal.channels.lark.connection import AppCredentials
from internal.channels.lark.receiver import EventReceiver, NotStored
from internal.observability.clock import SystemClock
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from internal.storage.database_url import open_database
from tests.support.lark_gateway import APP, shown_text

HASTY = SendPolicy(max_attempts=2, max_delay=1.0, timeout=1.0)


class Ahead(SystemClock):
    """A clock that can be moved."""

    ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Desk:
    """An outbox and what empties it, with a simulated Lark behind."""

    def __init__(self, sim: LarkSim, database: Any) -> None:
        self.sim, self.database, self.stores, self.clock = sim, database, Stores(), Ahead()
        credentials = AppCredentials(APP.app_id, APP.secret, sim.url)
        self.transport = LarkTransport(credentials, ChatRules(language="en"), self.clock)
        delivery = ChatDelivery(database, self.stores, self.clock)
        self.sender = OutboxSender(self.transport, delivery, self.clock, language="en")

    async def promise(self, key: str, chat_id: str, reply_to: str = "", body: str = "x") -> None:
        outgoing = OutgoingMessage(key, "lark", APP.app_id, chat_id, reply_to, body)
        await self.database.write(partial(self.stores.outbox.add, outgoing, "2026-01-01"))
        self.sender.wake()

    async def ask(self, name: str, chat_id: str, reply_to: str) -> None:
        question = Question(QuestionId(name), "clarify", "What?")
        ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
        asked = QuestionRecord(
            question, *ids, "p", "lark:a:c", "operators", "2026-01-01", "2027-01-01"
        )
        await self.database.write(partial(self.stores.questions.add, asked))
        key = f"{name}:asked"
        outgoing = OutgoingMessage(key, "lark", APP.app_id, chat_id, reply_to, "", question_id=name)
        await self.database.write(partial(self.stores.outbox.add, outgoing, "2026-01-01"))
        self.sender.wake()

    async def remote(self, key: str) -> str:
        return str(await self.database.read(partial(self.stores.outbox.get_remote_id, key)))

    async def dead(self) -> list[DeadLetter]:
        return list(await self.database.read(partial(self.stores.outbox.list_dead_letters, 10)))

    async def until_dead(self) -> DeadLetter:
        async with asyncio.timeout(20):
            while not (found := await self.dead()):
                await self.sim.lark.changed_within(0.05)
        return found[0]

    async def until_due(self, count: int) -> None:
        """Return when so many chats have something left to be sent."""
        due = partial(self.stores.outbox.list_due, "lark", APP.app_id, now="9999", limit=99)
        async with asyncio.timeout(20):
            while len(await self.database.read(due)) != count:
                await self.sim.lark.changed_within(0.05)

    def said(self, chat: Any) -> list[str | None]:
        found = [one for one in self.sim.messages(chat) if one.sender_type == "app"]
        return [shown_text(self.sim, one) for one in found]


class _Open:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Desk:
        self._sim = LarkSim([APP])
        await self._sim.__aenter__()
        self._opened = open_database(self._folder / "lark.db")
        desk = Desk(self._sim, await self._opened.__aenter__())
        self._desk, self._running = desk, asyncio.create_task(desk.sender.run())
        return desk

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])
        await self._desk.transport.close()
        await self._opened.__aexit__(None, None, None)
        await self._sim.__aexit__(None, None, None)


async def test_a_chat_keeps_its_order_and_holds_no_other_up(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        one, two = (desk.sim.dm(person) for person in desk.sim.people[:2])
        asked = await desk.sim.send_text(desk.sim.people[0], one, "stuck")
        desk.sim.faults.answers.append(AnswerFault("code", asked, times=3, code=230020))
        await desk.promise("1", one.chat_id, asked, "first")
        await desk.promise("2", one.chat_id, "", "second")
        await desk.promise("3", two.chat_id, "", "other chat")
        await desk.sim.until(lambda _: desk.said(two) == ["other chat"])
        assert desk.said(one) == []
        await desk.sim.until(lambda _: desk.said(one) == ["first", "second"])


async def test_a_doubtful_answer_is_looked_for_and_found(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        person = desk.sim.people[0]
        chat = desk.sim.dm(person)
        asked = await desk.sim.send_text(person, chat, "hello")
        lost = AnswerFault("lost", "/reply", times=99)
        desk.sim.faults.answers.append(lost)
        await desk.promise("1", chat.chat_id, asked, "once")
        await desk.sim.until(lambda log: sum("/reply" in entry.what for entry in log) >= 4)
        lost.times = 0
        desk.sim.lark.clock.advance(3_700)  # Lark has forgotten the uuid
        desk.clock.ahead = timedelta(minutes=51)
        desk.sender.wake()
        await desk.until_due(0)
        assert desk.said(chat) == ["once"]
        assert await desk.dead() == []


async def test_a_doubtful_question_is_looked_for_and_found_among_others(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        person = desk.sim.people[0]
        chat = desk.sim.dm(person)
        said = await desk.sim.send_text(person, chat, "hello")
        await desk.ask("question-a-1", chat.chat_id, said)
        await desk.sim.until(lambda _: len(desk.said(chat)) == 1)
        lost = AnswerFault("lost", "/reply", times=99)
        desk.sim.faults.answers.append(lost)
        await desk.ask("question-a-2", chat.chat_id, said)
        await desk.sim.until(lambda log: sum("/reply" in entry.what for entry in log) >= 5)
        lost.times = 0
        desk.sim.lark.clock.advance(3_700)  # Lark has forgotten the uuid
        desk.clock.ahead = timedelta(minutes=51)
        desk.sender.wake()
        await desk.until_due(0)
        assert len(desk.said(chat)) == 2
        cards = [one.message_id for one in desk.sim.messages(chat) if one.sender_type == "app"]
        kept = [await desk.remote(f"question-a-{number}:asked") for number in (1, 2)]
        assert kept == cards


async def test_a_doubtful_answer_that_is_not_there_is_sent(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        person = desk.sim.people[0]
        chat = desk.sim.dm(person)
        asked = await desk.sim.send_text(person, chat, "hello")
        gone = AnswerFault("bad_gateway", "/reply", times=4)
        desk.sim.faults.answers.append(gone)
        await desk.promise("1", chat.chat_id, asked, "at last")
        await desk.sim.until(lambda _: not gone.times)
        desk.clock.ahead = timedelta(minutes=51)
        desk.sender.wake()
        await desk.sim.until(lambda _: desk.said(chat) == ["at last"])


async def test_doubt_that_cannot_be_resolved_is_a_dead_letter_that_says_so(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        person = desk.sim.people[0]
        chat = desk.sim.dm(person)
        asked = await desk.sim.send_text(person, chat, "hello")
        lost = AnswerFault("lost", "/reply", times=4)
        desk.sim.faults.answers.append(lost)
        await desk.promise("1", chat.chat_id, asked, "perhaps")
        await desk.sim.until(lambda _: not lost.times)
        desk.sim.faults.answers.append(AnswerFault("code", "GET", times=99, code=230027))
        desk.clock.ahead = timedelta(minutes=51)
        desk.sender.wake()
        letter = await desk.until_dead()
        assert letter.unconfirmed
        assert "230027" in letter.failure


async def test_what_lark_will_never_take_is_given_up_at_once(tmp_path: Path) -> None:
    async with _Open(tmp_path) as desk:
        await desk.promise("1", "oc_nowhere")
        letter = await desk.until_dead()
        assert not letter.unconfirmed
        assert "230001" in letter.failure


async def test_a_wrong_secret_buries_nothing(tmp_path: Path) -> None:
    async with LarkSim([APP]) as sim:
        api = LarkClient(AppCredentials(APP.app_id, "wrong-secret", sim.url), SystemClock())
        with pytest.raises(LarkUnavailable, match="no access token") as busy:
            await api.call(LarkRequest("GET", "/open-apis/bot/v3/info"))
        assert busy.value.wait > 1
        assert not busy.value.unconfirmed
        assert "wrong-secret" not in str(busy.value)
        await api.close()


@pytest.mark.parametrize(
    ("fault", "unconfirmed"),
    [
        (AnswerFault("lost", times=9), True),
        (AnswerFault("bad_gateway", times=9), True),
        (AnswerFault("slow", times=9, seconds=5.0), True),
        (AnswerFault("rate_limit", times=9, seconds=2.0), False),
        (AnswerFault("code", times=9, code=11232), False),
    ],
    ids=lambda value: value.kind if isinstance(value, AnswerFault) else "",
)
async def test_failures_say_whether_it_may_have_been_done(
    fault: AnswerFault, unconfirmed: bool
) -> None:
    async with LarkSim([APP]) as sim:
        api = LarkClient(AppCredentials(APP.app_id, APP.secret, sim.url), SystemClock())
        call = LarkRequest("GET", "/open-apis/bot/v3/info")
        assert (await api.call(call))["bot"]["open_id"] == APP.open_id
        fault.match = "bot/v3"
        sim.faults.answers.append(fault)
        with pytest.raises(LarkUnavailable) as busy:
            await api.call(call, HASTY)
        assert busy.value.unconfirmed is unconfirmed
        if fault.kind == "rate_limit":
            assert busy.value.wait >= 1
        await api.close()


async def test_nobody_there_is_no_doubt() -> None:
    api = LarkClient(AppCredentials(APP.app_id, APP.secret, "http://127.0.0.1:9"), SystemClock())
    with pytest.raises(LarkUnavailable, match="is unreachable") as busy:
        await api.call(LarkRequest("GET", "/open-apis/bot/v3/info"), HASTY)
    assert not busy.value.unconfirmed
    await api.close()


async def test_a_refusal_is_not_tried_again() -> None:
    async with LarkSim([APP]) as sim:
        api = LarkClient(AppCredentials(APP.app_id, APP.secret, sim.url), SystemClock())
        with pytest.raises(LarkRejected, match="230001"):
            await api.call(LarkRequest("GET", "/open-apis/im/v1/messages/om_none"))
        assert sum("om_none" in entry.what for entry in sim.log) == 1
        await api.close()


class Store:
    """An inbox that can be stuck or broken."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.broken = False
        self.woken = asyncio.Event()
        self.kept: list[ReceivedMessage] = []

    async def accept(self, message: ReceivedMessage) -> None:
        await self.free.wait()
        if self.broken:
            raise StoreUnavailable("The disk is full.")
        self.kept.append(message)
        self.woken.set()


def event(message_id: str) -> bytes:
    body = {"message_id": message_id, "chat_id": "oc_1", "chat_type": "p2p"}
    sender = {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"}
    header = {"event_type": "im.message.receive_v1"}
    return json.dumps({"header": header, "event": {"sender": sender, "message": body}}).encode()


async def test_while_the_store_is_stuck_one_waits_and_the_others_fail_at_once() -> None:
    store = Store()
    receiver = EventReceiver(store.accept)
    with pytest.raises(NotStored, match="in time"):
        await asyncio.to_thread(receiver.receive, event("om_1"))
    for number in range(2, 50):
        with pytest.raises(NotStored, match="stuck"):
            await asyncio.to_thread(receiver.receive, event(f"om_{number}"))
    store.free.set()
    await store.woken.wait()
    await asyncio.to_thread(receiver.receive, event("om_2"))
    assert [message.message_id for message in store.kept] == ["om_1", "om_2"]
    await asyncio.to_thread(receiver.receive, event("om_2"))  # known: the store is not asked
    assert len(store.kept) == 2
    assert store.kept[0].user_id == "ou_1"


async def test_what_the_store_refuses_is_not_acknowledged() -> None:
    store = Store()
    store.free.set()
    store.broken = True
    receiver = EventReceiver(store.accept)
    with pytest.raises(NotStored, match="disk is full"):
        await asyncio.to_thread(receiver.receive, event("om_1"))
    store.broken = False
    await asyncio.to_thread(receiver.receive, event("om_1"))
    assert len(store.kept) == 1


async def test_what_is_no_message_is_let_go() -> None:
    receiver = EventReceiver(Store().accept)
    for payload in (b"", b"{}", b"\xff\xfe", b'{"header": {"event_type": "other"}}', event("")):
        await asyncio.to_thread(receiver.receive, payload)
