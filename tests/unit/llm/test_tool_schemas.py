"""Schemas that every provider accepts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.react.gates import CONTROL_SPECS
from internal.agent.domain.tools import ToolSpec
from internal.llm.tool_schemas import common_schema, with_common_schemas
from larkspur.task_defaults import TOOL_SPECS

ANYTHING = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object")]}


def of_property(schema: Any) -> Any:
    """Return the converted schema of an argument."""
    return common_schema({"type": "object", "properties": {"a": schema}})["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "common"),
    [
        ({"type": "array"}, {"type": "array", "items": ANYTHING}),
        ({"type": "array", "items": {}}, {"type": "array", "items": ANYTHING}),
        (
            {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        (
            {"type": ["string", "array"], "items": {"type": "integer"}},
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}),
        (
            {"type": "string", "anyOf": [{"maxLength": 1}, {"minLength": 3}]},
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 3}]},
        ),
        (
            {"oneOf": [{"$ref": "#/definitions/x"}, {"type": "string"}], "description": "d"},
            {"description": "d", "anyOf": [{"$ref": "#/$defs/x"}, {"type": "string"}]},
        ),
        ({"$ref": "#/$defs/x", "type": "object"}, {"$ref": "#/$defs/x"}),
        ({"const": "x"}, {"enum": ["x"]}),
        ({"enum": [1, 2], "type": "integer"}, {"type": "integer", "description": "One of 1, 2."}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        (
            {"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}]},
            {"type": "object", "properties": {"x": {"type": "string"}}},
        ),
        (True, {}),
    ],
)
def test_a_schema_says_the_same_in_widely_known_keywords(schema: Any, common: Any) -> None:
    assert of_property(schema) == common


def test_the_top_is_an_object_without_alternatives() -> None:
    odd = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "anyOf": [{"required": ["a"]}],
        "properties": {"a": {"type": "string"}},
        "required": ["a", "gone"],
    }
    common = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert common_schema(odd) == common
    assert common_schema({}) == {"type": "object", "properties": {}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "items",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "properties",
                    "enum",
                    "$ref",
                    "required",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["properties", "required", "anyOf", "$defs"]), json_values))
def test_what_is_no_schema_does_no_harm(parameters: dict[str, Any]) -> None:
    once = common_schema(parameters)
    assert once["type"] == "object"
    assert isinstance(once["properties"], dict)
    assert common_schema(once) == once


def test_the_schemas_of_larkspur_keep_what_they_require() -> None:
    for tool in (*TOOL_SPECS, *CONTROL_SPECS):
        common = common_schema(tool.parameters)
        assert common["properties"].keys() == tool.parameters["properties"].keys()
        assert common.get("required", []) == tool.parameters.get("required", [])


def test_a_schema_is_computed_once_for_a_tool() -> None:
    odd = ToolSpec("odd", "Odd.", {"type": "object", "$schema": "x"}, "read")
    plain = ToolSpec("plain", "Plain.", {"type": "object", "properties": {}}, "read")
    [first], [second] = with_common_schemas((odd,)), with_common_schemas((odd,))
    assert first is second
    tools = (plain, plain)
    assert with_common_schemas(tools) is tools
