"""The client for Chat Completions against a scripted server."""

import asyncio
import logging
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from internal.agent.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelWithoutCredit,
)
from internal.agent.domain.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.tools import ToolSpec
from internal.agent.domain.usage import Usage
from internal.agent.ports.llm import (
    MAX_REPLY_CHARACTERS,
    ModelRequest,
    ModelResponse,
    ModelStreamEvent,
    TextDelta,
)
from internal.llm.errors import ProviderInfo
from internal.llm.openai import OpenAIModel, Service
from internal.llm.openai_stream import OpenAIResponseReader
from internal.llm.transport import ApiKey
from internal.model_providers.dialect import Dialect
from tests.support.images import an_image, in_base64
from tests.support.openai_server import Manners, ScriptedOpenAI, answer_to, sse
from tests.support.property_examples import examples
from tests.support.scripted_model import Call, Fault
from tests.support.scripted_model import Reply as Scripted

CANARY = "sk-canary-0123456789"
LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")
ACME = Service("acme", ProviderInfo("Acme", "ACME_API_KEY"), "http://127.0.0.1:9/v1")


def make_request(*messages: Message, **fields: Any) -> ModelRequest:
    sent = messages or (user_message("hi"),)
    return ModelRequest(**{"model": "acme-1", "system": "be brief", "messages": sent, **fields})


def client_of(server: ScriptedOpenAI, dialect: Dialect | None = None) -> OpenAIModel:
    service = ACME._replace(dialect=dialect or Dialect())
    return OpenAIModel(service, ApiKey(CANARY), base_url=server.base_url, silence_seconds=20)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedOpenAI]:
    async with ScriptedOpenAI() as fake:
        yield fake


@pytest.fixture
async def model(server: ScriptedOpenAI) -> AsyncIterator[OpenAIModel]:
    client = client_of(server)
    yield client
    await client.close()


async def collect(
    model: OpenAIModel, request: ModelRequest
) -> tuple[list[TextDelta], ModelResponse]:
    pieces: list[ModelStreamEvent] = [piece async for piece in model.stream(request)]
    *deltas, reply = pieces
    assert isinstance(reply, ModelResponse)
    return [piece for piece in deltas if isinstance(piece, TextDelta)], reply


def joined_text(deltas: list[TextDelta], *, reasoning: bool = False) -> str:
    return "".join(piece.text for piece in deltas if piece.reasoning is reasoning)


FULL = Scripted(
    text="Let me look. 让我看看。",
    pieces=6,
    thinking="What would they want?",
    calls=[Call("look", {"at": "你好", "deep": {"n": [1, 2.5, None]}}), Call("look")],
    usage={"prompt_tokens": 16, "completion_tokens": 7},
)
COUNTED = Scripted(text="ok", usage={"prompt_tokens": 1})


async def test_every_kind_of_part_is_received_and_sent_back(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    server.add(FULL, Scripted(text="done"))
    deltas, reply = await collect(model, make_request(tools=(LOOK,)))
    assert joined_text(deltas) == "Let me look. 让我看看。"
    assert joined_text(deltas, reasoning=True) == "What would they want?"
    assert sum(piece.n for piece in deltas) == 12
    thought, text, first, second = reply.parts
    assert thought == Thinking("What would they want?")
    assert text == Text("Let me look. 让我看看。")
    assert isinstance(first, ToolCall)
    assert first.arguments == {"at": "你好", "deep": {"n": [1, 2.5, None]}}
    assert isinstance(second, ToolCall)
    assert (second.name, second.arguments, second.malformed) == ("look", {}, None)
    assert (reply.stop, reply.usage, reply.model) == ("tools", Usage(16, 7), "acme-1")
    assert reply.request_id.startswith("req_")
    # the server checks ids, order and base64 of all that is given back, and takes nothing else
    picture = an_image(b"\x89PNG")
    answer: tuple[Part, ...] = (
        ToolResult(first.call_id, "seen"),
        ToolResult(second.call_id, "", failed=True),
        picture,
        Text("and now?"),
    )
    history = (user_message("hi"), Message("assistant", reply.parts), Message("user", answer))
    _, last = await collect(
        model, make_request(*history, tools=(LOOK,), images=in_base64([b"\x89PNG"]))
    )
    assert (last.parts, last.stop) == ((Text("done"),), "end")
    sent = server.requests[-1]["messages"]
    roles = ["system", "user", "assistant", "tool", "tool", "user"]
    assert [message["role"] for message in sent] == roles
    assert [block["type"] for block in sent[-1]["content"]] == ["image_url", "text"]
    assert sent[4]["content"].startswith("Error:")
    assert server.connections == 1


async def test_text_parts_of_a_user_message_are_joined(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    server.add(Scripted(text="ok"))
    history = Message("user", (Text("one"), Text(" "), Text("two")))
    await collect(model, make_request(history, system=" ", tools=(LOOK,), tool_choice="none"))
    sent = server.requests[-1]
    assert sent["messages"] == [{"role": "user", "content": "one\n\ntwo"}]
    assert sent["tool_choice"] == "none"


async def test_content_that_providers_reject_is_replaced_or_omitted(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    server.add(Scripted(text="ok"))
    long = "call:" + "1" * 80
    calls = (ToolCall(long, "do it", {}), ToolCall(long + "x", "", {}), ToolCall("", "look", {}))
    history = (
        Message("user", (Text(" "),)),
        Message("assistant", (Thinking("hm", signature="theirs"), Text("  "), *calls)),
        Message("user", (*(ToolResult(c.call_id, "half \ud83d") for c in calls), Text("\n"))),
        Message("assistant", (Thinking("only thoughts"),)),
        user_message("go"),
    )
    await collect(model, make_request(*history))
    sent = server.requests[-1]["messages"]
    assert sent[1]["content"] == "(empty)"
    made = sent[2]["tool_calls"]
    assert [call["function"]["name"] for call in made] == ["do_it", "_", "look"]
    assert len({call["id"] for call in made}) == 3
    assert {message["content"] for message in sent if message["role"] == "tool"} == {"half �"}
    assert sent[6] == {"role": "assistant", "content": "(empty)"}


QUIRKS = [
    *("no_done", "no_usage", "reasoning", "no_ids", "same_ids", "no_index", "names_again"),
    *("objects", "stop_after_calls", "in_parts", "message", "document"),
]


@pytest.mark.parametrize("quirk", QUIRKS)
async def test_server_variants_give_the_same_reply(
    server: ScriptedOpenAI, model: OpenAIModel, quirk: str
) -> None:
    server.add(replace(FULL, quirks=[quirk]), Scripted(text="well"))
    deltas, reply = await collect(model, make_request(tools=(LOOK,)))
    assert joined_text(deltas) == FULL.text
    assert joined_text(deltas, reasoning=True) == FULL.thinking
    assert reply.stop == "tools"
    thought, text, first, second = reply.parts
    assert (thought, text) == (Thinking("What would they want?"), Text(FULL.text))
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.arguments, first.malformed) == (FULL.calls[0].input, None)
    assert (second.name, second.arguments) == ("look", {})
    assert (first.call_id == "") is (quirk == "no_ids")
    _, after = await collect(model, make_request())  # the connection is still usable
    assert after.parts == (Text("well"),)


async def test_calls_that_share_an_index_are_separated_by_their_ids(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    calls = [Call("look", {"n": 1}), Call("look", {"n": 2}), Call("see", {"n": 3})]
    server.add(Scripted(calls=calls, quirks=["same_index"]))
    _, reply = await collect(model, make_request(tools=(LOOK,)))
    made = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert [call.arguments for call in made] == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_a_legacy_function_call_is_read(server: ScriptedOpenAI, model: OpenAIModel) -> None:
    server.add(Scripted(calls=[Call("look", {"n": 1})], quirks=["legacy_call"]))
    _, reply = await collect(model, make_request(tools=(LOOK,)))
    (call,) = reply.parts
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, reply.stop) == ("look", {"n": 1}, "tools")


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        ({"prompt_tokens_details": {"cached_tokens": 4}}, Usage(6, 2, 4)),
        (
            {"prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
            Usage(3, 2, 4, 3),
        ),
        ({"prompt_tokens_details": None, "prompt_cache_hit_tokens": 9}, Usage(1, 2, 9)),
        ({"prompt_tokens_details": {"cached_tokens": 99}}, Usage(0, 2, 99)),
    ],
)
async def test_cached_tokens_are_counted_once(
    server: ScriptedOpenAI, model: OpenAIModel, reported: dict[str, Any], counted: Usage
) -> None:
    usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 2, **reported}
    server.add(Scripted(text="ok", usage=usage))
    _, reply = await collect(model, make_request())
    assert reply.usage == counted


async def test_missing_usage_is_estimated_with_one_warning(
    server: ScriptedOpenAI, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(*[Scripted(text="word " * 400, quirks=["no_usage"])] * 2)
    content = b"x" * 600_000
    history = user_message("many words " * 400, [an_image(content)])
    request = make_request(history, tools=(LOOK,), images=in_base64([content]))
    for _ in range(2):
        _, reply = await collect(model, request)
        assert reply.usage.output_tokens == 500
        assert 2_000 < reply.usage.input_tokens < 3_000  # a picture is no text of a megabyte
    assert sum("estimated" in record.message for record in caplog.records) == 1


DIALECTS = [
    (Manners(limit="max_completion_tokens"), ["max_tokens", "max_completion_tokens"]),
    (Manners(no_temperature=True), ["temperature"]),
    (Manners(no_stream_options=True), ["stream_options"]),
    (Manners(no_effort=True), ["reasoning_effort"]),
    (Manners(thoughts=True), []),
    (Manners("max_completion_tokens", no_temperature=True, no_effort=True, thoughts=True), []),
]


@pytest.mark.parametrize(("manners", "fields"), DIALECTS)
async def test_rejected_fields_are_adapted_and_remembered(
    manners: Manners, fields: list[str]
) -> None:
    async with ScriptedOpenAI(
        [Scripted(text="well"), Scripted(text="again")], manners=manners
    ) as server:
        model = client_of(server)
        call = ToolCall("c1", "look", {})
        history = (
            user_message("hi"),
            Message("assistant", (Thinking("hm"), call)),
            Message("user", (ToolResult("c1", "seen"),)),
        )
        request = make_request(*history, tools=(LOOK,), temperature=0.3)
        for text in ("well", "again"):
            _, reply = await collect(model, request)
            assert reply.parts == (Text(text),)
        first, second = server.requests
        assert {name: first.get(name) for name in fields} == {n: second.get(n) for n in fields}
        assert server.count <= 2 + 4  # the adapted fields are remembered
        await model.close()


async def test_a_server_without_tool_choice_is_offered_no_tools_where_none_may_be_called() -> None:
    script = [Scripted(text="well")] * 3
    async with ScriptedOpenAI(script, manners=Manners(no_tool_choice=True)) as server:
        model = client_of(server)
        for choice in ("none", "none", "auto"):
            await collect(model, make_request(tools=(LOOK,), tool_choice=choice))
        assert ["tools" in request for request in server.requests] == [False, False, True]
        assert server.count == 4  # one refusal
        await model.close()


async def test_the_name_of_the_limit_field_is_adapted() -> None:
    async with ScriptedOpenAI([Scripted(text="well")], manners=Manners("max_tokens")) as server:
        model = client_of(server, Dialect(limit_field="max_completion_tokens"))
        _, reply = await collect(model, make_request())
        assert reply.parts == (Text("well"),)
        assert server.count == 2
        await model.close()


async def test_no_dialect_is_tried_twice_for_a_request(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    fault = Fault("status", status=400, message="Unknown max_completion_tokens")
    server.add(*[Scripted(fault=fault)] * 9)
    with pytest.raises(ModelRejected, match="max_completion_tokens"):
        await collect(model, make_request())
    assert server.count == 2


async def test_reasoning_is_sent_back_with_its_calls() -> None:
    async with ScriptedOpenAI([Scripted(text="ok")], manners=Manners(thoughts=True)) as server:
        model = client_of(server, Dialect(resend_reasoning=True))
        one, two = ToolCall("c1", "look", {}), ToolCall("c2", "look", {})
        history = (
            user_message("hi"),
            Message("assistant", (Thinking("hm, "), Thinking("yes"), one)),
            Message("user", (ToolResult("c1", "seen"),)),
            Message("assistant", (two,)),
            Message("user", (ToolResult("c2", "seen"),)),
        )
        await collect(model, make_request(*history))
        made = [m for m in server.requests[0]["messages"] if m["role"] == "assistant"]
        assert [message["reasoning_content"] for message in made] == ["hm, yes", "."]
        assert server.count == 1
        await model.close()


@pytest.mark.parametrize("raw", ['{"at": ', "[1]", "7", "nonsense", '{"a": 1} {', '{"a":"\x01'])
async def test_malformed_arguments_are_kept_raw(
    server: ScriptedOpenAI, model: OpenAIModel, raw: str
) -> None:
    server.add(Scripted(calls=[Call("look", raw=raw)]))
    _, reply = await collect(model, make_request(tools=(LOOK,)))
    (call,) = reply.parts
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.malformed) == ({}, raw)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("stop", "end"),
        ("tool_calls", "end"),  # there are none
        ("length", "length"),
        ("content_filter", "filtered"),
        ("something_new", "end"),
    ],
)
async def test_stop_reasons_are_translated(
    server: ScriptedOpenAI, model: OpenAIModel, stop: str, expected: str
) -> None:
    server.add(Scripted(text="x", stop_reason=stop))
    _, reply = await collect(model, make_request())
    assert reply.stop == expected


def chunk(delta: dict[str, Any], stop: str | None = None, **fields: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return sse({"choices": [choice], **fields}).decode("utf-8", "surrogatepass")


async def test_a_refusal_text_ends_the_reply_as_refused(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    body = chunk({"refusal": "I will not."}) + chunk({}, "stop")
    server.add(Scripted(fault=Fault("garbage", body=body)))
    deltas, reply = await collect(model, make_request())
    assert (joined_text(deltas), reply.stop) == ("I will not.", "refused")


async def test_only_the_first_choice_is_read(server: ScriptedOpenAI, model: OpenAIModel) -> None:
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}
    body = sse({"choices": [other]}).decode() + chunk({"content": "yes"}, "stop")
    server.add(Scripted(fault=Fault("garbage", body=body)))
    _, reply = await collect(model, make_request())
    assert reply.parts == (Text("yes"),)


async def test_an_empty_reply_is_accepted(server: ScriptedOpenAI, model: OpenAIModel) -> None:
    server.add(Scripted())
    deltas, reply = await collect(model, make_request())
    assert (deltas, reply.parts, reply.stop) == ([], (), "end")


async def test_a_reply_over_the_size_limit_is_truncated(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    server.add(Scripted(text="word " * 2_000_000, pieces=2_000), Scripted(text="next"))
    _, reply = await collect(model, make_request())
    (text,) = reply.parts
    assert isinstance(text, Text)
    assert (reply.stop, reply.usage.output_tokens > 400_000) == ("length", True)
    assert MAX_REPLY_CHARACTERS < len(text.text) < MAX_REPLY_CHARACTERS + 10_000
    _, after = await collect(model, make_request())
    assert after.parts == (Text("next"),)


WHOLE = Scripted(
    text="半个字 and a half",
    pieces=4,
    thinking="hm",
    calls=[Call("look", {"a": 1})],
    usage={"prompt_tokens": 9},
)
BODY = {"model": "acme-1", "stream_options": {"include_usage": True}}
EVENTS = answer_to(WHOLE, BODY, b"").events()
WHOLE_BYTES = len(b"".join(EVENTS))
TO_STOP = len(b"".join(EVENTS[:-2]))  # the usage and [DONE] come after it


CUTS = [0, 1, len(EVENTS[0]) - 1, len(EVENTS[0]), TO_STOP // 2, TO_STOP - 1]
CUTS_AFTER = [TO_STOP, TO_STOP + 1, WHOLE_BYTES - 1, WHOLE_BYTES]
"""Bytes at the ends and in the middle of a stream and of an event."""


def read_until(where: int) -> ModelResponse | None:
    """Read the stream up to a byte. None: the reader rejects it."""
    reader = OpenAIResponseReader(ACME.peer, "acme-1")
    reader.feed(b"".join(EVENTS)[:where])
    reader.end()
    try:
        return reader.reply()
    except ModelUnreachable:
        return None


def test_the_reader_rejects_a_stream_cut_before_its_finish_reason() -> None:
    assert [where for where in range(TO_STOP) if read_until(where) is not None] == []
    for where in range(TO_STOP, WHOLE_BYTES + 1):
        reply = read_until(where)
        assert reply is not None, where
        assert len(reply.parts) == 3, where


@pytest.mark.parametrize(
    "cuts",
    [
        (CUTS, CUTS_AFTER),
        pytest.param((range(TO_STOP), range(TO_STOP, WHOLE_BYTES + 1)), marks=pytest.mark.slow),
    ],
    ids=["some", "every"],
)
@pytest.mark.parametrize("clean", [False, True], ids=["broken", "closed"])
async def test_a_connection_cut_before_its_finish_reason_is_an_error(
    clean: bool, cuts: tuple[Sequence[int], Sequence[int]]
) -> None:
    before, after = cuts

    def cut(request: dict[str, Any]) -> Scripted:
        where = int(request["messages"][-1]["content"])
        return replace(WHOLE, fault=Fault("cut_after_bytes", bytes=where, clean=clean))

    async def outcome(client: OpenAIModel, where: int) -> ModelResponse | None:
        try:
            _, reply = await collect(client, make_request(user_message(str(where))))
        except ModelUnreachable:
            return None
        return reply

    async with ScriptedOpenAI(cut, record=False) as server:
        model = client_of(server)
        for where in before:
            assert await outcome(model, where) is None, where
        for where in after:
            reply = await outcome(model, where)
            assert reply is not None, where  # whole: that the connection breaks cannot harm it
            assert len(reply.parts) == 3
            assert reply.usage.input_tokens > 0
        await model.close()


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    crlf=st.booleans(),
    pieces=st.integers(1, 12),
    quirks=st.lists(st.sampled_from(QUIRKS), unique=True, max_size=3),
)
def test_chunks_of_any_size_give_the_same_reply(
    sizes: list[int], crlf: bool, pieces: int, quirks: list[str]
) -> None:
    async def run() -> tuple[list[TextDelta], ModelResponse]:
        scripted = replace(FULL, chunks=sizes, crlf=crlf, pieces=pieces, quirks=quirks)
        async with ScriptedOpenAI([scripted]) as server:
            model = client_of(server)
            result = await collect(model, make_request())
            await model.close()
            return result

    deltas, reply = asyncio.run(run())
    assert joined_text(deltas) == FULL.text
    assert joined_text(deltas, reasoning=True) == FULL.thinking
    kinds = [type(part).__name__ for part in reply.parts]
    assert kinds == ["Thinking", "Text", "ToolCall", "ToolCall"]
    assert reply.parts[1] == Text(FULL.text)


LONG = [  # as OpenAI, DeepSeek, vLLM, llama.cpp, Ollama, Gemini, xAI, Moonshot, Qwen … say it
    "This model's maximum context length is 128000 tokens. However, your messages had 130001.",
    "Your input exceeds the context window of this model. Please adjust your input.",
    "Input tokens exceed the configured limit of 272000 tokens.",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "the request exceeds the available context size, try increasing it",
    "the input length exceeds the context length",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 139000 tokens.",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Range of input length should be [1, 30720]",
    "Please reduce the length of the messages or completion.",
    "Prompt exceeds max length",
    "Input length 300000 exceeds the maximum length 229376.",
    "Trying to keep the first 5000 tokens when context the overflows.",
    "`inputs` tokens + `max_new_tokens` must be <= 8193",
]
TOO_MANY_TOKENS = {"error": {"code": "context_length_exceeded", "message": "no"}}


def refused(status: int, body: Any) -> Fault:
    text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
    return Fault("status", status=status, body=text, content_type="application/json")


def inside(error: Any) -> Fault:
    return Fault("garbage", body=chunk({"content": "so"}) + sse({"error": error}).decode())


ERRORS = [
    *((Fault("status", status=400, message=text), ContextTooLong, text[:30]) for text in LONG),
    (refused(400, TOO_MANY_TOKENS), ContextTooLong, "too long"),
    (Fault("status", status=500, message=LONG[4]), ContextTooLong, "context size"),
    (Fault("status", status=413, message="too many bytes"), ContextTooLong, "too many bytes"),
    (Fault("status", status=401, message="Incorrect API key"), ModelKeyRejected, "ACME_API_KEY"),
    (Fault("status", status=403, message="Country not supported"), ModelKeyRejected, "Country"),
    (Fault("status", status=403, message="input was flagged"), ModelRejected, "flagged"),
    (Fault("status", status=402, message="Insufficient Balance"), ModelWithoutCredit, "no credit"),
    (Fault("status", status=429, error="insufficient_quota"), ModelWithoutCredit, "no credit"),
    (
        refused(403, {"error": {"code": "AccountOverdueError", "message": "x"}}),
        ModelWithoutCredit,
        "no c",
    ),
    (Fault("status", status=429, message="slow down"), ModelOverloaded, "slow down"),
    (
        Fault("status", status=429, message="tokens per min: context length"),
        ModelOverloaded,
        "rate-limiting",
    ),
    (Fault("status", status=400, message="tools.0: no"), ModelRejected, "tools.0: no"),
    (Fault("status", status=404, message='model "x" not found'), ModelRejected, "not found"),
    (Fault("status", status=408, message="slow"), ModelUnreachable, "timed out"),
    (Fault("status", status=500, message="oh"), ModelOverloaded, "500"),
    (Fault("status", status=503, message="oh"), ModelOverloaded, "503"),
    (refused(400, {"error": "a sentence"}), ModelRejected, "a sentence"),
    (refused(400, {"detail": "a sentence"}), ModelRejected, "a sentence"),
    (refused(422, {"detail": [{"loc": ["body"], "msg": "bad"}]}), ModelRejected, "request (422)"),
    (refused(400, [{"error": {"code": 400, "message": "listed"}}]), ModelRejected, "listed"),
    (refused(400, {"object": "error", "message": "flat", "code": 400}), ModelRejected, "flat"),
    (refused(400, {"msg": "odd"}), ModelRejected, "request (400)"),
    (refused(400, ""), ModelRejected, "no reason"),
    (refused(502, "<html>Bad Gateway</html>"), ModelOverloaded, "unavailable (502)"),
    (
        refused(400, {"error": {"message": "Provider error", "metadata": {"raw": "the cause"}}}),
        ModelRejected,
        "the cause",
    ),
    (Fault("error_in_stream"), ModelOverloaded, "Overloaded"),
    (Fault("error_in_stream", after_pieces=2), ModelOverloaded, "Overloaded"),
    (Fault("error_in_stream", error="rate_limit_error"), ModelOverloaded, "rate-limiting"),
    (Fault("error_in_stream", error="invalid_request_error"), ModelRejected, "rejected the"),
    (Fault("error_in_stream", error="insufficient_quota"), ModelWithoutCredit, "no credit"),
    (inside({"code": 429, "message": "wait"}), ModelOverloaded, "rate-limiting"),
    (inside({"code": "502", "message": "upstream"}), ModelOverloaded, "502"),
    (inside({"code": 401, "message": "who"}), ModelKeyRejected, "who"),
    (inside({"code": "context_length_exceeded", "message": "x"}), ContextTooLong, "too long"),
    (inside("just a sentence"), ModelOverloaded, "just a sentence"),
    (inside({"no": "message"}), ModelOverloaded, "unavailable (500)"),
    (
        Fault("garbage", body=sse({"object": "error", "message": "m", "code": 400}).decode()),
        ModelRejected,
        "m",
    ),
    (Fault("garbage", body=chunk({}, "error")), ModelOverloaded, "ended with error"),
    (
        Fault("garbage", body=chunk({}, "insufficient_system_resource")),
        ModelOverloaded,
        "system_resource",
    ),
    (Fault("garbage", body='{"error": {"message": "m", "code": 503}}'), ModelOverloaded, "503"),
    (Fault("garbage", body='{"half": '), ModelUnreachable, "valid resp"),
    (Fault("garbage"), ModelUnreachable, "valid resp"),
    (Fault("garbage", body="<html>login</html>"), ModelUnreachable, "was lost"),
    (Fault("garbage", body='data: {"choices": 7}\n\n'), ModelUnreachable, "valid resp"),
    (Fault("garbage", body="data: " + "[" * 100_000 + "\n\n"), ModelUnreachable, "valid resp"),
    (Fault("garbage", body="x" * 26_000_000), ModelUnreachable, "size limit"),
    (Fault("garbage", body="{" + " " * 26_000_000), ModelUnreachable, "size limit"),
    (
        Fault("garbage", body=chunk({"tool_calls": [{"index": 0}]}, "stop")),
        ModelUnreachable,
        "name",
    ),
    (Fault("drop"), ModelUnreachable, "Cannot connect"),
]


@pytest.mark.parametrize(("fault", "expected", "says"), ERRORS)
async def test_every_failure_has_an_error_type_and_a_one_line_message(
    server: ScriptedOpenAI, model: OpenAIModel, fault: Fault, expected: type, says: str
) -> None:
    server.add(Scripted(text="one two three", pieces=3, fault=fault), Scripted(text="well"))
    with pytest.raises(ModelError) as error:
        await collect(model, make_request())
    assert type(error.value) is expected
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    _, reply = await collect(model, make_request())  # the client is still usable
    assert reply.parts == (Text("well"),)


async def test_an_error_event_after_the_reply_is_ignored(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    body = chunk({"content": "all"}, "stop") + sse({"error": {"message": "oh"}}).decode()
    server.add(Scripted(fault=Fault("garbage", body=body)))
    _, reply = await collect(model, make_request())
    assert reply.parts == (Text("all"),)


async def test_a_complete_reply_is_returned_while_the_stream_stays_open() -> None:
    scripted = Scripted(text="a b", pieces=2, quirks=["no_done", "no_usage"])
    events = answer_to(scripted, BODY, b"").events()
    hanging = replace(scripted, after_pieces=len(events), hang=True)
    async with ScriptedOpenAI([hanging]) as server:
        model = client_of(server)
        _, reply = await collect(model, make_request())
        assert reply.parts == (Text("a b"),)
        await server.until_open(0)
        await model.close()


@pytest.mark.parametrize(("asked", "wait"), [(7, 7.0), (None, None)])
async def test_retry_after_is_part_of_the_error(
    server: ScriptedOpenAI, model: OpenAIModel, asked: float | None, wait: float | None
) -> None:
    server.add(Scripted(fault=Fault("status", status=429, retry_after=asked)))
    with pytest.raises(ModelOverloaded) as error:
        await collect(model, make_request())
    assert error.value.retry_after == wait


async def test_provider_messages_are_truncated_and_sanitized(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    message = f"\x1b[31mbad\nrequest with {CANARY} " + "x" * 10_000
    server.add(Scripted(fault=Fault("status", status=400, message=message)))
    with pytest.raises(ModelRejected) as error:
        await collect(model, make_request())
    text = str(error.value)
    assert len(text) < 600
    assert text.isprintable()
    assert CANARY not in text


async def test_lone_surrogates_in_a_stream_are_replaced(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    def delta(text: str) -> str:
        inner = '{"index": 0, "delta": {"content": "' + text + '"}}'
        return 'data: {"choices": [' + inner + "]}\r\n\r\n"

    body = (
        ": OPENROUTER PROCESSING\r\n\r\nevent: novelty\r\n"
        'data: {"choices": null, "usage": null, "novelty": 1}\r\n\r\n'
        + delta("\\ud83d")
        + delta("\x07\x00")
        + delta("\ud800")
        + delta("\\ud83d\\ude00")
        + chunk({}, "stop")
    )
    server.add(Scripted(fault=Fault("garbage", body=body)))
    _, reply = await collect(model, make_request())
    (text,) = reply.parts
    assert isinstance(text, Text)
    assert text.text.encode()
    assert text.text.startswith("\ufffd\x07\x00")
    assert text.text.endswith("\U0001f600")


async def test_closing_the_generator_closes_the_connection(
    server: ScriptedOpenAI, model: OpenAIModel
) -> None:
    server.add(Scripted(text="one two three", pieces=3, after_pieces=1, hang=True))
    async with aclosing(model.stream(make_request())) as pieces:
        first = await anext(pieces)
        assert isinstance(first, TextDelta)
        await server.until_open(1)
    await server.until_open(0)


async def test_a_cancel_closes_the_connection(server: ScriptedOpenAI, model: OpenAIModel) -> None:
    server.add(Scripted(hang=True))
    task = asyncio.create_task(collect(model, make_request()))
    await server.until_open(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until_open(0)


async def test_a_silent_stream_times_out() -> None:
    async with ScriptedOpenAI([Scripted(text="a b", pieces=2, after_pieces=1, hang=True)]) as fake:
        model = OpenAIModel(ACME, ApiKey("k"), base_url=fake.base_url, silence_seconds=0.2)
        with pytest.raises(ModelUnreachable):
            await collect(model, make_request())
        await model.close()


async def test_concurrent_calls_get_their_own_replies() -> None:
    def echo(request: dict[str, Any]) -> Scripted:
        return Scripted(text=request["messages"][-1]["content"], pieces=20, packets="each")

    async with ScriptedOpenAI(echo) as server, asyncio.TaskGroup() as group:
        model = client_of(server)
        texts = [f"run {n} says {n * 7}" for n in range(24)]
        tasks = [
            group.create_task(collect(model, make_request(user_message(text)))) for text in texts
        ]
        for text, task in zip(texts, tasks, strict=True):
            deltas, reply = await task
            assert joined_text(deltas) == text
            assert reply.parts == (Text(text),)
        await model.close()


async def test_an_unreachable_server_is_named_in_the_error() -> None:
    async with ScriptedOpenAI() as gone:
        address = gone.base_url
    model = OpenAIModel(ACME, ApiKey(CANARY), base_url=address)
    with pytest.raises(ModelUnreachable, match=r"Cannot connect to Acme\.") as error:
        await collect(model, make_request())
    assert address in error.value.detail
    await model.close()


@pytest.mark.parametrize("key", ["", "with\nnewline", "schlüssel", " "])
async def test_an_unusable_key_is_rejected_before_a_request_is_sent(key: str) -> None:
    model = OpenAIModel(ACME, ApiKey(key))
    with pytest.raises(ModelKeyRejected, match="ACME_API_KEY") as error:
        model.check_key()
    with pytest.raises(ModelKeyRejected):
        await collect(model, make_request())
    assert len(str(error.value).splitlines()) == 1
    assert not key.strip() or key not in str(error.value)
    await model.close()


@pytest.mark.parametrize("peer", [ACME.peer, ProviderInfo("Home", None)])
async def test_a_custom_server_needs_no_key_and_receives_none(peer: ProviderInfo) -> None:
    async with ScriptedOpenAI([Scripted(text="well")], manners=Manners(no_key=True)) as server:
        service = ACME._replace(peer=peer)
        model = OpenAIModel(service, ApiKey(""), base_url=server.base_url)
        model.check_key()
        _, reply = await collect(model, make_request())
        assert reply.parts == (Text("well"),)
        await model.close()


async def test_the_key_is_sent_to_the_provider_and_never_shown(
    server: ScriptedOpenAI, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bad = Fault("status", status=401, message=f"{CANARY} is not a key")
    server.add(Scripted(text="ok"), Scripted(fault=bad), Scripted(fault=Fault("drop")))
    await collect(model, make_request())
    assert server.headers[-1]["authorization"] == f"Bearer {CANARY}"
    visible = [repr(model), str(vars(model)), caplog.text]
    for _ in range(2):
        with pytest.raises(ModelError) as error:
            await collect(model, make_request())
        visible.append(str(error.value))
        visible.append("".join(traceback.format_exception_only(error.value)))
    assert not [text for text in visible if CANARY in text]


async def test_openai_environment_variables_are_not_sent_to_a_provider(
    environ: dict[str, str],
) -> None:
    program = (
        "import asyncio, sys\n"
        "from internal.agent.domain.messages import user_message\n"
        "from internal.agent.ports.llm import ModelRequest\n"
        "from internal.settings.llm import LlmSettings\n"
        "from internal.llm.model_factory import build_model\n"
        "async def ask():\n"
        "    settings = LlmSettings(provider='deepseek', api_key='valid', base_url=sys.argv[1])\n"
        "    model = build_model(settings)\n"
        "    async for _ in model.stream(ModelRequest('m', '', (user_message('hi'),))): pass\n"
        "    await model.close()\n"
        "asyncio.run(ask())\n"
    )
    theirs = {
        "OPENAI_API_KEY": CANARY,
        "OPENAI_ADMIN_KEY": CANARY,
        "OPENAI_ORG_ID": CANARY,
        "OPENAI_PROJECT_ID": CANARY,
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_CUSTOM_HEADERS": f"Authorization: Bearer {CANARY}\nx-mine: {CANARY}",
    }
    async with ScriptedOpenAI([COUNTED], api_key="valid") as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, server.base_url),
            env={**environ, **theirs},
            stderr=subprocess.PIPE,
        )
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        assert CANARY not in str(server.headers)
        assert set(server.headers[0]) <= {
            *("accept", "accept-encoding", "authorization", "connection", "content-length"),
            *("content-type", "host", "user-agent"),
        }


async def test_an_invalid_base_url_is_rejected_with_one_sentence() -> None:
    model = OpenAIModel(ACME, ApiKey("k"), base_url="http://host:port")
    with pytest.raises(ModelRejected, match="Cannot create the client"):
        await collect(model, make_request())
    await model.close()


async def test_preload_is_optional_and_close_works_without_a_call(server: ScriptedOpenAI) -> None:
    unused = client_of(server)
    unused.preload()
    await unused.close()
    warmed = client_of(server)
    warmed.preload()
    server.add(Scripted(text="well"))
    _, reply = await collect(warmed, make_request())
    assert reply.parts == (Text("well"),)
    await warmed.close()
