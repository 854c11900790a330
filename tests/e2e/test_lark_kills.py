"""A real gateway is killed in each phase of a message from Lark; the next one completes it once."""

import asyncio
import json
from pathlib import Path

import pytest

from internal.agent.domain.tasks import MAX_CRASHES
from internal.channels.chat.chat_queues import DIED, MAX_ATTEMPTS
from internal.simulators.lark.faults import AnswerFault
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.lark_process import from_bot, idle, open_sim, replies, say, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply, Rules

OPERATORS = {
    "LARKSPUR_CHANNELS__LARK__ACCESS__OPERATE": '["*"]',
    "LARKSPUR_CHANNELS__LARK__PROGRESS": "off",
}
ASKING = [
    Reply(calls=[plan("do it")]),
    Reply(calls=[Call("shell", {"command": "touch ran"})]),
    Reply("over"),
]

CRASHED = "The process died several times while it executed this run."

PHASES = {
    "received, not accepted": "unstored:accept_message",
    "accepted, being processed": "stored:accept_message",
    "processed, not started": "stored:assign_message",
    "started": "stored:claim_run",
    "ended, not sent": "stored:end_run",
    "being sent": "stored:begin_attempt",
    "sent, not recorded": "unstored:settle_message",
}
DEFAULT_PHASES = ("started", "sent, not recorded")
"""The others are slow and run in CI."""


@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(crash, id=phase, marks=() if phase in DEFAULT_PHASES else pytest.mark.slow)
        for phase, crash in PHASES.items()
    ],
)
@pytest.mark.first_rows(1)
async def test_a_kill_in_each_phase_leaves_exactly_one_reply(tmp_path: Path, crash: str) -> None:
    async with open_sim() as sim, ScriptedOpenAI(Rules([Reply("exactly once")])) as model:
        async with served(tmp_path, sim, model, crash) as gateway:
            sent = await say(sim, "hello")
            await gateway.over()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: sim.lark.delivery.connections, 60)
            sim.redeliver(sent)
            [push] = [each for each in sim.pushes if each.message_id]
            await sim.until(lambda _: "ok" in push.attempts[1:], 60)
            await sim.until(lambda _: replies(sim), 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]


@pytest.mark.slow
async def test_a_kill_while_missed_messages_are_taken_loses_and_doubles_none(
    tmp_path: Path,
) -> None:
    async with open_sim() as sim, ScriptedOpenAI(Rules([Reply("heard")])) as model:
        async with served(tmp_path, sim, model) as gateway:
            await say(sim, "hello")
            await sim.until(lambda _: replies(sim), 60)
            await idle(gateway, sim)
            sim.lark.deafen()
            sent = [await say(sim, text) for text in ("one", "two", "three")]
            gateway.kill()
            await gateway.over()
        for _ in range(2):
            async with served(tmp_path, sim, model, "stored:accept_message") as gateway:
                await gateway.over()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: len(replies(sim)) == 4, 60)
            await idle(gateway, sim)
            health = await gateway.lark_health()
            assert "1 message that had not arrived was taken" in health["detail"]
            assert health["ok"]
        assert sorted(one.parent_id for one in from_bot(sim)[1:]) == sorted(sent)


@pytest.mark.slow
async def test_a_message_that_kills_each_process_is_set_aside(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(Rules([Reply("hello to you")])) as model:
        for attempt in range(MAX_ATTEMPTS):
            async with served(tmp_path, sim, model, "stored:begin_processing") as gateway:
                if not attempt:
                    await say(sim, "a poisonous message")
                await gateway.over()
        async with served(tmp_path, sim, model) as gateway:
            await say(sim, "hello")
            await sim.until(lambda _: len(replies(sim)) == 2, 60)
            await idle(gateway, sim)
            path = "/api/dead-letters"
            [letter] = (await gateway.client.request("GET", path)).json()["dead_letters"]
            assert letter["reason"] == DIED.format(MAX_ATTEMPTS)
            assert (letter["kind"], letter["attempts"]) == ("incoming", MAX_ATTEMPTS)
            health = await gateway.client.request("GET", "/health")
            assert health.json()["dead_letters"] == 1
            retry = await gateway.client.post(f"{path}/{letter['id']}/retry", {})
            assert retry.status == 204
            await sim.until(lambda _: len(replies(sim)) == 3, 60)
        assert [each[:30] for each in replies(sim)] == [
            "Your message could not be proc",
            "hello to you",
            "hello to you",
        ]


@pytest.mark.slow
async def test_a_run_that_kills_three_processes_asks_in_its_chat(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(Rules([Reply("in the end")])) as model:
        for crash in range(MAX_CRASHES):
            async with served(tmp_path, sim, model, "stored:claim_run") as gateway:
                if not crash:
                    await say(sim, "hello")
                await gateway.over()
        async with served(tmp_path, sim, model, **OPERATORS) as gateway:
            await sim.until(lambda _: any(CRASHED in each for each in cards(sim)), 60)
            await say(sim, "retry")
            await sim.until(lambda _: replies(sim) == ["in the end"], 60)
            await idle(gateway, sim)


@pytest.mark.slow
async def test_a_kill_while_the_model_answers_leaves_one_reply_and_a_final_card(
    tmp_path: Path,
) -> None:
    rules = Rules([Reply("exactly once", hold="go")])
    async with open_sim() as sim, ScriptedOpenAI(rules) as model:
        async with served(tmp_path, sim, model) as gateway:
            await say(sim, "hello")
            await sim.until(lambda _: shows_work(sim), 60)
            gateway.kill()
            await gateway.over()
        model.release("go")
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: replies(sim), 60)
            await sim.until(lambda _: not shows_work(sim), 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("insert_question", id="asked, not sent"),
        pytest.param("answer_question", id="answered", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
async def test_a_kill_around_a_question_leaves_one_card_and_one_reply(
    tmp_path: Path, statement: str
) -> None:
    async with open_sim() as sim, ScriptedOpenAI(ASKING) as model:
        async with served(tmp_path, sim, model, f"stored:{statement}", **OPERATORS) as gateway:
            await say(sim, "touch it")
            killed = asyncio.create_task(gateway.over())
            if statement == "answer_question":
                await click_when_known(sim)
            await killed
        async with served(tmp_path, sim, model, **OPERATORS) as gateway:
            if statement == "insert_question":
                await click_when_known(sim)
            await sim.until(lambda _: replies(sim) == ["over"], 60)
            await sim.until(lambda _: "Allowed once" in json.dumps(card(sim)), 60)
            await idle(gateway, sim)
        assert len(from_bot(sim)) == 2


def shows_work(sim: LarkSim) -> bool:
    return any('"Working"' in one.content for one in from_bot(sim))


def cards(sim: LarkSim) -> list[str]:
    """Return the JSON of each card that the bot sent."""
    return [json.dumps(sim.card(message.message_id)) for message in from_bot(sim)]


def card(sim: LarkSim) -> dict[str, object]:
    return sim.card(from_bot(sim)[0].message_id) or {}


async def click_when_known(sim: LarkSim) -> None:
    """Click until the gateway knows the card: it is refused while it is still being sent."""
    await sim.until(lambda _: from_bot(sim), 60)
    await sim.until(lambda _: sim.lark.delivery.connections, 60)
    level = "warning"
    while level == "warning":
        clicked = await sim.click(sim.people[0], from_bot(sim)[0].message_id, "Allow once")
        level = clicked["toast"]["type"]


STEPS = [
    Reply(calls=[plan("look")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply("exactly once", hold="go"),
    Reply("exactly once"),  # for the next process
]
HANGS = 60.0


@pytest.mark.slow
@pytest.mark.parametrize("call", ["/reply", "PATCH"], ids=["sent", "updated"])
async def test_a_kill_while_a_card_is_shown_leaves_one_reply(tmp_path: Path, call: str) -> None:
    """Lark shows the card, and its response never arrives."""
    async with open_sim() as sim, ScriptedOpenAI(STEPS) as model:
        sim.faults.answers.append(AnswerFault("slow", call, 1, HANGS))
        async with served(tmp_path, sim, model) as gateway:
            await say(sim, "look")
            await sim.until(lambda _: sim.faults.answers[0].times == 0 and shows_work(sim), 60)
            await model.until_asked(3)
            gateway.kill()
            await gateway.over()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda _: replies(sim), 60)
            await sim.until(lambda _: not shows_work(sim), 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]
        # an update that may still arrive must not overwrite the reply: its card is removed
        assert len(from_bot(sim)) == 1


@pytest.mark.slow
async def test_a_kill_while_the_reply_replaces_the_card_leaves_one_message(tmp_path: Path) -> None:
    async with open_sim() as sim, ScriptedOpenAI(STEPS) as model:
        async with served(tmp_path, sim, model) as gateway:
            await say(sim, "look")
            await sim.until(lambda _: any("✓" in one.content for one in from_bot(sim)), 60)
            await model.until_asked(3)
            sim.faults.answers.append(AnswerFault("slow", "PATCH", 1, HANGS))
            model.release("go")
            await sim.until(lambda _: replies(sim), 60)
            gateway.kill()
            await gateway.over()
        async with served(tmp_path, sim, model) as gateway:
            await sim.until(lambda log: sum("PATCH" in one.what for one in log) > 1, 60)
            await idle(gateway, sim)
        assert replies(sim) == ["exactly once"]
        assert len(from_bot(sim)) == 1


@pytest.mark.slow
async def test_a_kill_while_messages_gather_loses_none_of_them(tmp_path: Path) -> None:
    gathering = {"LARKSPUR_CHANNELS__LARK__GATHER_MS": "30000"}
    async with open_sim() as sim, ScriptedOpenAI(Rules([Reply("both")])) as model:
        async with served(tmp_path, sim, model, **gathering) as gateway:
            await say(sim, "one")
            await say(sim, "two")
            await sim.until(lambda _: all(push.done for push in sim.pushes), 60)
            gateway.kill()
            await gateway.over()
        assert from_bot(sim) == []
        gathering["LARKSPUR_CHANNELS__LARK__GATHER_MS"] = "10000"
        async with served(tmp_path, sim, model, **gathering) as gateway:
            await sim.until(lambda _: replies(sim) == ["both"], 60)
            found = (await gateway.client.request("GET", "/api/tasks")).json()["tasks"]
            assert [each["task"] for each in found] == ["one\ntwo"]
