"""Short descriptions of calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.ids import QuestionId
from internal.agent.domain.messages import ToolCall
from internal.agent.domain.questions import ApprovalItem, Preview, approval_question
from internal.agent.domain.react.call_subject import MAX_SUBJECT_CHARS, call_subject
from internal.agent.domain.tools import ToolSpec
from internal.tools.diffs import unified_diff
from internal.tools.registry import TOOLS

SPECS = {tool.spec.name: tool.spec for tool in TOOLS}


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("write_file", {"path": "notes.md", "content": "x"}, ("change", "notes.md")),
        ("edit_file", {"path": "a/b.txt"}, ("change", "a/b.txt")),
        ("read_file", {"path": "/etc/hosts"}, ("read", "/etc/hosts")),
        ("shell", {"command": "npm  test\n--all"}, ("run", "npm test --all")),
        ("shell", {"command": "rm \u202egpj"}, ("run", "rm \\u202egpj")),
        ("web_fetch", {"url": "https://docs.example/a?b"}, ("fetch", "docs.example")),
        ("web_fetch", {"url": "https://[bad"}, ("fetch", "https://[bad")),
        ("write_file", {"content": "x"}, ("use", "write_file")),
        ("write_file", {"path": 7}, ("use", "write_file")),
    ],
)
def test_a_call_is_named_by_what_it_touches(
    tool: str, arguments: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert call_subject(ToolCall("c", tool, arguments), SPECS[tool]) == expected


@given(st.sampled_from(sorted(SPECS)), st.text() | st.lists(st.text()) | st.none() | st.integers())
def test_any_argument_gives_one_short_line(tool: str, value: object) -> None:
    spec = SPECS[tool]
    arguments = {target.argument: value for target in spec.targets}
    _, subject = call_subject(ToolCall("c", tool, arguments), spec)
    assert subject
    assert subject.isprintable()
    assert len(subject) <= 10 * MAX_SUBJECT_CHARS


def test_a_call_that_trusts_something_is_named_by_it() -> None:
    spec = ToolSpec("trust_source", "", {}, "read", trusts="source")
    assert call_subject(ToolCall("c", spec.name, {"source": "moth"}), spec) == ("trust", "moth")
    assert call_subject(ToolCall("c", spec.name, {}), spec) == ("use", "trust_source")


def test_a_change_to_a_file_that_does_not_exist_creates_it() -> None:
    item = ApprovalItem("c", "write_file", "…", "write", "", "h", action="change", subject="a.md")
    asked = approval_question(QuestionId("q"), (item,), {})
    assert asked.title == "Change a.md?"
    new = asked.with_previews({"c": Preview(unified_diff("a.md", None, "one\n"))})
    assert (new.title, new.calls[0].action) == ("Create a.md?", "create")
    old = asked.with_previews({"c": Preview(unified_diff("a.md", "one\n", "two\n"))})
    assert (old.title, old.calls[0].action) == ("Change a.md?", "change")
