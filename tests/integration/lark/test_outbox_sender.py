"""Queued messages are sent once, in spite of delays and faults."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.channels.lark.api import (
    LarkClient,
    LarkRejected,
    LarkRequest,
    LarkUnavailable,
    SendPolicy,
)
from internal.channels.lark.connection import AppCredentials
from internal.observability.clock import SystemClock
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Reply
from tests.support.documents import picture
from tests.support.lark_gateway import APP, open_lark_gateway
from tests.support.lark_outbox import open_outbox

HASTY = SendPolicy(max_attempts=2, max_delay=1.0, timeout=1.0)


@pytest.mark.slow
async def test_a_chat_keeps_its_order_and_does_not_block_another(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        one, two = (outbox.sim.dm(person) for person in outbox.sim.people[:2])
        asked = await outbox.sim.send_text(outbox.sim.people[0], one, "stuck")
        outbox.sim.faults.answers.append(AnswerFault("code", asked, times=3, code=230020))
        await outbox.promise("1", one.chat_id, asked, "first")
        await outbox.promise("2", one.chat_id, "", "second")
        await outbox.promise("3", two.chat_id, "", "other chat")
        await outbox.sim.until(lambda _: outbox.said(two) == ["other chat"])
        assert outbox.said(one) == []
        await outbox.sim.until(lambda _: outbox.said(one) == ["first", "second"])


async def test_a_reply_with_unknown_outcome_is_found(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        person = outbox.sim.people[0]
        chat = outbox.sim.dm(person)
        asked = await outbox.sim.send_text(person, chat, "hello")
        lost = AnswerFault("lost", "/reply", times=99)
        outbox.sim.faults.answers.append(lost)
        await outbox.promise("1", chat.chat_id, asked, "once")
        await outbox.until_postponed()
        lost.times = 0
        outbox.sim.lark.clock.advance(3_700)  # Lark has forgotten the uuid
        outbox.clock.advance(timedelta(minutes=51))
        outbox.sender.wake()
        await outbox.until_due(0)
        assert outbox.said(chat) == ["once"]
        assert await outbox.dead() == []


@pytest.mark.slow
async def test_a_question_with_unknown_outcome_is_found_among_others(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        person = outbox.sim.people[0]
        chat = outbox.sim.dm(person)
        said = await outbox.sim.send_text(person, chat, "hello")
        await outbox.ask("question-a-1", chat.chat_id, said)
        await outbox.sim.until(lambda _: len(outbox.said(chat)) == 1)
        lost = AnswerFault("lost", "/reply", times=99)
        outbox.sim.faults.answers.append(lost)
        await outbox.ask("question-a-2", chat.chat_id, said)
        await outbox.until_postponed()
        lost.times = 0
        outbox.sim.lark.clock.advance(3_700)  # Lark has forgotten the uuid
        outbox.clock.advance(timedelta(minutes=51))
        outbox.sender.wake()
        await outbox.until_due(0)
        assert len(outbox.said(chat)) == 2
        cards = [one.message_id for one in outbox.sim.messages(chat) if one.sender_type == "app"]
        kept = [await outbox.remote(f"question-a-{number}:asked") for number in (1, 2)]
        assert kept == cards


@pytest.mark.parametrize("name", ["chart.png", "report.pdf"])
async def test_a_file_with_unknown_outcome_is_found(tmp_path: Path, name: str) -> None:
    async with open_outbox(tmp_path) as outbox:
        person = outbox.sim.people[0]
        chat = outbox.sim.dm(person)
        asked = await outbox.sim.send_text(person, chat, "hello")
        await outbox.promise("1", chat.chat_id, asked, "the answer")
        await outbox.sim.until(lambda _: outbox.said(chat) == ["the answer"])
        lost = AnswerFault("lost", "/reply", times=99)
        outbox.sim.faults.answers.append(lost)
        await outbox.promise_file("2", chat.chat_id, asked, name=name, content=picture("PNG"))
        await outbox.until_postponed()
        lost.times = 0
        outbox.let_pass(timedelta(hours=1.1))  # Lark has forgotten the uuid
        await outbox.until_due(0)
        _, file = [one for one in outbox.sim.messages(chat) if one.sender_type == "app"]
        assert await outbox.remote("2") == file.message_id
        assert await outbox.dead() == []


@pytest.mark.slow
async def test_a_reply_with_unknown_outcome_that_is_missing_is_sent(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        person = outbox.sim.people[0]
        chat = outbox.sim.dm(person)
        asked = await outbox.sim.send_text(person, chat, "hello")
        gone = AnswerFault("bad_gateway", "/reply", times=4)
        outbox.sim.faults.answers.append(gone)
        await outbox.promise("1", chat.chat_id, asked, "at last")
        await outbox.sim.until(lambda _: not gone.times)
        outbox.clock.advance(timedelta(minutes=51))
        outbox.sender.wake()
        await outbox.sim.until(lambda _: outbox.said(chat) == ["at last"])


@pytest.mark.slow
async def test_an_unresolved_outcome_is_an_unconfirmed_dead_letter(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        person = outbox.sim.people[0]
        chat = outbox.sim.dm(person)
        asked = await outbox.sim.send_text(person, chat, "hello")
        lost = AnswerFault("lost", "/reply", times=99)
        outbox.sim.faults.answers.append(lost)
        await outbox.promise("1", chat.chat_id, asked, "perhaps")
        await outbox.until_postponed()
        lost.times = 0
        outbox.sim.faults.answers.append(AnswerFault("code", "GET", times=99, code=230027))
        outbox.clock.advance(timedelta(minutes=51))
        outbox.sender.wake()
        letter = await outbox.until_dead()
        assert letter.unconfirmed
        assert "230027" in letter.failure


async def test_a_rejected_message_is_given_up_at_once(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        await outbox.promise("1", "oc_nowhere")
        letter = await outbox.until_dead()
        assert not letter.unconfirmed
        assert "230001" in letter.failure
        answers = [json.loads(one.got) for one in outbox.sim.log if "/im/v1/messages" in one.what]
        assert letter.failure.endswith(f"(log id {answers[-1]['error']['log_id']})")


async def test_a_message_that_was_given_up_is_sent_again_on_request(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("the answer")]) as lark:
        lark.sim.faults.answers.append(AnswerFault("code", "/messages", times=99, code=230027))
        await lark.say("hello")
        gateway = lark.core.services.gateway
        async with asyncio.timeout(20):
            while not (letters := await gateway.dead_letters.list_all(LOCAL_OWNER)):
                await lark.sim.lark.changed_within(0.05)
        assert (letters[0].about, letters[0].text) == ("hello", "the answer")
        assert lark.replies() == []
        lark.sim.faults.answers.clear()
        await gateway.dead_letters.retry(letters[0].id, LOCAL_OWNER, "cli")
        assert await lark.until_replies(1) == ["the answer"]
        assert await gateway.dead_letters.list_all(LOCAL_OWNER) == []


async def test_a_wrong_secret_is_retried(tmp_path: Path) -> None:
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
        pytest.param(AnswerFault("slow", times=9, seconds=5.0), True, marks=pytest.mark.slow),
        (AnswerFault("rate_limit", times=9, seconds=2.0), False),
        (AnswerFault("code", times=9, code=11232), False),
    ],
    ids=lambda value: value.kind if isinstance(value, AnswerFault) else "",
)
@pytest.mark.first_rows(2)
async def test_failures_tell_whether_the_call_may_have_succeeded(
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


async def test_an_unreachable_service_has_a_known_outcome() -> None:
    api = LarkClient(AppCredentials(APP.app_id, APP.secret, "http://127.0.0.1:9"), SystemClock())
    with pytest.raises(LarkUnavailable, match="is unreachable") as busy:
        await api.call(LarkRequest("GET", "/open-apis/bot/v3/info"), HASTY)
    assert not busy.value.unconfirmed
    await api.close()


async def test_a_rejection_is_not_retried() -> None:
    async with LarkSim([APP]) as sim:
        api = LarkClient(AppCredentials(APP.app_id, APP.secret, sim.url), SystemClock())
        with pytest.raises(LarkRejected, match="230001"):
            await api.call(LarkRequest("GET", "/open-apis/im/v1/messages/om_none"))
        assert sum("om_none" in entry.what for entry in sim.log) == 1
        await api.close()
