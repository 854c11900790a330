"""Messages: merging, unique ids and normalization."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.messages import (
    MAX_OPAQUE_BYTES,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assign_call_ids,
    join_messages,
    storable_opaque,
    text_parts,
    user_message,
    without_call_ids,
)
from tests.support.images import an_image
from tests.support.weighed_messages import merge_messages

PICTURE = an_image()


def test_a_message_has_text_and_calls() -> None:
    calls = (ToolCall("a", "x", {}), ToolCall("b", "y", {}))
    message = Message("assistant", (Thinking("Hm."), Text("One "), calls[0], Text("two"), calls[1]))
    assert message.text == "One two"
    assert message.calls == calls


@pytest.mark.parametrize(
    ("text", "images", "parts"),
    [
        ("Hi", (), (Text("Hi"),)),
        ("Hi", (PICTURE,), (PICTURE, Text("Hi"))),
        (" \n", (PICTURE,), (PICTURE,)),
        ("", (), ()),
    ],
)
def test_a_user_message_omits_empty_text(
    text: str, images: tuple[Image, ...], parts: tuple[Part, ...]
) -> None:
    assert user_message(text, images) == Message("user", parts)


def test_adjacent_messages_of_a_role_are_merged_with_results_first() -> None:
    result = ToolResult("a", "x")
    joined = merge_messages(
        [
            user_message(""),
            user_message("One"),
            user_message(""),
            Message("user", (PICTURE, result)),
            Message("assistant", ()),
            user_message("Two"),
            Message("assistant", (Text("Three"),)),
            Message("assistant", (Text("Four"),)),
        ]
    )
    assert joined == [
        Message("user", (result, Text("One"), PICTURE, Text("Two"))),
        Message("assistant", (Text("Three"), Text("Four"))),
    ]


def test_valid_ids_are_kept() -> None:
    calls = [ToolCall(name, "x", {}) for name in ("toolu_01-A", "b", "b", "", "n-3", "c d", "é")]
    calls.append(ToolCall("x" * 65, "x", {}))
    named = assign_call_ids(calls, {"n-4", "n-5"}, "n")
    ids = ["toolu_01-A", "b", "n-3", "n-6", "n-7", "n-8", "n-9", "n-10"]
    assert [call.call_id for call in named] == ids


@given(st.lists(st.sampled_from(["", "n-1", "n-2", "n-3", "a", "a b"])), st.sets(st.text()))
def test_ids_are_unique(ids: list[str], used: set[str]) -> None:
    before = set(used)
    named = assign_call_ids([ToolCall(each, "x", {}) for each in ids], used, "n")
    ours = [call.call_id for call in named]
    assert len(ours) == len(ids) == len(set(ours))
    assert not before & set(ours)
    assert used == before | set(ours)


def test_the_ids_of_a_model_are_removed() -> None:
    parts: list[Part] = [
        Text("I look."),
        ToolCall("call_1", "x", {"a": 1}),
        ToolCall("call_1", "y", {}, "{"),
    ]
    assert without_call_ids(parts) == [
        Text("I look."),
        ToolCall("", "x", {"a": 1}, wire_id="call_1"),
        ToolCall("", "y", {}, "{", wire_id="call_1"),
    ]
    first, second = assign_call_ids(
        [part for part in without_call_ids(parts) if isinstance(part, ToolCall)], set(), "n"
    )
    assert (first.wire_id, second.wire_id) == ("call_1", ""), "of two the first keeps it"


def test_opaque_fields_that_cannot_be_stored_are_left_out() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"x": deep}
    assert storable_opaque({"a": "\ud800"}) == {"a": "\ufffd"}
    assert storable_opaque({"a": "x" * MAX_OPAQUE_BYTES}) is None
    assert storable_opaque(deep) is None
    assert text_parts([Thinking("", opaque={"a": 1})]) == (Thinking("", opaque={"a": 1}),)


def test_joined_messages_of_two_models_lose_what_only_one_of_them_may_read() -> None:
    call = ToolCall("n-1", "x", {}, opaque={"s": "1"}, wire_id="w")
    one = Message("assistant", (Thinking("hm", "s"), call), "a:m")
    other = Message("assistant", (Thinking("so", "s"),), "b:m")
    text = Message("assistant", (Text("Done."),), "c:m")
    assert join_messages(one, other) == Message("assistant", (ToolCall("n-1", "x", {}),))
    assert join_messages(text, one) == Message("assistant", (Text("Done."), *one.parts), "a:m")
    assert join_messages(one, text) == Message("assistant", (*one.parts, Text("Done.")), "a:m")
    assert join_messages(text, text).origin == "c:m"
    results = Message("user", (ToolResult("n-1", "x", wire_id="w"),), "a:m")
    others = Message("user", (ToolResult("n-2", "y", wire_id="w"),), "b:m")
    assert join_messages(results, user_message("go")).origin == "a:m"
    assert join_messages(user_message("go"), results).origin == "a:m"
    bare = (ToolResult("n-1", "x"), ToolResult("n-2", "y"))
    assert join_messages(results, others) == Message("user", bare)


def test_a_call_is_normalized_for_storage() -> None:
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"x": deep}
    (odd, too_deep, raw) = assign_call_ids(
        [
            ToolCall("a", "n\ud800" + "x" * 200, {"k\ud800": ["\udc00", float("inf"), (1, None)]}),
            ToolCall("b", "x", {"deep": deep}),
            ToolCall("c", "x", {"left": "over"}, "\ud800" + "x" * 9000),
        ],
        set(),
        "n",
    )
    assert odd.arguments == {"k�": ["�", None, [1, None]]}
    assert odd.name.startswith("n�xxx")
    assert len(odd.name) <= 128
    assert (too_deep.arguments, too_deep.malformed) == ({}, "(it is nested more than 60 deep)")
    assert raw.arguments == {}
    assert raw.malformed is not None
    assert raw.malformed.startswith("�xxx")
    assert len(raw.malformed) <= 2000
    msgspec.json.encode((odd, too_deep, raw))


def test_the_text_and_thinking_of_a_reply_are_kept() -> None:
    parts: list[Part] = [
        Thinking("Hm\ud800", "s"),
        Thinking(""),
        Thinking("", redacted="r"),
        Text(" \n"),
        Text(" One\udfff"),
        ToolCall("a", "x", {}),
        PICTURE,
        ToolResult("a", "forged"),
    ]
    kept = (Thinking("Hm�", "s"), Thinking("", redacted="r"), Text(" One�"))
    assert text_parts(parts) == kept
