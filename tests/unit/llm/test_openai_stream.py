"""Streamed Chat Completions responses, read without a connection."""

import base64
import hashlib
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
    ModelWithoutCredit,
)
from internal.agent.domain.messages import Message, Part, Text, Thinking, ToolCall
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import ModelResponse, ReplyPicture, ReplyRevised, TextDelta
from internal.llm.errors import ProviderInfo
from internal.llm.openai_stream import OpenAIResponseReader
from internal.llm.refusals.errors import error_from_body
from internal.llm.reply_pictures import MAX_PICTURE_BYTES, MAX_PICTURES

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
    assert deltas == [TextDelta("hm", 1, reasoning=True), TextDelta("ab", 2)]
    assert reader.is_complete
    assert reader.reply().parts == (Thinking("hm"), Text("ab"))


def test_pictures_of_a_reply_have_a_line_at_their_place() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"a" * 20
    whole = base64.b64encode(png).decode()
    name = f"picture-{hashlib.sha256(png).hexdigest()[:8]}.png"
    pieces = [
        {"type": "text", "text": "One:"},
        {"type": "output_image", "image_url": f"data:image/jpeg;base64,{whole}"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,bm90IG9uZQ=="}},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "Done."},
    ]
    reply = read(event({"content": pieces}), event({}, "stop"))
    assert reply.pictures == (ReplyPicture(name, "image/png", png),)
    (text,) = reply.parts
    assert isinstance(text, Text)
    assert [line for line in text.text.split("\n") if line] == [
        "One:",
        f"[picture: {name}]",
        "[picture: not kept, its data is no picture]",
        "[picture: not kept, it has no data]",
        "Done.",
    ]


def test_pictures_of_a_reply_are_limited_in_number_and_size() -> None:
    large = b"\x89PNG\r\n\x1a\n" + bytes(MAX_PICTURE_BYTES // 2)
    sent = [
        {"image_url": {"url": f"data:;base64,{base64.b64encode(each).decode()}"}}
        for each in (large, large + b"1", *(b"GIF89a%d" % n for n in range(MAX_PICTURES)))
    ]
    reader = OpenAIResponseReader(PEER, "m")
    for piece in sent:
        reader.feed(event({"images": [piece]}))
    reader.feed(event({}, "stop"))
    reader.end()
    assert len(reader.reply().pictures) == MAX_PICTURES
    assert reader.refused_pictures == 2


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


def test_a_200_may_be_a_refusal_of_minimax() -> None:
    told = {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
    with pytest.raises(ModelWithoutCredit, match="insufficient balance"):
        read(json.dumps(told).encode())
    well = event({"content": "a"}, "stop", base_resp={"status_code": 0, "status_msg": ""})
    assert read(well).parts == (Text("a"),)


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


TOOLS = (
    ToolSpec("read_file", "", {"type": "object", "properties": {}}, "read"),
    ToolSpec("look", "", {"type": "object", "properties": {}}, "read"),
)


def stream(*chunks: bytes, begins_inside: bool = False) -> tuple[str, str, ModelResponse]:
    """Return the reasoning and the answer that a reader of the deltas has, and the response."""
    reader = OpenAIResponseReader(PEER, "m", tools=TOOLS, begins_inside=begins_inside)
    texts = {True: "", False: ""}
    for each in [each for chunk in chunks for each in reader.feed(chunk)] + reader.end():
        if isinstance(each, ReplyRevised):
            texts = {True: each.reasoning, False: each.answer}
        else:
            texts[each.reasoning] += each.text
    return texts[True].strip(), texts[False], reader.reply()


CONTENTS = [
    ("<think>\nhm\n</think>\n\nYes.", "hm", "Yes.", []),
    ("hm\n</think>\n\nYes.", "hm", "Yes.", []),
    ("Write `<think>` first.", "", "Write `<think>` first.", []),
    (
        '<think>\nhm\n</think>\n\nSo.\n<tool_call>{"name": "look", "arguments": {}}</tool_call>',
        "hm",
        "So.\n",
        ["look"],
    ),
    ("Thought: hm\nAction: look\nAction Input: {}", "hm", "", ["look"]),
    ('<think>call {"name": "look"}', 'call {"name": "look"}', "", []),
]


@pytest.mark.parametrize(("content", "thought", "answer", "names"), CONTENTS)
def test_reasoning_and_calls_in_the_content_are_read_at_every_cut(
    content: str, thought: str, answer: str, names: list[str]
) -> None:
    for cut in range(len(content) + 1):
        pieces = [event({"content": each}) for each in (content[:cut], content[cut:])]
        shown_thought, shown, reply = stream(*pieces, event({}, "stop"))
        assert (shown_thought, shown) == (thought, answer), cut
        message = Message("assistant", reply.parts)
        assert (message.thinking, message.text) == (thought, answer)
        assert [call.name for call in message.calls] == names
        assert reply.stop == ("tools" if names else "end")
        assert reply.repairs == ("written_call",) * len(names)


def test_all_bytes_apart_give_the_same_reply() -> None:
    content = "hm\n</think>\n\nSo.\n<function=look></function>"
    whole = event({"content": content}) + event({}, "stop")
    assert stream(*(bytes([each]) for each in whole)) == stream(whole)


def test_a_written_call_beside_a_native_one_is_text() -> None:
    written = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    native = event(call(index=0, id="c1", name="read_file", arguments="{}"))
    _, _, reply = stream(event({"content": written}), native, event({}, "tool_calls"))
    assert reply.parts == (Text(written), ToolCall("c1", "read_file", {}))


def test_reasoning_of_a_field_is_kept_when_the_content_is_revised() -> None:
    shown = stream(
        event({"reasoning_content": "one"}), event({"content": "two\n</think>\nYes."}, "stop")
    )
    assert shown[:2] == ("onetwo", "Yes.")
    assert shown[2].parts == (Thinking("one\n\ntwo"), Text("Yes."))


def test_a_reply_that_does_not_close_its_reasoning_as_expected_is_an_answer() -> None:
    thought, answer, reply = stream(event({"content": "Yes."}, "stop"), begins_inside=True)
    assert (thought, answer, reply.parts) == ("", "Yes.", (Text("Yes."),))


def test_reasoning_that_is_cut_is_not_an_answer() -> None:
    thought, answer, reply = stream(event({"content": "hm"}, "length"), begins_inside=True)
    assert (thought, answer, reply.parts) == ("hm", "", (Thinking("hm"),))


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([{"content": None, "tool_calls": None, "refusal": None}, {"content": "a"}], Text("a")),
        ([{"content": [{"type": "text", "text": "a"}, "b", {"type": "x"}]}], Text("ab")),
        (
            [call(index="0", id=7, name="look", arguments=None), call(index="0", arguments="{}")],
            ToolCall("7", "look", {}),
        ),
        (
            [call(index=0, id="c", name="read_"), call(index=0, name="file", arguments="{}")],
            ToolCall("c", "read_file", {}),
        ),
        (
            [call(index=0, id="c", name="look"), call(index=0, name="look", arguments="{}")],
            ToolCall("c", "look", {}),
        ),
        (
            [call(index=0, id="c", name="look", arguments={}), call(index=0, arguments='{"a": 1}')],
            ToolCall("c", "look", {"a": 1}),
        ),
    ],
)
def test_odd_deltas_are_read(deltas: list[dict[str, Any]], expected: Part) -> None:
    _, _, reply = stream(*map(event, deltas), event({}, "stop"))
    assert reply.parts == (expected,)


def test_reasoning_in_a_list_of_content_is_reasoning() -> None:
    pieces = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Yes."},
    ]
    _, _, reply = stream(event({"content": pieces}, "stop"))
    assert reply.parts == (Thinking("hm"), Text("Yes."))


@pytest.mark.parametrize(
    ("reasons", "stop"),
    [
        (["stop", "stop"], "end"),
        (["stop", "length"], "length"),
        (["length", "stop"], "length"),
        (["null", "stop"], "end"),
        (["novelty"], "end"),
        (["content_filter"], "filtered"),
        (["tool_calls"], "end"),  # without a call
    ],
)
def test_the_end_that_says_more_counts(reasons: list[str], stop: str) -> None:
    assert stream(event({"content": "a"}), *(event({}, each) for each in reasons))[2].stop == stop


def test_doubled_and_empty_counts_are_counted_once() -> None:
    counts = {"prompt_tokens": 10, "completion_tokens": 2}
    nothing = {"prompt_tokens": 0, "completion_tokens": 0}
    reply = read(
        event({"content": "a"}, "stop", usage=counts),
        event({}, usage=counts),
        event({}, usage=nothing),
    )
    assert reply.usage == Usage(10, 2)
