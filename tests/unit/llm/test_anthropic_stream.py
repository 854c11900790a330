"""Streamed responses of the Messages API, read without a connection."""

import json
from typing import Any

import pytest

from internal.agent.domain.errors import (
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelWithoutCredit,
)
from internal.agent.domain.messages import Text, Thinking, ToolCall
from internal.agent.domain.usage import Usage
from internal.llm.anthropic import AnthropicResponseReader, error_from_type, is_stale_thinking


def event(kind: str, **fields: Any) -> bytes:
    return b"data: " + json.dumps({"type": kind, **fields}).encode() + b"\n\n"


def start(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(index: int, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta=fields)


END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 7})
STOP = event("message_stop")


def read(*chunks: bytes) -> AnthropicResponseReader:
    reader = AnthropicResponseReader("claude-x", "req_1")
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def test_blocks_are_joined_by_index_and_returned_in_order() -> None:
    reply = read(
        start(1, "text"),
        start(0, "thinking"),
        delta(0, thinking="h"),
        delta(1, text="a"),
        delta(0, thinking="m"),
        delta(0, signature="s"),
        start(2, "tool_use", id="c1", name="look"),
        delta(2, partial_json='{"n":'),
        delta(2, partial_json="1}"),
        END,
        STOP,
    ).reply()
    assert reply.parts == (
        Thinking("hm", signature="s"),
        Text("a"),
        ToolCall("c1", "look", {"n": 1}),
    )


def test_token_counts_are_totals_so_far() -> None:
    counts = {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 5}
    reply = read(event("message_start", message={"model": "m", "usage": counts}), END, STOP).reply()
    assert (reply.usage, reply.model, reply.request_id) == (Usage(11, 7, 5, 0), "m", "req_1")


def test_unknown_events_and_blocks_are_ignored() -> None:
    reader = read(event("ping"), event("novelty"), start(0, "novelty"), delta(0), END, STOP)
    assert reader.reply().parts == ()


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("tool_use", "tools"),
        ("max_tokens", "length"),
        ("refusal", "refused"),
        ("novelty", "end"),
    ],
)
def test_stop_reasons_are_mapped(reason: str, stop: str) -> None:
    reader = read(event("message_delta", delta={"stop_reason": reason}), STOP)
    assert reader.reply().stop == stop


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        (END,),
        (STOP,),
        (delta(0, text="a"), END, STOP),
        (start(0, "tool_use"), END, STOP),
    ],
    ids=["empty", "no end", "no reason", "no start", "no name"],
)
def test_a_stream_that_breaks_the_protocol_is_not_a_reply(chunks: tuple[bytes, ...]) -> None:
    with pytest.raises(ModelUnreachable):
        read(*chunks).reply()


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("overloaded_error", ModelOverloaded),
        ("authentication_error", ModelKeyRejected),
        ("billing_error", ModelWithoutCredit),
        ("novelty", ModelRejected),
    ],
)
def test_an_error_inside_a_stream_has_the_type_of_its_status(
    kind: str, ours: type[ModelError]
) -> None:
    assert type(error_from_type(kind, "no")) is ours
    with pytest.raises(ours):
        read(event("error", error={"type": kind, "message": "no"})).reply()


def test_only_a_rejected_signature_is_stale_thinking() -> None:
    assert is_stale_thinking(ModelRejected("messages.1: Invalid signature in thinking block"))
    assert not is_stale_thinking(ModelRejected("messages.1: no"))
    assert not is_stale_thinking(ModelOverloaded("thinking signature"))
