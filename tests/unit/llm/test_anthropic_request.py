"""Requests of the Messages API."""

import json
from typing import Any

import pytest

from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.tools import ToolSpec
from internal.agent.ports.llm import MISSING_IMAGE, ModelRequest
from internal.llm.anthropic_request import encode_request
from internal.model_providers.dialect import Dialect
from tests.support.images import an_image, in_base64

LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
THOUGHT = Thinking("hm", signature="s")
HISTORY = (user_message("hi"), Message("assistant", (THOUGHT, Text("ok"))), user_message("go"))


def make(*messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(**{"model": "claude-x", "system": "", "messages": messages, **fields})


def encode(request: ModelRequest, *, thinking: bool = True) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode_request(request, Dialect(resend_opaque=thinking)))
    return body


def test_cache_breakpoints_follow_the_tools_the_system_prompt_and_the_last_message() -> None:
    body = encode(make(*HISTORY, system="be brief", tools=(LOOK, LOOK)))
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral"}]
    assert "cache_control" in body["system"][0]
    marked = ["cache_control" in m["content"][-1] for m in body["messages"]]
    assert marked == [False, False, True]


def test_a_thinking_block_carries_no_breakpoint() -> None:
    body = encode(make(user_message("hi"), Message("assistant", (THOUGHT,))))
    assert "cache_control" not in body["messages"][1]["content"][-1]
    assert body["messages"][2]["role"] == "user", "newer models continue no text of their own"


def test_earlier_thinking_can_be_left_out() -> None:
    request = make(*HISTORY)
    kinds = [b["type"] for b in encode(request)["messages"][1]["content"]]
    assert kinds == ["thinking", "text"]
    kinds = [b["type"] for b in encode(request, thinking=False)["messages"][1]["content"]]
    assert kinds == ["text"]


def test_a_part_that_the_api_rejects_is_omitted() -> None:
    parts = (Thinking("of another provider"), Text(" "))
    body = encode(make(user_message("hi"), Message("assistant", parts), user_message("go")))
    assert body["messages"][1]["content"] == [{"type": "text", "text": "(empty)"}]


def test_every_kind_of_part_has_its_block() -> None:
    call = ToolCall("a:1", "do it", {"n": 1})
    answer = (ToolResult("a:1", "", failed=True), an_image(b"x"), Text("now"))
    body = encode(
        make(
            user_message("hi"),
            Message("assistant", (Thinking("", redacted="b3A="), call)),
            Message("user", answer),
            images=in_base64([b"x"]),
        )
    )
    redacted, use = body["messages"][1]["content"]
    assert redacted == {"type": "redacted_thinking", "data": "b3A="}
    assert use == {"type": "tool_use", "id": "a_1", "name": "do_it", "input": {"n": 1}}
    result, image, _ = body["messages"][2]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "a_1", "is_error": True}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "eA=="}


def test_a_result_contains_its_images_or_a_note() -> None:
    picture, lost = an_image(b"x"), an_image(b"y")
    answer = ToolResult("a", "a chart", images=(picture, lost))
    call = Message("assistant", (ToolCall("a", "look", {}),))
    messages = (user_message("hi"), call, Message("user", (answer,)))
    (result,) = encode(make(*messages, images=in_base64([b"x"])))["messages"][2]["content"]
    text, image, note = result["content"]
    assert text == {"type": "text", "text": "a chart"}
    assert image["source"]["data"] == "eA=="
    assert note == {"type": "text", "text": MISSING_IMAGE}


@pytest.mark.parametrize(
    ("model", "thinks"),
    [("claude-opus-5-5", True), ("claude-opus-4-5", False), ("claude-x", False)],
)
def test_a_summary_is_requested_from_models_that_think_by_default(model: str, thinks: bool) -> None:
    assert ("thinking" in encode(make(user_message("hi"), model=model))) is thinks
