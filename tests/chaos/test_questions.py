"""`kill -9` around questions: each is asked and answered once, and its run continues.

The user approves a plan, after feedback on the first one, and a command. No command runs before it
was approved, whenever a process crashes.
"""

import asyncio
import signal
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import invariants
from tests.chaos.model_script import final, plan, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import list_events
from tests.support.database_files import MIGRATION_COMMITS
from tests.support.mcp_agent import define
from tests.support.mcp_http import serve_sdk
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply

MAX_COMMITS = MIGRATION_COMMITS + 34
"""More commits than the scenario has."""

TASK = "Please do task A."
STEPS = {
    "A": (
        Reply(calls=[plan("write")]),
        Reply(calls=[plan("look", "write")]),
        Reply(calls=[Call("shell", {"command": "echo A1 >> ledger.txt"})]),
        final("A"),
    )
}
ANSWERS: list[dict[str, Any]] = [
    {"decision": "text", "text": "look first"},
    {"decision": "approve"},
    {"decision": "approve"},
]
ANSWERED = "workflow.question.answered"
Environ = dict[str, str]


async def answer_all(gateway: RestartingGateway, session_id: str, most: int) -> list[str]:
    """Answer questions as they are asked and return their ids in that order."""
    asked: list[str] = []
    async with aclosing(gateway.stream(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event in invariants.TERMINAL or len(asked) == most:
                return asked
            if frame.event != "workflow.question.asked":
                continue
            question = frame.json()["payload"]["question_id"]
            answer = ANSWERS[len(asked)]
            asked.append(question)
            reply = await gateway.request("POST", f"/api/questions/{question}/answer", answer)
            if reply.status != 200:  # the answer was stored but the response was lost
                assert reply.status == 409, reply
                assert "Already answered by you via web" in reply.json()["error"]["message"]
    return asked


async def run_scenario(folder: Path, environ: Environ, plans: list[str]) -> RestartingGateway:
    """Run the scenario with processes that crash by the plans, then check all invariants."""
    async with (
        ScriptedOpenAI(scripted_model(STEPS), record=False) as model,
        restarting_gateway(folder, model, environ, plans) as gateway,
    ):
        options = {"workspace": str(gateway.workspace)}
        body = {"task": TASK, "options": options, "plan_review": "always", "idempotency_key": "A"}
        async with asyncio.timeout(90):
            made = (await gateway.request("POST", "/api/tasks", body)).json()
            asked = await answer_all(gateway, made["session_id"], len(ANSWERS) + 1)
            events = await list_events(gateway, made["session_id"])
            task = await gateway.get(f"/api/tasks/{made['task_id']}")
            questions = (await gateway.get("/api/questions"))["questions"]
    assert {event["run_id"] for event in events} == {made["run_id"]}
    invariants.check_run(events)
    answers = [e for e in events if e["event"] == ANSWERED]
    assert [each["payload"]["question_id"] for each in answers] == asked
    assert [each["payload"]["decision"] for each in answers] == [
        each["decision"] for each in ANSWERS
    ]
    (started,) = (e for e in events if e["event"] == "workflow.tool.started")
    assert started["seq"] > answers[-1]["seq"], "a command ran before it was approved"
    assert [each["status"] for each in questions] == ["answered"] * len(ANSWERS)
    invariants.check_ledger(events, gateway.workspace / "ledger.txt")
    assert (task["status"], task["run"]["answer"]) == ("completed", final("A").text)
    invariants.check_file(gateway.home / "larkspur.db")
    return gateway


@pytest.mark.parametrize(
    "plans",
    [
        ("after:3", "after:2", "before:3"),
        pytest.param(("before:4", "after:4", "after:3"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
@pytest.mark.slow
async def test_questions_survive_crashes(
    tmp_path: Path, environ: Environ, plans: tuple[str, ...]
) -> None:
    await run_scenario(tmp_path, environ, [*plans, NO_CRASH])


@pytest.mark.chaos
async def test_the_crash_numbers_cover_every_commit(tmp_path: Path, environ: Environ) -> None:
    gateway = await run_scenario(tmp_path, environ, [NO_CRASH])
    assert 10 < gateway.processes[0].commits < MAX_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MAX_COMMITS))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_crash_at_a_commit(
    tmp_path: Path, environ: Environ, side: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, [f"{side}:{number}", NO_CRASH])


@pytest.mark.slow
async def test_a_form_of_an_mcp_server_survives_kill_9(tmp_path: Path, environ: Environ) -> None:
    steps = {"A": (Reply(calls=[Call("mcp__tested__book", {"day": "Monday"})]), final("A"))}
    environ = {**environ, "LARKSPUR_AGENT__GATES": "off"}
    async with (
        serve_sdk() as url,
        ScriptedOpenAI(scripted_model(steps)) as model,
        restarting_gateway(tmp_path, model, environ, [NO_CRASH] * 4) as gateway,
    ):
        define(gateway.home, "tested", {"url": url, "allow_private_networks": True})
        server = "/api/mcp/servers/tested"
        report = (await gateway.request("POST", f"{server}/test", {})).json()
        accepted = {"sha256": report["server"]["sha256"], "accept": True}
        assert (await gateway.request("POST", f"{server}/review", accepted)).status == 200
        options = {"workspace": str(gateway.workspace), "permission_mode": "all"}
        body = {"task": TASK, "options": options, "idempotency_key": "A"}
        async with asyncio.timeout(90):
            made = (await gateway.request("POST", "/api/tasks", body)).json()
            answers = ["Oslo", "2", "flex", "no"]
            async with aclosing(gateway.stream(f"session_id={made['session_id']}")) as frames:
                async for frame in frames:
                    if frame.event in invariants.TERMINAL:
                        break
                    if frame.event != "workflow.question.asked":
                        continue
                    question = frame.json()["payload"]["question_id"]
                    if len(answers) > 1:
                        client = await gateway.wait_until_up()
                        gateway.signal(signal.SIGKILL)
                        await gateway.wait_until_replaced(client)
                    answer = {"decision": "text", "text": answers.pop(0)}
                    path = f"/api/questions/{question}/answer"
                    assert (await gateway.request("POST", path, answer)).status == 200
            events = await list_events(gateway, made["session_id"])
    invariants.check_run(events)
    (completed,) = (e for e in events if e["event"] == "workflow.tool.completed")
    assert "Monday: 2 flex seats to Oslo, insured: False" in completed["payload"]["result"]
    assert gateway.codes[:3] == [-signal.SIGKILL] * 3
