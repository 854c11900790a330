"""The arguments of the tools for subtasks, and the sentences about wrong ones."""

import re

import pytest

from internal.agent.domain.delegation.requests import (
    DELEGATION_SPECS,
    MAX_INSTRUCTION_CHARACTERS,
    AgentProfile,
    CreateTaskCall,
    NewTask,
    SubagentCall,
    order_by_dependencies,
    parse_call,
)
from internal.agent.domain.errors import ToolError


def test_a_profile_is_a_name_or_a_description() -> None:
    named = parse_call("create_task", {"instruction": "dig", "agent_profile": "researcher"})
    described = parse_call(
        "create_task", {"instruction": "dig", "agent_profile": {"role": "digger"}}
    )
    assert isinstance(named, CreateTaskCall)
    assert named.agent_profile == "researcher"
    assert isinstance(described, CreateTaskCall)
    assert described.agent_profile == AgentProfile(role="digger")


def test_a_prompt_is_one_more_task() -> None:
    call = parse_call("subagent", {"prompt": "dig", "tasks": [{"instruction": "fetch"}]})
    assert isinstance(call, SubagentCall)
    assert [task.instruction for task in call.wanted] == ["dig", "fetch"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("create_task", {}, "missing required field `instruction`"),
        ("create_task", {"instruction": " \n"}, "the instruction is empty"),
        (
            "create_task",
            {"instruction": "x" * 200_000},
            "200,000 characters; the maximum is 50,000",
        ),
        ("create_task", {"instruction": "x", "workspace": "theirs"}, "Invalid enum value 'theirs'"),
        ("create_task", {"instruction": "x", "role": "y"}, "unknown field `role`"),
        ("create_task", {"instruction": "x", "max_cost": -1}, "Expected `float` > 0"),
        ("subagent", {}, "give a prompt, or tasks"),
        ("subagent", {"tasks": [{"instruction": ""}]}, "the instruction is empty"),
        ("subagent", {"prompt": "x", "max_parallel": 9}, "Expected `int` <= 8"),
        ("subagent", {"tasks": [{"instruction": "x"}] * 65}, "length <= 64"),
        ("task_result", {"wait_minutes": 0}, "Expected `int` >= 1"),
        ("task_message", {"id": "1", "text": ""}, "length >= 1"),
    ],
)
def test_a_wrong_call_is_refused_with_a_sentence(
    tool: str, arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(sentence)):
        parse_call(tool, arguments)


def test_the_longest_instruction_is_taken() -> None:
    parse_call("create_task", {"instruction": "x" * MAX_INSTRUCTION_CHARACTERS})


def tasks(*depends_on: str) -> list[NewTask]:
    return [NewTask("x", depends_on=tuple(each.split())) for each in depends_on]


def test_each_task_follows_those_it_depends_on() -> None:
    assert order_by_dependencies(tasks("3", "1", "")) == [2, 0, 1]
    assert order_by_dependencies(tasks("", "", "")) == [0, 1, 2]
    assert order_by_dependencies(tasks("task-2ABc", "1")) == [0, 1]


@pytest.mark.parametrize(
    ("depends_on", "sentence"),
    [
        (("2", "1"), "in a circle: 1 → 2 → 1"),
        (("1",), "in a circle: 1 → 1"),
        (("4", ""), "depends_on names task 4, and there are 2 tasks"),
        (("0",), "depends_on names task 0, and there are 1 tasks"),
    ],
)
def test_a_circle_and_an_unknown_place_are_refused(
    depends_on: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(sentence)):
        order_by_dependencies(tasks(*depends_on))


def test_the_schemas_leave_out_what_only_the_check_needs() -> None:
    assert [spec.name for spec in DELEGATION_SPECS] == [
        "create_task",
        "subagent",
        "task_status",
        "task_result",
        "task_message",
        "task_cancel",
    ]
    for spec in DELEGATION_SPECS:
        assert "null" not in str(spec.parameters)
        assert "maxLength" not in str(spec.parameters)
        assert spec.idempotent
