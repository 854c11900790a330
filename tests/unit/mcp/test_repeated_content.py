"""Structured content that repeats the parts."""

from typing import Any

import pytest

from internal.mcp.repeated_content import is_repeated


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("parts", "structured"),
    [
        ([text("{"), text('"a": 1}')], {"a": 1}),
        ([text("a"), text("b")], {"result": ["a", "b"]}),
        ([{"type": "image", "data": "x"}], {"content": [{"type": "image", "data": "x"}]}),
        ([text('[1] {"a": 1} [2]')], {"a": 1}),
        ([text("")], {"result": None}),
    ],
)
def test_what_the_parts_say_is_repeated(parts: list[dict[str, Any]], structured: Any) -> None:
    assert is_repeated(structured, parts)


@pytest.mark.parametrize(
    ("parts", "structured"),
    [
        ([], {}),
        ([text("a")], {"result": ["a", "b"]}),
        ([text('{"a": 1}')], {"a": True}),
        ([text('{"a": 1}')], {"a": 1, "b": 2}),
        ([{"type": "image", "data": "x"}], {"content": [{"type": "image", "data": "y"}]}),
        ([text("[" * 100_000)], {"a": 1}),
    ],
)
def test_anything_more_is_not(parts: list[dict[str, Any]], structured: Any) -> None:
    assert not is_repeated(structured, parts)
