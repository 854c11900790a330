"""Subtasks over HTTP: details of a task, lists, messages, stops and the move to the background."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.errors import NotFound
from internal.agent.domain.principals import Principal
from internal.channels.web.routes import tasks
from internal.channels.web.schemas import SteerRequest, StopTaskRequest, TasksQuery
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.scripted_model import When
from tests.support.web_people import call_of
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
SPAWN = Call(
    "subagent",
    {
        "tasks": [
            {"instruction": "dig", "agent_profile": {"role": "digger"}},
            {"instruction": "ask"},
        ]
    },
)
RULES = [
    Reply(calls=[SPAWN], when=When(last_user="start", results=0)),
    Reply("all done", when=When(last_user="start", results=1)),
    Reply("dug", hold="dig", when=When(last_user="dig")),
    Reply(
        calls=[Call("request_user", {"question": "Where?"})],
        when=When(last_user="ask", results=0),
    ),
]


async def titles(app: WorkingWebApp, query: str) -> list[str]:
    reply = await app.client.get(f"/api/tasks?{query}")
    assert reply.status == 200, reply
    return sorted(task["task"] for task in reply.json()["tasks"])


def is_asked(each: dict[str, Any]) -> bool:
    return bool(each["payload"].get("stop_reason") == "await_user_input")


async def test_a_task_shows_its_subtasks_and_each_can_be_steered_and_stopped(home: Path) -> None:
    async with open_working_web_app(home, Rules(RULES), NO_GATES) as app:
        made = await app.task("start")
        await app.core.until(made.session_id, is_asked)
        await app.core.model.until_open(1)
        shown = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        digger, asker = shown["children"]
        assert shown["id"] == made.task_id
        assert shown["instruction"] == "start"
        assert shown["agent_profile"]["name"] == "default"
        assert shown["completed_at"] is None
        assert [digger["path"], asker["path"]] == ["task 1 · digger", "task 2"]
        assert digger["parent_task_id"] == made.task_id
        assert (digger["status"], digger["total"], digger["workspace"]) == ("running", 2, "shared")

        assert await titles(app, "") == ["start"]
        assert await titles(app, "subtasks=true") == ["ask", "dig", "start"]
        assert await titles(app, f"parent={made.task_id}") == ["ask", "dig"]
        assert await titles(app, "group=needs_me&subtasks=true") == ["ask"]
        assert await titles(app, "group=running&subtasks=true") == ["dig", "start"]
        assert await titles(app, "group=done&subtasks=true") == []
        questions = (await app.client.get("/api/questions?status=open")).json()["questions"]
        assert questions[0]["asked_by"] == "task 2"
        assert (questions[0]["asker_number"], questions[0]["asker_role"]) == (2, "")
        (session,) = (await app.client.get("/api/sessions")).json()["sessions"]
        assert (session["status"], session["tasks"]) == ("waiting", 1)

        told = await app.client.post(f"/api/tasks/{digger['task_id']}/steer", {"text": "deeper"})
        assert told.json()["task_id"] == digger["task_id"]
        assert told.json()["taken_as"] == "steering"
        stopped = await app.client.post(f"/api/tasks/{asker['task_id']}/stop", {})
        assert stopped.json()["status"] == "cancelled"
        app.core.model.release("dig")
        await app.core.end_of(made)
        shown = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        rows = (await app.client.get("/api/tasks?group=done&subtasks=true")).json()["tasks"]
    assert shown["result"] == "all done"
    assert shown["error"] is None
    assert [each["status"] for each in shown["children"]] == ["completed", "cancelled"]
    assert shown["children"][0]["result"] == "dug"
    assert shown["completed_at"] >= shown["started_at"]
    row = next(each for each in rows if each["task"] == "dig")
    assert (row["path"], row["parent"]) == ("task 1 · digger", "start")


async def test_a_running_task_moves_to_the_background(home: Path) -> None:
    rules = [
        Reply("first", hold="first", when=When(last_user="one")),
        Reply("second", when=When(last_user="two")),
    ]
    async with open_working_web_app(home, Rules(rules), NO_GATES) as app:
        made = await app.task("one")
        await app.core.model.until_open(1)
        moved = await app.client.post(f"/api/tasks/{made.task_id}/background", {})
        assert (moved.status, moved.json()["kind"]) == (200, "background")
        await app.end_of(await app.task("two", session_id=made.session_id))
        app.core.model.release("first")
        await app.end_of(made)
        late = await app.client.post(f"/api/tasks/{made.task_id}/background", {})
    assert late.status == 409


async def test_another_person_sees_neither_a_subtask_nor_its_children(home: Path) -> None:
    other = Principal("lark:cli_a1:ou_other", "Odo", frozenset({"talk", "operate"}))
    async with open_working_web_app(home, Rules(RULES), NO_GATES) as app:
        made = await app.task("start")
        await app.core.until(made.session_id, is_asked)
        shown = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        digger = shown["children"][0]["task_id"]
        for task_id in (made.task_id, digger):
            for operation in (tasks.show_task, tasks.move_task_to_background):
                with pytest.raises(NotFound):
                    await operation(call_of(app, other, task_id=task_id))
            with pytest.raises(NotFound):
                await tasks.stop_task(call_of(app, other, body=StopTaskRequest(), task_id=task_id))
            with pytest.raises(NotFound):
                await tasks.list_tasks(call_of(app, other, TasksQuery(parent=task_id)))
            told = SteerRequest("deeper")
            with pytest.raises(NotFound):
                await tasks.steer_task(call_of(app, other, body=told, task_id=task_id))
        listed = await tasks.list_tasks(call_of(app, other, TasksQuery(subtasks="true")))
        assert listed.tasks == []
        await app.client.post(f"/api/tasks/{made.task_id}/stop", {})
        await app.core.end_of(made)


async def test_a_session_whose_task_waits_only_for_its_subtasks_is_running(home: Path) -> None:
    rules = [
        Reply(calls=[Call("subagent", {"prompt": "dig"})], when=When(last_user="start", results=0)),
        Reply("done", when=When(last_user="start", results=1)),
        Reply("dug", hold="dig", when=When(last_user="dig")),
    ]
    async with open_working_web_app(home, Rules(rules), NO_GATES) as app:
        made = await app.task("start")
        await app.core.model.until_open(1)
        await app.core.until(
            made.session_id, lambda one: one["payload"].get("stop_reason") == "await_tasks"
        )
        (session,) = (await app.client.get("/api/sessions")).json()["sessions"]
        app.core.model.release("dig")
        await app.core.end_of(made)
    assert session["status"] == "running"


async def test_the_subtasks_of_an_unknown_task_are_not_found(home: Path) -> None:
    async with open_working_web_app(home, Rules(RULES), NO_GATES) as app:
        reply = await app.client.get("/api/tasks?parent=task-unknown")
    assert reply.status == 404
