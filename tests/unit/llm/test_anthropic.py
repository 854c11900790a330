"""The client for the Messages API against a scripted server."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

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
from internal.llm.anthropic import AnthropicModel
from internal.llm.anthropic_stream import AnthropicResponseReader
from internal.llm.transport import ApiKey
from tests.support.anthropic_server import Call, Fault, ScriptedAnthropic, answer_to
from tests.support.anthropic_server import Reply as Scripted
from tests.support.images import an_image, in_base64
from tests.support.property_examples import examples

CANARY = "sk-ant-canary-0123456789"
LOOK = ToolSpec("look", "Look at a thing.", {"type": "object", "properties": {}}, "read")


def make_request(*messages: Message, **fields: Any) -> ModelRequest:
    sent = messages or (user_message("hi"),)
    return ModelRequest(**{"model": "claude-x", "system": "be brief", "messages": sent, **fields})


@pytest.fixture
async def server() -> AsyncIterator[ScriptedAnthropic]:
    async with ScriptedAnthropic() as fake:
        yield fake


@pytest.fixture
async def model(server: ScriptedAnthropic) -> AsyncIterator[AnthropicModel]:
    client = AnthropicModel(ApiKey(CANARY), base_url=server.base_url, silence_seconds=20)
    yield client
    await client.close()


async def collect(
    model: AnthropicModel, request: ModelRequest
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
    redacted="b3BhcXVl",
    calls=[Call("look", {"at": "你好", "deep": {"n": [1, 2.5, None]}}), Call("look")],
    usage={
        "input_tokens": 11,
        "output_tokens": 7,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 3,
    },
)


async def test_every_kind_of_part_is_received_and_sent_back(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(FULL, Scripted(text="done"))
    deltas, reply = await collect(model, make_request(tools=(LOOK,)))
    assert joined_text(deltas) == "Let me look. 让我看看。"
    assert joined_text(deltas, reasoning=True) == "What would they want?"
    assert sum(piece.n for piece in deltas) == 12
    redacted, thought, text, first, second = reply.parts
    assert redacted == Thinking("", redacted="b3BhcXVl")
    assert isinstance(thought, Thinking)
    assert thought.text == "What would they want?"
    assert text == Text("Let me look. 让我看看。")
    assert isinstance(first, ToolCall)
    assert first.arguments == {"at": "你好", "deep": {"n": [1, 2.5, None]}}
    assert isinstance(second, ToolCall)
    assert (second.name, second.arguments, second.malformed) == ("look", {}, None)
    assert reply.stop == "tools"
    assert reply.usage == Usage(11, 7, 5, 3)
    assert reply.request_id.startswith("req_")
    # the server checks signatures, ids, order and base64 of all that is given back
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
    sent = server.requests[-1]["messages"][2]["content"]
    assert [block["type"] for block in sent] == ["tool_result", "tool_result", "image", "text"]
    assert sent[1]["is_error"] is True
    assert server.connections == 1


async def test_the_prompt_is_cached_after_tools_system_and_the_last_message(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="ok"))
    await collect(model, make_request(tools=(LOOK, replace(LOOK, name="see")), tool_choice="none"))
    sent = server.requests[-1]
    marked = {"type": "ephemeral"}
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, marked]
    assert sent["system"][0]["cache_control"] == marked
    assert sent["messages"][-1]["content"][-1]["cache_control"] == marked
    assert sent["tool_choice"] == {"type": "none"}


async def test_summarized_thinking_is_requested_from_adaptive_models(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="a"), Scripted(text="b", thinking=""))
    await collect(model, make_request(model="claude-sonnet-4-5"))
    assert "thinking" not in server.requests[-1]
    _, reply = await collect(model, make_request(model="claude-opus-5-5"))
    assert server.requests[-1]["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert isinstance(reply.parts[0], Thinking)
    assert reply.parts[0].signature  # thinking without text is sent back as well


async def test_temperature_is_omitted_with_one_warning(
    server: ScriptedAnthropic, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Scripted(text="a", times=2))
    for _ in range(2):
        await collect(model, make_request(temperature=0.3))
    assert sum("temperature" in record.message for record in caplog.records) == 1


async def test_thinking_with_a_rejected_signature_is_omitted_on_retry(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="still here"))
    thought = Thinking("I was elsewhere", signature="of another conversation")
    history = (user_message("hi"), Message("assistant", (thought, Text("ok"))), user_message("go"))
    _, reply = await collect(model, make_request(*history))
    assert reply.parts == (Text("still here"),)
    assert server.count == 2
    assert server.requests[-1]["messages"][1]["content"] == [{"type": "text", "text": "ok"}]


async def test_content_that_providers_reject_is_replaced_or_omitted(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="ok"))
    foreign = Message(
        "assistant", (Thinking("unsigned"), Text("  "), ToolCall("call:1/x", "do it", {}))
    )
    odd = Message("user", (ToolResult("call:1/x", "half \ud83d and \x00\x1b[0m"), Text("\n")))
    await collect(model, make_request(Message("user", (Text(" "),)), foreign, odd, system=" "))
    sent = server.requests[-1]
    assert "system" not in sent
    assert sent["messages"][0]["content"][0]["text"] == "(empty)"
    (call,) = sent["messages"][1]["content"]
    (result,) = sent["messages"][2]["content"]
    assert call["id"] == result["tool_use_id"] == "call_1_x"
    assert result["content"] == "half � and \x00\x1b[0m"


@pytest.mark.parametrize("raw", ['{"at": ', "[1]", "7", "nonsense", '{"a": 1} {', '{"a":"\x01'])
async def test_malformed_arguments_are_kept_raw(
    server: ScriptedAnthropic, model: AnthropicModel, raw: str
) -> None:
    server.add(Scripted(calls=[Call("look", raw=raw)]))
    _, reply = await collect(model, make_request(tools=(LOOK,)))
    (call,) = reply.parts
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.malformed) == ({}, raw)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("end_turn", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("pause_turn", "paused"),
        ("something_new", "end"),
    ],
)
async def test_stop_reasons_are_translated(
    server: ScriptedAnthropic, model: AnthropicModel, stop: str, expected: str
) -> None:
    server.add(Scripted(text="x", stop_reason=stop))
    _, reply = await collect(model, make_request())
    assert reply.stop == expected


async def test_an_empty_reply_is_accepted(server: ScriptedAnthropic, model: AnthropicModel) -> None:
    server.add(Scripted())
    deltas, reply = await collect(model, make_request())
    assert (deltas, reply.parts) == ([], ())


async def test_a_reply_over_the_size_limit_is_truncated(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="word " * 2_000_000, pieces=2_000), Scripted(text="next"))
    _, reply = await collect(model, make_request())
    (text,) = reply.parts
    assert isinstance(text, Text)
    assert reply.stop == "length"
    assert MAX_REPLY_CHARACTERS < len(text.text) < MAX_REPLY_CHARACTERS + 10_000
    _, after = await collect(model, make_request())
    assert after.parts == (Text("next"),)


WHOLE = Scripted(
    text="半个字 and a half",
    pieces=4,
    thinking="hm",
    calls=[Call("look", {"a": 1})],
    usage={"input_tokens": 9},
)
EVENTS = answer_to(WHOLE, {"model": "claude-x"}, b"").events()
WHOLE_BYTES = len(b"".join(EVENTS))
COMPLETE_BYTES = WHOLE_BYTES - len(EVENTS[-1])
"""Length up to the event with the stop reason; later events add nothing to the reply."""
CUTS = [0, 1, len(EVENTS[0]) - 1, len(EVENTS[0]), WHOLE_BYTES // 2, COMPLETE_BYTES - 1]
"""Bytes at the ends and in the middle of a stream and of an event."""


def read_until(where: int) -> ModelResponse | None:
    """Read the stream up to a byte. None: the reader rejects it."""
    reader = AnthropicResponseReader("claude-x")
    reader.feed(b"".join(EVENTS)[:where])
    reader.end()
    try:
        return reader.reply()
    except ModelUnreachable:
        return None


def test_the_reader_rejects_a_stream_cut_at_any_byte() -> None:
    read = [where for where in range(WHOLE_BYTES) if read_until(where) is not None]
    assert read == [*range(COMPLETE_BYTES, WHOLE_BYTES)]
    reply = read_until(COMPLETE_BYTES)
    assert reply is not None
    assert len(reply.parts) == 3


@pytest.mark.parametrize(
    "cuts",
    [CUTS, pytest.param(range(COMPLETE_BYTES), marks=pytest.mark.slow)],
    ids=["some", "every"],
)
@pytest.mark.parametrize("clean", [False, True], ids=["broken", "closed"])
async def test_a_connection_cut_at_any_byte_is_an_error(clean: bool, cuts: Sequence[int]) -> None:
    def cut(request: dict[str, Any]) -> Scripted:
        where = int(request["messages"][-1]["content"][-1]["text"])
        return replace(WHOLE, fault=Fault("cut_after_bytes", bytes=where, clean=clean))

    async def outcome(client: AnthropicModel, where: int) -> ModelResponse | None:
        try:
            _, reply = await collect(client, make_request(user_message(str(where))))
        except ModelUnreachable:
            return None
        return reply

    async with ScriptedAnthropic(cut, record=False) as server:
        model = AnthropicModel(ApiKey("k"), base_url=server.base_url)
        for where in cuts:
            assert await outcome(model, where) is None, where
        reply = await outcome(model, WHOLE_BYTES)
        assert reply is not None  # whole: that the connection then breaks cannot harm it
        assert len(reply.parts) == 3
        await model.close()


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    crlf=st.booleans(),
    pieces=st.integers(1, 12),
)
def test_chunks_of_any_size_give_the_same_reply(sizes: list[int], crlf: bool, pieces: int) -> None:
    async def run() -> tuple[list[TextDelta], ModelResponse]:
        scripted = replace(FULL, chunks=sizes, crlf=crlf, pieces=pieces)
        async with ScriptedAnthropic([scripted]) as server:
            model = AnthropicModel(ApiKey("k"), base_url=server.base_url)
            result = await collect(model, make_request())
            await model.close()
            return result

    deltas, reply = asyncio.run(run())
    assert joined_text(deltas) == FULL.text
    assert joined_text(deltas, reasoning=True) == FULL.thinking
    assert [type(part).__name__ for part in reply.parts] == [
        *("Thinking", "Thinking", "Text", "ToolCall", "ToolCall")
    ]
    assert reply.parts[2] == Text(FULL.text)


TOO_LONG = "prompt is too long: 208656 tokens > 200000 maximum"
TOO_LONG_WITH_REPLY = "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"


@pytest.mark.parametrize(
    ("fault", "expected", "says"),
    [
        (Fault("status", status=401, message="invalid x-api-key"), ModelKeyRejected, "invalid"),
        (Fault("status", status=403, message="no access"), ModelKeyRejected, "ANTHROPIC_API_KEY"),
        (Fault("status", status=413, message="too many bytes"), ContextTooLong, "too many bytes"),
        (Fault("status", status=400, message=TOO_LONG), ContextTooLong, "208656"),
        (Fault("status", status=400, message=TOO_LONG_WITH_REPLY), ContextTooLong, "199000"),
        (Fault("status", status=400, message="tools.0: no"), ModelRejected, "tools.0: no"),
        (Fault("status", status=402, message="no credit"), ModelWithoutCredit, "no credit"),
        (Fault("status", status=404, message="model: claude-y"), ModelRejected, "claude-y"),
        (Fault("status", status=408, message="slow"), ModelUnreachable, "timed out"),
        (Fault("status", status=429, message="slow down"), ModelOverloaded, "slow down"),
        (Fault("status", status=500, message="oh"), ModelOverloaded, "500"),
        (Fault("status", status=503, message="oh"), ModelOverloaded, "503"),
        (Fault("status", status=529), ModelOverloaded, "Overloaded"),
        (Fault("overloaded_in_stream"), ModelOverloaded, "Overloaded"),
        (Fault("overloaded_in_stream", after_pieces=2), ModelOverloaded, "Overloaded"),
        (Fault("error_in_stream", error="rate_limit_error"), ModelOverloaded, "rate"),
        (Fault("error_in_stream", error="api_error"), ModelOverloaded, "unavailable"),
        (Fault("error_in_stream", error="invalid_request_error"), ModelRejected, "rejected the"),
        (Fault("error_in_stream", error="authentication_error"), ModelKeyRejected, "key"),
        (Fault("garbage"), ModelUnreachable, "valid resp"),
        (Fault("garbage", body="<html>login</html>"), ModelUnreachable, "was lost"),
        (Fault("garbage", body='data: {"type": 7}\n\n'), ModelUnreachable, "valid resp"),
        (Fault("garbage", body="data: " + "[" * 100_000 + "\n\n"), ModelUnreachable, "valid resp"),
        (Fault("garbage", body="x" * 26_000_000), ModelUnreachable, "size limit"),
        (
            Fault("garbage", body='data: {"type": "content_block_delta", "delta": {}}\n\n'),
            ModelUnreachable,
            "never started",
        ),
        (
            Fault(
                "garbage",
                body='data: {"type": "content_block_start", "content_block": '
                '{"type": "tool_use"}}\n\n',
            ),
            ModelUnreachable,
            "without a name",
        ),
        (Fault("garbage", body='data: {"type": "message_stop"}\n\n'), ModelUnreachable, "was lost"),
        (Fault("drop"), ModelUnreachable, "Cannot connect"),
    ],
)
async def test_every_failure_has_an_error_type_and_a_one_line_message(
    server: ScriptedAnthropic, model: AnthropicModel, fault: Fault, expected: type, says: str
) -> None:
    server.add(Scripted(text="one two three", pieces=3, fault=fault), Scripted(text="well"))
    with pytest.raises(ModelError) as error:
        await collect(model, make_request())
    assert type(error.value) is expected
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    _, reply = await collect(model, make_request())  # the client is still usable
    assert reply.parts == (Text("well"),)


@pytest.mark.parametrize(("asked", "wait"), [(7, 7.0), (None, None)])
async def test_retry_after_is_part_of_the_error(
    server: ScriptedAnthropic, model: AnthropicModel, asked: float | None, wait: float | None
) -> None:
    server.add(Scripted(fault=Fault("status", status=429, retry_after=asked)))
    with pytest.raises(ModelOverloaded) as error:
        await collect(model, make_request())
    assert error.value.retry_after == wait


async def test_provider_messages_are_truncated_and_sanitized(
    server: ScriptedAnthropic, model: AnthropicModel
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
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    def event(payload: str) -> str:
        return f"data: {payload}\r\n\r\n"

    def delta(text: str) -> str:
        inner = '{"type": "text_delta", "text": "' + text + '"}'
        return event('{"type": "content_block_delta", "index": 0, "delta": ' + inner + "}")

    start = '{"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}'
    stop = '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}'
    body = (
        ": a comment\r\nretry: 5\r\nevent: novelty\r\n"
        + event('{"type": "novelty"}')
        + event('{"type": "message_start", "message": {"usage": null}}')
        + event(start)
        + delta("\\ud83d")
        + delta("\x07\x00")
        + delta("\ud800")
        + delta("\\ud83d\\ude00")
        + event(stop)
        + event('{"type": "message_stop"}')
    )
    server.add(Scripted(fault=Fault("garbage", body=body)))
    _, reply = await collect(model, make_request())
    (text,) = reply.parts
    assert isinstance(text, Text)
    assert text.text.encode()
    assert text.text.startswith("\ufffd\x07\x00")
    assert text.text.endswith("\U0001f600")


async def test_closing_the_generator_closes_the_connection(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="one two three", pieces=3, after_pieces=1, hang=True))
    async with aclosing(model.stream(make_request())) as pieces:
        first = await anext(pieces)
        assert isinstance(first, TextDelta)
        await server.until_open(1)
    await server.until_open(0)


async def test_a_cancel_closes_the_connection(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(hang=True))
    task = asyncio.create_task(collect(model, make_request()))
    await server.until_open(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until_open(0)


async def test_a_silent_stream_times_out() -> None:
    async with ScriptedAnthropic(
        [Scripted(text="a b", pieces=2, after_pieces=1, hang=True)]
    ) as fake:
        model = AnthropicModel(ApiKey("k"), base_url=fake.base_url, silence_seconds=0.2)
        with pytest.raises(ModelUnreachable):
            await collect(model, make_request())
        await model.close()


async def test_concurrent_calls_get_their_own_replies() -> None:
    def echo(request: dict[str, Any]) -> Scripted:
        text = request["messages"][-1]["content"][-1]["text"]
        return Scripted(text=text, pieces=20, packets="each")

    async with ScriptedAnthropic(echo) as server, asyncio.TaskGroup() as group:
        model = AnthropicModel(ApiKey("k"), base_url=server.base_url)
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
    async with ScriptedAnthropic() as gone:
        address = gone.base_url
    model = AnthropicModel(ApiKey(CANARY), base_url=address)
    with pytest.raises(ModelUnreachable, match=r"Cannot connect to Anthropic\.") as error:
        await collect(model, make_request())
    assert address in error.value.detail
    await model.close()


@pytest.mark.parametrize("key", ["", "with\nnewline", "schlüssel", " "])
async def test_an_unusable_key_is_rejected_before_a_request_is_sent(
    server: ScriptedAnthropic, key: str
) -> None:
    model = AnthropicModel(ApiKey(key), base_url=server.base_url)
    with pytest.raises(ModelKeyRejected, match="ANTHROPIC_API_KEY") as error:
        model.check_key()
    with pytest.raises(ModelKeyRejected):
        await collect(model, make_request())
    assert len(str(error.value).splitlines()) == 1
    assert not key.strip() or key not in str(error.value)
    assert server.connections == 0
    await model.close()


async def test_the_key_is_sent_to_the_provider_and_never_shown(
    server: ScriptedAnthropic, model: AnthropicModel, caplog: pytest.LogCaptureFixture
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


async def test_an_invalid_base_url_is_rejected_with_one_sentence() -> None:
    model = AnthropicModel(ApiKey("k"), base_url="http://host:port")
    with pytest.raises(ModelRejected, match="Cannot create the client"):
        await collect(model, make_request())
    await model.close()


async def test_preload_is_optional_and_close_works_without_a_call(
    server: ScriptedAnthropic,
) -> None:
    unused = AnthropicModel(ApiKey("k"), base_url=server.base_url)
    unused.preload()
    await unused.close()
    warmed = AnthropicModel(ApiKey("k"), base_url=server.base_url)
    warmed.preload()
    server.add(Scripted(text="well"))
    _, reply = await collect(warmed, make_request())
    assert reply.parts == (Text("well"),)
    await warmed.close()


async def test_text_in_many_packets_is_read_together(
    server: ScriptedAnthropic, model: AnthropicModel
) -> None:
    server.add(Scripted(text="word " * 400, pieces=400, packets="each"))
    deltas, reply = await collect(model, make_request())
    assert len(deltas) < 50, "140 without"
    assert sum(delta.n for delta in deltas) == 400
    assert reply.parts == (Text("word " * 400),)
