"""One question in Lark, the page and the terminal: real processes, one gateway, one run."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.cards.clicks import CardClick, find_clickable
from internal.simulators.lark.simulator import LarkSim
from tests.support.agent_app import plan
from tests.support.channel_command import larkspur
from tests.support.lark_gateway import APP
from tests.support.lark_process import Served, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply, Rules, When

TASK = "tidy the desk"


def tidy() -> Rules:
    """A model that plans, listens, and touches a file when a person agreed to its plan."""
    return Rules(
        [
            Reply(text="The desk is tidy.", when=When(last_result="exit code 0")),
            Reply(
                calls=[Call("shell", {"command": "touch tidied"})],
                when=When(last_result="agrees to"),
            ),
            Reply(calls=[plan("look", "wash", "tidy")], when=When(last_result="plan_feedback")),
            Reply(calls=[plan("look", "tidy")]),
        ]
    )


async def until_asked(here: Served, sim: LarkSim, *, but: set[str]) -> dict[str, Any]:
    """Wait for an open question that is none of the given ones, and return it."""
    async with asyncio.timeout(60):
        while True:
            reply = await here.client.request("GET", "/api/questions?status=open")
            for question in reply.json()["questions"]:
                if question["question_id"] not in but:
                    return dict(question)
            await sim.lark.changed_within(0.05)


def card_of(sim: LarkSim, question_id: str) -> str:
    """Return the message with the card of a question, "" before it is there."""
    for message in sim.messages(sim.dm(sim.people[0])):
        if question_id in json.dumps(sim.card(message.message_id) or {}):
            return message.message_id
    return ""


async def until_noted(folder: Path, sim: LarkSim, question_id: str) -> None:
    """Return when the gateway knows which message is the question's card."""
    query = "select 1 from outbox where key = ? and status = 'sent'"
    async with asyncio.timeout(30):
        with closing(sqlite3.connect(folder / "home" / "larkspur.db")) as file:
            while not file.execute(query, (f"{question_id}:asked",)).fetchall():
                await sim.lark.changed_within(0.05)


async def approved(folder: Path, sim: LarkSim, question_id: str) -> None:
    """Press Approve as the first person."""
    await until_noted(folder, sim, question_id)
    outcome = await sim.click(sim.people[0], card_of(sim, question_id), "Approve")
    assert outcome["toast"]["type"] == "success", outcome


async def answered(
    here: Served, question: Mapping[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    path = f"/api/questions/{question['question_id']}/answer"
    reply = await here.client.request("POST", path, body)
    assert reply.status == 200, reply
    return dict(reply.json())


def settings(sim: LarkSim) -> dict[str, str]:
    return {
        "LARKSPUR_CHANNELS__LARK__PLAN_REVIEW": "always",
        "LARKSPUR_CHANNELS__LARK__ACCESS__OPERATE": json.dumps([sim.people[0].open_id]),
        "LARKSPUR_UI__LANGUAGE": "en",
        "LARKSPUR_TOOLS__ALLOW": '["shell(touch tidied)"]',
    }


@pytest.mark.slow
async def test_a_plan_is_asked_in_lark_and_answered_in_every_channel(tmp_path: Path) -> None:
    """Asked in Lark, feedback on the page, edited in the terminal, approved in Lark."""
    async with (
        LarkSim([APP], speed=100.0) as sim,
        ScriptedOpenAI(tidy()) as model,
        served(tmp_path, sim, model, **settings(sim)) as here,
    ):
        person = sim.people[0]
        await here.until_health("connected", sim)
        await sim.send_text(person, sim.dm(person), TASK)
        seen: set[str] = set()

        first = await until_asked(here, sim, but=seen)
        seen.add(first["question_id"])
        await sim.until(lambda _: bool(card_of(sim, first["question_id"])))
        await answered(here, first, {"decision": "text", "text": "wash it as well"})

        second = await until_asked(here, sim, but=seen)
        seen.add(second["question_id"])
        steps = [step["description"] for step in second["plan"]["steps"]]
        assert steps == ["look", "wash", "tidy"]
        edit = ["edit", "--step", "look twice", "--step", "tidy"]
        code, _, said = await larkspur(tmp_path, "answer", second["question_id"], *edit)
        assert code == 0, said

        third = await until_asked(here, sim, but=seen)
        assert [step["description"] for step in third["plan"]["steps"]] == ["look twice", "tidy"]
        await approved(tmp_path, sim, third["question_id"])

        await sim.until(lambda _: "The desk is tidy." in texts(sim))
        check(await stream_of(here, third["session_id"]), first["run_id"])


def check(stream: list[dict[str, Any]], run_id: str) -> None:
    """One run, one stream without a hole, the right versions, and nothing ran before the yes."""
    assert {event["run_id"] for event in stream} == {run_id}
    assert [event["seq"] for event in stream] == list(range(1, len(stream) + 1))
    versions = [e["payload"]["version"] for e in stream if e["event"].endswith("plan.updated")]
    assert versions == [1, 2, 3]
    answers = [event for event in stream if event["event"] == "workflow.question.answered"]
    said = [(e["payload"]["decision"], e["payload"]["answered_via"]) for e in answers]
    assert said == [("text", "web"), ("edit", "cli"), ("approve", "lark")]
    (tool,) = [event for event in stream if event["event"] == "workflow.tool.started"]
    assert tool["seq"] > answers[-1]["seq"]


async def stream_of(here: Served, session_id: str) -> list[dict[str, Any]]:
    reply = await here.client.request("GET", f"/api/sessions/{session_id}/events?limit=500")
    return [row["event"] for row in reply.json()["events"]]


def texts(sim: LarkSim) -> str:
    """Return all texts in the direct chat."""
    shown = sim.messages(sim.dm(sim.people[0]))
    return "\n".join(json.dumps(sim.card(one.message_id) or one.content) for one in shown)


@pytest.mark.slow
async def test_a_question_outlives_its_gateway_and_is_answered_after_a_restart(
    tmp_path: Path,
) -> None:
    async with LarkSim([APP], speed=100.0) as sim, ScriptedOpenAI(tidy()) as model:
        person, more = sim.people[0], settings(sim)
        async with served(tmp_path, sim, model, **more) as here:
            await here.until_health("connected", sim)
            await sim.send_text(person, sim.dm(person), TASK)
            question = await until_asked(here, sim, but=set())
            await sim.until(lambda _: bool(card_of(sim, question["question_id"])))
            here.process.send_signal(signal.SIGKILL)
            await here.over()
        async with served(tmp_path, sim, model, **more) as here:
            await here.until_health("connected", sim)
            await approved(tmp_path, sim, question["question_id"])
            await sim.until(lambda _: "The desk is tidy." in texts(sim))
            late = await here.client.request(
                "POST", f"/api/questions/{question['question_id']}/answer", {"decision": "approve"}
            )
            assert late.status == 409
            assert "via lark" in late.json()["error"]["message"]
            stream = await stream_of(here, question["session_id"])
            assert {event["run_id"] for event in stream} == {question["run_id"]}


@pytest.mark.slow
async def test_of_two_hundred_answers_in_three_channels_exactly_one_counts(
    tmp_path: Path,
) -> None:
    """156 over HTTP, 40 clicks in Lark, 4 terminal commands: 199 get the name of the first."""
    async with (
        LarkSim([APP]) as sim,
        ScriptedOpenAI(tidy()) as model,
        served(
            tmp_path, sim, model, **settings(sim), LARKSPUR_SERVER__RATE_LIMIT_BURST="500"
        ) as here,
    ):
        await here.until_health("connected", sim)
        await sim.send_text(sim.people[0], sim.dm(sim.people[0]), TASK)
        question = await until_asked(here, sim, but=set())
        name = question["question_id"]
        await until_noted(tmp_path, sim, name)
        start = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            racing = [tasks.create_task(over_http(here, name, start)) for _ in range(156)]
            racing += [tasks.create_task(by_click(sim, name, start)) for _ in range(40)]
            racing += [tasks.create_task(by_command(tmp_path, name, start)) for _ in range(4)]
        said = [each.result() for each in racing]
        assert said.count("counts") == 1
        assert said.count("late") == 199
        await sim.until(lambda _: "The desk is tidy." in texts(sim))
        stream = await stream_of(here, question["session_id"])
        answers = [event for event in stream if event["event"] == "workflow.question.answered"]
        assert len(answers) == 1


async def over_http(here: Served, question: str, start: asyncio.Event) -> str:
    await start.wait()
    path = f"/api/questions/{question}/answer"
    reply = await here.client.request("POST", path, {"decision": "approve"})
    if reply.status == 200:
        return "counts"
    assert reply.status == 409, reply
    assert reply.json()["error"]["message"].startswith("Already answered by ")
    return "late"


async def by_click(sim: LarkSim, question: str, start: asyncio.Event) -> str:
    path = find_clickable(sim.card(card_of(sim, question)) or {}, "Approve")
    await start.wait()
    toast = (await sim.press(sim.people[0], card_of(sim, question), CardClick(path=path)))["toast"]
    assert toast["type"] == "success" or toast["content"].startswith("Already answered by "), toast
    return "counts" if toast["type"] == "success" else "late"


async def by_command(folder: Path, question: str, start: asyncio.Event) -> str:
    answering = asyncio.create_task(larkspur(folder, "answer", question, "yes"))
    start.set()
    code, _, said = await answering
    assert code == 0 or "Already answered by " in said, said
    return "late" if code else "counts"
