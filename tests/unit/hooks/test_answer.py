"""The JSON that hooks answer."""

import json
from typing import Any

import pytest

from internal.hooks.answer import HookAnswer, HookFailed, parse_answer


def answered(value: Any) -> HookAnswer:
    return parse_answer(json.dumps(value).encode())


def specific(**fields: Any) -> HookAnswer:
    return answered({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


@pytest.mark.parametrize("content", [b"", b" \n", b"{}", b'{"suppressOutput": true, "else": [1]}'])
def test_nothing_and_unknown_keys_are_a_pass(content: bytes) -> None:
    assert parse_answer(content) == HookAnswer()


def test_the_decisions_of_other_agents_are_understood() -> None:
    assert answered({"decision": "approve"}).decision == "pass"
    assert answered({"decision": "block", "reason": "no"}) == HookAnswer("refuse", "no")
    assert specific(permissionDecision="allow").decision == "pass"
    assert specific(permissionDecision="ask", permissionDecisionReason="sure?") == HookAnswer(
        "ask", "sure?"
    )
    assert specific(permissionDecision="deny", permissionDecisionReason="no") == HookAnswer(
        "refuse", "no"
    )
    assert answered({"continue": False, "stopReason": "stop"}) == HookAnswer("refuse", "stop")


def test_the_strictest_decision_of_an_answer_counts() -> None:
    both = {"decision": "block", "hookSpecificOutput": {"permissionDecision": "allow"}}
    assert answered(both).decision == "refuse"


def test_arguments_and_context_are_read() -> None:
    answer = specific(updatedInput={"command": "ls"}, additionalContext=" careful ")
    assert (answer.arguments, answer.context) == ({"command": "ls"}, "careful")


def test_long_texts_are_cut() -> None:
    assert len(answered({"decision": "block", "reason": "a" * 9_000}).reason) <= 2_000
    assert len(specific(additionalContext="a" * 90_000).context) <= 10_000


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Not here</html>",
        b"checked",
        b'{"decision": "block"',
        b"\xff\xfe",
        b'{"hookSpecificOutput": {"updatedInput": ' + b'{"a":' * 500 + b"1" + b"}" * 502,
    ],
)
def test_what_is_no_json_object_is_a_failure(content: bytes) -> None:
    with pytest.raises(HookFailed, match="one JSON object"):
        parse_answer(content)


@pytest.mark.parametrize(
    "value",
    [
        [],
        "deny",
        {"decision": "deny it"},
        {"continue": "no"},
        {"hookSpecificOutput": {"permissionDecision": "maybe"}},
        {"hookSpecificOutput": {"updatedInput": "ls"}},
    ],
)
def test_a_known_key_with_another_value_is_a_failure(value: Any) -> None:
    with pytest.raises(HookFailed, match="cannot be used: "):
        answered(value)
