"""Usage and duration of a run with subtasks: the same in its events and in all reads."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.ids import SessionId
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import TaskFilter
from tests.support.agent_app import Core, open_agent
from tests.support.scripted_model import Call, Reply, Rules, When

SETTINGS = {
    "LARKSPUR_AGENT__GATES": "off",
    "LARKSPUR_TASKS__REPORT": "silent",
    "LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 1, "output": 0}}',
}


def used(count: int) -> dict[str, int]:
    return {"input_tokens": count, "output_tokens": 1}


def ask(*tasks: dict[str, Any]) -> list[Call]:
    return [Call("subagent", {"tasks": list(tasks)})]


NESTED = [
    Reply(
        calls=ask({"instruction": "dig"}, {"instruction": "lead", "agent_profile": "lead"}),
        usage=used(1),
        when=When(last_user="start", results=0),
    ),
    Reply("dug", usage=used(10), when=When(last_user="dig")),
    Reply(
        calls=ask({"instruction": "below"}), usage=used(100), when=When(last_user="lead", results=0)
    ),
    Reply("deep", usage=used(1_000), when=When(last_user="below")),
    Reply("led", usage=used(10_000), when=When(last_user="lead", results=1)),
    Reply("over", usage=used(100_000), when=When(last_user="start", results=1)),
]
"""Each digit of a sum tells whether a reply is in it; a million tokens cost a dollar."""


def payload(events: list[dict[str, Any]], run_id: str) -> dict[str, Any]:
    """Return the payload of the end of a run."""
    [end] = [each for each in events if each["run_id"] == run_id and ".result." in each["event"]]
    found: dict[str, Any] = end["payload"]
    return found


async def shown(here: Core, made: Submitted) -> list[tuple[int, int, float]]:
    """Return the input tokens, output tokens and cost of a task in every read of the server."""
    queries = here.services.gateway.queries
    tree = await queries.task_tree(made.task_id, LOCAL_OWNER)
    [listed] = await queries.task_list(LOCAL_OWNER, TaskFilter(session_id=made.session_id))
    _, run = await queries.task_with_run(made.task_id, LOCAL_OWNER)
    session = SessionId(made.session_id)
    [by_session] = await queries.usage(LOCAL_OWNER, "session", session_id=session)
    [by_day] = await queries.usage(LOCAL_OWNER, "day")
    found = (tree.run, listed.spending, run, by_session, by_day)
    return [
        (each.usage.input_tokens, each.usage.output_tokens, round(each.cost or 0.0, 6))
        for each in found
    ]


async def test_the_totals_of_a_run_with_nested_subtasks_are_the_same_everywhere(
    home: Path,
) -> None:
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "lead.yaml").write_text("extends: default\ndelegates: true\n")
    async with open_agent(home, Rules(NESTED), SETTINGS) as here:
        made = await here.submit("start")
        events = await here.end_of(made)
        end = payload(events, made.run_id)
        assert (end["usage"]["input_tokens"], end["subtasks"]) == (111_111, 3)
        assert end["cost"] == pytest.approx(0.111111)
        assert await shown(here, made) == [(111_111, 6, 0.111111)] * 5
        tree = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
        for item, total in zip(tree.subtasks, (10, 11_100, 1_000), strict=True):
            end = payload(events, item.run.id)
            assert end["usage"]["input_tokens"] == item.run.usage.input_tokens == total
            assert end["cost"] == item.run.cost == pytest.approx(total / 1e6)
        above = payload(events, tree.subtasks[2].run.id)["above"]
        assert [each["run_id"] for each in above] == [tree.subtasks[1].run.id, made.run_id]


async def test_the_duration_of_a_run_is_the_time_from_its_start_to_its_end(home: Path) -> None:
    rules = [
        Reply(calls=ask({"instruction": "dig"}), when=When(last_user="start", results=0)),
        Reply("dug", hold="go", when=When(last_user="dig")),
        Reply("over", when=When(last_user="start", results=1)),
    ]
    async with open_agent(home, Rules(rules), SETTINGS) as here:
        made = await here.submit("start")
        waiting = await here.until(
            made.session_id, lambda each: each["payload"].get("stop_reason") == "await_tasks"
        )
        await here.model.until_open(1)
        here.model.release("go")
        events = await here.end_of(made)
        run = await here.run(made)
    took = timedelta(milliseconds=payload(events, made.run_id)["duration_ms"])
    start, end = map(datetime.fromisoformat, (run.started, run.ended))
    assert took == end - start
    assert start < datetime.fromisoformat(waiting[-1]["timestamp"]) < end, "the wait is a part"


async def test_a_subtask_that_outlasts_its_run_adds_to_its_totals(home: Path) -> None:
    rules = [
        Reply(
            calls=[Call("create_task", {"instruction": "dig"})],
            usage=used(1),
            when=When(last_user="start", results=0),
        ),
        Reply("over", usage=used(10), when=When(last_user="start", results=1)),
        Reply("dug", usage=used(100), hold="go", when=When(last_user="dig")),
    ]
    async with open_agent(home, Rules(rules), SETTINGS) as here:
        made = await here.submit("start")
        events = await here.end_of(made)
        assert payload(events, made.run_id)["usage"]["input_tokens"] == 11
        await here.model.until_open(1)
        here.model.release("go")
        events = await here.until(
            made.session_id, lambda each: each["is_subtask"] and ".result." in each["event"]
        )
        [total] = events[-1]["payload"]["above"]
        assert (total["run_id"], total["usage"]["input_tokens"]) == (made.run_id, 111)
        assert total["cost"] == pytest.approx(0.000111)
        assert await shown(here, made) == [(111, 3, 0.000111)] * 5


async def test_a_stop_leaves_what_was_used(home: Path) -> None:
    rules = [
        Reply(
            calls=ask({"instruction": "dig"}, {"instruction": "wait"}),
            usage=used(1),
            when=When(last_user="start", results=0),
        ),
        Reply(calls=[Call("list_dir", {})], usage=used(10), when=When(last_user="dig", results=0)),
        Reply("never", hold="never", when=When(last_user="dig", results=1)),
        Reply("never", hold="never", when=When(last_user="wait")),
    ]
    async with open_agent(home, Rules(rules), SETTINGS) as here:
        made = await here.submit("start")
        await here.model.until_open(2)
        await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        ends: list[dict[str, Any]] = []

        def are_over(each: dict[str, Any]) -> bool:
            ends.extend([each] if each["event"] == "workflow.result.cancelled" else [])
            return len(ends) == 3

        events = await here.until(made.session_id, are_over)
        own = payload(events, made.run_id)
        assert own["duration_ms"] > 0
        newest = {made.run_id: own} | {
            each["run_id"]: each for end in ends for each in end["payload"]["above"]
        }
        assert newest[made.run_id]["usage"]["input_tokens"] == 11
        assert await shown(here, made) == [(11, 2, 0.000011)] * 5
