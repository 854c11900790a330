"""`kill -9` around subtasks: none is lost or created twice, and each end is told once.

A task creates three, with one call that waits for them or with three calls and an end of its own.
Each has a side effect, and one asks a person. `make test` runs the short form; `make chaos` crashes
before and after every commit.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.delegation.reports import REPORT_INSTRUCTION
from tests.chaos import invariants
from tests.chaos.model_script import Steps, final, note, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import list_events, list_messages, read_replay
from tests.support.database_files import MIGRATIONS
from tests.support.http_client import SseFrame
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply

MAX_COMMITS = MIGRATIONS + 60
"""More commits than a scenario has."""

TASK = "Please do task A."
PARTS = ("Please do task B.", "Please do task C.", "Please do task D.")
REPORT = "The background tasks have ended."
WORK: Steps = {
    "B": (Reply(calls=[note("B1")]), final("B")),
    "C": (
        Reply(calls=[Call("request_user", {"question": "Which colour?"})]),
        Reply(calls=[note("C1")]),
        final("C"),
    ),
    "D": (Reply(calls=[note("D1")]), final("D")),
}
AWAITED: Steps = {
    **WORK,
    "A": (
        Reply(calls=[Call("subagent", {"tasks": [{"instruction": part} for part in PARTS]})]),
        final("A"),
    ),
}
BACKGROUND: Steps = {
    **WORK,
    "A": (Reply(calls=[Call("create_task", {"instruction": part}) for part in PARTS]), final("A")),
}
SCENARIOS = {"awaited": AWAITED, "background": BACKGROUND}
Environ = dict[str, str]


def model_of(steps: Steps) -> Callable[[dict[str, Any]], Reply]:
    """Return the function from a request to the reply, which also knows reports."""
    scripted = scripted_model(steps)

    def reply(request: dict[str, Any]) -> Reply:
        words = [str(each["content"]) for each in request["messages"] if each["role"] == "user"]
        is_report = "Background tasks of this conversation have ended" in words[-1]
        return Reply(text=REPORT) if is_report else scripted(request)

    return reply


@dataclass
class Person:
    """Submits the task, follows the session and answers what is asked."""

    gateway: RestartingGateway
    made: dict[str, str] = field(default_factory=dict)
    frames: list[SseFrame] = field(default_factory=list)

    async def run(self, is_answer_late: bool) -> None:
        """Follow the session to its end. A late answer waits for the end of the first task."""
        options = {"permission_mode": "full", "workspace": str(self.gateway.workspace)}
        body = {"task": TASK, "options": options, "idempotency_key": "A"}
        self.made = (await self.gateway.request("POST", "/api/tasks", body)).json()
        questions: list[str] = []
        has_ended = False
        path = f"session_id={self.made['session_id']}"
        async with aclosing(self.gateway.stream(path)) as frames:
            async for frame in frames:
                self.frames.append(frame)
                if frame.event == "workflow.question.asked":
                    questions.append(frame.json()["payload"]["question_id"])
                if frame.event in invariants.TERMINAL:
                    has_ended |= frame.json()["run_id"] == self.made["run_id"]
                    if invariants.have_ended(await self.tasks()):
                        return
                if has_ended or not is_answer_late:
                    while questions:
                        await self.answer(questions.pop())

    async def answer(self, question: str) -> None:
        body = {"decision": "text", "text": "blue"}
        reply = await self.gateway.request("POST", f"/api/questions/{question}/answer", body)
        # 409: the answer was stored but the response was lost
        assert reply.status in {200, 409}, reply

    async def tasks(self) -> list[dict[str, Any]]:
        """Return all tasks of the session, oldest first."""
        path = f"/api/tasks?session_id={self.made['session_id']}&subtasks=true&limit=200"
        tasks: list[dict[str, Any]] = (await self.gateway.get(path))["tasks"]
        return tasks[::-1]


async def run_scenario(
    folder: Path, environ: Environ, name: str, plans: list[str]
) -> RestartingGateway:
    """Run a scenario with processes that crash by the plans, then check all invariants."""
    environ = {**environ, "LARKSPUR_AGENT__GATES": "off"}
    async with (
        ScriptedOpenAI(model_of(SCENARIOS[name]), record=False) as model,
        restarting_gateway(folder, model, environ, plans) as gateway,
    ):
        person = Person(gateway)
        async with asyncio.timeout(90):
            await person.run(is_answer_late=name == "background")
            await check(person, is_reported=name == "background")
    check_file(gateway.home / "larkspur.db")
    return gateway


async def check(person: Person, *, is_reported: bool) -> None:
    """Check what the HTTP API returns: three subtasks, each ended and told once."""
    gateway, session_id = person.gateway, person.made["session_id"]
    events = await list_events(gateway, session_id)
    for run in invariants.group_by_run(events).values():
        invariants.check_run(run)
    invariants.check_ledger(events, gateway.workspace / "ledger.txt")
    replay = await read_replay(gateway, session_id)
    invariants.check_frames(person.frames, replay)
    assert [frame.json() for frame in replay if frame.id] == events
    tasks = await person.tasks()
    assert {task["status"] for task in tasks} == {"completed"}
    subtasks = [task for task in tasks if task["parent_task_id"]]
    assert sorted(task["task"] for task in subtasks) == sorted(PARTS)
    reports = [task for task in tasks if task["task"] == REPORT_INSTRUCTION]
    assert len(tasks) == 1 + len(PARTS) + is_reported
    assert len(reports) == is_reported
    check_told(events, {task["task_id"] for task in subtasks})
    said = [
        part["text"]
        for message in await list_messages(gateway, session_id)
        for part in message["parts"]
        if message["role"] == "assistant" and part["type"] == "text"
    ]
    assert said == [final("A").text, *([REPORT] if is_reported else [])]


def check_told(events: Iterable[Mapping[str, Any]], subtasks: set[str]) -> None:
    """Each subtask was announced once and its end told once; the question was asked once."""
    counted: dict[str, Counter[str]] = {}
    for event in events:
        task_id = event.get("payload", {}).get("task_id", "")
        counted.setdefault(event["event"], Counter())[task_id] += 1
    once = dict.fromkeys(subtasks, 1)
    assert counted["background.task.dispatched"] == once
    assert counted["background.task.completed"] == once
    assert counted["workflow.question.asked"].total() == 1
    assert counted["workflow.question.answered"].total() == 1


def check_file(database: Path) -> None:
    """Nothing waits for a task any more, and the end of each was told."""
    invariants.check_file(database)
    with closing(sqlite3.connect(database)) as connection:
        for query in (
            "select * from task_waits",
            "select * from task_dependencies",
            "select id from tasks where parent_task_id is not null and reported = 0",
        ):
            assert connection.execute(query).fetchall() == [], query


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(
    "plans",
    [
        ("stored:insert_task_dependency", "before:3"),
        ("after:4", "before:5", "after:6", "after:7"),
        ("before:12", "after:9", "before:8", "after:10"),
    ],
    ids=" ".join,
)
async def test_subtasks_survive_crashes(
    tmp_path: Path, environ: Environ, name: str, plans: tuple[str, ...]
) -> None:
    await run_scenario(tmp_path, environ, name, [*plans, NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_crash_numbers_cover_every_commit(
    tmp_path: Path, environ: Environ, name: str
) -> None:
    gateway = await run_scenario(tmp_path, environ, name, [NO_CRASH])
    assert 20 < gateway.processes[0].commits < MAX_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, MAX_COMMITS))
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_crash_at_a_commit(
    tmp_path: Path, environ: Environ, name: str, side: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, name, [f"{side}:{number}", NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(3, MAX_COMMITS, 4))
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_hand_over_at_a_commit(
    tmp_path: Path, environ: Environ, name: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, name, [f"term:{number}", NO_CRASH])
