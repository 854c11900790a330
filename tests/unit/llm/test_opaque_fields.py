"""Opaque fields of streamed replies."""

from types import SimpleNamespace
from typing import Any

import pytest

from internal.llm.opaque_fields import CALL_FIELDS, MESSAGE_FIELDS, OpaqueFields


def merge(name: str, *values: Any) -> Any:
    fields = OpaqueFields(MESSAGE_FIELDS)
    for value in values:
        fields.add(SimpleNamespace(**{**dict.fromkeys(MESSAGE_FIELDS), name: value}))
    return fields.fields.get(name)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": words, "index": 0, **more}


SEALED = {"type": "reasoning.encrypted", "data": "ZW5j", "id": "r1", "index": 0}


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([[SEALED]], [SEALED]),
        ([[SEALED], [SEALED]], [SEALED]),
        ([[text("ha")], [text("ha")], [text("", signature="s")]], [text("haha", signature="s")]),
        ([[text("a")], [text("b", index=1)], [text("c")]], [text("ac"), text("b", index=1)]),
        ([[text("a"), SEALED], [text("b")]], [text("ab"), SEALED]),
        ([[text("a", signature=None)], [text("b", signature="s")]], [text("ab", signature="s")]),
        ([None, [], [text("a")]], [text("a")]),
        ([["odd"], ["odd"], [3]], ["odd", "odd", 3]),
    ],
)
def test_pieces_of_a_list_are_joined_by_type_and_index(pieces: list[Any], whole: Any) -> None:
    assert merge("reasoning_details", *pieces) == whole


def test_blocks_without_index_end_with_their_signature() -> None:
    def block(words: str, signature: str | None = None) -> list[dict[str, Any]]:
        return [{"type": "thinking", "thinking": words, "signature": signature}]

    pieces = (block("a"), block("b"), block("", "s"), block("c"), block("", "t"))
    assert merge("thinking_blocks", *pieces) == [*block("ab", "s"), *block("c", "t")]


def test_objects_are_joined_and_the_mark_of_a_thought_is_none_of_them() -> None:
    pieces = ({"google": {"thought": True}}, {"google": {"thought_signature": "s"}}, {"x": 1})
    assert merge("extra_content", *pieces) == {"google": {"thought_signature": "s"}, "x": 1}
    assert merge("extra_content", {"google": {"thought": True}}) is None
    assert merge("reasoning_opaque", "a", "", "b") == "b"
    assert merge("reasoning_opaque", "a", None) == "a"


def test_the_size_is_that_of_the_json() -> None:
    call = dict.fromkeys(CALL_FIELDS)
    fields = OpaqueFields(CALL_FIELDS)
    assert fields.add(SimpleNamespace(**call)) == 0
    assert fields.add(SimpleNamespace(**{**call, "thought_signature": "abc"})) == len('"abc"')
    assert fields.fields == {"thought_signature": "abc"}
