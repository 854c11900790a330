"""A call and its targets against rules."""

from typing import Any

import pytest

from internal.agent.domain.permissions.matchers import CallMatcher, MissingPermission
from internal.agent.domain.permissions.rules import Rule, parse_allow_rule, parse_rule
from internal.agent.domain.permissions.targets import CommandTarget, PathTarget, Target, UrlTarget
from internal.agent.domain.tools import ToolSpec

COPY = (PathTarget("source"), PathTarget("destination"))
DELETE = (PathTarget("paths", multiple=True),)
RUN = (CommandTarget("command"),)
GET = (UrlTarget("url"),)


def matcher(targets: tuple[Target, ...], **arguments: Any) -> CallMatcher:
    return CallMatcher(ToolSpec("tool", "", {}, "write", targets=targets), arguments)


def allow(targets: tuple[Target, ...], *texts: str) -> list[Rule]:
    return [parse_allow_rule(text, {"tool": targets}) for text in texts]


def test_every_target_of_a_call_must_be_allowed() -> None:
    call = matcher(COPY, source="a/x", destination="b/x")
    missing = call.find_missing(allow(COPY, "tool(a/**)"))
    assert isinstance(missing, MissingPermission)
    assert missing.rules == ("tool(b/x)",)
    assert call.find_missing(allow(COPY, "tool(a/**)", "tool(b/*)")) == "tool(a/**) and tool(b/*)"


def test_one_denied_target_denies_the_call() -> None:
    rule = parse_rule("tool(secret/**)", {"tool": COPY})
    assert matcher(COPY, source="a", destination="secret/a").check_denials([rule]) == [True]
    assert matcher(COPY, source="a", destination="b").check_denials([rule]) == [False]
    assert matcher(COPY, source="a", destination=7).check_denials([rule]) == [None]


def test_every_item_of_a_list_is_a_target() -> None:
    rule = parse_rule("tool(secret/**)", {"tool": DELETE})
    assert matcher(DELETE, paths=["a", "secret/b"]).check_denials([rule]) == [True]
    assert matcher(DELETE, paths=["a", None]).check_denials([rule]) == [None]
    assert matcher(DELETE, paths=["a", "b"]).find_missing(allow(DELETE, "tool(a)")) == (
        MissingPermission("tool a b needs approval.", ("tool(b)",), "")
    )


def test_rules_are_suggested_only_if_they_cover_every_target() -> None:
    missing = matcher(COPY, source="a", destination="../b").find_missing([])
    assert isinstance(missing, MissingPermission)
    assert missing.rules == ()


def test_a_rule_for_another_tool_does_not_apply() -> None:
    other = Rule("other", "other")
    call = matcher(RUN, command="make")
    assert call.check_denials([other]) == [False]
    assert isinstance(call.find_missing([other]), MissingPermission)


@pytest.mark.parametrize(
    ("targets", "arguments", "path"),
    [
        (COPY, {"source": "a", "destination": ".git/hooks/pre-commit"}, ".git/hooks/pre-commit"),
        (COPY, {"source": "a", "destination": "b"}, None),
        (RUN, {"command": ".git"}, None),
        (GET, {"url": "https://a.example/.git"}, None),
    ],
)
def test_only_paths_can_be_protected(
    targets: tuple[Target, ...], arguments: dict[str, Any], path: str | None
) -> None:
    assert matcher(targets, **arguments).protected_path == path


def test_the_label_is_one_line_of_limited_length() -> None:
    label = matcher(RUN, command="echo \u202e\n" + "x" * 500).label
    assert label.startswith("tool echo \\u202e\\nxxx")
    assert label.endswith("x…")
    assert len(label) < 200


def test_a_tool_without_targets_is_allowed_by_its_name_only() -> None:
    call = matcher(())
    assert call.find_missing([]) == MissingPermission("tool needs approval.", ("tool",), "")
    assert call.find_missing([Rule("tool", "tool")]) == "tool"
