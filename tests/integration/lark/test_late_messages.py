"""Messages that arrive long after they were written: they act on nothing newer."""

from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess
from tests.support.agent_app import plan
from tests.support.chat_settings import with_values
from tests.support.group_question import SCRIPTS, asked_in_group
from tests.support.lark_chats import card_of, open_questions, results
from tests.support.lark_gateway import QUIET, open_lark_gateway
from tests.support.lark_runs import INTERRUPTS, STOPPED_NOTHING, reply_to, statuses
from tests.support.scripted_model import Reply

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
TOO_EARLY = {
    "en": "This was written before the question: nothing was allowed.",
    "zh": "这条消息写于提问之前\uff1a没有批准任何操作。",
}


@pytest.mark.parametrize(
    ("text", "language"), [("OK", "en"), ("/approve", "en"), ("好", "zh"), ("/同意", "zh")]
)
@pytest.mark.first_rows(3)
async def test_a_late_text_allows_nothing(tmp_path: Path, text: str, language: str) -> None:
    async with open_lark_gateway(tmp_path, [*SCRIPTS["approval"]], OPERATORS) as lark:
        await lark.say("do it")
        asked = await open_questions(lark, 1)
        late = await lark.say(text, age_seconds=300)
        await lark.until_replies(1)
        assert reply_to(lark, late) == TOO_EARLY[language]
        assert await open_questions(lark, 1) == asked
        await lark.say(text)
        assert (await lark.until_replies(2))[-1] == "over"
        assert list((tmp_path / "workspaces").glob("*/ran"))


@pytest.mark.parametrize("way", ["reply", "id", "command"])
@pytest.mark.first_rows(1)
async def test_a_late_text_that_names_its_question_answers_it(tmp_path: Path, way: str) -> None:
    async with open_lark_gateway(tmp_path, [*SCRIPTS["approval"]], OPERATORS) as lark:
        await lark.say("do it")
        [asked] = await open_questions(lark, 1)
        card = await card_of(lark, asked) if way == "reply" else ""
        text = {"reply": "OK", "id": f"OK {asked.question.id}"}.get(
            way, f"/approve {asked.question.id[-6:]}"
        )
        await lark.say(text, reply_to=card, age_seconds=300)
        assert await lark.until_replies(1) == ["over"]


async def test_a_task_that_is_older_than_a_question_is_not_its_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [*SCRIPTS["clarify"]], OPERATORS) as lark:
        await lark.say("paint it")
        asked = await open_questions(lark, 1)
        task = await lark.say("water the plants", age_seconds=300)
        await lark.until_replies(1)
        assert reply_to(lark, task) == "over"
        assert await open_questions(lark, 1) == asked
        await lark.say("2")
        assert (await lark.until_replies(2))[-1] == "another"
        assert "green" in results(lark)


async def test_a_late_mention_in_a_group_allows_nothing(tmp_path: Path) -> None:
    async with asked_in_group(tmp_path, "approval") as one:
        send = one.lark.sim.send_text
        late = {"mention_bot": True, "age_seconds": 300}
        said = send(one.boss, one.lark.group, "OK", **late)
        assert await one.response_to(said) == ([TOO_EARLY["en"]], [])
        said = send(one.boss, one.lark.group, "OK", age_seconds=300)
        assert await one.response_to(said) == ([], [])
        await one.say("OK", mention=True)
        assert await one.until_answered() == one.boss.name


@pytest.mark.parametrize(
    ("text", "language"), [("/stop", "en"), ("停", "zh"), ("/stop all", "en"), ("stop", "en")]
)
@pytest.mark.first_rows(2)
async def test_a_late_stop_does_not_stop_a_later_run(
    tmp_path: Path, text: str, language: str
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("finished", hold="go")]) as lark:
        await lark.say("work for an hour")
        await lark.core.model.until_open(1)
        late = await lark.say(text, age_seconds=300)
        assert await lark.until_replies(1) == [STOPPED_NOTHING[language]]
        assert reply_to(lark, late) == STOPPED_NOTHING[language]
        lark.core.model.release("go")
        assert (await lark.until_replies(2))[-1] == "finished"
        await lark.settled()
        assert await statuses(lark) == ["completed"]


async def test_a_late_stop_stops_a_run_whose_task_is_older(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("never", hold="go")]) as lark:
        await lark.say("work for an hour", age_seconds=600)
        await lark.core.model.until_open(1)
        await lark.say("/stop", age_seconds=300)
        await lark.until_replies(1)
        await lark.settled()
        assert await statuses(lark) == ["cancelled"]


async def test_a_late_message_interrupts_no_later_run(tmp_path: Path) -> None:
    script = [Reply("about dogs", hold="go"), Reply("about cats")]
    async with open_lark_gateway(tmp_path, script, INTERRUPTS) as lark:
        await lark.say("tell me about dogs")
        await lark.core.model.until_open(1)
        await lark.say("about cats", age_seconds=300)
        while len(await statuses(lark)) < 2:
            await lark.sim.lark.changed_within(0.02)
        lark.core.model.release("go")
        assert await lark.until_replies(2) == ["about dogs", "about cats"]
        await lark.settled()
        assert await statuses(lark) == ["completed", "completed"]


async def test_a_late_message_steers_no_later_run(tmp_path: Path) -> None:
    script = [Reply("about dogs", hold="go"), Reply("about cats")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("tell me about dogs")
        await lark.core.model.until_open(1)
        late = await lark.say("and about cats", age_seconds=300)
        while len(await statuses(lark)) < 2:
            await lark.sim.lark.changed_within(0.02)
        lark.core.model.release("go")
        await lark.until_replies(2)
        await lark.settled()
        assert reply_to(lark, late) == "about cats"
        assert await statuses(lark) == ["completed", "completed"]


async def test_a_late_message_steers_a_run_whose_task_is_older(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("look")], hold="go"), Reply("about both")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("tell me about dogs", age_seconds=600)
        await lark.core.model.until_open(1)
        late = await lark.say("and about cats", age_seconds=300)
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[late].reactions)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["about both"]
        await lark.settled()
        assert await statuses(lark) == ["completed"]
