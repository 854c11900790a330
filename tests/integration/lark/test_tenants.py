"""Events of other apps and tenants, and people of other tenants in shared groups."""

import json
from pathlib import Path
from typing import Any

import pytest

from internal.settings.chat import ChatAccess
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import TENANT, Json
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Reply
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH, card_of, needs, open_questions
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
FOREIGN = [{"tenant_key": "tk_other"}, {"app_id": "cli_other"}, {"tenant_key": ""}, {"app_id": ""}]
REFUSED = "events of another app or tenant are refused"


def message_event(lark: LarkGateway, text: str, message_id: str = "om_foreign") -> Json:
    """Return an event with a direct message of the first person."""
    ids = {"sender_id": lark.person.ids(), "sender_type": "user", "tenant_key": TENANT}
    message = {
        "message_id": message_id,
        "chat_id": lark.dm.chat_id,
        "chat_type": "p2p",
        "message_type": "text",
        "content": json.dumps({"text": text}),
        "create_time": str(lark.sim.lark.clock.now_ms()),
    }
    return {"sender": ids, "message": message}


def stored(home: Path) -> bytes:
    """Return the bytes of the database files, including the write-ahead log."""
    return b"".join(path.read_bytes() for path in home.glob("larkspur.db*"))


async def until_acknowledged(lark: LarkGateway) -> None:
    await lark.sim.until(lambda _: all(push.done for push in lark.sim.pushes))
    assert all(push.attempts == ["ok"] for push in lark.sim.pushes)


@pytest.mark.parametrize("source", FOREIGN)
async def test_messages_of_another_app_or_tenant_are_dropped_and_logged_once(
    tmp_path: Path, source: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("heard")]) as lark:
        for number in range(3):
            event = message_event(lark, "rm -r everything", f"om_{number}")
            lark.sim.push("im.message.receive_v1", event, **source)
        await until_acknowledged(lark)
        await lark.say("hello")
        assert await lark.until_replies(1) == ["heard"]
        assert "everything" not in json.dumps(lark.core.model.requests)
        assert b"everything" not in stored(tmp_path)
        assert [record.getMessage() for record in caplog.records].count(REFUSED) == 1


@pytest.mark.parametrize("source", FOREIGN)
async def test_a_recall_of_another_app_or_tenant_changes_nothing(
    tmp_path: Path, source: dict[str, str]
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("done", hold="go")]) as lark:
        asked = await lark.say("work")
        await lark.core.model.until_open(1)
        event = {"message_id": asked, "chat_id": lark.dm.chat_id, "recall_type": "message_owner"}
        lark.sim.push("im.message.recalled_v1", event, **source)
        await until_acknowledged(lark)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]


@pytest.mark.parametrize("source", FOREIGN)
@pytest.mark.first_rows(2)
async def test_a_click_of_another_app_or_tenant_answers_nothing(
    tmp_path: Path, source: dict[str, str]
) -> None:
    async with open_lark_gateway(tmp_path, needs(TOUCH), OPERATORS) as lark:
        await lark.say("touch it")
        [asked] = await open_questions(lark, 1)
        card = await card_of(lark, asked)
        event: dict[str, Any] = {
            "operator": {**lark.person.ids(), "tenant_key": TENANT},
            "token": "c-1",
            "action": {"tag": "button", "value": {"question": asked.question.id, "act": "approve"}},
            "context": {"open_message_id": card, "open_chat_id": lark.dm.chat_id},
        }
        ack = await lark.sim.lark.delivery.call_back(lark.sim.app, event, source)
        assert ack is not None
        assert not ack.data
        assert await open_questions(lark, 1) == [asked]
        assert (await lark.sim.click(lark.person, card, "Allow once"))["toast"]["type"] == "success"


async def test_without_the_scope_the_tenant_is_that_of_the_first_event(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        sim.faults.answers.append(AnswerFault("code", "/tenant/query", times=99, code=99991672))
        async with open_lark_gateway(tmp_path, [Reply("one"), Reply("two")], sim=sim) as lark:
            await lark.say("hello")
            await lark.until_replies(1)
            sim.push("im.message.receive_v1", message_event(lark, "foreign"), tenant_key="tk_2")
            await until_acknowledged(lark)
            await lark.say("hello again")
            assert await lark.until_replies(2) == ["one", "two"]
            assert "foreign" not in json.dumps(lark.core.model.requests)


async def test_everyone_means_the_people_of_the_own_tenant(tmp_path: Path) -> None:
    everyone = ChatAccess(talk=("*",), operate=("*",))
    async with LarkSim([APP], speed=100.0) as sim:
        guest = sim.lark.state.add_person("Guest", "tk_other")
        group = sim.groups[0]
        group.members.append(guest.open_id)
        settings = with_values(
            QUIET, access=ChatAccess(talk=(*everyone.talk, group.chat_id), operate=everyone.operate)
        )
        async with open_lark_gateway(tmp_path, needs(TOUCH), settings, sim=sim) as lark:
            await sim.send_text(guest, group, "touch it", mention_bot=True)
            assert "permission to use this bot" in (await lark.until_replies(1, group))[0]
            await sim.send_text(lark.person, group, "touch it", mention_bot=True)
            [asked] = await open_questions(lark, 1, group)
            card = await card_of(lark, asked)
            assert (await sim.click(guest, card, "Allow once"))["toast"]["type"] == "warning"
            await sim.send_text(guest, group, "OK", reply_to=card, mention_bot=True)
            assert "permission to use this bot" in (await lark.until_replies(2, group))[1]
            assert await open_questions(lark, 1, group) == [asked]


async def test_a_listed_person_of_another_tenant_may_talk_and_operate(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        guest = sim.lark.state.add_person("Guest", "tk_other")
        sim.groups[0].members.append(guest.open_id)
        access = ChatAccess(talk=(guest.open_id,), operate=(guest.open_id,))
        settings = with_values(QUIET, access=access)
        async with open_lark_gateway(tmp_path, needs(TOUCH), settings, sim=sim) as lark:
            await sim.send_text(guest, lark.group, "touch it", mention_bot=True)
            [asked] = await open_questions(lark, 1, lark.group)
            click = await sim.click(guest, await card_of(lark, asked), "Allow once")
            assert click["toast"]["type"] == "success"
            assert await lark.until_replies(1, lark.group) == ["over"]
