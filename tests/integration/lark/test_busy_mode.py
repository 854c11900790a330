"""Messages while a run works: steered, queued, interrupted, stopped, recalled."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Task
from internal.channels.chat.policy import GroupRules
from internal.simulators.lark import user_actions
from internal.simulators.lark.simulator import LarkSim
from tests.e2e.test_lark_process import Served, replies, served
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules, ScriptedAnthropic, When
from tests.support.lark_gateway import APP, QUIET, Rig, rig, shown_text

INTERRUPTS = replace(QUIET, busy_mode="interrupt")
OPERATORS = replace(QUIET, operate=("*",))
TOUCH = Call("shell", {"command": "touch ran"})


async def recall(house: Rig, message_id: str) -> None:
    """Take a message back, and wait until the bot has heard of it and done what is to be done."""
    user_actions.recall(house.sim.lark.state, house.person.open_id, message_id)
    await until(house, partial(handled, house, f"recall:{message_id}"))


async def handled(house: Rig, name: str) -> bool:
    inbox = house.core.house.stores.inbox
    place = await house.core.house.database.read(partial(inbox.get_state, "lark", APP.app_id, name))
    return place is not None and place.status == "handled"


async def until(house: Rig, holds: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await house.sim.lark.changed_within(0.02)


async def tasks(house: Rig) -> list[Task]:
    """Return all tasks, oldest first."""
    return (await house.core.house.gateway.queries.tasks(LOCAL_OWNER))[::-1]


async def statuses(house: Rig) -> list[str]:
    return [task.status for task in await tasks(house)]


async def until_statuses(house: Rig, *wanted: str) -> None:
    async def so() -> bool:
        return await statuses(house) == list(wanted)

    await until(house, so)


def reply_to(house: Rig, message_id: str) -> str | None:
    """Return what the bot answered to a message."""
    return next(
        shown_text(house.sim, one) for one in house.from_bot() if one.parent_id == message_id
    )


def said_to_model(house: Rig, number: int = -1) -> str:
    return json.dumps(house.core.model.requests[number]["messages"], ensure_ascii=False)


# Interrupt


async def test_a_message_interrupts_the_run_and_takes_its_place(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("about cats")]
    async with rig(tmp_path, script, INTERRUPTS) as house:
        first = await house.say("tell me about dogs")
        await house.core.model.until_open(1)
        second = await house.say("no, about cats")
        await house.until_replies(2)
        assert reply_to(house, first) == "Interrupted by your next message."
        assert reply_to(house, second) == "about cats"
        await house.settled()
        assert await statuses(house) == ["cancelled", "completed"]
        assert len(house.from_bot()) == 2


async def test_nobody_interrupts_the_run_of_somebody_else(tmp_path: Path) -> None:
    async with LarkSim([APP], speed=100.0) as sim:
        groups = {sim.groups[0].chat_id: GroupRules(busy_mode="interrupt")}
        script = [Reply("for one", hold="go"), Reply("for two")]
        async with rig(tmp_path, script, replace(QUIET, groups=groups), sim=sim) as house:
            one, two = sim.people[:2]
            await sim.send_text(one, house.group, "first", mention_bot=True)
            await house.core.model.until_open(1)
            waits = await sim.send_text(two, house.group, "second", mention_bot=True)

            async def taken() -> bool:
                inbox = house.core.house.stores.inbox
                found = await house.core.house.database.read(
                    partial(inbox.get_state, "lark", APP.app_id, waits)
                )
                return found is not None and found.status == "assigned"

            await until(house, taken)
            house.core.model.release("go")
            assert await house.until_replies(2, house.group) == ["for one", "for two"]


# Stop


async def test_a_stop_on_the_page_ends_it_and_what_follows_is_a_new_task(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("the next one")]
    async with rig(tmp_path, script) as house:
        first = await house.say("work")
        await house.core.model.until_open(1)
        steering = await house.say("and hurry")
        await house.sim.until(lambda _: house.sim.lark.state.messages[steering].reactions)
        [task] = await tasks(house)
        await house.core.house.gateway.stop(task.id, LOCAL_OWNER, "web")
        after = await house.say("something else")
        await house.until_replies(2)
        assert "Stopped." in (reply_to(house, first) or "")
        assert reply_to(house, after) == "the next one"
        assert "and hurry" not in said_to_model(house)
        await house.settled()
        assert await statuses(house) == ["cancelled", "completed"]


async def test_stop_all_ends_what_runs_and_what_waits(tmp_path: Path) -> None:
    script = [Reply("never", hold="go"), Reply("never"), Reply("never")]
    async with rig(tmp_path, script, replace(QUIET, busy_mode="queue")) as house:
        for count, text in enumerate(("one", "two", "three"), 1):
            await house.say(text)
            await until_statuses(house, *["running", *["queued"] * (count - 1)])
        await house.say("/stop all")
        await until_statuses(house, "cancelled", "cancelled", "cancelled")
        await house.settled()
        assert "Stopping 3 runs…" in house.replies()
        assert len(house.core.model.requests) == 1


async def test_stop_by_a_short_id_and_resume(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("gone on")]
    async with rig(tmp_path, script, replace(QUIET, busy_mode="queue")) as house:
        await house.say("one")
        await house.core.model.until_open(1)
        await house.say("two")
        await until_statuses(house, "running", "queued")
        second = (await tasks(house))[1]
        await house.say("/stop nosuch")
        await house.until_replies(1)
        await house.say(f"/stop {second.id[-6:]}")
        await until_statuses(house, "running", "cancelled")
        house.core.model.release("go")
        await until_statuses(house, "completed", "cancelled")
        resuming = await house.say("/resume")
        await house.sim.until(lambda _: "gone on" in house.replies())
        assert reply_to(house, resuming) == "gone on"
        assert "two" in said_to_model(house)
        await house.say("/resume nosuch")
        await house.sim.until(lambda _: "No failed or stopped task" in house.replies()[-1])


async def test_stop_closes_the_open_question_as_a_no(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with rig(tmp_path, script, OPERATORS) as house:
        await house.say("touch it")
        await until_statuses(house, "waiting")
        await house.say("/stop")
        await until_statuses(house, "cancelled")
        await house.say("/questions")
        await house.sim.until(lambda _: "No open questions." in house.replies())
        assert len(house.core.model.requests) == 2


# Recall


async def test_a_recalled_task_in_the_queue_never_runs(tmp_path: Path) -> None:
    script = [Reply("first", hold="go"), Reply("never")]
    async with rig(tmp_path, script, replace(QUIET, busy_mode="queue")) as house:
        await house.say("one")
        await house.core.model.until_open(1)
        second = await house.say("two")
        await until_statuses(house, "running", "queued")
        await recall(house, second)
        assert await statuses(house) == ["running", "cancelled"]
        house.core.model.release("go")
        await house.until_replies(1)
        await house.settled()
        assert house.replies() == ["first"]
        assert len(house.core.model.requests) == 1


async def test_recalled_steering_is_not_told_to_the_run(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("counted")]
    async with rig(tmp_path, script) as house:
        await house.say("count to ten")
        await house.core.model.until_open(1)
        second = await house.say("in French")
        await house.sim.until(lambda _: house.sim.lark.state.messages[second].reactions)
        await recall(house, second)
        house.core.model.release("go")
        assert await house.until_replies(1) == ["counted"]
        assert "in French" not in said_to_model(house)
        await house.settled()
        assert await statuses(house) == ["completed"]


async def test_a_recalled_message_ends_its_run_without_a_word(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("never", hold="go"), Reply("here")]) as house:
        first = await house.say("work for an hour")
        await house.core.model.until_open(1)
        await recall(house, first)
        await until_statuses(house, "cancelled")
        await house.say("hello")
        assert await house.until_replies(1) == ["here"]
        await house.settled()
        assert house.replies() == ["here"]


async def test_a_recalled_message_closes_the_question_of_its_run(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("do it")]), Reply(calls=[TOUCH])]
    async with rig(tmp_path, script, OPERATORS) as house:
        first = await house.say("touch it")
        await until_statuses(house, "waiting")
        await recall(house, first)
        assert await statuses(house) == ["cancelled"]
        await house.settled()
        assert house.replies() == []
        cards = [json.dumps(house.sim.card(one.message_id)) for one in house.from_bot()]
        assert len(cards) == 1
        assert "button" not in cards[0]


async def test_a_recall_after_the_answer_changes_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("answered"), Reply("second")]) as house:
        first = await house.say("hello")
        await house.until_replies(1)
        await house.settled()
        await recall(house, first)
        assert await statuses(house) == ["completed"]
        await house.say("again")
        assert await house.until_replies(2) == ["answered", "second"]


async def test_a_recall_that_overtakes_its_message_is_still_one(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("the other")]) as house:
        event = {"message_id": "om_overtaken", "chat_id": house.dm.chat_id}
        house.sim.push("im.message.recalled_v1", {**event, "recall_type": "message_owner"})
        await until(house, partial(handled, house, "recall:om_overtaken"))
        house.sim.push("im.message.receive_v1", received(house, "om_overtaken"))
        await until(house, partial(handled, house, "om_overtaken"))
        await house.say("hello")
        assert await house.until_replies(1) == ["the other"]
        assert len(await tasks(house)) == 1


async def test_a_recall_of_nothing_and_a_broken_one_are_let_go(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("still here")]) as house:
        for broken in ({}, {"message_id": "om_1"}, {"message_id": 7, "chat_id": []}):
            house.sim.push("im.message.recalled_v1", broken)
        event = {"message_id": "om_never", "chat_id": house.dm.chat_id}
        for _ in range(3):
            house.sim.push("im.message.recalled_v1", event)
        await until(house, partial(handled, house, "recall:om_never"))
        await house.say("hello")
        assert await house.until_replies(1) == ["still here"]
        assert {tuple(push.attempts) for push in house.sim.pushes if push.done} == {("ok",)}


def received(house: Rig, message_id: str) -> dict[str, object]:
    return {
        "sender": {"sender_id": house.person.ids(), "sender_type": "user"},
        "message": {
            "message_id": message_id,
            "chat_id": house.dm.chat_id,
            "chat_type": "p2p",
            "message_type": "text",
            "content": '{"text": "taken back"}',
        },
    }


# Commits of the process that dies: its start, the message, its task, its run, then the recall.
@pytest.mark.parametrize("plan", ["after:10", "before:16", "after:16"])
async def test_killed_around_a_recall_it_holds(tmp_path: Path, plan: str) -> None:
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
