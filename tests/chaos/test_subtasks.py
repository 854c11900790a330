"""`kill -9` around subtasks: none is lost or created twice, and each end is reported once.

A task creates three, with one call that waits for them or with three calls and its own end.
Each has a side effect, and one asks a person. `make test SLOW=yes` runs the short form, `make test`
a part of it; `make chaos` crashes before and after every commit.
"""

import asyncio
import re
import signal
import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.delegation.reports import REPORT_INSTRUCTION
from internal.agent.domain.delegation.subtask import MAX_SUBTASKS
from tests.chaos import invariants
from tests.chaos.model_script import Steps, final, note, scripted_model
from tests.chaos.restarting_gateway import NO_CRASH, RestartingGateway, restarting_gateway
from tests.chaos.scenario import list_events, list_messages, read_replay
from tests.support.database_files import MIGRATION_COMMITS
from tests.support.http_client import SseFrame
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Call, Reply

MAX_COMMITS = MIGRATION_COMMITS + 60
"""More commits than a scenario has."""

TASK = "Please do task A."
PARTS = ("Please do task B.", "Please do task C.", "Please do task D.")
MANY = [f"Please do part {number}." for number in range(MAX_SUBTASKS)]
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
HELD: Steps = {**AWAITED, **{letter: (Reply(text="Late.", hold="go"),) for letter in "BCD"}}
Environ = dict[str, str]
Model = Callable[[dict[str, Any]], Reply]


def model_of(steps: Steps) -> Model:
    """Return the function from a request to the reply, which also knows reports."""
    scripted = scripted_model(steps)

    def reply(request: dict[str, Any]) -> Reply:
        is_report = "Background tasks of this conversation have ended" in _words(request)[-1]
        return Reply(text=REPORT) if is_report else scripted(request)

    return reply


def reply_of_many(request: dict[str, Any]) -> Reply:
    """Return the reply to a task that creates as many subtasks as are possible, or to one."""
    has_called = any(message.get("tool_calls") for message in request["messages"])
    part = re.search(r"Please do part (\d+)", _words(request)[0])
    if has_called:
        return final("A")
    if part is not None:
        return Reply(calls=[note(f"P{part[1]}")])
    return Reply(calls=[Call("subagent", {"tasks": [{"instruction": each} for each in MANY]})])


def _words(request: dict[str, Any]) -> list[str]:
    return [str(each["content"]) for each in request["messages"] if each["role"] == "user"]


@dataclass(frozen=True)
class Scenario:
    """Replies of the model, its subtasks, and the part that a person sees."""

    model: Model
    parts: Sequence[str] = PARTS
    is_reported: bool = False
    questions: int = 1


SCENARIOS = {
    "awaited": Scenario(model_of(AWAITED)),
    "background": Scenario(model_of(BACKGROUND), is_reported=True),
    "many": Scenario(reply_of_many, MANY, questions=0),
}
SMALL = ("awaited", "background")


@dataclass
class Person:
    """Submits the task, follows the session and answers questions."""

    gateway: RestartingGateway
    made: dict[str, str] = field(default_factory=dict)
    frames: list[SseFrame] = field(default_factory=list)

    async def submit(self) -> None:
        """Submit the task until it is acknowledged."""
        options = {"permission_mode": "all", "workspace": str(self.gateway.workspace)}
        body = {"task": TASK, "options": options, "idempotency_key": "A"}
        self.made = (await self.gateway.request("POST", "/api/tasks", body)).json()

    async def follow(self, *, is_answer_late: bool = False) -> None:
        """Follow the session to its end. A late answer waits for the end of the first task."""
        questions: list[str] = []
        ended: set[str] = set()
        path = f"session_id={self.made['session_id']}"
        async with aclosing(self.gateway.stream(path)) as frames:
            async for frame in frames:
                self.frames.append(frame)
                if frame.event == "workflow.question.asked":
                    questions.append(frame.json()["payload"]["question_id"])
                if frame.event in invariants.TERMINAL:
                    ended.add(frame.json()["run_id"])
                    tasks = await self.tasks()
                    if invariants.have_ended(tasks) and len(tasks) == len(ended):
                        return
                if not is_answer_late or self.made["run_id"] in ended:
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


@asynccontextmanager
async def person_of(
    folder: Path, environ: Environ, model: Model, plans: Sequence[str]
) -> AsyncGenerator[Person]:
    """Yield a person who has submitted the task to processes that crash by the plans."""
    environ = {**environ, "LARKSPUR_AGENT__GATES": "off"}
    async with (
        ScriptedOpenAI(model, record=False) as server,
        restarting_gateway(folder, server, environ, plans) as gateway,
        asyncio.timeout(90),
    ):
        person = Person(gateway)
        await person.submit()
        yield person
    check_file(gateway.home / "larkspur.db")


async def run_scenario(
    folder: Path, environ: Environ, name: str, plans: Sequence[str]
) -> RestartingGateway:
    """Run a scenario with processes that crash by the plans, then check all invariants."""
    scenario = SCENARIOS[name]
    async with person_of(folder, environ, scenario.model, plans) as person:
        await person.follow(is_answer_late=scenario.is_reported)
        events = await check_events(person)
        await check_tasks(person, scenario, events)
    return person.gateway


async def check_events(person: Person) -> list[dict[str, Any]]:
    """Check the invariants of all runs and return the envelopes of the session."""
    gateway, session_id = person.gateway, person.made["session_id"]
    events = await list_events(gateway, session_id)
    for run in invariants.group_by_run(events).values():
        invariants.check_run(run)
    invariants.check_ledger(events, gateway.workspace / "ledger.txt")
    replay = await read_replay(gateway, f"session_id={session_id}")
    invariants.check_frames(person.frames, replay)
    assert [frame.json() for frame in replay if frame.id] == events
    return events


async def check_tasks(person: Person, scenario: Scenario, events: list[dict[str, Any]]) -> None:
    """Check that every subtask exists once, has ended, and has one answer or report."""
    tasks = await person.tasks()
    assert {task["status"] for task in tasks} == {"completed"}
    subtasks = [task for task in tasks if task["parent_task_id"]]
    assert sorted(task["task"] for task in subtasks) == sorted(scenario.parts)
    others = [task["task"] for task in tasks if not task["parent_task_id"]]
    assert others == [TASK, *([REPORT_INSTRUCTION] if scenario.is_reported else [])]
    check_told(events, {task["task_id"] for task in subtasks}, scenario.questions)
    said = [
        part["text"]
        for message in await list_messages(person.gateway, person.made["session_id"])
        for part in message["parts"]
        if message["role"] == "assistant" and part["type"] == "text"
    ]
    assert said == [final("A").text, *([REPORT] if scenario.is_reported else [])]


def check_told(events: Iterable[Mapping[str, Any]], subtasks: set[str], questions: int) -> None:
    """Check that subtasks are announced once, ends reported once and questions asked once."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        task_id = event.get("payload", {}).get("task_id", "")
        counted[event["event"]][task_id] += 1
    once = dict.fromkeys(subtasks, 1)
    assert counted["background.task.dispatched"] == once
    assert counted["background.task.completed"] == once
    assert counted["workflow.question.asked"].total() == questions
    assert counted["workflow.question.answered"].total() == questions


def check_file(database: Path) -> None:
    """Check that no task is waited for any more, and that the end of each was reported."""
    invariants.check_file(database)
    with closing(sqlite3.connect(database)) as connection:
        for query in (
            "select * from task_waits",
            "select * from task_dependencies",
            "select id from tasks where parent_task_id is not null and reported = 0",
        ):
            assert connection.execute(query).fetchall() == [], query


@pytest.mark.parametrize("name", ["awaited", pytest.param("background", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "plans",
    [
        ("unstored:delete_task_waits_of_run", "stored:delete_task_waits_of_run", "before:3"),
        pytest.param(("after:2", "before:1", "after:4", "after:14"), marks=pytest.mark.slow),
        pytest.param(("before:12", "after:9", "before:8", "after:10"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
@pytest.mark.slow
async def test_subtasks_survive_crashes(
    tmp_path: Path, environ: Environ, name: str, plans: tuple[str, ...]
) -> None:
    await run_scenario(tmp_path, environ, name, [*plans, NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("name", SMALL)
async def test_the_crash_numbers_cover_every_commit(
    tmp_path: Path, environ: Environ, name: str
) -> None:
    gateway = await run_scenario(tmp_path, environ, name, [NO_CRASH])
    assert 20 < gateway.processes[0].commits < MAX_COMMITS


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(MIGRATION_COMMITS, MAX_COMMITS))
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("name", SMALL)
async def test_a_crash_at_a_commit(
    tmp_path: Path, environ: Environ, name: str, side: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, name, [f"{side}:{number}", NO_CRASH])


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(MIGRATION_COMMITS, MAX_COMMITS, 4))
@pytest.mark.parametrize("name", SMALL)
async def test_a_hand_over_at_a_commit(
    tmp_path: Path, environ: Environ, name: str, number: int
) -> None:
    await run_scenario(tmp_path, environ, name, [f"term:{number}", NO_CRASH])


@pytest.mark.slow
async def test_a_kill_of_a_report_tells_each_end_once(tmp_path: Path, environ: Environ) -> None:
    scenario = SCENARIOS["background"]

    def reply(request: dict[str, Any]) -> Reply:
        given = scenario.model(request)
        return Reply(text=REPORT, hold="go") if given.text == REPORT else given

    async with person_of(tmp_path, environ, reply, [NO_CRASH] * 2) as person:
        gateway = person.gateway
        following = asyncio.create_task(person.follow(is_answer_late=True))
        client = await gateway.wait_until_up()
        await until_told(person)
        gateway.signal(signal.SIGKILL)
        await gateway.wait_until_replaced(client)
        gateway.model.release("go")
        await following
        await check_tasks(person, scenario, await check_events(person))


async def until_told(person: Person) -> None:
    """Return when the ends of all subtasks were reported."""
    told = 0
    async with aclosing(person.gateway.stream(f"session_id={person.made['session_id']}")) as frames:
        async for frame in frames:
            told += frame.event == "background.task.completed"
            if told == len(PARTS):
                return


@pytest.mark.chaos
async def test_the_results_of_64_subtasks_come_back_exactly_once(
    tmp_path: Path, environ: Environ
) -> None:
    plans = ["stored:delete_task_waits_of_run", "after:60", "before:90", NO_CRASH]
    await run_scenario(tmp_path, environ, "many", plans)


async def stop(person: Person) -> None:
    """Stop the task, and check that every subtask has ended with it."""
    path = f"/api/tasks/{person.made['task_id']}/stop"
    reply = await person.gateway.request("POST", path)
    assert reply.status in {200, 409}, reply  # 409: the response to the first request was lost
    await person.follow()
    await check_events(person)
    tasks = await person.tasks()
    assert len(tasks) == 1 + len(PARTS)
    assert {(task["status"], task["stop_reason"]) for task in tasks} == {("cancelled", "user_stop")}


@pytest.mark.parametrize("side", [pytest.param("stored", marks=pytest.mark.slow), "unstored"])
@pytest.mark.slow
async def test_a_crash_between_a_stop_and_its_effect(
    tmp_path: Path, environ: Environ, side: str
) -> None:
    plans = [f"{side}:request_stop", NO_CRASH]
    async with person_of(tmp_path, environ, model_of(HELD), plans) as person:
        model = person.gateway.model
        await model.until_open(len(PARTS))
        await stop(person)
        assert side == "unstored" or model.count == 1 + len(PARTS)


@pytest.mark.slow
async def test_a_stop_right_after_a_restart(tmp_path: Path, environ: Environ) -> None:
    async with person_of(tmp_path, environ, model_of(HELD), [NO_CRASH] * 3) as person:
        gateway = person.gateway
        for count in (1 + len(PARTS), 2 + len(PARTS)):  # after a crash one run starts at a time
            client = await gateway.wait_until_up()
            await gateway.model.until_asked(count)
            gateway.signal(signal.SIGKILL)
            await gateway.wait_until_replaced(client)
        await stop(person)
