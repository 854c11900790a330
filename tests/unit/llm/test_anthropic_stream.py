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
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse, ReplyRevised
from internal.llm.anthropic_stream import ANTHROPIC, AnthropicResponseReader
from internal.llm.refusals.errors import error_from_type


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
        ("content_filter", "filtered"),
        ("pause_turn", "paused"),
        ("tool_calls", "tools"),
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
        (start(0, "text"), delta(0, text="a")),
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
    assert type(error_from_type(ANTHROPIC, kind, "no")) is ours
    with pytest.raises(ours):
        read(event("error", error={"type": kind, "message": "no"})).reply()


LOOK = ToolSpec("look", "", {"type": "object", "properties": {}}, "read")


def deltas_of(*chunks: bytes) -> tuple[str, str, ModelResponse]:
    """Return the reasoning and the answer that a reader of the deltas has, and the response."""
    reader = AnthropicResponseReader("claude-x", tools=(LOOK,))
    texts = {True: "", False: ""}
    for each in [each for chunk in chunks for each in reader.feed(chunk)] + reader.end():
        if isinstance(each, ReplyRevised):
            texts = {True: each.reasoning, False: each.answer}
        else:
            texts[each.reasoning] += each.text
    return texts[True].strip(), texts[False], reader.reply()


def test_reasoning_and_calls_in_a_text_are_read_at_every_cut() -> None:
    text = 'hm\n</think>\n\nSo.\n<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    for cut in range(len(text) + 1):
        pieces = [delta(0, type="text_delta", text=each) for each in (text[:cut], text[cut:])]
        thought, answer, reply = deltas_of(start(0, "text"), *pieces, END, STOP)
        assert (thought, answer) == ("hm", "So.\n")
        assert reply.parts == (Thinking("hm"), Text("So.\n"), ToolCall("", "look", {}))
        assert (reply.stop, reply.repairs) == ("tools", ("written_call",))


def test_a_stream_without_a_stop_event_is_complete_after_its_reason() -> None:
    _, answer, reply = deltas_of(start(0, "text"), delta(0, type="text_delta", text="a"), END)
    assert (answer, reply.parts) == ("a", (Text("a"),))


def test_nulls_texts_and_numbers_of_other_types_are_read() -> None:
    call = {"type": "tool_use", "id": 7, "name": "look", "input": None, "text": None}
    _, _, reply = deltas_of(
        event("message_start", message={"model": None, "usage": None}),
        event("content_block_start", index="0", content_block={"type": "text", "text": None}),
        event("content_block_delta", index="0", delta={"type": "text_delta", "text": None}),
        event("content_block_delta", index="0", delta={"type": "text_delta", "text": "a"}),
        event("content_block_start", index="1", content_block=call),
        event(
            "content_block_delta",
            index="1",
            delta={"type": "input_json_delta", "partial_json": '{"n": 1}', "text": None},
        ),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage=None),
    )
    assert reply.parts == (Text("a"), ToolCall("7", "look", {"n": 1}))
    assert reply.usage == Usage(0, 2)  # estimated: none was counted


def test_a_document_in_place_of_a_stream_is_read_at_its_end() -> None:
    document = {
        "type": "message",
        "model": "claude-y",
        "content": [
            {"type": "text", "text": "whole"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"n": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    raw = json.dumps(document, indent=1).encode()
    _, answer, reply = deltas_of(raw[:9], raw[9:])
    assert (answer, reply.model, reply.stop, reply.usage) == (
        *("whole", "claude-y", "tools"),
        Usage(3, 1),
    )
    assert reply.parts == (Text("whole"), ToolCall("c1", "look", {"n": 1}))


def test_an_error_in_place_of_a_stream_is_reported() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ModelOverloaded):
        deltas_of(json.dumps(error).encode())


def test_counts_are_never_replaced_by_zeros() -> None:
    _, _, reply = deltas_of(
        event("message_start", message={"usage": {"input_tokens": 10, "output_tokens": 1}}),
        event(
            "message_delta",
            delta={"stop_reason": "end_turn"},
            usage={"input_tokens": 0, "output_tokens": 5},
        ),
        event("message_delta", delta={"stop_reason": None}, usage={"output_tokens": 5}),
        STOP,
    )
    assert reply.usage == Usage(10, 5)
