"""Subtasks through the real chain: created by calls, awaited, told, reported, stopped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.ids import TaskId
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import Core, open_agent, sound
from tests.support.anthropic_server import Call, Reply, Rules, seen_in
from tests.support.scripted_model import When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
SITES = ("example-a.com", "example-b.com", "example-c.com")


def delegate(*prompts: str, **more: Any) -> Call:
    return Call("subagent", {"tasks": [{"instruction": each} for each in prompts], **more})


def create(instruction: str, **more: Any) -> Call:
    return Call("create_task", {"instruction": instruction, **more})


def when(last_user: str, results: int = 0) -> When:
    return When(last_user=last_user, results=results)


def of_kind(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in events if each["event"] == name]


async def tree(here: Core, made: Any) -> Any:
    return await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)


async def test_three_subtasks_run_at_once_and_their_results_come_back(home: Path) -> None:
    rules = [
        Reply(calls=[delegate(*(f"read {site}" for site in SITES))], when=when("compare")),
        Reply("all compared", when=when("compare", 1)),
        *(
            Reply(f"{site} costs {number}", hold="go", when=when(f"read {site}"))
            for number, site in enumerate(SITES)
        ),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("compare three sites")
        await here.model.until_open(3)
        await here.until(
            made.session_id, lambda each: each["payload"].get("stop_reason") == "await_tasks"
        )
        parent = await here.run(made)
        assert parent.awaits_tasks
        here.model.release("go")
        events = await here.end_of(made)
        whole = await tree(here, made)
    result = seen_in(here.model.requests[-1]).last_result
    for number, site in enumerate(SITES):
        assert f"{site} costs {number}" in result
    assert [item.run.status for item in whole.subtasks] == ["completed"] * 3
    assert [item.run.subtask.path for item in whole.subtasks] == ["task 1", "task 2", "task 3"]
    own = [each for each in events if each["run_id"] == made.run_id]
    sound(own)
    for item in whole.subtasks:
        lane = [each for each in events if each["run_id"] == item.run.id]
        sound(lane)
        assert all(each["is_subtask"] and each["total_subtasks"] == 3 for each in lane)
        assert {each["correlation_id"] for each in lane} == {made.run_id}
        assert {each["parent_run_id"] for each in lane} == {made.run_id}
    assert len(of_kind(own, "background.task.dispatched")) == 3
    assert len(of_kind(own, "background.task.completed")) == 3
    (done,) = of_kind(own, "workflow.subflow.completed")
    assert (done["payload"]["success"], done["payload"]["failed"]) == (3, 0)
    assert own[-1]["payload"]["final_answer"] == "all compared"


async def test_the_words_of_subtasks_are_not_those_of_the_conversation(home: Path) -> None:
    rules = [
        Reply(calls=[delegate("look into it")], when=when("first")),
        Reply("it is fine", when=when("first", 1)),
        Reply("a secret of the worker", when=when("look into it")),
        Reply("second answer", when=when("second")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("first")
        await here.end_of(made)
        await here.end_of(await here.submit("second", made.session_id))
        messages = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
    texts = "\n".join(each.message.text for each in messages)
    assert "look into it" not in texts
    assert "it is fine" in texts
    assert "look into it" not in str(here.model.requests[2]["messages"][:1])


async def test_a_created_task_is_told_once_at_the_next_step(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    wait = Call("shell", {"command": "while [ ! -e go ]; do sleep 0.05; done"})
    rules = [
        Reply(calls=[create("dig", agent_profile={"role": "digger"})], when=when("start")),
        Reply(calls=[wait], when=when("start", 1)),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("the end", when=When(last_text="has ended")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start", workspace=str(folder))
        await here.until(
            made.session_id,
            lambda each: (
                each["event"] == "workflow.tool.started" and each["payload"]["tool_name"] == "shell"
            ),
        )
        here.model.release("dig")
        await here.until(
            made.session_id,
            lambda each: each["event"] == "workflow.result.final" and each["is_subtask"],
        )
        (folder / "go").touch()
        events = await here.end_of(made)
    last = here.model.requests[-1]
    assert "(task 1 · digger): completed" in str(last["messages"][-1])
    assert "dug" in str(last["messages"][-1])
    assert len(of_kind(events, "background.task.completed")) == 1


async def test_what_ends_after_its_creator_is_reported_together_in_one_answer(home: Path) -> None:
    rules = [
        Reply("both are done", when=when("Background tasks of this conversation")),
        Reply(calls=[create("dig"), create("fetch")], when=when("start")),
        Reply("I have started both", when=when("start", 2)),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("fetched", hold="fetch", when=when("fetch")),
        Reply("as I said", when=when("what was it")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.end_of(made)
        await here.model.until_open(2)
        here.model.release("dig")
        await here.until(
            made.session_id,
            lambda each: each["event"] == "workflow.result.final" and each["is_subtask"],
        )
        here.model.release("fetch")
        await here.until(
            made.session_id,
            lambda each: each["payload"].get("final_answer") == "both are done",
        )
        await here.end_of(await here.submit("what was it?", made.session_id))
        tasks = await here.services.gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
    reports = [task for task in tasks if task.reports]
    assert len(reports) == 1
    request = next(each for each in here.model.requests if "Background tasks" in str(each))
    assert "dug" in str(request["messages"][-1])
    assert "fetched" in str(request["messages"][-1])
    assert "both are done" in str(here.model.requests[-1]["messages"])


async def test_a_subtask_that_a_person_stopped_is_not_reported(home: Path) -> None:
    rules = [
        Reply("one is done", when=when("Background tasks of this conversation")),
        Reply(calls=[create("dig"), create("fetch")], when=when("start")),
        Reply("I have started both", when=when("start", 2)),
        Reply("dug", when=when("dig")),
        Reply("fetched", hold="never", when=when("fetch")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.until(made.session_id, lambda each: each["payload"].get("final_answer") == "dug")
        whole = await tree(here, made)
        [fetch] = [item.task for item in whole.subtasks if item.task.instruction == "fetch"]
        await here.services.gateway.stop(fetch.id, LOCAL_OWNER, "web")
        await here.until(
            made.session_id, lambda each: each["payload"].get("final_answer") == "one is done"
        )
        tasks = await here.services.gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
    [report] = [task for task in tasks if task.reports]
    assert fetch.id not in report.reports
    assert len(report.reports) == 1


async def test_a_message_wakes_a_run_that_waits_for_tasks(home: Path) -> None:
    rules = [
        Reply(calls=[delegate("dig")], when=when("start")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("hello to you", when=When(last_text="hurry")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.model.until_open(1)
        await here.until(
            made.session_id,
            lambda each: each["payload"].get("stop_reason") == "await_tasks",
        )
        await here.services.gateway.steer_task(made.task_id, "hurry", LOCAL_OWNER, channel="web")
        events = await here.end_of(made)
        here.model.release("dig")
        await here.until(
            made.session_id,
            lambda each: each["event"] == "workflow.result.final" and each["is_subtask"],
        )
    assert events[-1]["payload"]["final_answer"] == "hello to you"
    assert "a person has written" in str(here.model.requests[-1]["messages"])


async def test_a_subtask_asks_where_its_root_was_asked(home: Path) -> None:
    rules = [
        Reply(calls=[delegate("dig")], when=when("start")),
        Reply(calls=[Call("request_user", {"question": "Where?"})], when=when("dig")),
        Reply("dug there", when=when("dig", 1)),
        Reply("found", when=when("start", 1)),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        asked: list[dict[str, Any]] = []

        def is_asked(each: dict[str, Any]) -> bool:
            if each["event"] == "workflow.question.asked":
                asked.append(each["payload"])
            return bool(asked) and each["payload"].get("stop_reason") == "await_user_input"

        await here.until(made.session_id, is_asked)
        assert asked[0]["asked_by"] == "task 1"
        assert asked[0]["asker_number"] == 1
        await here.answer(asked[0]["question_id"], "text", "in the garden")
        events = await here.end_of(made)
    assert events[-1]["payload"]["final_answer"] == "found"


async def test_a_stop_ends_the_whole_tree(home: Path) -> None:
    rules = [
        Reply(calls=[delegate("dig", "fetch")], when=when("start")),
        Reply("dug", hold="never", when=when("dig")),
        Reply(calls=[Call("request_user", {"question": "Where?"})], when=when("fetch")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.until(made.session_id, lambda each: each["event"] == "workflow.question.asked")
        await here.model.until_open(1)
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        ended: set[str] = set()

        def all_ended(each: dict[str, Any]) -> bool:
            if each["event"] == "workflow.result.cancelled":
                ended.add(each["run_id"])
            return len(ended) == 3

        await here.until(made.session_id, all_ended)
        whole = await tree(here, made)
        tasks = await here.services.gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
    assert {item.run.stop_reason for item in whole.subtasks} == {"user_stop"}
    assert not [task for task in tasks if task.reports]


async def test_a_stop_ends_what_depends_on_what_it_ends(home: Path) -> None:
    chain = [
        {"instruction": "inquire"},
        *({"instruction": f"part {n}", "depends_on": [str(n)]} for n in (1, 2, 3)),
        {"instruction": "dig"},
    ]
    rules = [
        Reply(calls=[Call("subagent", {"tasks": chain})], when=when("start")),
        Reply(calls=[Call("request_user", {"question": "Where?"})], when=when("inquire")),
        Reply("dug", when=when("dig")),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        seen: set[str] = set()

        def is_ready(each: dict[str, Any]) -> bool:
            seen.add(each["event"] if each["is_subtask"] else "")
            return {"workflow.question.asked", "workflow.result.final"} <= seen

        await here.until(made.session_id, is_ready)
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        await here.end_of(made)
        whole = await tree(here, made)
        tasks = await here.services.gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
    reasons = {item.task.instruction: item.run.stop_reason for item in whole.subtasks}
    assert reasons.pop("dig") == "final_answer"
    assert reasons.pop("inquire") == "user_stop"
    assert set(reasons.values()) == {"blocked"}
    assert not [task for task in tasks if task.reports]


async def test_a_task_starts_when_those_it_depends_on_are_completed(home: Path) -> None:
    chain = [
        {"instruction": "write it", "depends_on": ["2"]},
        {"instruction": "find out"},
    ]
    rules = [
        Reply(calls=[Call("subagent", {"tasks": chain})], when=when("start")),
        Reply("found", when=when("find out")),
        Reply("written", when=when("write it")),
        Reply("over", when=when("start", 1)),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        events = await here.end_of(made)
    users = [seen_in(each).last_user for each in here.model.requests]
    assert [("find out" in each, "write it" in each) for each in users[1:3]] == [
        (True, False),
        (False, True),
    ]
    assert events[-1]["payload"]["final_answer"] == "over"


async def test_a_failed_dependency_blocks_what_waits_for_it(home: Path) -> None:
    chain = [
        {"instruction": "find out"},
        {"instruction": "write it", "depends_on": ["1"]},
        {"instruction": "print it", "depends_on": ["2"]},
    ]
    refused = Reply("no", stop_reason="refusal", when=when("find out"))
    rules = [
        Reply(calls=[Call("subagent", {"tasks": chain})], when=when("start")),
        refused,
        Reply("over", when=when("start", 1)),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        events = await here.end_of(made)
        whole = await tree(here, made)
    assert [item.run.stop_reason for item in whole.subtasks] == ["error", "blocked", "blocked"]
    (done,) = of_kind(events, "workflow.subflow.completed")
    assert (done["payload"]["success"], done["payload"]["failed"]) == (0, 3)


@pytest.mark.slow
async def test_at_most_eight_of_64_run_at_once_and_a_65th_is_refused(home: Path) -> None:
    open_now = most = 0

    def reply(request: dict[str, Any]) -> Reply:
        seen = seen_in(request)
        if "start" in seen.last_user:
            if seen.results == 0:
                return Reply(calls=[delegate(*(f"part {n}" for n in range(64)))])
            if seen.results == 1:
                return Reply(calls=[create("one more")])
            return Reply("over")
        return Reply("done", delay_seconds=0.02)

    async with open_agent(home, reply, NO_GATES) as here:
        made = await here.submit("start")
        counting = asyncio.create_task(_most_running(here, made.task_id))
        events = await here.end_of(made)
        most = await counting
        whole = await tree(here, made)
    assert len(whole.subtasks) == 64
    assert {item.run.status for item in whole.subtasks} == {"completed"}
    assert 2 <= most <= 8
    assert open_now == 0
    result = seen_in(here.model.requests[-1]).last_result
    assert "there are 64 tasks below this one" in result
    assert events[-1]["payload"]["final_answer"] == "over"


async def _most_running(here: Core, task_id: TaskId) -> int:
    most = 0
    while True:
        whole = await here.services.gateway.queries.task_tree(task_id, LOCAL_OWNER)
        most = max(most, sum(item.run.status == "running" for item in whole.subtasks))
        if len(whole.subtasks) == 64 and all(
            item.run.status == "completed" for item in whole.subtasks
        ):
            return most
