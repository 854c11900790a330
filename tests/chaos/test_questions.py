"""`kill -9` around questions: each is asked once, its answer counts once, and its run goes on.

A person agrees to what a task asks: to a plan, after feedback on the first one, and to a command.
Nothing runs before the yes, whatever dies when.
"""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import oracle
from tests.chaos.house import LIVES, House, open_house
from tests.chaos.scene import events_of
from tests.chaos.script import final, plan, scripted
from tests.support.anthropic_server import Call, Reply, ScriptedAnthropic

MOST = 30
"""More commits than the scene has."""

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


async def answer_all(house: House, session_id: str, most: int) -> list[str]:
    """Answer questions as they are shown; return their ids in that order."""
    asked: list[str] = []
    async with aclosing(house.watch(f"session_id={session_id}")) as frames:
        async for frame in frames:
            if frame.event in oracle.TERMINAL or len(asked) == most:
                return asked
            if frame.event != "workflow.question.asked":
                continue
            question = frame.json()["payload"]["question_id"]
            answer = ANSWERS[len(asked)]
            asked.append(question)
            reply = await house.ask("POST", f"/api/questions/{question}/answer", answer)
            if reply.status != 200:  # the answer was stored and its 200 was lost
                assert reply.status == 409, reply
                assert "Already answered by local owner via web" in reply.json()["error"]["message"]
    return asked


async def play(folder: Path, environ: Environ, plans: list[str]) -> House:
    """Play the scene with gateways that end by the plans, then hold everything to be true."""
    async with (
        ScriptedAnthropic(scripted(STEPS), record=False) as model,
        open_house(folder, model, environ, plans) as house,
    ):
        options = {"workspace": str(house.workspace)}
        body = {"task": TASK, "options": options, "plan_review": "always", "idempotency_key": "A"}
        async with asyncio.timeout(90):
            made = (await house.ask("POST", "/api/tasks", body)).json()
            asked = await answer_all(house, made["session_id"], len(ANSWERS) + 1)
            events = await events_of(house, made["session_id"])
            task = await house.get(f"/api/tasks/{made['task_id']}")
            questions = (await house.get("/api/questions"))["questions"]
    assert {event["run_id"] for event in events} == {made["run_id"]}
    oracle.check_run(events)
    answers = [e for e in events if e["event"] == ANSWERED]
    assert [each["payload"]["question_id"] for each in answers] == asked
    assert [each["payload"]["decision"] for each in answers] == [
        each["decision"] for each in ANSWERS
    ]
    (started,) = (e for e in events if e["event"] == "workflow.tool.started")
    assert started["seq"] > answers[-1]["seq"], "nothing runs before the yes"
    assert [each["status"] for each in questions] == ["answered"] * len(ANSWERS)
    oracle.check_ledger(events, house.workspace / "ledger.txt")
    assert (task["status"], task["run"]["answer"]) == ("completed", final("A").text)
    oracle.check_file(house.home / "larkspur.db")
    return house


@pytest.mark.parametrize(
    "plans",
    [("after:3", "after:2", "before:3"), ("before:4", "after:4", "after:3")],
    ids=" ".join,
)
async def test_questions_outlive_kills(
    tmp_path: Path, environ: Environ, plans: tuple[str, ...]
) -> None:
    await play(tmp_path, environ, [*plans, LIVES])


@pytest.mark.chaos
async def test_the_numbers_reach_the_last_commit(tmp_path: Path, environ: Environ) -> None:
    house = await play(tmp_path, environ, [LIVES])
    assert 10 < house.gateways[0].commits < MOST


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MOST))
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_at_a_commit(tmp_path: Path, environ: Environ, side: str, number: int) -> None:
    await play(tmp_path, environ, [f"{side}:{number}", LIVES])
