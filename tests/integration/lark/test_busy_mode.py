"""Messages while a run works: steered, queued, interrupted, stopped, recalled."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Task
from internal.config.chat import ChatAccess, ChatGroup
from internal.simulators.lark import user_actions
from internal.simulators.lark.simulator import LarkSim
from tests.e2e.test_lark_process import Served, replies, served
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkRig, open_rig, shown_text

INTERRUPTS = with_values(QUIET, busy_mode="interrupt")
OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))
TOUCH = Call("shell", {"command": "touch ran"})


async def recall(rig: LarkRig, message_id: str) -> None:
    """Take a message back, and wait until the bot has heard of it and done what is to be done."""
    user_actions.recall(rig.sim.lark.state, rig.person.open_id, message_id)
    await until(rig, partial(handled, rig, f"recall:{message_id}"))


async def handled(rig: LarkRig, name: str) -> bool:
    inbox = rig.core.house.stores.inbox
    place = await rig.core.house.database.read(partial(inbox.get_state, "lark", APP.app_id, name))
    return place is not None and place.status == "handled"


async def until(rig: LarkRig, holds: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await rig.sim.lark.changed_within(0.02)


async def tasks(rig: LarkRig) -> list[Task]:
    """Return all tasks, oldest first."""
    return (await rig.core.house.gateway.queries.tasks(LOCAL_OWNER))[::-1]


async def statuses(rig: LarkRig) -> list[str]:
    return [task.status for task in await tasks(rig)]


async def until_statuses(rig: LarkRig, *wanted: str) -> None:
    async def so() -> bool:
        return await statuses(rig) == list(wanted)

    await until(rig, so)


def reply_to(rig: LarkRig, message_id: str) -> str | None:
    """Return what the bot answered to a message."""
    return next(shown_text(rig.sim, one) for one in rig.from_bot() if one.parent_id == message_id)


def said_to_model(rig: LarkRig, number: int = -1) -> str:
    return json.dumps(rig.core.model.requests[number]["messages"], ensure_ascii=False)


# Interrupt


async def test_a_message_interrupts_the_run_and_takes_its_place(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("about cats")]
    async with open_rig(tmp_path, script, INTERRUPTS) as rig:
        first = await rig.say("tell me about dogs")
        await rig.core.model.until_open(1)
        second = await rig.say("no, about cats")
        await rig.until_replies(2)
        assert reply_to(rig, first) == "Interrupted by your next message."
        assert reply_to(rig, second) == "about cats"
        await rig.settled()
        assert await statuses(rig) == ["cancelled", "completed"]
        assert len(rig.from_bot()) == 2


async def test_a_run_of_another_person_is_not_interrupted(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        groups = {sim.groups[0].chat_id: ChatGroup(busy_mode="interrupt")}
        script = [Reply("for one", hold="go"), Reply("for two")]
        async with open_rig(tmp_path, script, with_values(QUIET, groups=groups), sim=sim) as rig:
            one, two = sim.people[:2]
            await sim.send_text(one, rig.group, "first", mention_bot=True)
            await rig.core.model.until_open(1)
            waits = await sim.send_text(two, rig.group, "second", mention_bot=True)

            async def taken() -> bool:
                inbox = rig.core.house.stores.inbox
                found = await rig.core.house.database.read(
                    partial(inbox.get_state, "lark", APP.app_id, waits)
                )
                return found is not None and found.status == "assigned"

            await until(rig, taken)
            rig.core.model.release("go")
            assert await rig.until_replies(2, rig.group) == ["for one", "for two"]


# Stop


async def test_after_a_stop_on_the_page_a_message_is_a_new_task(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("the next one")]
    async with open_rig(tmp_path, script) as rig:
        first = await rig.say("work")
        await rig.core.model.until_open(1)
        steering = await rig.say("and hurry")
        await rig.sim.until(lambda _: rig.sim.lark.state.messages[steering].reactions)
        [task] = await tasks(rig)
        await rig.core.house.gateway.stop(task.id, LOCAL_OWNER, "web")
        after = await rig.say("something else")
        await rig.until_replies(2)
        assert "Stopped." in (reply_to(rig, first) or "")
        assert reply_to(rig, after) == "the next one"
        assert "and hurry" not in said_to_model(rig)
        await rig.settled()
        assert await statuses(rig) == ["cancelled", "completed"]


async def test_stop_all_ends_running_and_queued_tasks(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("never"), Reply("never")]
    async with open_rig(tmp_path, script, with_values(QUIET, busy_mode="queue")) as rig:
        for count, text in enumerate(("one", "two", "three"), 1):
            await rig.say(text)
            await until_statuses(rig, *["running", *["queued"] * (count - 1)])
        await rig.say("/stop all")
        await until_statuses(rig, "cancelled", "cancelled", "cancelled")
        await rig.settled()
        assert "Stopping 3 runs…" in rig.replies()
        assert len(rig.core.model.requests) == 1


async def test_stop_by_a_short_id_and_resume(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("gone on")]
    async with open_rig(tmp_path, script, with_values(QUIET, busy_mode="queue")) as rig:
        await rig.say("one")
        await rig.core.model.until_open(1)
        await rig.say("two")
        await until_statuses(rig, "running", "queued")
        second = (await tasks(rig))[1]
        await rig.say("/stop nosuch")
        await rig.until_replies(1)
        await rig.say(f"/stop {second.id[-6:]}")
        await until_statuses(rig, "running", "cancelled")
        rig.core.model.release("go")
        await until_statuses(rig, "completed", "cancelled")
        resuming = await rig.say("/resume")
        await rig.sim.until(lambda _: "gone on" in rig.replies())
        assert reply_to(rig, resuming) == "gone on"
        assert "two" in said_to_model(rig)
        await rig.say("/resume nosuch")
        await rig.sim.until(lambda _: "No failed or stopped task" in rig.replies()[-1])


async def test_stop_closes_the_open_question_as_a_no(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with open_rig(tmp_path, script, OPERATORS) as rig:
        await rig.say("touch it")
        await until_statuses(rig, "waiting")
        await rig.say("/stop")
        await until_statuses(rig, "cancelled")
        await rig.say("/questions")
        await rig.sim.until(lambda _: "No open questions." in rig.replies())
        assert len(rig.core.model.requests) == 2


# Recall


async def test_a_recalled_task_in_the_queue_never_runs(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("never")]
    async with open_rig(tmp_path, script, with_values(QUIET, busy_mode="queue")) as rig:
        await rig.say("one")
        await rig.core.model.until_open(1)
        second = await rig.say("two")
        await until_statuses(rig, "running", "queued")
        await recall(rig, second)
        assert await statuses(rig) == ["running", "cancelled"]
        rig.core.model.release("go")
        await rig.until_replies(1)
        await rig.settled()
        assert rig.replies() == ["first"]
        assert len(rig.core.model.requests) == 1


async def test_recalled_steering_is_not_delivered(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("counted")]
    async with open_rig(tmp_path, script) as rig:
        await rig.say("count to ten")
        await rig.core.model.until_open(1)
        second = await rig.say("in French")
        await rig.sim.until(lambda _: rig.sim.lark.state.messages[second].reactions)
        await recall(rig, second)
        rig.core.model.release("go")
        assert await rig.until_replies(1) == ["counted"]
        assert "in French" not in said_to_model(rig)
        await rig.settled()
        assert await statuses(rig) == ["completed"]


async def test_a_recalled_message_ends_its_run_silently(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("never", hold="go"), Reply("here")]) as rig:
        first = await rig.say("work for an hour")
        await rig.core.model.until_open(1)
        await recall(rig, first)
        await until_statuses(rig, "cancelled")
        await rig.say("hello")
        assert await rig.until_replies(1) == ["here"]
        await rig.settled()
        assert rig.replies() == ["here"]


async def test_a_recalled_message_closes_the_question_of_its_run(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with open_rig(tmp_path, script, OPERATORS) as rig:
        first = await rig.say("touch it")
        await until_statuses(rig, "waiting")
        await recall(rig, first)
        assert await statuses(rig) == ["cancelled"]
        await rig.settled()
        assert rig.replies() == []
        cards = [json.dumps(rig.sim.card(one.message_id)) for one in rig.from_bot()]
        assert len(cards) == 1
        assert "button" not in cards[0]


async def test_a_recall_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("answered"), Reply("second")]) as rig:
        first = await rig.say("hello")
        await rig.until_replies(1)
        await rig.settled()
        await recall(rig, first)
        assert await statuses(rig) == ["completed"]
        await rig.say("again")
        assert await rig.until_replies(2) == ["answered", "second"]


async def test_a_recall_may_arrive_before_its_message(tmp_path: Path) -> None:
    async with open_rig(tmp_path, [Reply("the other")]) as rig:
        event = {"message_id": "om_overtaken", "chat_id": rig.dm.chat_id}
        rig.sim.push("im.message.recalled_v1", {**event, "recall_type": "message_owner"})
        await until(rig, partial(handled, rig, "recall:om_overtaken"))
        rig.sim.push("im.message.receive_v1", received(rig, "om_overtaken"))
        await until(rig, partial(handled, rig, "om_overtaken"))
        await rig.say("hello")
        assert await rig.until_replies(1) == ["the other"]
        assert len(await tasks(rig)) == 1


async def test_a_recall_of_an_unknown_message_and_a_malformed_one_are_ignored(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, [Reply("still here")]) as rig:
        for broken in ({}, {"message_id": "om_1"}, {"message_id": 7, "chat_id": []}):
            rig.sim.push("im.message.recalled_v1", broken)
        event = {"message_id": "om_never", "chat_id": rig.dm.chat_id}
        for _ in range(3):
            rig.sim.push("im.message.recalled_v1", event)
        await until(rig, partial(handled, rig, "recall:om_never"))
        await rig.say("hello")
        assert await rig.until_replies(1) == ["still here"]
        assert {tuple(push.attempts) for push in rig.sim.pushes if push.done} == {("ok",)}


def received(rig: LarkRig, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": rig.person.ids(), "sender_type": "user"},
        "message": {
            "message_id": message_id,
            "chat_id": rig.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "taken back"}',
        },
    }


# Commits of the process that dies: its start, the message, its task, its run, then the recall.
@pytest.mark.parametrize("plan", ["after:10", "before:16", "after:16"])
async def test_a_recall_survives_a_kill(tmp_path: Path, plan: str) -> None:
    rules = Rules(
        [Reply("the next one", when=When(last_user="and now")), Reply("taken back", hold="go")]
    )
    async with LarkSim([APP], speed=500.0) as sim, ScriptedAnthropic(rules) as model:
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
