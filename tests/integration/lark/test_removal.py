"""The bot is removed from a group, or the group is disbanded: its work there ends quietly."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark import user_actions
from internal.simulators.lark.errors import NOT_IN_CHAT
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.websocket.delivery import EventPush
from tests.support.agent_app import plan
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import PLANNED, handled, statuses, until, until_closed, until_statuses
from tests.support.scripted_model import Reply, Rules

SILENT = with_values(QUIET, greeting=False)
OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))


def set_presence(lark: LarkGateway, *, present: bool) -> None:
    state, chat_id = lark.sim.lark.state, lark.group.chat_id
    user_actions.set_bot_presence(state, lark.person.open_id, chat_id, APP.app_id, present=present)


def remove(lark: LarkGateway) -> None:
    set_presence(lark, present=False)


def disband(lark: LarkGateway) -> None:
    user_actions.disband(lark.sim.lark.state, lark.person.open_id, lark.group.chat_id)


async def ask(lark: LarkGateway, text: str) -> str:
    return await lark.sim.send_text(lark.person, lark.group, text, mention_bot=True)


def removals(lark: LarkGateway) -> list[EventPush]:
    kind = "im.chat.member.bot.deleted_v1"
    return [push for push in lark.sim.pushes if push.event_type == kind]


@pytest.mark.parametrize("leave", [remove, disband])
async def test_runs_in_the_chat_are_stopped_without_a_reply(
    tmp_path: Path, leave: Callable[[LarkGateway], None]
) -> None:
    async with open_lark_gateway(tmp_path, Rules([Reply("never", hold="go")])) as lark:
        await ask(lark, "work")
        await lark.core.model.until_open(1)
        leave(lark)
        await until_statuses(lark, "cancelled")
        await lark.settled()
        assert lark.from_bot(lark.group) == []
        assert (await lark.channel.backlog()).given_up == 0
        assert await open_displays(lark) == 0


async def open_displays(lark: LarkGateway) -> int:
    displays = lark.core.services.gateway.run_displays
    return len(await displays.list_unfinished(f"lark:{APP.app_id}"))


async def test_a_card_and_a_reaction_in_the_chat_are_given_up_at_once(tmp_path: Path) -> None:
    settings = ChatChannelSettings()
    async with open_lark_gateway(tmp_path, PLANNED, settings) as lark:
        asked = await ask(lark, "look around")
        messages = lark.sim.lark.state.messages
        await lark.sim.until(lambda _: messages[asked].reactions and lark.from_bot(lark.group))
        await until(lark, partial(has_requests, lark, 3))
        remove(lark)
        begun = len(lark.sim.log)
        await until_statuses(lark, "cancelled")
        await until_closed(lark)
        refused = [each.what for each in lark.sim.log[begun:] if each.code == NOT_IN_CHAT]
        assert len(refused) == len(set(refused)) <= 3
        assert (await lark.channel.backlog()).given_up == 0


async def has_requests(lark: LarkGateway, count: int) -> bool:
    return len(lark.core.model.requests) == count


async def test_other_chats_go_on(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("direct", hold="go"), Reply("x")]) as lark:
        await lark.say("work")
        await lark.core.model.until_open(1)
        remove(lark)
        [removal] = removals(lark)
        await until(lark, partial(handled, lark, f"event:{removal.event_id}"))
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["direct"]
        assert await statuses(lark) == ["completed"]


async def test_an_open_question_is_closed_as_a_no(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("run it")]), Reply(calls=[TOUCH])]
    async with open_lark_gateway(tmp_path, script, OPERATORS) as lark:
        await ask(lark, "run it")
        await lark.sim.until(lambda _: len(lark.from_bot(lark.group)) == 1)
        [question] = await lark.core.services.gateway.queries.open_questions(chat_of(lark))
        remove(lark)
        await until_statuses(lark, "cancelled")
        await lark.settled()
        found = await lark.core.services.gateway.delivery.get_question(question.question.id)
        assert found is not None
        assert found.record.answer is not None
        assert found.record.answer.decision == "reject"
        assert len(lark.core.model.requests) == 2
        assert (await lark.channel.backlog()).given_up == 0


def chat_of(lark: LarkGateway) -> str:
    return f"lark:{APP.app_id}:{lark.group.chat_id}"


async def test_waiting_replies_to_the_chat_are_dropped(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("late"), Reply("here")]) as lark:
        busy = AnswerFault("rate_limit", "/reply", times=99, seconds=600.0)
        lark.sim.faults.answers.append(busy)
        await ask(lark, "answer me")
        await until_statuses(lark, "completed")
        await lark.sim.until(lambda _: busy.times < 99)
        remove(lark)
        await lark.settled()
        busy.times = 0
        await lark.say("and here?")
        assert await lark.until_replies(1) == ["here"]
        assert lark.from_bot(lark.group) == []
        assert (await lark.channel.backlog()).given_up == 0


async def test_a_bot_that_is_added_again_answers(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("back")]
    async with open_lark_gateway(tmp_path, script, SILENT) as lark:
        await ask(lark, "work")
        await lark.core.model.until_open(1)
        remove(lark)
        await until_statuses(lark, "cancelled")
        set_presence(lark, present=True)
        await ask(lark, "are you back?")
        assert await lark.until_replies(1, lark.group) == ["back"]


@pytest.mark.parametrize("event_id", ["same", "other"])
async def test_a_removal_that_is_delivered_again_stops_nothing_new(
    tmp_path: Path, event_id: str
) -> None:
    script = [Reply("never", hold="go"), Reply("back", hold="again")]
    async with open_lark_gateway(tmp_path, script, SILENT) as lark:
        await ask(lark, "work")
        await lark.core.model.until_open(1)
        remove(lark)
        await until_statuses(lark, "cancelled")
        [removal] = removals(lark)
        set_presence(lark, present=True)
        await ask(lark, "are you back?")
        await lark.core.model.until_open(1)
        if event_id == "other":
            again = EventPush(APP, removal.event_type, removal.event, removal.at_ms)
            lark.sim.lark.delivery.start(again)
            await until(lark, partial(handled, lark, f"event:{again.event_id}"))
        else:
            lark.sim.lark.delivery.start(removal)
            await lark.sim.until(lambda _: removal.attempts == ["ok", "ok"])
        lark.core.model.release("again")
        assert await lark.until_replies(1, lark.group) == ["back"]
