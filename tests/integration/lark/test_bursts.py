"""Many events at once: each is acknowledged in time and in order, and has exactly one effect."""

import asyncio
import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from internal.settings.chat import ChatAccess
from internal.simulators.lark.model import Chat
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, open_lark_gateway

MESSAGES, CHATS, EVENTS, CLICKS = 60, 50, 100, 20
QUEUE = with_values(QUIET, busy_mode="queue")
OPERATORS = with_values(QUIET, access=ChatAccess(operate=("*",)))


def open_chats(sim: LarkSim, count: int) -> list[Chat]:
    """Return the direct chats of a number of new people."""
    return [sim.dm(sim.lark.state.add_person(f"Person {number}")) for number in range(count)]


async def send_all(sim: LarkSim, chats: list[Chat], count: int) -> list[str]:
    """Send numbered messages at once, to the chats in turn; return their ids."""
    sent = []
    for number in range(count):
        chat = chats[number % len(chats)]
        sent.append(await sim.send_text(chat.members[0], chat, f"message {number}"))
    return sent


def outcomes(sim: LarkSim, sent: list[str]) -> Counter[tuple[str, ...]]:
    """Return how often the events of messages were attempted with which outcomes."""
    pushes = [push for push in sim.pushes if push.message_id in set(sent)]
    return Counter(tuple(push.attempts) for push in pushes)


async def until_acknowledged(sim: LarkSim, sent: list[str]) -> None:
    known = set(sent)
    await sim.until(lambda _: all(push.done for push in sim.pushes if push.message_id in known), 60)


def answered(lark: LarkGateway, chats: list[Chat]) -> list[str]:
    """Return the messages that were replied to."""
    return [one.parent_id for chat in chats for one in lark.from_bot(chat)]


@pytest.mark.slow
async def test_60_messages_of_a_chat_are_answered_in_order(tmp_path: Path) -> None:
    environ = {"LARKSPUR_ACCESS__MAX_WAITING": str(MESSAGES)}
    async with open_lark_gateway(tmp_path, Rules([Reply("done")]), QUEUE, environ=environ) as lark:
        lark.sim.set_faults(limits=False)
        sent = await send_all(lark.sim, [lark.dm], MESSAGES)
        await lark.sim.until(lambda _: len(lark.from_bot()) == MESSAGES, 60)
        await lark.settled()
        assert answered(lark, [lark.dm]) == sent
        requests = lark.core.model.requests
        told = [re.findall(r"message \d+", json.dumps(each["messages"]))[-1] for each in requests]
        assert told == [f"message {number}" for number in range(MESSAGES)]
        assert outcomes(lark.sim, sent) == {("ok",): MESSAGES}


async def test_60_messages_during_a_run_reach_the_model_in_order(tmp_path: Path) -> None:
    script = [Reply(calls=[plan("count")], hold="go"), Reply("all taken")]
    async with open_lark_gateway(tmp_path, script) as lark:
        lark.sim.set_faults(limits=False)
        first = await lark.say("begin")
        await lark.core.model.until_open(1)
        sent = await send_all(lark.sim, [lark.dm], MESSAGES)
        reactions = lark.sim.lark.state.messages
        await lark.sim.until(lambda _: all(reactions[each].reactions for each in sent), 60)
        lark.core.model.release("go")
        assert await lark.until_replies(1) == ["all taken"]
        await lark.settled()
        assert answered(lark, [lark.dm]) == [first]
        told = re.findall(r"message \d+", json.dumps(lark.core.model.requests[-1]["messages"]))
        assert told == [f"message {number}" for number in range(MESSAGES)]


@pytest.mark.slow
async def test_100_events_in_50_chats_are_each_answered_once(tmp_path: Path) -> None:
    async with open_lark_gateway(tmp_path, Rules([Reply("done")]), QUEUE) as lark:
        lark.sim.set_faults(limits=False, fragment_bytes=300)
        chats = open_chats(lark.sim, CHATS)
        sent = await send_all(lark.sim, chats, EVENTS)
        await until_acknowledged(lark.sim, sent)
        assert outcomes(lark.sim, sent) == {("ok",): EVENTS}
        await lark.sim.until(lambda _: len(answered(lark, chats)) >= EVENTS, 60)
        await lark.settled()
        assert Counter(answered(lark, chats)) == dict.fromkeys(sent, 1)


@pytest.mark.slow
async def test_events_are_acknowledged_while_many_runs_stream(tmp_path: Path) -> None:
    streaming = Rules([Reply("word " * 200, pieces=200, hold="go")])
    async with open_lark_gateway(tmp_path, streaming) as lark:
        lark.sim.set_faults(limits=False)
        chats = open_chats(lark.sim, CHATS)
        first = await send_all(lark.sim, chats, CHATS)
        await lark.core.model.until_asked(8)
        lark.core.model.release("go")
        sent = await send_all(lark.sim, open_chats(lark.sim, CHATS), CHATS)
        await until_acknowledged(lark.sim, [*first, *sent])
        assert outcomes(lark.sim, [*first, *sent]) == {("ok",): 2 * CHATS}
        await lark.sim.until(lambda _: len(answered(lark, chats)) == CHATS, 60)


@pytest.mark.slow
async def test_a_burst_while_the_store_is_stuck_is_sent_again_and_answered_once(
    tmp_path: Path,
) -> None:
    async with (
        LarkSim([APP], speed=10.0) as sim,
        open_lark_gateway(tmp_path, Rules([Reply("done")]), QUEUE, sim=sim) as lark,
    ):
        sim.set_faults(limits=False)
        chats = open_chats(sim, CHATS)
        with closing(sqlite3.connect(tmp_path / "larkspur.db")) as other:
            other.execute("begin immediate")
            sent = await send_all(sim, chats, CHATS)
            await sim.until(lambda _: outcomes(sim, sent) == {("failed",): CHATS}, 60)
            other.rollback()
        await until_acknowledged(sim, sent)
        await sim.until(lambda _: len(answered(lark, chats)) >= CHATS, 60)
        await lark.settled()
        assert Counter(answered(lark, chats)) == dict.fromkeys(sent, 1)


async def test_of_20_racing_clicks_one_counts_and_the_others_learn_whose(tmp_path: Path) -> None:
    touch = Call("shell", {"command": "touch ran"})
    script = [Reply(calls=[plan("do it")]), Reply(calls=[touch]), Reply("over")]
    async with open_lark_gateway(tmp_path, script, OPERATORS) as lark:
        sim = lark.sim
        people = [sim.lark.state.add_person(f"Person {number}") for number in range(CLICKS)]
        members = [person.open_id for person in people]
        group = sim.lark.state.add_group("Everyone", members, [APP.app_id])
        await sim.send_text(people[0], group, "touch it", mention_bot=True)
        await sim.until(lambda _: lark.from_bot(group))
        await lark.settled()  # a click on a card that is still being sent is refused
        [card] = lark.from_bot(group)
        labels = ["Allow once", "Deny"]
        async with asyncio.TaskGroup() as tasks:
            clicks = [
                tasks.create_task(sim.click(person, card.message_id, labels[number % 2]))
                for number, person in enumerate(people)
            ]
        toasts = [click.result()["toast"] for click in clicks]
        won = [number for number, toast in enumerate(toasts) if toast["type"] == "success"]
        assert len(won) == 1
        winner = people[won[0]]
        late = {toast["content"] for toast in toasts if toast["type"] == "info"}
        assert len([toast for toast in toasts if toast["type"] == "info"]) == CLICKS - 1
        assert late == {f"Already answered by {winner.name} in Lark: {toasts[won[0]]['content']}."}
        assert await lark.until_replies(1, group) == ["over"]
        await lark.settled()
        ran = list((tmp_path / "workspaces").glob("*/ran"))
        assert len(ran) == (won[0] % 2 == 0)
