"""A run that waits for its subtasks does not wait for a person, and others see it so."""

import asyncio
from pathlib import Path
from typing import Any

from internal.agent.app.runs.creation import Submitted
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.react.steps import TurnOutcome
from internal.agent.domain.tasks import Run
from internal.channels.mcp.schemas import TaskResultArguments, TaskStatusArguments
from internal.channels.mcp.tools import McpToolCall, task_result, task_status
from tests.support.agent_app import Core, make_recovery, open_agent, plan, sound
from tests.support.anthropic_server import Call, Reply, Rules
from tests.support.scripted_model import When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}
DELEGATE = Call(
    "subagent", {"tasks": [{"instruction": "dig", "agent_profile": {"role": "digger"}}]}
)


def when(last_user: str, results: int = 0) -> When:
    return When(last_user=last_user, results=results)


def is_asking(each: dict[str, Any]) -> bool:
    return bool(each["payload"].get("stop_reason") == "await_user_input")


def is_waiting_for_tasks(each: dict[str, Any]) -> bool:
    return bool(each["payload"].get("stop_reason") == "await_tasks")


async def subtask_runs(here: Core, made: Submitted) -> list[Run]:
    """Return the runs of the subtasks of a task, oldest first."""
    tree = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
    return [each.run for each in tree.subtasks]


def client(here: Core) -> McpToolCall:
    services = here.services
    return McpToolCall(services.gateway, services.defaults, LOCAL_OWNER, "http://127.0.0.1:1")


async def test_a_wait_for_the_run_lasts_until_its_subtasks_have_ended(tmp_path: Path) -> None:
    rules = [
        Reply(calls=[DELEGATE], when=when("start")),
        Reply(calls=[Call("request_user", {"question": "Where?"})], when=when("dig")),
        Reply("dug there", when=when("dig", 1)),
        Reply("found", when=when("start", 1)),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        gateway, tools = here.services.gateway, client(here)
        waiting = asyncio.create_task(gateway.wait_for_run(made, LOCAL_OWNER, 60))
        result = asyncio.create_task(task_result(tools, TaskResultArguments(made.task_id, 50)))
        await here.until(made.session_id, is_asking)
        # the subtask may ask before its task has paused
        await here.until(made.session_id, is_waiting_for_tasks)
        [state] = (await task_status(tools, TaskStatusArguments((made.task_id,)))).tasks
        assert (state.status, state.stop_reason) == ("waiting", "await_tasks")
        assert state.question is not None
        assert state.question.title == "task 1 · digger: Where?"
        await here.answer(state.question.question_id, "text", "in the garden")
        _, run = await waiting
        assert (run.status, run.answer) == ("completed", "found")
        assert (await result).answer == "found"


async def test_the_plan_of_a_subtask_does_not_title_the_session(tmp_path: Path) -> None:
    rules = [
        Reply(calls=[DELEGATE], when=when("start")),
        Reply(calls=[plan("dig", title="The plan of the worker")], when=when("dig")),
        Reply("dug", when=when("dig", 1)),
        Reply("found", when=when("start", 1)),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        events = await here.end_of(made)
        session = await here.services.gateway.queries.session(made.session_id, LOCAL_OWNER)
    plans = [each for each in events if each["event"] == "workflow.plan.updated"]
    assert any(each["payload"].get("title") == "The plan of the worker" for each in plans)
    assert session.title == "start"


def starts_of(events: list[dict[str, Any]], run_id: str) -> int:
    """Return how often a run was started or went on."""
    states = [each for each in events if each["run_id"] == run_id]
    return sum(each["payload"].get("status") == "running" for each in states)


async def test_a_run_that_waits_again_sleeps_though_another_task_has_ended(
    tmp_path: Path,
) -> None:
    """The end of a task that is no longer waited for is reported at the next step."""
    slow = Call("subagent", {"tasks": [{"instruction": "climb"}]})
    rules = [
        Reply(calls=[DELEGATE, slow], when=when("start")),
        Reply("dug", when=when("dig")),
        Reply("climbed", hold="climb", when=When(last_user="climb")),
        Reply("found", when=when("start", 2)),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        waits: int = 0

        def has_waited_twice(each: dict[str, Any]) -> bool:
            nonlocal waits
            waits += int(each["payload"].get("stop_reason") == "await_tasks")
            return waits == 2

        await here.until(made.session_id, has_waited_twice)
        run = await here.run(made)
        here.model.release("climb")
        events = await here.end_of(made)
    assert run.awaits_tasks
    assert starts_of(events, made.run_id) == 4  # prepare, execute, and once for each end


async def test_a_subtask_that_cannot_continue_ends_the_waits_for_it(tmp_path: Path) -> None:
    """If a subtask's events cannot be stored, its dependents are blocked, its creator continues."""
    parts = [{"instruction": "dig"}, {"instruction": "fill", "depends_on": ["1"]}]
    rules = [
        Reply(calls=[Call("subagent", {"tasks": parts})], when=when("start")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("found", when=when("start", 1)),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.until(made.session_id, is_waiting_for_tasks)
        await here.model.until_open(1)
        digger, filler = await subtask_runs(here, made)
        broken = TurnOutcome("error", "", "the events cannot be stored")
        await make_recovery(here.services).fail(digger, broken)
        events = await here.end_of(made)
        digger, filler = await subtask_runs(here, made)
        run = await here.run(made)
        here.model.release("dig")
    assert (digger.status, digger.error) == ("failed", "the events cannot be stored")
    assert (filler.status, filler.stop_reason) == ("failed", "blocked")
    assert run.answer == "found"
    ends = [each["payload"] for each in events if each["event"] == "background.task.completed"]
    assert [each["stop_reason"] for each in ends] == ["error", "blocked"]
    for each in (digger, filler):
        sound([event for event in events if event["run_id"] == each.id])


async def test_the_owner_of_a_subtask_that_lost_its_lease_writes_nothing_more(
    tmp_path: Path,
) -> None:
    rules = [
        Reply(calls=[DELEGATE], when=when("start")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("found", when=when("start", 1)),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.until(made.session_id, is_waiting_for_tasks)
        await here.model.until_open(1)
        [digger] = await subtask_runs(here, made)
        await make_recovery(here.services).hand_over(digger)  # as another process does meanwhile
        here.model.release("dig")
        events = await here.end_of(made)
        [again] = await subtask_runs(here, made)
    assert len(here.model.requests) == 4, "the reply to the first owner was used"
    assert again.fence == digger.fence + 1
    assert (again.status, again.answer) == ("completed", "dug")
    sound([each for each in events if each["run_id"] == digger.id])
    ends = [each for each in events if each["event"] == "background.task.completed"]
    assert len(ends) == 1


async def test_a_message_that_a_subtask_has_not_read_continues_the_conversation(
    tmp_path: Path,
) -> None:
    """The next task has the rights of the outermost task, not of the subtask."""
    rules = [
        Reply(calls=[DELEGATE], when=when("start")),
        Reply("dug", hold="dig", when=when("dig")),
        Reply("found", when=when("start", 1)),
        Reply("deeper it is", when=when("deeper")),
    ]
    async with open_agent(tmp_path, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.until(made.session_id, is_waiting_for_tasks)
        await here.model.until_open(1)
        [digger] = await subtask_runs(here, made)
        gateway = here.services.gateway
        await gateway.steer_task(digger.task_id, "deeper", LOCAL_OWNER, channel="web")
        await make_recovery(here.services).fail(digger, TurnOutcome("final_answer", "dug", ""))
        await here.end_of(made)
        task, _, first = await gateway.queries.tasks(LOCAL_OWNER, session_id=made.session_id)
        here.model.release("dig")
    assert (task.instruction, task.is_subtask) == ("deeper", False)
    assert task.spec == first.spec
