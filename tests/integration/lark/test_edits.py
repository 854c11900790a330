"""Edited messages: tasks started by an edit; edits of waiting, running and answered messages."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark import user_actions
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.model import App, Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway
from tests.support.lark_runs import (
    TOLD,
    edit,
    handled,
    said_to_model,
    tasks,
    until,
    until_statuses,
    user_texts,
)
from tests.support.scripted_model import Call, Reply

ALONE = with_values(QUIET, auto_chat_context=False)
EAR = App(APP.app_id, APP.secret, hears_all=True)
WORK = [
    Reply("", calls=[Call("glob", {"pattern": "*"})], hold="go"),
    Reply("done"),
    Reply("next"),
]


async def say(lark: LarkGateway, words: str, chat: Chat | None = None, **more: Any) -> str:
    return await lark.sim.send_text(lark.person, chat or lark.dm, words, **more)


@pytest.mark.first_rows(1)
@pytest.mark.parametrize("app", [APP, EAR], ids=["only mentions", "all messages"])
async def test_a_mention_that_is_added_by_an_edit_starts_the_task_once(
    tmp_path: Path, app: App
) -> None:
    async with (
        LarkSim([app], speed=100.0) as sim,
        open_lark_gateway(tmp_path, [Reply("hello")], ALONE, sim=sim) as lark,
    ):
        message_id = await say(lark, "say hello", lark.group)
        await lark.settled()
        assert await tasks(lark) == []
        await edit(lark, message_id, "say hello", mention_bot=True)
        assert await lark.until_replies(1, lark.group) == ["hello"]
        sim.redeliver(message_id)
        await edit(lark, message_id, "say hello!", mention_bot=True)
        await lark.settled()
        [task] = await tasks(lark)
        assert task.instruction == "say hello"
        assert lark.replies(lark.group) == ["hello"]
        assert lark.from_bot(lark.group)[0].parent_id == message_id
        assert (
            '<message from="Mei Lin">\nsay hello\n' in user_texts(lark.core.model.requests[-1])[-1]
        )


async def test_a_message_that_waits_is_replaced_by_its_edit(tmp_path: Path) -> None:
    script = [Reply("one", hold="go"), Reply("two")]
    settings = with_values(ALONE, busy_mode="queue")
    async with open_lark_gateway(tmp_path, script, settings) as lark:
        await say(lark, "first")
        await lark.core.model.until_open(1)
        message_id = await say(lark, "delete everything")
        await until_statuses(lark, "running", "queued")
        await edit(lark, message_id, "delete nothing")
        lark.core.model.release("go")
        assert await lark.until_replies(2) == ["one", "two"]
        await lark.settled()
        assert [task.instruction for task in await tasks(lark)] == ["first", "delete nothing"]
        assert user_texts(lark.core.model.requests[-1])[-1] == "delete nothing"
        assert "delete everything" not in said_to_model(lark)
        assert lark.from_bot()[-1].parent_id == message_id


async def test_a_message_that_steers_and_is_not_read_is_replaced(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, WORK, ALONE) as lark:
        await say(lark, "first")
        await lark.core.model.until_open(1)
        message_id = await say(lark, "also wrong")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[message_id].reactions)
        await edit(lark, message_id, "also right")
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]
        await lark.settled()
        assert "also right" in said_to_model(lark)
        assert "also wrong" not in said_to_model(lark)
        assert len(await tasks(lark)) == 1


@pytest.mark.first_rows(1)
@pytest.mark.parametrize("place", ["group", "direct"])
async def test_a_run_that_works_is_told_once_that_its_message_was_edited(
    tmp_path: Path, place: str
) -> None:
    async with open_lark_gateway(tmp_path, WORK, ALONE) as lark:
        chat = lark.group if place == "group" else lark.dm
        message_id = await say(lark, "ship on Friday", chat, mention_bot=True)
        await lark.core.model.until_open(1)
        for words in ("ship on Monday", "ship on Tuesday", "ship on Tuesday"):
            await edit(lark, message_id, words, mention_bot=True)
        lark.core.model.release("go")
        assert await lark.until_replies(1, chat) == ["done"]
        await lark.settled()
        said = said_to_model(lark)
        assert said.count(TOLD) == 1
        assert f"{TOLD}\\nship on Tuesday" in said
        assert "Monday" not in said
        assert len(await tasks(lark)) == 1
        assert len(lark.replies(chat)) == 1


async def test_a_run_that_ends_before_it_reads_the_edit_is_followed_by_a_task(
    tmp_path: Path,
) -> None:
    script = [Reply("about Friday", hold="go"), Reply("about Monday")]
    async with open_lark_gateway(tmp_path, script, ALONE) as lark:
        message_id = await say(lark, "ship on Friday")
        await lark.core.model.until_open(1)
        await edit(lark, message_id, "ship on Monday")
        lark.core.model.release("go")
        assert await lark.until_replies(2) == ["about Friday", "about Monday"]
        await lark.settled()
        assert {each.parent_id for each in lark.from_bot()} == {message_id}
        [_, follower] = await tasks(lark)
        assert follower.origin.principal.endswith(lark.person.open_id)


@pytest.mark.slow
async def test_an_edit_of_an_answered_message_changes_nothing(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("done")], ALONE) as lark:
        message_id = await say(lark, "work")
        await lark.until_replies(1)
        await lark.settled()
        await edit(lark, message_id, "work more")
        await lark.settled()
        assert len(await tasks(lark)) == 1
        assert lark.replies() == ["done"]


@pytest.mark.slow
async def test_recalling_a_message_withdraws_its_edit(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("never", hold="go")], ALONE) as lark:
        message_id = await say(lark, "work")
        await lark.core.model.until_open(1)
        await edit(lark, message_id, "work more")
        user_actions.recall(lark.sim.lark.state, lark.person.open_id, message_id)
        await until(lark, partial(handled, lark, f"recall:{message_id}"))
        await lark.settled()
        assert [task.status for task in await tasks(lark)] == ["cancelled"]
        assert lark.replies() == []


@pytest.mark.slow
async def test_an_edit_without_a_mention_in_a_group_is_ignored(tmp_path: Path) -> None:
    async with (
        LarkSim([EAR], speed=100.0) as sim,
        open_lark_gateway(tmp_path, [], ALONE, sim=sim) as lark,
    ):
        message_id = await say(lark, "hello all", lark.group)
        await edit(lark, message_id, "hello everybody")
        await lark.settled()
        assert await tasks(lark) == []
        assert lark.from_bot(lark.group) == []


@pytest.mark.slow
async def test_an_edit_of_a_command_does_not_run_it_again(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [], ALONE) as lark:
        message_id = await say(lark, "/status")
        await lark.until_replies(1)
        await edit(lark, message_id, "/tasks")
        await lark.settled()
        assert len(lark.replies()) == 1


@pytest.mark.slow
async def test_words_that_are_added_to_a_bare_mention_start_the_task(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("hello")], ALONE) as lark:
        message_id = await say(lark, "", lark.group, mention_bot=True)
        await lark.settled()
        before = len(lark.replies(lark.group))
        await edit(lark, message_id, "say hello", mention_bot=True)
        assert (await lark.until_replies(before + 1, lark.group))[-1] == "hello"


@pytest.mark.slow
async def test_an_edit_that_arrives_before_its_message_counts(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, [Reply("late")], ALONE, sim=sim) as lark,
    ):
        sim.set_faults(reorder=1)
        message_id = await say(lark, "wrong", lark.group, mention_bot=True)
        await edit(lark, message_id, "right", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await lark.settled()
        [task] = await tasks(lark)
        assert task.instruction == "right"


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        AnswerFault("code", "GET /open-apis/im/v1/messages/", code=230002),
        AnswerFault("bad_gateway", "GET /open-apis/im/v1/messages/"),
        AnswerFault("no_data", "GET /open-apis/im/v1/messages/"),
    ],
    ids=["refused", "unavailable", "no data"],
)
async def test_an_edit_that_cannot_be_read_back_holds_up_nothing(
    tmp_path: Path, fault: AnswerFault
) -> None:
    script = [Reply("", calls=[Call("glob", {"pattern": "*"})], hold="go"), Reply("done")]
    async with open_lark_gateway(tmp_path, script, ALONE) as lark:
        message_id = await say(lark, "ship on Friday")
        await lark.core.model.until_open(1)
        lark.sim.set_faults(answers=[fault])
        await edit(lark, message_id, "ship on Monday")
        steering = await say(lark, "and quickly")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[steering].reactions)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["done"]
        is_read = fault.kind == "bad_gateway"
        assert (TOLD in said_to_model(lark)) == is_read


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        {},
        {"message": {}},
        {"message": {"message_id": "om_1"}},
        {"message": {"message_id": 7, "chat_id": "oc_1"}},
        {"message": {"message_id": "om_unknown", "chat_id": "oc_unknown", "update_time": "1"}},
        {"message_id": "om_unknown", "chat_id": "oc_unknown"},
        {"message": [[[[]]]]},
        {"message": None, "message_id": "../bot/v3/info", "chat_id": "oc_1"},
    ],
)
async def test_a_malformed_edit_is_ignored(tmp_path: Path, event: dict[str, Any]) -> None:
    async with open_lark_gateway(tmp_path, [Reply("fine")], ALONE) as lark:
        lark.sim.push("im.message.updated_v1", event)
        await say(lark, "are you there?")
        assert await lark.until_replies(1) == ["fine"]
        await lark.settled()
        assert len(await tasks(lark)) == 1


@pytest.mark.slow
async def test_a_question_that_waits_keeps_the_edit_for_its_run(tmp_path: Path) -> None:
    script = [Reply("", calls=[plan("Ship")]), Reply("done"), Reply("next")]
    settings = with_values(ALONE, plan_review="always", access={"operate": ("*",)})
    async with open_lark_gateway(tmp_path, script, settings) as lark:
        message_id = await say(lark, "ship on Friday")
        await until_statuses(lark, "waiting")
        await edit(lark, message_id, "ship on Monday")
        await say(lark, "OK")
        await lark.sim.until(lambda _: "done" in lark.replies())
        await lark.settled()
        assert f"{TOLD}\\nship on Monday" in said_to_model(lark)
