"""Answers of servers in the form that the protocol asks for."""

from typing import Any

import pytest

from internal.mcp.answers import PROBLEM, corrected_result


def test_null_is_the_same_as_absent_except_in_values() -> None:
    schema = {
        "type": ["object", "null"],
        "required": None,
        "properties": {"a": {"type": "string", "description": None, "default": None}},
    }
    annotations = {"title": "Tea", "readOnlyHint": None}
    tool = {"name": "t", "description": None, "inputSchema": schema, "annotations": annotations}
    (found,) = corrected_result("tools/list", {"tools": [tool], "nextCursor": None})["tools"]
    assert found == {
        "name": "t",
        "description": "",
        "title": "Tea",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "default": None}},
        },
    }
    structured: dict[str, Any] = {"content": [], "structuredContent": {"a": None}, "_meta": None}
    assert corrected_result("tools/call", structured)["structuredContent"] == {"a": None}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (None, "has no schema of its arguments"),
        ({"type": "array"}, "has a schema that is not of an object"),
        ([], "has a schema that is not of an object"),
        (
            {"type": "object", "properties": {"a": "string"}},
            "has arguments that are not described by schemas",
        ),
        (
            {"type": "object", "required": "a"},
            "has a list of required arguments that is not one of names",
        ),
        ({"type": "object", "$schema": 7}, "has a $schema that is no address"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_problem_of_its_tool(schema: Any, problem: str) -> None:
    listed = {"tools": [{"name": "t", "inputSchema": schema, "_meta": {PROBLEM: "forged"}}]}
    (found,) = corrected_result("tools/list", listed)["tools"]
    assert found["_meta"] == {PROBLEM: problem}
    assert found["inputSchema"] == {"type": "object"}


@pytest.mark.parametrize(("cursor", "more"), [("", {}), (None, {}), (2, {"nextCursor": "2"})])
def test_an_empty_cursor_ends_the_list(cursor: Any, more: dict[str, str]) -> None:
    assert corrected_result("tools/list", {"tools": None, "nextCursor": cursor}) == {
        "tools": [],
        **more,
    }


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        ({"content": "plain"}, ["plain"]),
        ({"content": {"type": "text", "text": "one"}}, ["one"]),
        ({"content": ["a", 7, {"text": "b"}]}, ["a", "7", "b"]),
        ({"content": [{"type": "text", "text": {"a": 1}}]}, ['{"a": 1}']),
        ({"content": [{"type": "video"}]}, ["[A part of an unknown type, video]"]),
        ({"content": [{"type": "resource"}]}, ["[A part of an unknown type, resource]"]),
        ({"pong": 1}, ['{"pong": 1}']),
        ({"structuredContent": [1]}, []),
        ({}, []),
    ],
)
def test_a_result_of_any_form_has_parts(result: dict[str, Any], texts: list[str]) -> None:
    corrected = corrected_result("tools/call", result)
    assert [part["text"] for part in corrected["content"]] == texts
    assert corrected["isError"] is False


def test_structured_content_that_is_no_object_is_wrapped() -> None:
    assert corrected_result("tools/call", {"structuredContent": [1]})["structuredContent"] == {
        "result": [1]
    }


def test_fields_of_files_are_texts() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": None, "annotations": 7}
    resource = {"type": "resource", "resource": {"uri": None, "text": None, "blob": "AA=="}}
    assert corrected_result("tools/call", {"content": [image, resource]})["content"] == [
        {"type": "image", "data": "AA==", "mimeType": ""},
        {"type": "resource", "resource": {"uri": "", "mimeType": "", "blob": "AA=="}},
    ]


def test_a_server_may_leave_out_its_version_and_its_capabilities() -> None:
    result = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": None}}
    assert corrected_result("initialize", result) == {
        "protocolVersion": "2025-06-18",
        "serverInfo": {"name": "s", "version": ""},
        "capabilities": {},
    }
