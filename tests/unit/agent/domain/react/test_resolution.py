"""What a person said yes to is one call: this tool, these arguments, in this folder, once."""

from typing import Any

import msgspec
import pytest

from internal.agent.domain.messages import ToolCall
from internal.agent.domain.permissions.policy import Policy, call_hash
from internal.agent.domain.react.steps import Act
from internal.agent.domain.react.turn import Turn
from tests.support.turn_driver import act, answer, asked, begin, call, hear, paused, results, terms

COMMAND = "git push origin main"


def agreed(*calls: ToolCall) -> Turn:
    """Return a Turn in which a person just said yes to these calls."""
    turn = begin(terms(policy=Policy(), people=True))
    hear(turn, *calls)
    turn.resolve(answer(turn, "approve"))
    return turn


def push(call_id: str, command: str = COMMAND) -> ToolCall:
    return call(call_id, "shell", command=command)


def test_a_yes_runs_the_call_once_and_the_same_call_is_asked_again() -> None:
    turn = agreed(push("a"))
    assert act(turn) == ("a",)
    asked(turn)
    hear(turn, push("b"))
    assert [asking.what for asking in paused(turn).calls] == [COMMAND]
    assert turn.started == frozenset()


def test_a_yes_to_one_call_is_none_to_its_twin_in_the_same_reply() -> None:
    turn = begin(terms(policy=Policy(), people=True))
    hear(turn, push("a"), push("b"))
    turn.resolve(answer(turn, "approve", b=False))
    assert act(turn) == ("a",)
    assert results(turn)["b"].failed


def test_a_yes_is_not_heard_twice() -> None:
    turn = begin(terms(policy=Policy(), people=True))
    hear(turn, push("a"))
    yes = answer(turn, "approve")
    turn.resolve(yes)
    act(turn)
    hear(turn, push("b"))
    before = msgspec.json.encode(turn)
    assert turn.resolve(yes) == []
    assert msgspec.json.encode(turn) == before
    paused(turn)


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
def test_what_differs_in_anything_is_asked_again(other: ToolCall) -> None:
    turn = agreed(push("a"))
    act(turn)
    hear(turn, other)
    (asking,) = paused(turn).calls
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
    turn = begin(terms(policy=Policy(), people=True))
    hear(turn, push("a"))
    yes = answer(turn, "approve")
    turn.calls = (ToolCall("a", tool, arguments),)
    turn.config = msgspec.structs.replace(turn.config, workspace=workspace)
    turn.resolve(yes)
    assert not isinstance(turn.next(), Act)
    assert results(turn)["a"].text == "Not run: this is not the call that a person agreed to."
    assert results(turn)["a"].failed


def test_what_is_shown_is_what_the_yes_is_for() -> None:
    turn = begin(terms(policy=Policy(), people=True))
    hear(turn, push("a", "ls \u202e; rm x\u200b #"), push("b", "ls \\u202e; rm x\\u200b #"))
    one, other = paused(turn).calls
    assert one.what == "ls \\u202e; rm x\\u200b #"
    assert other.what == "ls \\u005cu202e; rm x\\u005cu200b #"
    assert one.call_hash != other.call_hash
