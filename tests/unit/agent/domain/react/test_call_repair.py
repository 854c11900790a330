"""Repair of calls with a clear meaning, by the schemas of the tools."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent.domain.messages import Part, Text, ToolCall
from internal.agent.domain.permissions.targets import PathTarget
from internal.agent.domain.react.call_repair import repair_calls, resolve_tool_name
from internal.agent.domain.react.gates import DEFERRED_TOOL_SPECS
from internal.agent.domain.tools import ToolSpec


def spec(name: str, properties: dict[str, Any], *required: str, **more: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, "", {**schema, **more.pop("schema", {})}, "read", **more)


READ = spec(
    "read_file",
    {"path": {"type": "string"}, "limit": {"type": "integer"}, "source": {"type": "boolean"}},
    "path",
    targets=(PathTarget("path"),),
)
WRITE = spec("write_file", {"path": {"type": "string"}, "content": {"type": "string"}})
SHARE = spec(
    "share_file",
    {"paths": {"type": "array", "items": {"type": "string"}}},
    "paths",
    targets=(PathTarget("paths", multiple=True),),
)
QUERY = spec(
    "mcp__db__run-query",
    {
        "filter": {"$ref": "#/$defs/filter"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "any": {"description": "anything"},
        "ratio": {"type": "number"},
        "words": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "file_path": {"type": "string"},
        "uri": {"type": "string"},
    },
    schema={
        "$defs": {
            "filter": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["size"],
            }
        }
    },
)
TOOLS = (READ, WRITE, SHARE, QUERY)


def repaired(
    call: ToolCall, tools: tuple[ToolSpec, ...] = TOOLS
) -> tuple[list[ToolCall], list[str]]:
    result = repair_calls((Text("so"), call), tools)
    assert result.parts[0] == Text("so")
    return [part for part in result.parts if isinstance(part, ToolCall)], list(result.kinds)


def one(name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    (call,), kinds = repaired(ToolCall("c1", name, arguments))
    assert call.call_id == "c1"
    return call.arguments, kinds


def raw(text: str) -> tuple[list[ToolCall], list[str]]:
    return repaired(ToolCall("c1", "read_file", {}, text))


def test_a_call_in_the_form_of_its_schema_is_not_changed() -> None:
    call = ToolCall("c1", "read_file", {"path": "null", "limit": 3}, None, {"kept": 1})
    (same,), kinds = repaired(call)
    assert same is call
    assert kinds == []


@pytest.mark.parametrize(
    ("tool", "arguments", "meant", "kind"),
    [
        ("read_file", {"path": "a", "limit": None}, {"path": "a"}, "null"),
        ("read_file", {"path": "a", "limit": "null"}, {"path": "a"}, "null"),
        ("read_file", {"path": "a", "limit": " 5 "}, {"path": "a", "limit": 5}, "json_text"),
        ("read_file", {"path": "a", "source": "True"}, {"path": "a", "source": True}, "json_text"),
        ("read_file", {"path": "file:///a%20b"}, {"path": "/a b"}, "file_url"),
        ("read_file", {"path": "FILE://localhost/a"}, {"path": "/a"}, "file_url"),
        ("share_file", {"paths": '["a", "b"]'}, {"paths": ["a", "b"]}, "json_text"),
        ("share_file", {"paths": ["file:///a"]}, {"paths": ["/a"]}, "file_url"),
        ("write_file", {"content": {"a": 1}}, {"content": '{\n  "a": 1\n}\n'}, "object_as_text"),
        ("write_file", {"content": [1]}, {"content": "[\n  1\n]\n"}, "object_as_text"),
        ("mcp__db__run-query", {"filter": '{"size": 1}'}, {"filter": {"size": 1}}, "json_text"),
        ("mcp__db__run-query", {"filter": {"size": "1"}}, {"filter": {"size": 1}}, "json_text"),
        (
            "mcp__db__run-query",
            {"filter": {"size": 1, "note": None}},
            {"filter": {"size": 1}},
            "null",
        ),
        ("mcp__db__run-query", {"ratio": "0.5"}, {"ratio": 0.5}, "json_text"),
        ("mcp__db__run-query", {"file_path": "file:///a"}, {"file_path": "/a"}, "file_url"),
    ],
)
def test_an_argument_whose_meaning_is_clear_is_repaired(
    tool: str, arguments: dict[str, Any], meant: dict[str, Any], kind: str
) -> None:
    assert one(tool, arguments) == (meant, [kind])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": None}),  # it is required
        ("read_file", {"path": "a", "limit": "many"}),
        ("read_file", {"path": "a", "limit": "[1]"}),
        ("read_file", {"path": "file://host/a"}),
        ("read_file", {"path": "a", "unknown": None}),
        ("write_file", {"content": '["x"]'}),
        ("write_file", {"content": ["a line", "another"]}),
        ("write_file", {"path": {"a": 1}}),
        ("share_file", {"paths": "a.txt"}),
        ("share_file", {"paths": '{"a": 1}'}),
        ("mcp__db__run-query", {"limit": None}),
        ("mcp__db__run-query", {"any": None}),
        ("mcp__db__run-query", {"any": "[1]"}),
        ("mcp__db__run-query", {"words": '["a"]'}),
        ("mcp__db__run-query", {"uri": "file:///a"}),
        ("mcp__db__run-query", {"filter": {"size": None}}),
    ],
)
def test_an_argument_that_may_mean_two_things_is_left(tool: str, arguments: dict[str, Any]) -> None:
    assert one(tool, arguments) == (arguments, [])


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("functions.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("Read_File", "read_file"),
        ("read-file", "read_file"),
        ("ReadFile", "read_file"),
        ("read_file<|channel|>json", "read_file"),
        (" read_file ", "read_file"),
        ("db.run_query", "mcp__db__run-query"),
        ("functions.mcp__db__run_query", "mcp__db__run-query"),
        ("", None),
        ("functions.", None),
        ("remove_file", None),
        ("read_file_now", None),
    ],
)
def test_a_name_is_resolved_if_one_tool_matches(name: str, tool: str | None) -> None:
    assert resolve_tool_name(name, {each.name for each in TOOLS}) == tool


def test_a_name_that_matches_two_tools_is_left() -> None:
    assert resolve_tool_name("a-b", {"a_b", "A_B"}) is None
    assert resolve_tool_name("a_b", {"a_b", "A_B"}) == "a_b"


def test_a_name_with_a_server_is_a_tool_of_the_server() -> None:
    names = {"read_file", "mcp__fs__read_file"}
    assert resolve_tool_name("fs.read_file", names) == "mcp__fs__read_file"
    assert resolve_tool_name("functions.read_file", names) == "read_file"


@pytest.mark.parametrize(
    ("text", "meant", "kinds"),
    [
        (json.dumps('{"path": "a"}'), [{"path": "a"}], ["encoded_twice"]),
        ('{"path": "a"}</tool_call>', [{"path": "a"}], ["rest_after_object"]),
        ('{"path": "a"}<|tool_call_end|>\n', [{"path": "a"}], ["rest_after_object"]),
        ('{"path": "a"}\n```\n', [{"path": "a"}], ["rest_after_object"]),
        ('{"path": "a"}}', [{"path": "a"}], ["rest_after_object"]),
        ('{}{"path": "a"}', [{"path": "a"}], ["repeated_object"]),
        ('{"path": "a"}{"path": "a"}', [{"path": "a"}], ["repeated_object"]),
        ('{"path": "a"}\n{"path": "b"}', [{"path": "a"}, {"path": "b"}], ["joined_calls"]),
        ('{"path": "a", "limit": null}</s>', [{"path": "a"}], ["rest_after_object", "null"]),
    ],
)
def test_arguments_around_whole_objects_are_read(
    text: str, meant: list[dict[str, Any]], kinds: list[str]
) -> None:
    calls, found = raw(text)
    assert [call.arguments for call in calls] == meant
    assert all(call.name == "read_file" and call.malformed is None for call in calls)
    assert [call.call_id for call in calls] == ["c1", *[""] * (len(meant) - 1)]
    assert found == kinds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "path=a",
        '{"path": "a", "limit":',
        '{"path": "a"}{"path":',
        '{"path": "a"} and then more',
        '{"path": "a"}, "limit": 5}',
        '["a"]',
        '"a.txt"',
        '{"path": "a"}' + " 7",
        "[" * 100_000,
    ],
)
def test_other_malformed_arguments_are_left(text: str) -> None:
    call = ToolCall("c1", "read_file", {}, text)
    assert repaired(call) == ([call], [])


def test_only_the_last_call_of_a_cut_reply_is_left() -> None:
    first = ToolCall("c1", "read_file", {}, '{"path": "a"}</tool_call>')
    last = ToolCall("c2", "Read_File", {}, '{"path": "a"}</tool_call>')
    result = repair_calls((first, last), TOOLS, is_cut=True)
    assert result.parts == (ToolCall("c1", "read_file", {"path": "a"}), last)


def test_parallel_calls_become_their_calls() -> None:
    uses = [
        {"recipient_name": "functions.read_file", "parameters": {"path": "a", "limit": None}},
        {"recipient_name": "functions.share_file", "parameters": '{"paths": ["b"]}'},
    ]
    calls, kinds = repaired(ToolCall("c1", "multi_tool_use.parallel", {"tool_uses": uses}))
    assert calls == [
        ToolCall("c1", "read_file", {"path": "a"}),
        ToolCall("", "share_file", {"paths": ["b"]}),
    ]
    assert kinds == ["parallel", "tool_name", "null", "tool_name"]


@pytest.mark.parametrize("uses", [[], "no", [{"recipient_name": "a", "parameters": 7}], [7], None])
def test_parallel_calls_that_cannot_be_read_are_left(uses: object) -> None:
    call = ToolCall("c1", "multi_tool_use.parallel", {"tool_uses": uses})
    assert repaired(call) == ([call], [])


def test_a_deferred_tool_is_repaired_by_its_own_schema() -> None:
    call = ToolCall(
        "c1",
        "use_tool",
        {"name": "db.run_query", "arguments": '{"filter": {"size": "1"}, "ratio": null}'},
    )
    result = repair_calls((call,), (READ, *DEFERRED_TOOL_SPECS), (QUERY,))
    assert result.parts == (ToolCall("c1", "mcp__db__run-query", {"filter": {"size": 1}}),)
    assert result.kinds == ("json_text", "tool_name", "json_text", "null")


TEXTS = st.sampled_from(["", "null", "5", "0.5", "true", "[1]", '{"size": null}', "file:///a"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["size", "note"]), inner)
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*QUERY.parameters["properties"], "x"]), VALUES))
@settings(max_examples=40)
def test_a_repaired_call_is_not_repaired_again(arguments: dict[str, Any]) -> None:
    parts: tuple[Part, ...] = (ToolCall("c1", "mcp__db__run-query", arguments),)
    once = repair_calls(parts, TOOLS)
    assert repair_calls(once.parts, TOOLS) == (once.parts, ())
