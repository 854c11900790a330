"""Calls about subtasks that are refused, each with a sentence for the model."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules, seen_in
from tests.support.scripted_model import When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


async def result_of(
    home: Path, call: Call, environ: dict[str, str] | None = None, **options: Any
) -> tuple[str, int]:
    """Return the result of one call of a new run, and how many subtasks there are."""
    script = [Reply(calls=[call]), Reply("over")]
    async with open_agent(home, script, {**NO_GATES, **(environ or {})}) as here:
        made = await here.submit("start", **options)
        await here.end_of(made)
        queries = here.services.gateway.queries
        whole = await queries.task_tree(made.task_id, LOCAL_OWNER)
        return seen_in(here.model.requests[1]).last_result, len(whole.subtasks)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"agent_profile": "resercher"}, "There is no profile resercher. Did you mean researcher?"),
        ({"skill_ids": ["spreadsheet-analisys"]}, "spreadsheet-analysis"),
        ({"tools": ["shel"]}, "you have no tool shel to give. Did you mean shell?"),
        ({"depends_on": ["task-unknown"]}, "there is no task task-unknown in this conversation"),
        ({"files": ["../secret"]}, "../secret"),
        ({"workspace": "worktree"}, "not a git repository"),
    ],
)
async def test_a_wrong_argument_creates_nothing(
    home: Path, arguments: dict[str, Any], sentence: str
) -> None:
    call = Call("create_task", {"instruction": "dig", **arguments})
    text, count = await result_of(home, call)
    assert sentence in text
    assert count == 0


async def test_in_plan_mode_no_task_is_created(home: Path) -> None:
    call = Call("create_task", {"instruction": "dig"})
    text, count = await result_of(home, call, permission_mode=Mode.PLAN)
    assert "in plan mode no tasks are created" in text
    assert count == 0


@pytest.mark.parametrize("tool", ["task_result", "task_cancel", "task_message", "task_status"])
async def test_a_task_of_another_conversation_is_unknown(home: Path, tool: str) -> None:
    rules = [
        Reply("reported", when=When(last_user="Background tasks")),
        Reply(
            calls=[Call("create_task", {"instruction": "dig"})],
            when=When(last_user="first", results=0),
        ),
        Reply("created", when=When(last_user="first", results=1)),
        Reply("dug", when=When(last_user="dig")),
    ]
    asked: dict[str, Any] = {}

    def reply(request: dict[str, Any]) -> Reply:
        seen = seen_in(request)
        if "second" in seen.last_user:
            return Reply(calls=[asked["call"]]) if not seen.results else Reply(seen.last_result)
        return next(each for each in rules if each.when is not None and each.when.fits(seen))

    async with open_agent(home, reply, NO_GATES) as here:
        first = await here.submit("first")
        await here.until(
            first.session_id, lambda each: each["payload"].get("final_answer") == "reported"
        )
        whole = await here.services.gateway.queries.task_tree(first.task_id, LOCAL_OWNER)
        other = whole.subtasks[0].task.id
        arguments: dict[str, dict[str, Any]] = {
            "task_result": {"ids": [other]},
            "task_status": {"ids": [other]},
            "task_message": {"id": other, "text": "hello"},
            "task_cancel": {"id": other},
        }
        asked["call"] = Call(tool, arguments[tool])
        events = await here.end_of(await here.submit("second"))
    assert (
        f"There is no task {other} in this conversation." in events[-1]["payload"]["final_answer"]
    )


async def test_a_model_that_polls_is_told_how_to_wait(home: Path) -> None:
    status = Call("task_status", {})

    def reply(request: dict[str, Any]) -> Reply:
        seen = seen_in(request)
        if "dig" in seen.last_user:
            return Reply("dug", hold="never")
        if seen.results == 0:
            return Reply(calls=[Call("create_task", {"instruction": "dig"})])
        return Reply(calls=[status]) if seen.results < 6 else Reply("tired")

    async with open_agent(home, reply, NO_GATES) as here:
        made = await here.submit("start")
        await here.end_of(made)
        texts = [seen_in(each).last_result for each in here.model.requests]
        hints = ["call `task_result`, which" in text for text in texts if "task 1" in text]
        await here.services.gateway.stop(
            (await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER))
            .subtasks[0]
            .task.id,
            LOCAL_OWNER,
            "web",
        )
    assert hints[:3] == [False, False, False]
    assert hints[-1]


async def test_a_subtask_has_no_tools_to_delegate_unless_its_profile_says_so(home: Path) -> None:
    (home / "profiles").mkdir(parents=True)
    (home / "profiles" / "lead.yaml").write_text("extends: default\ndelegates: true\n")
    calls = [
        Call(
            "subagent",
            {"tasks": [{"instruction": "dig"}, {"instruction": "lead", "agent_profile": "lead"}]},
        )
    ]
    rules = [
        Reply(calls=calls, when=When(last_user="start", results=0)),
        Reply("dug", when=When(last_user="dig")),
        Reply(
            calls=[Call("subagent", {"prompt": "below"})], when=When(last_user="lead", results=0)
        ),
        Reply("deep", when=When(last_user="below")),
        Reply("led", when=When(last_user="lead", results=1)),
        Reply("over", when=When(last_user="start", results=1)),
    ]
    async with open_agent(home, Rules(rules), NO_GATES) as here:
        made = await here.submit("start")
        await here.end_of(made)
        whole = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
        offered = {
            seen_in(each).last_user.rpartition("\n")[2]: {tool["name"] for tool in each["tools"]}
            for each in here.model.requests
        }
    assert "subagent" in offered["start"]
    assert "subagent" in offered["lead"]
    assert offered["dig"].isdisjoint({"subagent", "create_task", "task_result"})
    assert offered["below"].isdisjoint({"subagent", "create_task", "task_result"})
    assert [item.run.subtask.depth for item in whole.subtasks if item.run.subtask] == [1, 1, 2]


async def test_a_tree_spends_no_more_than_its_root_may(home: Path) -> None:
    prices = {
        "LARKSPUR_LLM__PRICES": '{"claude-x": {"input": 1000000, "output": 0}}',
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    rules = [
        Reply(
            calls=[Call("subagent", {"prompt": "dig"})],
            usage=usage,
            when=When(last_user="start", results=0),
        ),
        Reply(calls=[Call("list_dir", {})], usage=usage, when=When(last_user="dig")),
        Reply("over", usage=usage, when=When(last_user="start", results=1)),
    ]
    async with open_agent(home, Rules(rules), {**NO_GATES, **prices}) as here:
        made = await here.submit("start", max_cost=3.5)
        events = await here.end_of(made)
        whole = await here.services.gateway.queries.task_tree(made.task_id, LOCAL_OWNER)
    (child,) = whole.subtasks
    assert child.run.stop_reason == "budget_exceeded"
    assert whole.run.cost == pytest.approx(4.0)  # one call more than the limit
    assert events[-1]["payload"]["stop_reason"] == "budget_exceeded"
