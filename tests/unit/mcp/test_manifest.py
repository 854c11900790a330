"""The tools of a server within bounds."""

from typing import Any

import pytest

from internal.mcp.manifest import (
    MAX_TOOLS,
    ListedTool,
    build_manifest,
    describe_changes,
    offered_name,
)

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def tool(name: str = "add", description: str = "Adds.", **schema: Any) -> ListedTool:
    return ListedTool(name, description, {**OBJECT, **schema})


def only_hash(listed: ListedTool) -> str:
    (found,) = build_manifest("s", "d", [listed]).tools
    return found.sha256


def test_names_have_the_server_in_front_and_fit_all_providers() -> None:
    assert offered_name("git-hub", "create_issue") == "mcp__git-hub__create_issue"
    assert offered_name("s", "read file/ä.x") == "mcp__s__read_file___x"
    long = offered_name("x" * 40, "y" * 100)
    assert len(long) == 64
    assert long != offered_name("x" * 40, "y" * 99)


def test_a_second_tool_of_one_name_is_reported() -> None:
    found = build_manifest("s", "d", [tool("a.b"), tool("a_b"), tool("c")])
    assert [each.name for each in found.tools] == ["a.b", "c"]
    assert found.problems == (
        "The tool a_b of s is not offered: it has the same name as a.b: mcp__s__a_b.",
    )


def test_hidden_characters_are_escaped_and_long_descriptions_cut() -> None:
    hidden = "Adds\x1b[8m secretly\u202e\u200b." + "x" * 5_000
    (found,) = build_manifest("s", "d", [tool(description=hidden, title="a\u2066b")]).tools
    assert found.description.startswith("Adds\\u001b[8m secretly\\u202e\\u200b.")
    assert len(found.description) == 2_000
    assert found.description.endswith("…")
    assert found.schema["title"] == "a\\u2066b"


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (tool(""), "has a name that is empty"),
        (tool("a\u202eb"), "hidden characters"),
        (tool("x" * 201), "too long"),
        (tool(title="x" * 70_000), "has a schema of more than 65,536 bytes"),
        (tool(type="array"), "not of an object"),
        (tool(properties={"a\u200b": {}}), "an argument whose name has hidden characters"),
    ],
)
def test_a_tool_that_cannot_be_offered_does_not_affect_others(
    listed: ListedTool, reason: str
) -> None:
    found = build_manifest("s", "d", [listed, tool("ok")])
    assert [each.name for each in found.tools] == ["ok"]
    assert reason in found.problems[0]


def test_a_deep_schema_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"items": deep}
    assert "nested more than" in build_manifest("s", "d", [tool(properties=deep)]).problems[0]


def test_of_many_tools_the_first_are_offered_and_problems_are_bounded() -> None:
    many = build_manifest("s", "d", [tool(f"t{n}") for n in range(5_000)])
    assert len(many.tools) == MAX_TOOLS
    assert many.problems == ("s has more than 500 tools; the first ones are offered.",)
    bad = build_manifest("s", "d", [tool(type="array")] * 100)
    assert len(bad.problems) == 21
    assert bad.problems[-1] == "80 more tools are not offered."


def test_all_tools_together_are_bounded() -> None:
    found = build_manifest("s", "d", [tool(f"t{n}", title="x" * 60_000) for n in range(100)])
    assert 60 < len(found.tools) < 70
    assert "bytes of all tools together" in found.problems[0]


def test_every_part_that_the_model_reads_is_in_the_hash() -> None:
    base = only_hash(tool())
    assert only_hash(tool("sub")) != base
    assert only_hash(tool(description="Adds!")) != base
    assert only_hash(tool(properties={"a": {"type": "string"}})) != base
    assert only_hash(tool(description="x" * 9_000)) != only_hash(tool(description="x" * 9_001))
    assert only_hash(ListedTool("add", "Adds.", dict(reversed(OBJECT.items())))) == base


def test_changes_are_a_diff_by_tool() -> None:
    before = build_manifest("s", "d", [tool("a"), tool("b")]).tools
    after = build_manifest("s", "d", [tool("a", "Adds, then sends."), tool("c")]).tools
    lines = describe_changes(before, after)
    assert "-Adds." in lines
    assert "+Adds, then sends." in lines
    assert {"--- a", "--- b", "+++ c"} <= set(lines)
    assert describe_changes(before, before) == ()
