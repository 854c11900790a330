"""An approval covers one call: one tool, one set of arguments, one workspace, once."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.policy import Policy, call_hash
from internal.agent.domain.react.steps import Act
from internal.agent.domain.react.turn import Turn
from tests.support.turn_driver import (
    add_reply,
    call,
    last_results,
    make_answer,
    next_ask,
    next_question,
    run_calls,
    run_config,
    start_turn,
)

COMMAND = "git push origin main"


def approved_turn(*calls: ToolCall) -> Turn:
    """Return a Turn in which a person has just approved these calls."""
    turn = start_turn(run_config(policy=Policy(), people=True))
    add_reply(turn, *calls)
    turn.resolve(make_answer(turn, "approve"))
    return turn


def push(call_id: str, command: str = COMMAND) -> ToolCall:
    return call(call_id, "shell", command=command)


def test_an_approval_covers_one_call_and_a_repeat_needs_another() -> None:
    turn = approved_turn(push("a"))
    assert run_calls(turn) == ("a",)
    next_ask(turn)
    add_reply(turn, push("b"))
    assert [asking.what for asking in next_question(turn).calls] == [COMMAND]
    assert turn.started == frozenset()


def test_an_approval_does_not_cover_an_equal_call_in_the_same_reply() -> None:
    turn = start_turn(run_config(policy=Policy(), people=True))
    add_reply(turn, push("a"), push("b"))
    turn.resolve(make_answer(turn, "approve", b=False))
    assert run_calls(turn) == ("a",)
    assert last_results(turn)["b"].failed


def test_a_repeated_approval_has_no_effect() -> None:
    turn = start_turn(run_config(policy=Policy(), people=True))
    add_reply(turn, push("a"))
    approval = make_answer(turn, "approve")
    turn.resolve(approval)
    run_calls(turn)
    add_reply(turn, push("b"))
    before = msgspec.json.encode(turn)
    assert turn.resolve(approval) == []
    assert msgspec.json.encode(turn) == before
    next_question(turn)


@pytest.mark.parametrize(
    "other",
    [
        push("b", f"{COMMAND} "),
        push("b", f"{COMMAND} --force"),
        push("b", "git push origin ma\u0456n"),
        push("b", "git push origin main\u200b"),
        call("b", "shell", command=COMMAND, timeout_seconds=600),
        call("b", "write_file", command=COMMAND),
    ],
)
def test_a_call_that_differs_in_any_detail_needs_another_approval(other: ToolCall) -> None:
    turn = approved_turn(push("a"))
    run_calls(turn)
    add_reply(turn, other)
    (asking,) = next_question(turn).calls
    assert asking.call_hash == call_hash(other.name, other.arguments, "/work")
    assert asking.call_hash != call_hash("shell", {"command": COMMAND}, "/work")


CHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("shell", {"command": "git push origin evil"}, "/work"),
    ("shell", {"command": COMMAND, "timeout_seconds": 1}, "/work"),
    ("shell", {}, "/work"),
    ("write_file", {"command": COMMAND}, "/work"),
    ("shell", {"command": COMMAND}, "/Work"),
    ("shell", {"command": COMMAND}, "/elsewhere"),
]


@pytest.mark.parametrize(("tool", "arguments", "workspace"), CHANGED)
def test_a_call_that_changed_between_question_and_answer_is_not_run(
    tool: str, arguments: dict[str, Any], workspace: str
) -> None:
    turn = start_turn(run_config(policy=Policy(), people=True))
    add_reply(turn, push("a"))
    approval = make_answer(turn, "approve")
    turn.calls = (ToolCall("a", tool, arguments),)
    turn.config = msgspec.structs.replace(turn.config, workspace=workspace)
    turn.resolve(approval)
    assert not isinstance(turn.next(), Act)
    assert last_results(turn)["a"].text == "Not run: this is not the call that a person agreed to."
    assert last_results(turn)["a"].failed


def test_calls_with_invisible_characters_are_displayed_differently() -> None:
    turn = start_turn(run_config(policy=Policy(), people=True))
    add_reply(turn, push("a", "ls \u202e; rm x\u200b #"), push("b", "ls \\u202e; rm x\\u200b #"))
    one, other = next_question(turn).calls
    assert one.what == "ls \\u202e; rm x\\u200b #"
    assert other.what == "ls \\u005cu202e; rm x\\u005cu200b #"
    assert one.call_hash != other.call_hash
