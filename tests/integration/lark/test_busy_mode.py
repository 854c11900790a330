"""Messages while a run works: steered, queued, interrupted, stopped, recalled."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.settings.chat import ChatAccess, ChatGroup
from internal.simulators.lark import user_actions
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.chat_settings import with_values
from tests.support.database_files import MIGRATION_COMMITS
from tests.support.lark_chats import TOUCH
from tests.support.lark_gateway import (
    APP,
    QUIET,
    LarkGateway,
    open_lark_gateway,
    question_line,
)
from tests.support.lark_process import Served, replies, served
from tests.support.lark_runs import (
    INTERRUPTS,
    handled,
    reply_to,
    said_to_model,
    statuses,
    tasks,
    until,
    until_statuses,
)
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply, Rules, When

OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))


async def recall(lark: LarkGateway, message_id: str) -> None:
    """Recall a message, and wait until the bot has received and handled the event."""
    user_actions.recall(lark.sim.lark.state, lark.person.open_id, message_id)
    await until(lark, partial(handled, lark, f"recall:{message_id}"))


# Interrupt


async def test_a_message_interrupts_the_run_and_takes_its_place(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("about cats")]
    async with open_lark_gateway(tmp_path, script, INTERRUPTS) as lark:
        first = await lark.say("tell me about dogs")
        await lark.core.model.until_open(1)
        second = await lark.say("no, about cats")
        await lark.until_replies(2)
        assert reply_to(lark, first) == "Interrupted by your next message."
        assert reply_to(lark, second) == "about cats"
        await lark.settled()
        assert await statuses(lark) == ["cancelled", "completed"]
        assert len(lark.from_bot()) == 2


async def test_a_run_of_another_person_is_not_interrupted(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        groups = {sim.groups[0].chat_id: ChatGroup(busy_mode="interrupt")}
        script = [Reply("for one", hold="go"), Reply("for two")]
        async with open_lark_gateway(
            tmp_path, script, with_values(QUIET, groups=groups), sim=sim
        ) as lark:
            one, two = sim.people[:2]
            await sim.send_text(one, lark.group, "first", mention_bot=True)
            await lark.core.model.until_open(1)
            waits = await sim.send_text(two, lark.group, "second", mention_bot=True)

            async def taken() -> bool:
                inbox = lark.core.services.stores.inbox
                found = await lark.core.services.database.read(
                    partial(inbox.get_state, "lark", APP.app_id, waits)
                )
                return found is not None and found.status == "assigned"

            await until(lark, taken)
            lark.core.model.release("go")
            assert await lark.until_replies(2, lark.group) == ["for one", "for two"]


# Stop


async def test_after_a_stop_on_the_page_a_message_is_a_new_task(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("the next one")]
    async with open_lark_gateway(tmp_path, script) as lark:
        first = await lark.say("work")
        await lark.core.model.until_open(1)
        steering = await lark.say("and hurry")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[steering].reactions)
        [task] = await tasks(lark)
        await lark.core.services.gateway.stop(task.id, LOCAL_OWNER, "web")
        after = await lark.say("something else")
        await lark.until_replies(3)
        assert "Stopped." in (reply_to(lark, first) or "")
        assert "and hurry" in (reply_to(lark, steering) or "")
        assert reply_to(lark, after) == "the next one"
        assert "and hurry" not in said_to_model(lark)
        await lark.settled()
        assert await statuses(lark) == ["cancelled", "completed"]


async def test_stop_all_ends_running_and_queued_tasks(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("never"), Reply("never")]
    async with open_lark_gateway(tmp_path, script, with_values(QUIET, busy_mode="queue")) as lark:
        for count, text in enumerate(("one", "two", "three"), 1):
            await lark.say(text)
            await until_statuses(lark, *["running", *["queued"] * (count - 1)])
        await lark.core.model.until_open(1)
        await lark.say("/stop all")
        await until_statuses(lark, "cancelled", "cancelled", "cancelled")
        await lark.settled()
        assert [text[:8] for text in lark.replies()] == ["Stopped."] * 3
        assert len(lark.core.model.requests) == 1


async def test_stop_by_a_short_id_and_resume(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("gone on")]
    async with open_lark_gateway(tmp_path, script, with_values(QUIET, busy_mode="queue")) as lark:
        await lark.say("one")
        await lark.core.model.until_open(1)
        await lark.say("two")
        await until_statuses(lark, "running", "queued")
        second = (await tasks(lark))[1]
        await lark.say("/stop nosuch")
        await lark.until_replies(1)
        await lark.say(f"/stop {second.id[-6:]}")
        await until_statuses(lark, "running", "cancelled")
        lark.core.model.release("go")
        await until_statuses(lark, "completed", "cancelled")
        resuming = await lark.say("/resume")
        await lark.sim.until(lambda _: "gone on" in lark.replies())
        assert reply_to(lark, resuming) == "gone on"
        assert "two" in said_to_model(lark)
        await lark.say("/resume nosuch")
        await lark.sim.until(lambda _: "No failed or stopped task" in lark.replies()[-1])


async def test_stop_closes_the_open_question_as_a_no(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with open_lark_gateway(tmp_path, script, OPERATORS) as lark:
        await lark.say("touch it")
        await until_statuses(lark, "waiting")
        await lark.say("/stop")
        await until_statuses(lark, "cancelled")
        await lark.say("/questions")
        await lark.sim.until(lambda _: "No open questions." in lark.replies())
        assert len(lark.core.model.requests) == 2


# Recall


async def test_a_recalled_task_in_the_queue_never_runs(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("never")]
    async with open_lark_gateway(tmp_path, script, with_values(QUIET, busy_mode="queue")) as lark:
        await lark.say("one")
        await lark.core.model.until_open(1)
        second = await lark.say("two")
        await until_statuses(lark, "running", "queued")
        await recall(lark, second)
        assert await statuses(lark) == ["running", "cancelled"]
        lark.core.model.release("go")
        await lark.until_replies(1)
        await lark.settled()
        assert lark.replies() == ["first"]
        assert len(lark.core.model.requests) == 1


async def test_recalled_steering_is_not_delivered(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("counted")]
    async with open_lark_gateway(tmp_path, script) as lark:
        await lark.say("count to ten")
        await lark.core.model.until_open(1)
        second = await lark.say("in French")
        await lark.sim.until(lambda _: lark.sim.lark.state.messages[second].reactions)
        await recall(lark, second)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["counted"]
        assert "in French" not in said_to_model(lark)
        await lark.settled()
        assert await statuses(lark) == ["completed"]


async def test_a_recalled_message_ends_its_run_silently(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("never", hold="go"), Reply("here")]) as lark:
        first = await lark.say("work for an hour")
        await lark.core.model.until_open(1)
        await recall(lark, first)
        await until_statuses(lark, "cancelled")
        await lark.say("hello")
        assert await lark.until_replies(1) == ["here"]
        await lark.settled()
        assert lark.replies() == ["here"]


async def test_a_recalled_message_closes_the_question_of_its_run(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with open_lark_gateway(tmp_path, script, OPERATORS) as lark:
        first = await lark.say("touch it")
        await until_statuses(lark, "waiting")
        await recall(lark, first)
        assert await statuses(lark) == ["cancelled"]
        await lark.settled()
        assert lark.replies() == []
        cards = [json.dumps(lark.sim.card(one.message_id)) for one in lark.from_bot()]
        assert len(cards) == 1
        assert "button" not in cards[0]


async def test_a_recall_withdraws_the_question_of_its_task(tmp_path: Path) -> None:
    settings = with_values(QUIET, access=ChatAccess(operate=("*",)))
    script = [Reply(calls=[plan("do it")]), Reply(calls=[Call("shell", {"command": "touch ran"})])]
    async with open_lark_gateway(tmp_path, script, settings) as lark:
        asked = await lark.say("touch it")
        await lark.sim.until(lambda _: lark.from_bot())
        await recall(lark, asked)
        await until_statuses(lark, "cancelled")
        await lark.settled()
        [question] = lark.from_bot()
        line = question_line(lark.sim.card(question.message_id) or {})
        name = f"<at id={lark.person.open_id}></at>"
        assert line == f"○ Withdrawn by {name} · Run touch ran"


async def test_a_recall_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("answered"), Reply("second")]) as lark:
        first = await lark.say("hello")
        await lark.until_replies(1)
        await lark.settled()
        await recall(lark, first)
        assert await statuses(lark) == ["completed"]
        await lark.say("again")
        assert await lark.until_replies(2) == ["answered", "second"]


async def test_a_recall_may_arrive_before_its_message(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, [Reply("the other")]) as lark:
        event = {"message_id": "om_overtaken", "chat_id": lark.dm.chat_id}
        lark.sim.push("im.message.recalled_v1", {**event, "recall_type": "message_owner"})
        await until(lark, partial(handled, lark, "recall:om_overtaken"))
        lark.sim.push("im.message.receive_v1", received(lark, "om_overtaken"))
        await until(lark, partial(handled, lark, "om_overtaken"))
        await lark.say("hello")
        assert await lark.until_replies(1) == ["the other"]
        assert len(await tasks(lark)) == 1


async def test_a_recall_of_an_unknown_message_and_a_malformed_one_are_ignored(
    tmp_path: Path,
) -> None:
    async with open_lark_gateway(tmp_path, [Reply("still here")]) as lark:
        for broken in ({}, {"message_id": "om_1"}, {"message_id": 7, "chat_id": []}):
            lark.sim.push("im.message.recalled_v1", broken)
        event = {"message_id": "om_never", "chat_id": lark.dm.chat_id}
        for _ in range(3):
            lark.sim.push("im.message.recalled_v1", event)
        await until(lark, partial(handled, lark, "recall:om_never"))
        await lark.say("hello")
        assert await lark.until_replies(1) == ["still here"]
        assert {tuple(push.attempts) for push in lark.sim.pushes if push.done} == {("ok",)}


def received(lark: LarkGateway, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": lark.person.ids(), "sender_type": "user"},
        "message": {
            "message_id": message_id,
            "chat_id": lark.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "taken back"}',
        },
    }


# Commits of the process that dies: its start, the message, its task, its run, then the recall.
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(f"after:{MIGRATION_COMMITS + 5}", marks=pytest.mark.slow),
        pytest.param(f"before:{MIGRATION_COMMITS + 11}", marks=pytest.mark.slow),
        f"after:{MIGRATION_COMMITS + 11}",
    ],
)
@pytest.mark.slow
async def test_a_recall_survives_a_kill(tmp_path: Path, plan: str) -> None:
    rules = Rules(
        [Reply("the next one", when=When(last_user="and now")), Reply("taken back", hold="go")]
    )
    async with LarkSim([APP], speed=500.0) as sim, ScriptedOpenAI(rules) as model:
        sim.set_faults(limits=False)
        person, chat = sim.people[0], sim.dm(sim.people[0])
        async with served(tmp_path, sim, model, plan) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            recalled = await sim.send_text(person, chat, "forget this")
            dead = asyncio.create_task(gateway.over())
            began = asyncio.create_task(model.until_open(1))
            await asyncio.wait([dead, began], return_when=asyncio.FIRST_COMPLETED)
            user_actions.recall(sim.lark.state, person.open_id, recalled)
            over = asyncio.create_task(sim.until(lambda _: all(p.done for p in sim.pushes), 60))
            await asyncio.wait([dead, over], return_when=asyncio.FIRST_COMPLETED)
            gateway.kill()
            await dead
            for waiting in (began, over):
                waiting.cancel()
                await asyncio.wait([waiting])
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: all(push.done for push in sim.pushes), 60)
            await sim.send_text(person, chat, "and now?")
            await sim.until(lambda _: replies(sim) == ["the next one"], 60)
            async with asyncio.timeout(30):
                while not await ended(gateway):
                    await sim.lark.changed_within(0.1)
        assert replies(sim) == ["the next one"]


async def ended(gateway: Served) -> bool:
    tasks = (await gateway.client.request("GET", "/api/tasks")).json()["tasks"]
    return {task["status"] for task in tasks} <= {"completed", "cancelled"}
