"""Streamed Chat Completions responses, read without a connection."""

import json
from typing import Any

import pytest

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
)
from internal.agent.domain.messages import Text, Thinking, ToolCall
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse
from internal.llm.errors import ProviderInfo
from internal.llm.openai_stream import OpenAIResponseReader, error_from_body

PEER = ProviderInfo("Acme", "ACME_API_KEY")


def event(delta: dict[str, Any], stop: str | None = None, **fields: Any) -> bytes:
    data = {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}], **fields}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def call(**fields: Any) -> dict[str, Any]:
    name, arguments = fields.pop("name", None), fields.pop("arguments", None)
    return {"tool_calls": [{**fields, "function": {"name": name, "arguments": arguments}}]}


def read(*chunks: bytes) -> ModelResponse:
    reader = OpenAIResponseReader(PEER, "m")
    for chunk in chunks:
        reader.feed(chunk)
    reader.end()
    return reader.reply()


def test_text_and_reasoning_are_streamed_and_kept_apart() -> None:
    reader = OpenAIResponseReader(PEER, "m")
    chunk = event({"reasoning_content": "hm"}) + event({"content": "a"}) + event({"content": "b"})
    deltas = reader.feed(chunk + event({}, "stop"))
    assert [(delta.text, delta.n, delta.reasoning) for delta in deltas] == [
        ("hm", 1, True),
        ("ab", 2, False),
    ]
    assert reader.is_complete
    assert reader.reply().parts == (Thinking("hm"), Text("ab"))


def test_the_pieces_of_calls_are_joined_by_index() -> None:
    reply = read(
        event(call(index=0, id="c1", name="look", arguments='{"n":')),
        event(call(index=1, id="c2", name="see", arguments="")),
        event(call(index=0, arguments=" 1}")),
        event({}, "tool_calls"),
    )
    assert reply.parts == (ToolCall("c1", "look", {"n": 1}), ToolCall("c2", "see", {}))
    assert reply.stop == "tools"


def test_calls_with_the_same_index_are_separated_by_their_ids() -> None:
    reply = read(
        event(call(index=0, id="c1", name="look", arguments="{}")),
        event(call(index=0, id="c2", name="look", arguments="{}")),
        event({}, "stop"),
    )
    assert [part.call_id for part in reply.parts if isinstance(part, ToolCall)] == ["c1", "c2"]


def test_a_response_sent_as_one_document_is_read_at_its_end() -> None:
    document = {
        "choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    raw = json.dumps(document, indent=1).encode()
    reply = read(raw[:20], raw[20:])
    assert (reply.parts, reply.usage) == ((Text("whole"),), Usage(3, 1))


def test_cached_tokens_are_subtracted_from_the_prompt() -> None:
    counts = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    }
    assert read(event({"content": "a"}, "stop", usage=counts)).usage == Usage(3, 2, 4, 3)


def test_a_stream_that_ends_before_its_reason_is_an_error() -> None:
    with pytest.raises(ModelUnreachable, match="lost in the middle"):
        read(event({"content": "half"}))


def test_an_error_after_the_reply_is_ignored() -> None:
    late = b'data: {"error": {"message": "late", "code": 500}}\n\n'
    assert read(event({"content": "a"}, "stop"), late).parts == (Text("a"),)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"error": {"code": 429, "message": "wait"}}, ModelOverloaded, "wait"),
        ({"error": {"code": "invalid_api_key", "message": "x"}}, ModelKeyRejected, "ACME_API_KEY"),
        ({"error": {"code": "context_length_exceeded"}}, ContextTooLong, "too long"),
        ({"error": "a sentence"}, ModelOverloaded, "a sentence"),
        ([{"error": {"type": "invalid_request_error", "message": "x"}}], ModelRejected, "x"),
        ({"detail": "bad"}, ModelOverloaded, "bad"),
        (None, ModelOverloaded, "no reason"),
        ({"message": "p", "code": 400, "metadata": {"raw": "the cause"}}, ModelRejected, "cause"),
        ({"message": "m does not support tools", "code": 400}, ModelRejected, "llm.tool_calls"),
    ],
)
def test_an_error_body_of_any_shape_is_translated(
    body: object, kind: type[ModelError], message: str
) -> None:
    error = error_from_body(PEER, None, body)
    assert type(error) is kind
    assert message in str(error)
