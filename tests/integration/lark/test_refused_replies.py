"""People learn why an answer is missing, cut or empty; no message announces an unsent one."""

from datetime import timedelta
from pathlib import Path

import pytest

from internal.agent.app.chat_delivery import ChatDelivery
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from larkspur.health import ProcessHealth
from tests.support.anthropic_server import Reply
from tests.support.lark_gateway import APP, open_lark_gateway
from tests.support.lark_outbox import Outbox, open_outbox
from tests.support.movable_clock import MovableClock

HELD_BACK = "The answer was held back by your organization's content check."
NOT_PERMITTED = "The answer can't be sent because the app lacks a permission."
LONG = "".join(f"Sentence number {n} of a long answer. " for n in range(3000))
IN_A_FILE = "The full answer is in the attached file."


@pytest.mark.parametrize(
    ("code", "explanation"),
    [
        (230022, HELD_BACK),
        (230028, HELD_BACK),
        (230006, NOT_PERMITTED),
        (230027, NOT_PERMITTED),
        (99991672, NOT_PERMITTED),
    ],
)
@pytest.mark.first_rows(2)
async def test_a_refused_answer_is_explained_and_kept(
    tmp_path: Path, code: int, explanation: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("the secret plan")]) as lark:
        refused = AnswerFault("code", "/reply", times=99, code=code, content="secret")
        lark.sim.faults.answers.append(refused)
        asked = await lark.say("what is the plan?")
        [said] = await lark.until_replies(1)
        assert said.startswith(explanation)
        assert lark.from_bot()[0].parent_id == asked
        await lark.settled()
        assert len(lark.from_bot()) == 1
        services = lark.core.services
        [letter] = await services.database.read(lambda: services.stores.outbox.list_unsent(9))
        assert letter.outgoing.body == "the secret plan"
        assert not letter.unconfirmed
        assert str(code) in letter.failure
        health = await ProcessHealth(services, [lark.channel]).report()
        assert health.status == "degraded"
        assert "1 message of the last day was given up" in health.channels["lark"].detail


async def test_a_refusal_is_explained_in_the_language_of_the_message(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("secret")]) as lark:
        refused = AnswerFault("code", "/reply", times=99, code=230028, content="secret")
        lark.sim.faults.answers.append(refused)
        await lark.say("说说你的计划")
        assert "内容安全检查" in (await lark.until_replies(1))[0]


@pytest.mark.slow
async def test_an_explanation_that_is_refused_as_well_is_not_repeated(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        asked = await outbox.sim.send_text(outbox.sim.people[0], chat, "hello")
        refused = AnswerFault("code", "/reply", times=99, code=230006)
        outbox.sim.faults.answers.append(refused)
        await outbox.promise("1", chat.chat_id, asked, "anything")
        assert not (await outbox.until_dead()).unconfirmed
        assert refused.times == 97
        assert outbox.said(chat) == []


async def test_an_explanation_survives_a_lost_response(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        chat = outbox.sim.dm(outbox.sim.people[0])
        asked = await outbox.sim.send_text(outbox.sim.people[0], chat, "hello")
        refused = AnswerFault("code", "/reply", times=99, code=230028, content="secret")
        lost = AnswerFault("lost", "/reply", times=3, content="held back")
        outbox.sim.faults.answers += [refused, lost]
        await outbox.promise("1", chat.chat_id, asked, "secret")
        assert not (await outbox.until_dead()).unconfirmed
        [said] = outbox.said(chat)
        assert said is not None
        assert said.startswith(HELD_BACK)


@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("code", "/files", times=99, code=234006),
        pytest.param(
            AnswerFault("code", "/files", times=99, code=2200, status=500),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["rejected", "failing"],
)
async def test_without_an_upload_the_text_carries_everything(
    tmp_path: Path, fault: AnswerFault
) -> None:
    async with open_outbox(tmp_path) as outbox:
        outbox.sim.faults.answers.append(fault)
        await send_long_answer_as_text(outbox)


async def test_without_the_scope_for_files_the_text_carries_everything(tmp_path: Path) -> None:
    app = App(APP.app_id, APP.secret, scopes=APP.scopes - {"im:resource"})
    async with LarkSim([app]) as sim, open_outbox(tmp_path, sim) as outbox:
        await send_long_answer_as_text(outbox)


async def test_if_the_file_message_is_rejected_the_text_carries_everything(tmp_path: Path) -> None:
    async with open_outbox(tmp_path) as outbox:
        rejected = AnswerFault("code", "/reply", times=99, code=230055, content="file_key")
        outbox.sim.faults.answers.append(rejected)
        await send_long_answer_as_text(outbox, is_announced=True)


async def send_long_answer_as_text(outbox: Outbox, *, is_announced: bool = False) -> None:
    """Send a long answer and check that it arrives as text."""
    chat = outbox.sim.dm(outbox.sim.people[0])
    asked = await outbox.sim.send_text(outbox.sim.people[0], chat, "hello")
    await outbox.promise("1", chat.chat_id, asked, LONG)
    await outbox.until_due(0)
    said = outbox.said(chat)
    assert [IN_A_FILE in (text or "") for text in said].count(True) == int(is_announced)
    assert LONG.strip() in (said[-1] or "").strip()
    assert await outbox.dead() == []


async def test_an_empty_answer_says_so(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("", times=9)]) as lark:
        await lark.say("say nothing")
        assert (await lark.until_replies(1))[0].startswith("The model gave no answer.")


async def test_a_reply_that_waits_for_over_a_minute_is_reported(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("the poison")]) as lark:
        poison = AnswerFault("code", times=9_999, code=2200, status=500, content="poison")
        lark.sim.faults.answers.append(poison)
        await lark.say("hello")
        await lark.sim.until(lambda _: poison.times < 9_999)
        services = lark.core.services
        later = MovableClock()
        later.advance(timedelta(seconds=61))
        delivery = ChatDelivery(services.database, services.stores, later)
        assert await delivery.backlog("lark", APP.app_id) == (1, 0)
