"""Messages: how they are joined, named apart and kept."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.messages import (
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assign_call_ids,
    merge_messages,
    text_parts,
    user_message,
)

PICTURE = Image("image/png", "aGVyb24=")


def test_a_message_has_words_and_calls() -> None:
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
def test_a_persons_message(text: str, images: tuple[Image, ...], parts: tuple[Part, ...]) -> None:
    assert user_message(text, images) == Message("user", parts)


def test_neighbours_are_joined_results_first_and_nothing_is_empty() -> None:
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


def test_ids_are_kept_when_they_can_be() -> None:
    calls = [ToolCall(name, "x", {}) for name in ("toolu_01-A", "b", "b", "", "n-3", "c d", "é")]
    calls.append(ToolCall("x" * 65, "x", {}))
    named = assign_call_ids(calls, {"n-4", "n-5"}, "n")
    ids = ["toolu_01-A", "b", "n-3", "n-6", "n-7", "n-8", "n-9", "n-10"]
    assert [call.call_id for call in named] == ids


@given(st.lists(st.sampled_from(["", "n-1", "n-2", "n-3", "a", "a b"])), st.sets(st.text()))
def test_ids_are_never_shared(ids: list[str], used: set[str]) -> None:
    before = set(used)
    named = assign_call_ids([ToolCall(each, "x", {}) for each in ids], used, "n")
    ours = [call.call_id for call in named]
    assert len(ours) == len(ids) == len(set(ours))
    assert not before & set(ours)
    assert used == before | set(ours)


def test_a_call_is_kept_as_it_can_be_stored() -> None:
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


def test_of_a_reply_its_words_and_thoughts_are_kept() -> None:
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
