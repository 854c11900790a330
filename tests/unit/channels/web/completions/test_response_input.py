"""Items of the input of a response, read as messages."""

from typing import Any

import pytest

from internal.agent.domain.errors import InvalidRequest
from internal.channels.web.completions.messages import ConversationMessage, SentFile
from internal.channels.web.completions.response_input import (
    items_after_reference,
    read_input,
    references,
)

IMAGE = "data:image/png;base64,"
ITEMS: list[tuple[dict[str, Any], ConversationMessage | None]] = [
    ({"role": "user", "content": "hi"}, ConversationMessage("user", ("hi",))),
    (
        {"role": "developer", "content": "Be kind."},
        ConversationMessage("instructions", ("Be kind.",)),
    ),
    (
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "yes"},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        ConversationMessage("assistant", ("yes", "no")),
    ),
    (
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,"}],
        },
        ConversationMessage("user", (SentFile("image", IMAGE),)),
    ),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, None),
    ({"type": "compaction", "encrypted_content": "x"}, None),
    (
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        ConversationMessage("assistant", (), "(called look: {})"),
    ),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        ConversationMessage("assistant", (), "(called patch: *** Begin)"),
    ),
    (
        {"type": "function_call_output", "call_id": "c", "output": "a cloud"},
        ConversationMessage("tool", ("a cloud",)),
    ),
    (
        {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "done"}]},
        ConversationMessage("tool", ("done",)),
    ),
    (
        {
            "type": "local_shell_call",
            "id": "l",
            "status": "completed",
            "action": {"command": ["ls"]},
        },
        ConversationMessage("assistant", (), '(local_shell_call: {"action":{"command":["ls"]}})'),
    ),
    ({"id": "msg_run-1"}, ConversationMessage("assistant", ("said before",))),
]


@pytest.mark.parametrize(("item", "message"), ITEMS)
def test_an_item_is_read_as_a_message(
    item: dict[str, Any], message: ConversationMessage | None
) -> None:
    read = read_input([item], "", {"msg_run-1": "said before"})
    assert read == ([] if message is None else [message])


def test_instructions_come_first_and_a_text_is_a_message() -> None:
    assert read_input("hi", "Be kind.", {}) == [
        ConversationMessage("instructions", ("Be kind.",)),
        ConversationMessage("user", ("hi",)),
    ]
    assert read_input("hi", " ", {}) == [ConversationMessage("user", ("hi",))]
    with pytest.raises(InvalidRequest, match=r"input\[0\].role"):
        read_input([{"role": "robot", "content": "hi"}], "", {})


def test_the_items_after_the_last_reference_are_new() -> None:
    system, first, last = ({"role": role, "content": "x"} for role in ("system", "user", "user"))
    items = [system, first, {"type": "item_reference", "id": "a"}, {"id": "b"}, last]
    assert references(items) == ["a", "b"]
    assert items_after_reference(items) == [system, last]
    assert items_after_reference([system, first]) == [system, first]
    assert (references("hi"), items_after_reference("hi")) == ([], "hi")
