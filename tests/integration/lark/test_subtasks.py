"""Subtasks of a run in Lark: its card, their questions, Stop and the commands about them."""

import re
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import ENDED, Task
from internal.settings.chat import ChatAccess, ChatChannelSettings
from internal.simulators.lark import user_actions
from internal.simulators.lark.model import ChatMessage
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.chat_settings import with_values
from tests.support.lark_chats import TOUCH
from tests.support.lark_gateway import (
    APP,
    QUIET,
    LarkGateway,
    open_lark,
    open_lark_gateway,
    question_outcome,
)
from tests.support.scripted_model import When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
SHOWN = with_values(ChatChannelSettings(), access=ChatAccess(operate=("*",)))


def when(last_user: str, results: int = 0) -> When:
    return When(last_user=last_user, results=results)


def delegate(*prompts: str) -> Call:
    tasks = [{"instruction": each, "agent_profile": {"role": "analyst"}} for each in prompts]
    return Call("subagent", {"tasks": tasks})


THREE = [
    Reply(calls=[delegate("read one", "read two", "read three")], when=when("compare")),
    Reply("all compared", when=when("compare", 1)),
    Reply("one costs 1", when=when("read one")),
    Reply(calls=[Call("list_dir", {"path": "."})], when=when("read two")),
    Reply("two costs 2", hold="two", when=when("read two", 1)),
    Reply(calls=[TOUCH], when=when("read three")),
    Reply("three costs 3", when=when("read three", 1)),
]


async def test_one_card_shows_all_subtasks_until_the_answer(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules(THREE), SHOWN, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: "? task 3" in card_text(lark))
        await lark.sim.until(lambda _: "✓ task 1" in card_text(lark))
        first, second, third = [line for line in lines(lark) if "task " in line]
        assert re.fullmatch(r"✓ task 1 · analyst  \d+ s", first)
        assert second == "● task 2 · analyst: List a folder · ."
        assert third == "? task 3 · analyst: waits for you"
        assert title(lark) == "Waiting for its tasks"
        [question] = questions(lark)
        assert title_of(lark, question) == "task 3 · analyst asks: Run this command?"
        await lark.sim.click(lark.person, question.message_id, "Allow once")
        await lark.sim.until(lambda _: "✓ task 3" in card_text(lark))
        assert "● task 2" in card_text(lark)
        await lark.sim.until(lambda _: title(lark) == "Waiting for its tasks")  # of one card
        lark.core.model.release("two")
        [answer] = await lark.until_replies(1)
        assert answer.startswith("all compared")
        assert "With its 3 subtasks: " in answer
        await lark.settled()
        # the card went on below the question that a subtask asked, and the answer replaced it
        await lark.sim.until(lambda _: len(lark.from_bot()) == 2)
        assert lark.from_bot()[0].message_id == question.message_id


async def test_a_question_of_a_subtask_is_answered_with_a_text(tmp_path: Path) -> None:
    asks = Call("request_user", {"question": "Which colour?", "options": ["red", "blue"]})
    script = [
        Reply(calls=[delegate("ask")], when=when("比较")),
        Reply("over", when=when("比较", 1)),
        Reply(calls=[asks], when=when("ask")),
        Reply("red it is", when=when("ask", 1)),
    ]
    async with open_lark_gateway(tmp_path, Rules(script), SHOWN, environ=NO_GATES) as lark:
        await lark.say("比较")
        await lark.sim.until(lambda _: len(questions(lark)) == 1)
        # in the language of the person, not in that of the instruction of the model
        assert "任务 1 · analyst 提问" in title_of(lark, questions(lark)[0])
        await lark.say("/questions")
        await lark.until_replies(1)
        assert "task 1 · analyst asks: Which colour?" in lark.replies()[0]
        await lark.say("1")
        assert (await lark.until_replies(2))[1].startswith("over")
        assert "red" in str(lark.core.model.requests[-2]["messages"][-1])


@pytest.mark.parametrize("command", ["/stop", "停止"])
@pytest.mark.first_rows(1)
async def test_stop_ends_the_run_with_its_subtasks(tmp_path: Path, command: str) -> None:
    async with open_lark_gateway(tmp_path, Rules(THREE), SHOWN, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: "? task 3" in card_text(lark))
        await lark.sim.until(lambda _: "● task 2 · analyst: List" in card_text(lark))
        await lark.say(command)
        await lark.sim.until(lambda _: any("topped" in each for each in lark.replies()))
        await lark.settled()
        statuses = await subtask_statuses(lark)
        assert statuses == ["completed", "cancelled", "cancelled"]
        [question] = questions(lark)
        assert question_outcome(shown(lark, question)) == "Not allowed"
        assert not any("report" in each for each in lark.replies())


@pytest.mark.slow
async def test_the_button_of_the_card_stops_the_run_with_its_subtasks(tmp_path: Path) -> None:
    only_the_asker = with_values(SHOWN, access=ChatAccess())
    async with open_lark_gateway(tmp_path, Rules(THREE), only_the_asker, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: "● task 2 · analyst: List" in card_text(lark))
        [card] = cards(lark)
        done = await lark.sim.click(lark.person, card.message_id, "Stop")
        assert "Stopping" in str(done)
        await lark.sim.until(lambda _: any("topped" in each for each in lark.replies()))
        await lark.settled()
        assert (await subtask_statuses(lark)).count("cancelled") >= 1
        assert "waiting" not in await subtask_statuses(lark)
        assert '"Stop"' not in str([shown(lark, one) for one in lark.from_bot()])


@pytest.mark.slow
async def test_a_subtask_is_listed_and_stopped_by_its_id(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules(THREE), SHOWN, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: "? task 3" in card_text(lark))
        await lark.sim.until(lambda _: "● task 2 · analyst: List" in card_text(lark))
        await lark.say("/tasks")
        [listed] = await lark.until_replies(1)
        assert "Waiting for its tasks" in listed
        assert re.search(r"task 1 · analyst · Done · \d+ s: read one", listed)
        found = re.search(r"`(\w+)` task 2 · analyst · Working", listed)
        assert found is not None
        await lark.say(f"/stop {found[1]}")
        await lark.sim.until(lambda _: "- task 2 · analyst: stopped" in card_text(lark))
        assert title(lark) == "Waiting for its tasks"
        [question] = questions(lark)
        await lark.sim.click(lark.person, question.message_id, "Allow once")
        await lark.sim.until(
            lambda _: any(each.startswith("all compared") for each in lark.replies())
        )


async def test_a_message_wakes_the_run_and_gets_one_answer(tmp_path: Path) -> None:
    script = [
        Reply(calls=[delegate("dig")], when=when("compare")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("as you wish", when=When(last_text="hurry")),
        Reply("both are done", when=when("Background tasks of this conversation")),
    ]
    async with open_lark_gateway(tmp_path, Rules(script), SHOWN, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: title(lark) == "Waiting for its tasks")
        hurry = await lark.say("hurry")
        assert (await lark.until_replies(1))[0].startswith("as you wish")
        heard = lark.sim.lark.state.messages[hurry]
        await lark.sim.until(lambda _: [each.emoji for each in heard.reactions] == ["DONE"])
        lark.core.model.release("dig")
        assert (await lark.until_replies(2))[1] == "both are done"


@pytest.mark.slow
async def test_another_process_goes_on_with_the_card(tmp_path: Path) -> None:
    async with (
        LarkSim([APP], speed=100.0) as sim,
        open_lark_gateway(tmp_path, Rules(THREE), SHOWN, sim=sim, environ=NO_GATES) as lark,
    ):
        await lark.say("compare")
        await sim.until(lambda _: "? task 3" in card_text(lark))
        lark.channel.stop()
        await sim.until(lambda _: not sim.lark.delivery.connections)
        async with open_lark(lark.core, sim, SHOWN):
            lark.core.model.release("two")
            await sim.until(lambda _: "✓ task 2" in card_text(lark))
            assert "? task 3 · analyst: waits for you" in card_text(lark)
            await sim.click(lark.person, questions(lark)[0].message_id, "Allow once")
            assert (await lark.until_replies(1))[0].startswith("all compared")
            assert len(cards(lark)) == 1


async def subtask_statuses(lark: LarkGateway) -> list[str]:
    queries = lark.core.services.gateway.queries
    [root] = [task for task in await queries.tasks(LOCAL_OWNER) if not task.is_subtask]
    whole = await queries.task_tree(root.id, LOCAL_OWNER)
    return [item.run.status for item in whole.subtasks]


def shown(lark: LarkGateway, message: ChatMessage) -> dict[str, Any]:
    return lark.sim.card(message.message_id) or {}


def questions(lark: LarkGateway) -> list[ChatMessage]:
    return [one for one in lark.from_bot() if "'question_" in str(shown(lark, one))]


def cards(lark: LarkGateway) -> list[ChatMessage]:
    """Return the cards that show progress."""
    asked = questions(lark)
    return [one for one in lark.from_bot() if "header" in shown(lark, one) and one not in asked]


def title_of(lark: LarkGateway, message: ChatMessage) -> str:
    return str(shown(lark, message)["header"]["title"]["content"])


def title(lark: LarkGateway) -> str:
    return "".join(title_of(lark, one) for one in cards(lark))


def card_text(lark: LarkGateway) -> str:
    first = [shown(lark, one)["body"]["elements"][0] for one in cards(lark)]
    return "".join(element["text"]["content"] for element in first)


def lines(lark: LarkGateway) -> list[str]:
    return card_text(lark).splitlines()


@pytest.mark.slow
async def test_a_message_interrupts_a_run_that_waits_for_its_tasks(tmp_path: Path) -> None:
    script = [
        Reply(calls=[delegate("dig")], when=when("compare")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("about cats", when=When(last_text="cats")),
    ]
    settings = with_values(SHOWN, busy_mode="interrupt")
    async with open_lark_gateway(tmp_path, Rules(script), settings, environ=NO_GATES) as lark:
        await lark.say("compare")
        await lark.sim.until(lambda _: title(lark) == "Waiting for its tasks")
        await lark.core.model.until_open(1)
        await lark.say("no, cats")
        replies = await lark.until_replies(2)
        assert sorted(replies) == ["Interrupted by your next message.", "about cats"]
        await lark.settled()
        statuses = [each.status for each in await all_tasks(lark)]
        assert statuses == ["completed", "cancelled", "cancelled"]


@pytest.mark.slow
async def test_recalling_the_message_ends_the_subtasks_without_a_reply(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules(THREE), SHOWN, environ=NO_GATES) as lark:
        asked = await lark.say("compare")
        await lark.sim.until(lambda _: "● task 2 · analyst: List" in card_text(lark))
        await lark.sim.until(lambda _: "? task 3" in card_text(lark))
        user_actions.recall(lark.sim.lark.state, lark.person.open_id, asked)
        await until_cancelled(lark)
        await lark.settled()
        assert lark.replies() == []


async def test_subtasks_end_when_the_bot_is_removed(tmp_path: Path) -> None:
    script = [
        Reply(calls=[Call("create_task", {"instruction": "dig"})], when=when("start")),
        Reply("started", when=when("start", 1)),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("a report", when=when("Background tasks of this conversation")),
    ]
    async with open_lark_gateway(tmp_path, Rules(script), SHOWN, environ=NO_GATES) as lark:
        await lark.sim.send_text(lark.person, lark.group, "start", mention_bot=True)
        await lark.until_replies(1, lark.group)
        await lark.core.model.until_open(1)
        user_actions.set_bot_presence(
            lark.sim.lark.state, lark.person.open_id, lark.group.chat_id, APP.app_id, present=False
        )
        await until_cancelled(lark)
        await lark.settled()
        assert [each.status for each in await all_tasks(lark)] == ["cancelled", "completed"]


async def until_cancelled(lark: LarkGateway) -> None:
    """Return when a subtask is cancelled and none is unfinished."""
    while True:
        found = {each.status for each in await all_tasks(lark) if each.is_subtask}
        if "cancelled" in found and found <= ENDED:
            return
        await lark.sim.lark.changed_within(0.05)


async def all_tasks(lark: LarkGateway) -> list[Task]:
    return await lark.core.services.gateway.queries.tasks(LOCAL_OWNER)


@pytest.mark.parametrize(("operate", "models"), [((), {"claude-x"}), (("*",), {"claude-x", "y"})])
async def test_only_an_operator_has_subtasks_with_another_model(
    tmp_path: Path, operate: tuple[str, ...], models: set[str]
) -> None:
    script = Rules(
        [
            Reply("dug", when=When(last_user="dig")),
            Reply("over", when=When(results=1)),
            Reply(calls=[Call("subagent", {"tasks": [{"instruction": "dig", "model": "y"}]})]),
        ]
    )
    settings = with_values(QUIET, access=ChatAccess(operate=operate))
    environ = {"LARKSPUR_AGENT__GATES": "off", "LARKSPUR_LLM__MODEL": "claude-x"}
    async with open_lark_gateway(tmp_path, script, settings, environ=environ) as lark:
        await lark.say("start")
        assert (await lark.until_replies(1))[0].startswith("over")
        assert {each["model"] for each in lark.core.model.requests} == models
        refusal = "the person of this task may not choose a model"
        assert (refusal in str(lark.core.model.requests[-1])) == (not operate)
