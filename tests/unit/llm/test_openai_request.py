"""Chat Completions requests, and the dialects of servers."""

import json
from typing import Any

from internal.agent.domain.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.react.context_window import weigh
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest
from internal.llm.openai_request import encode_request, estimate_tokens
from internal.model_providers.dialect import UNSEEN_PICTURE, Dialect
from tests.support.images import an_image, in_base64

LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
CALL = ToolCall("c1", "look", {"at": "鹭"})


def encode(*messages: Message, dialect: Dialect = Dialect(), **fields: Any) -> dict[str, Any]:  # noqa: B008 - frozen
    # like the ids of a Turn: the encoder uses them unchanged
    sent = RequestMessages([*map(weigh, messages)])
    request = ModelRequest(**{"model": "m", "system": "", "messages": sent, **fields})
    body: dict[str, Any] = json.loads(encode_request(request, dialect))
    return body


def test_the_dialect_selects_the_optional_fields() -> None:
    plain = Dialect("max_completion_tokens", count_tokens=False, temperature=False, effort="none")
    body = encode(user_message("hi"), dialect=plain, tools=(LOOK,), temperature=0.3)
    assert "max_completion_tokens" in body
    assert not {"max_tokens", "stream_options", "temperature"} & body.keys()
    assert body["reasoning_effort"] == "none"
    body = encode(user_message("hi"), dialect=plain)
    assert "reasoning_effort" not in body


def test_reasoning_is_sent_back_with_calls_only_if_the_server_wants_it() -> None:
    sent = Message("assistant", (Thinking("hm"), CALL))
    message = encode(sent)["messages"][0]
    assert "reasoning_content" not in message
    message = encode(sent, dialect=Dialect(resend_reasoning=True))["messages"][0]
    assert message["reasoning_content"] == "hm"
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"at": "鹭"}


def test_results_are_messages_of_their_own_before_the_text() -> None:
    results = (ToolResult("c1", "seen"), ToolResult("c2", "gone", failed=True))
    sent = encode(Message("user", (*results, Text("go on"))))["messages"]
    assert [message["role"] for message in sent] == ["tool", "tool", "user"]
    assert [message["content"] for message in sent] == ["seen", "Error: gone", "go on"]


def test_text_is_sent_as_plain_text_unless_there_is_an_image() -> None:
    (message,) = encode(user_message("hi"))["messages"]
    assert message["content"] == "hi"
    shown, lost = an_image(b"x"), an_image(b"y")
    (message,) = encode(user_message("hi", [shown, lost]), images=in_base64([b"x"]))["messages"]
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
        {"type": "text", "text": MISSING_IMAGE},
        {"type": "text", "text": "hi"},
    ]


def test_images_of_results_follow_the_results_as_a_user_message() -> None:
    results = (ToolResult("c1", "a chart", images=(an_image(b"x"),)), ToolResult("c2", "seen"))
    sent = encode(Message("user", results), images=in_base64([b"x"]))["messages"]
    assert [message["role"] for message in sent] == ["tool", "tool", "user"]
    assert [block["type"] for block in sent[-1]["content"]] == ["image_url"]


def test_ids_that_the_api_rejects_stay_distinct() -> None:
    ids = ["a" * 41, "a" * 42, "a:b", "a_b", "", " "]
    calls = tuple(ToolCall(each, "look", {}) for each in ids)
    message = encode(Message("assistant", calls))["messages"][0]
    sent = [call["id"] for call in message["tool_calls"]]
    assert len(set(sent)) == len(ids)
    assert all(0 < len(each) <= 40 for each in sent)


def test_a_line_stands_in_place_of_a_picture_that_the_model_cannot_see() -> None:
    shown = Message("user", (ToolResult("c1", "a chart", images=(an_image(b"x"),)), Text("and?")))
    blind = Dialect(pictures=False)
    sent = encode(shown, images=in_base64([b"x"]), dialect=blind)["messages"]
    assert [message["content"] for message in sent] == ["a chart", f"{UNSEEN_PICTURE}\n\nand?"]


def test_the_estimate_counts_text_tools_and_images_but_not_image_bytes() -> None:
    def estimate(*images: Image, **fields: Any) -> int:
        data = dict.fromkeys((image.sha256 for image in images), "e" * 900_000)
        message = user_message("word " * 400, list(images))
        request = ModelRequest("m", "", (message,), images=data, **fields)
        return estimate_tokens(request)

    plain = estimate()
    assert 500 <= plain < 600
    assert plain + 1_000 <= estimate(an_image()) < plain + 1_020  # and the note in its place
    assert estimate(tools=(LOOK,)) > plain
